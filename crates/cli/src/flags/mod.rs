//! The table of flags. Each flag has a file with its names, help, example and effect. Parsing,
//! `--help`, the man page, the completions and the table of differences from curl are all generated
//! from [`FLAGS`].
//!
//! To add a flag, write its file and add it to the modules below and to `flag_table.rs`. If it has
//! a letter, add the letter to `letters.rs`. Tests then check that the table is sorted, names are
//! unique, every flag is documented, and the parser accepts every example.
//!
//! ```
//! use haul_cli::flags;
//!
//! let flag = flags::find_long(b"max-time").unwrap();
//! assert_eq!(flag.spec().short, Some('m'));
//! assert!(flags::find_short(b'm').is_some());
//! ```

pub mod curl_compat_page;
pub mod curl_help_categories;
pub mod unsupported;

mod abstract_unix_socket;
mod agent;
mod agent_idle;
mod agent_status;
mod agent_stop;
mod allow_body_files;
mod alpn;
mod alt_svc;
mod anyauth;
mod aws_sigv4;
mod basic;
mod ca_native;
mod cacert;
mod capath;
mod cert;
mod cert_status;
mod cert_type;
mod checksum;
mod ciphers;
mod clobber;
mod colon_separated_values;
mod compressed;
mod config;
mod connect_timeout;
mod connect_to;
mod continue_at;
mod cookie;
mod cookie_jar;
mod create_dirs;
mod create_file_mode;
mod crlfile;
mod csv;
mod csv_in;
mod curves;
mod data;
mod data_ascii;
mod data_binary;
mod data_raw;
mod data_urlencode;
mod delegation;
mod depth;
mod digest;
mod disable;
mod disallow_username_in_url;
mod dns_interface;
mod dns_ipv4_addr;
mod dns_ipv6_addr;
mod dns_servers;
mod doh_insecure;
mod doh_url;
mod dump_header;
mod ech;
mod etag_compare;
mod etag_save;
mod events;
mod expect100_timeout;
mod extract;
mod extract_bytes;
mod fail;
mod fail_early;
mod fail_with_body;
mod flag_spec;
mod flag_table;
mod follow;
mod form;
mod form_escape;
mod form_string;
mod fsync;
mod get;
mod globoff;
mod happy_eyeballs_timeout_ms;
mod haproxy_clientip;
mod haproxy_protocol;
mod head;
mod header;
pub(crate) mod header_value_parser;
mod help;
mod hsts;
mod http0_9;
mod http1_0;
mod http1_1;
mod http2;
mod http2_prior_knowledge;
mod http3;
mod http3_only;
mod httpsig_algo;
mod httpsig_headers;
mod httpsig_key;
mod httpsig_keyid;
mod ignore_content_length;
mod include;
mod input_file;
mod insecure;
mod interface;
mod ip_tos;
mod ipv4;
mod ipv6;
mod job;
mod json;
mod jsonl;
mod jsonl_in;
mod junk_session_cookies;
mod keepalive;
mod keepalive_cnt;
mod keepalive_intvl;
mod keepalive_time;
mod key;
mod key_type;
mod letters;
mod limit_rate;
mod limit_rate_total;
mod local_port;
mod location;
mod location_trusted;
mod manual;
mod max_filesize;
mod max_memory;
mod max_redirs;
mod max_time;
mod mirror_paths;
mod mptcp;
mod negotiate;
mod netrc;
mod netrc_file;
mod netrc_optional;
mod next;
mod no_buffer;
mod no_effect;
mod noproxy;
mod oauth2_bearer;
mod out_null;
mod output;
mod output_dir;
mod paginate;
mod paginate_any;
mod paginate_json;
mod paginate_max;
mod paginate_query;
mod parallel;
mod parallel_immediate;
mod parallel_max;
mod parallel_max_host;
mod pass;
mod path_as_is;
mod pinnedpubkey;
mod pipeline;
mod post301;
mod post302;
mod post303;
mod preproxy;
mod progress_bar;
mod progress_meter;
mod proto;
mod proto_default;
mod proto_redir;
mod proxy;
mod proxy1_0;
mod proxy_anyauth;
mod proxy_basic;
mod proxy_ca_native;
mod proxy_cacert;
mod proxy_capath;
mod proxy_cert;
mod proxy_cert_type;
mod proxy_ciphers;
mod proxy_crlfile;
mod proxy_digest;
mod proxy_header;
mod proxy_http2;
mod proxy_insecure;
mod proxy_key;
mod proxy_key_type;
mod proxy_negotiate;
mod proxy_pass;
mod proxy_pinnedpubkey;
mod proxy_service_name;
mod proxy_tls13_ciphers;
mod proxy_user;
mod proxytunnel;
mod range;
mod rate;
mod rate_host;
mod raw;
mod referer;
mod refresh;
mod remote_header_name;
mod remote_name;
mod remote_name_all;
mod remote_time;
mod remove_on_error;
mod request;
mod request_target;
mod resolve;
mod retry;
mod retry_all_errors;
mod retry_connrefused;
mod retry_delay;
mod retry_max_time;
mod select;
mod select_json;
mod service_name;
mod sessionid;
mod shard;
mod show_error;
mod show_headers;
mod sigalgs;
mod silent;
mod skip_existing;
mod socks4;
mod socks4a;
mod socks5;
mod socks5_basic;
mod socks5_gssapi;
mod socks5_gssapi_nec;
mod socks5_gssapi_service;
mod socks5_hostname;
mod sort;
mod speed_limit;
mod speed_time;
mod split;
mod stall_time;
mod stats;
mod stderr;
mod styled_output;
mod summary;
mod suppress_connect_headers;
mod tcp_fastopen;
mod then;
mod threads;
mod time_cond;
mod tls13_ciphers;
mod tls_max;
mod tlsv1;
mod tlsv1_0;
mod tlsv1_1;
mod tlsv1_2;
mod tlsv1_3;
mod tr_encoding;
mod trace;
mod trace_ascii;
mod trace_config;
mod trace_ids;
mod trace_time;
mod tsv_in;
mod unique;
mod unix_socket;
mod unordered;
mod upload_file;
mod url;
mod url_query;
mod user;
mod user_agent;
mod variable;
mod verbose;
mod version;
mod vlan_priority;
mod warc;
mod warc_max_size;
mod warc_secrets;
mod with_url;
mod write_out;
mod xattr;

pub use flag_spec::{FlagSpec, FlagSyntax, HelpCategory};
pub use flag_table::{FLAGS, Flag};

/// The imports that the file of each flag needs.
mod prelude {
    pub(super) use super::flag_spec::{FlagDefinition, FlagSpec, FlagSyntax, HelpCategory};
    pub(super) use crate::flag_value::FlagValue;
    pub(super) use crate::parsed_args::ParsedArgs;
    pub(super) use crate::usage_error::UsageErrorReason;
}

/// Returns the flag with this long name; `None` if no flag has it. A binary search needs no map,
/// which would have to be built at every start.
pub fn find_long(name: &[u8]) -> Option<Flag> {
    let found = FLAGS.binary_search_by(|flag| flag.long().as_bytes().cmp(name));
    found.ok().map(|at| FLAGS[at])
}

/// Returns the flag with this letter, such as `m` for `-m`; `None` if no flag has it.
pub fn find_short(letter: u8) -> Option<Flag> {
    find_long(letters::long_name(letter)?.as_bytes())
}

#[cfg(test)]
mod tests;
