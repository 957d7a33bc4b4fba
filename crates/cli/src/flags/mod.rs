//! The table of flags. Each flag has its own file with its names, help, example and effect.
//! Parsing, `--help`, the man page, the completions and the table of differences from curl are all
//! made from [`FLAGS`].
//!
//! To add a flag, write its file and name it in the two lists below. Tests then check that the
//! table is sorted, names are unique, every flag is documented, and the parser accepts every
//! example.
//!
//! ```
//! use haul_cli::flags;
//!
//! let flag = flags::find_long(b"max-time").unwrap();
//! assert_eq!(flag.spec().short, Some('m'));
//! assert!(flags::find_short(b'm').is_some());
//! ```

pub mod compat;
pub mod curls_help;
pub mod unsupported;

mod abstract_unix_socket;
mod agent;
mod agent_idle;
mod agent_status;
mod agent_stop;
mod alpn;
mod alt_svc;
mod anyauth;
mod aws_sigv4;
mod basic;
mod ca_native;
mod cacert;
mod capath;
mod cert;
mod cert_type;
mod checksum;
mod ciphers;
mod clobber;
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
mod curves;
mod data;
mod data_ascii;
mod data_binary;
mod data_raw;
mod data_urlencode;
mod digest;
mod disable;
mod disallow_username_in_url;
mod dump_header;
mod etag_compare;
mod etag_save;
mod expect100_timeout;
mod extract;
mod extract_bytes;
mod fail;
mod fail_early;
mod fail_with_body;
pub(crate) mod field;
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
mod help;
mod host;
mod hsts;
mod http0_9;
mod http1_0;
mod http1_1;
mod http2;
mod http2_prior_knowledge;
mod ignore_content_length;
mod include;
mod inert;
mod input_file;
mod insecure;
mod interface;
mod ip_tos;
mod ipv4;
mod ipv6;
mod json;
mod junk_session_cookies;
mod keepalive;
mod keepalive_cnt;
mod keepalive_intvl;
mod keepalive_time;
mod key;
mod key_type;
mod limit_rate;
mod local_port;
mod location;
mod location_trusted;
mod manual;
mod max_filesize;
mod max_memory;
mod max_redirs;
mod max_time;
mod netrc;
mod netrc_file;
mod netrc_optional;
mod next;
mod no_buffer;
mod noproxy;
mod oauth2_bearer;
mod out_null;
mod output;
mod output_dir;
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
mod proxy_pass;
mod proxy_pinnedpubkey;
mod proxy_tls13_ciphers;
mod proxy_user;
mod proxytunnel;
mod range;
mod rate;
mod raw;
mod referer;
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
mod sessionid;
mod show_error;
mod show_headers;
mod silent;
mod skip_existing;
mod socks4;
mod socks4a;
mod socks5;
mod socks5_basic;
mod socks5_hostname;
mod sort;
mod speed_limit;
mod speed_time;
mod split;
mod stats;
mod stderr;
mod styled_output;
mod suppress_connect_headers;
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
mod write_out;
mod xattr;

use crate::args::LowArgs;
use crate::usage::Reason;
use crate::value::FlagValue;

/// The imports of each flag's file.
mod prelude {
    pub(super) use super::{Category, Flag, Spec, Takes};
    pub(super) use crate::args::LowArgs;
    pub(super) use crate::usage::Reason;
    pub(super) use crate::value::FlagValue;
}

/// One flag.
pub trait Flag: Sync {
    /// Returns the names and the documentation of the flag.
    fn spec(&self) -> &'static Spec;

    /// Stores the value, or returns the reason why it is refused.
    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason>;
}

/// Names and documentation of a flag.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Name after `--`.
    pub long: &'static str,
    /// Letter after `-`.
    pub short: Option<char>,
    /// The value that follows the flag, if any.
    pub takes: Takes,
    /// The chapter of the help that lists the flag.
    pub category: Category,
    /// The short help shows the flag.
    pub important: bool,
    /// The effect of the flag, in a few words.
    pub help: &'static str,
    /// The effect of the flag in sentences, with default, unit and hazards.
    pub doc: &'static str,
    /// A command line that shows it.
    pub example: &'static str,
    /// Long names of related flags.
    pub see_also: &'static [&'static str],
}

/// The value that a flag expects after its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// No value; `--no-` turns the flag off.
    Switch,
    /// No value; there is no `--no-` form.
    Once,
    /// A value of this kind. A `file` that begins with a dash is warned about.
    Value(&'static str),
    /// A value, only as `--name=value`, or nothing.
    Optional(&'static str),
    /// The argument that follows, if there is one.
    Trailing(&'static str),
}

impl Takes {
    /// Returns true if the rest of a bundle of letters is this flag's value.
    pub fn is_glued(self) -> bool {
        matches!(self, Takes::Value(_) | Takes::Optional(_) | Takes::Trailing(_))
    }
}

/// The chapters of the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// User names, passwords, tokens.
    Auth,
    /// The connections of a transfer.
    Connection,
    /// Extraction from pages, and the stages it feeds.
    Extract,
    /// The program itself.
    General,
    /// Requests and responses.
    Http,
    /// The destination of bodies.
    Output,
    /// Several transfers at a time.
    Parallel,
    /// Requests with a body.
    Post,
    /// Proxies.
    Proxy,
    /// Limits of time and size, retries.
    Limits,
    /// Certificates and versions of TLS.
    Tls,
    /// The reports about transfers.
    Verbose,
}

impl Category {
    /// Every category, sorted by name.
    pub const ALL: &[Category] = &[
        Category::Auth,
        Category::Connection,
        Category::Extract,
        Category::General,
        Category::Http,
        Category::Limits,
        Category::Output,
        Category::Parallel,
        Category::Post,
        Category::Proxy,
        Category::Tls,
        Category::Verbose,
    ];

    /// The name that `--help` takes.
    pub fn name(self) -> &'static str {
        match self {
            Category::Auth => "auth",
            Category::Connection => "connection",
            Category::Extract => "extract",
            Category::General => "general",
            Category::Http => "http",
            Category::Limits => "limits",
            Category::Output => "output",
            Category::Parallel => "parallel",
            Category::Post => "post",
            Category::Proxy => "proxy",
            Category::Tls => "tls",
            Category::Verbose => "verbose",
        }
    }

    /// Returns the title of the category.
    pub fn about(self) -> &'static str {
        match self {
            Category::Auth => "Authentication",
            Category::Connection => "Where connections lead",
            Category::Extract => "Extraction and stages",
            Category::General => "The program itself",
            Category::Http => "HTTP requests and replies",
            Category::Limits => "Time limits, size limits and retries",
            Category::Output => "Where bodies go",
            Category::Parallel => "Many transfers at once",
            Category::Post => "Requests with a body",
            Category::Proxy => "Proxies",
            Category::Tls => "TLS",
            Category::Verbose => "What is told about transfers",
        }
    }
}

/// Every flag, sorted by long name.
pub const FLAGS: &[&dyn Flag] = &[
    &abstract_unix_socket::AbstractUnixSocket,
    &agent::Agent,
    &agent_idle::AgentIdle,
    &agent_status::AgentStatus,
    &agent_stop::AgentStop,
    &alpn::Alpn,
    &alt_svc::AltSvc,
    &anyauth::Anyauth,
    &inert::APPEND,
    &aws_sigv4::AwsSigV4,
    &basic::Basic,
    &ca_native::CaNative,
    &cacert::Cacert,
    &capath::Capath,
    &cert::Cert,
    &cert_type::CertType,
    &checksum::Checksum,
    &ciphers::Ciphers,
    &clobber::Clobber,
    &compressed::Compressed,
    &config::Config,
    &connect_timeout::ConnectTimeout,
    &connect_to::ConnectTo,
    &continue_at::ContinueAt,
    &cookie::Cookie,
    &cookie_jar::CookieJar,
    &create_dirs::CreateDirs,
    &create_file_mode::CreateFileMode,
    &inert::CRLF,
    &crlfile::Crlfile,
    &curves::Curves,
    &data::Data,
    &data_ascii::DataAscii,
    &data_binary::DataBinary,
    &data_raw::DataRaw,
    &data_urlencode::DataUrlencode,
    &inert::DELEGATION,
    &digest::Digest,
    &disable::Disable,
    &inert::DISABLE_EPRT,
    &inert::DISABLE_EPSV,
    &disallow_username_in_url::DisallowUsernameInUrl,
    &dump_header::DumpHeader,
    &inert::EGD_FILE,
    &etag_compare::EtagCompare,
    &etag_save::EtagSave,
    &expect100_timeout::Expect100Timeout,
    &extract::Extract,
    &extract_bytes::ExtractBytes,
    &fail::Fail,
    &fail_early::FailEarly,
    &fail_with_body::FailWithBody,
    &inert::FALSE_START,
    &follow::Follow,
    &form::Form,
    &form_escape::FormEscape,
    &form_string::FormString,
    &fsync::Fsync,
    &inert::FTP_CREATE_DIRS,
    &inert::FTP_PASV,
    &inert::FTP_PORT,
    &inert::FTP_SKIP_PASV_IP,
    &get::Get,
    &globoff::Globoff,
    &happy_eyeballs_timeout_ms::HappyEyeballsTimeoutMs,
    &haproxy_clientip::HaproxyClientip,
    &haproxy_protocol::HaproxyProtocol,
    &head::Head,
    &header::Header,
    &help::Help,
    &hsts::Hsts,
    &http0_9::Http09,
    &http1_0::Http10,
    &http1_1::Http11,
    &http2::Http2,
    &http2_prior_knowledge::Http2PriorKnowledge,
    &ignore_content_length::IgnoreContentLength,
    &include::Include,
    &input_file::InputFile,
    &insecure::Insecure,
    &interface::Interface,
    &ip_tos::IpTos,
    &ipv4::Ipv4,
    &ipv6::Ipv6,
    &json::Json,
    &junk_session_cookies::JunkSessionCookies,
    &keepalive::Keepalive,
    &keepalive_cnt::KeepaliveCnt,
    &keepalive_intvl::KeepaliveIntvl,
    &keepalive_time::KeepaliveTime,
    &key::Key,
    &key_type::KeyType,
    &limit_rate::LimitRate,
    &local_port::LocalPort,
    &location::Location,
    &location_trusted::LocationTrusted,
    &manual::Manual,
    &max_filesize::MaxFilesize,
    &max_memory::MaxMemory,
    &max_redirs::MaxRedirs,
    &max_time::MaxTime,
    &netrc::Netrc,
    &netrc_file::NetrcFile,
    &netrc_optional::NetrcOptional,
    &next::Next,
    &no_buffer::NoBuffer,
    &noproxy::Noproxy,
    &inert::NPN,
    &oauth2_bearer::Oauth2Bearer,
    &out_null::OutNull,
    &output::Output,
    &output_dir::OutputDir,
    &parallel::Parallel,
    &parallel_immediate::ParallelImmediate,
    &parallel_max::ParallelMax,
    &parallel_max_host::ParallelMaxHost,
    &pass::Pass,
    &path_as_is::PathAsIs,
    &pinnedpubkey::Pinnedpubkey,
    &pipeline::Pipeline,
    &post301::Post301,
    &post302::Post302,
    &post303::Post303,
    &preproxy::Preproxy,
    &progress_bar::ProgressBar,
    &progress_meter::ProgressMeter,
    &proto::Proto,
    &proto_default::ProtoDefault,
    &proto_redir::ProtoRedir,
    &proxy::Proxy,
    &proxy_anyauth::ProxyAnyauth,
    &proxy_basic::ProxyBasic,
    &proxy_ca_native::ProxyCaNative,
    &proxy_cacert::ProxyCacert,
    &proxy_capath::ProxyCapath,
    &proxy_cert::ProxyCert,
    &proxy_cert_type::ProxyCertType,
    &proxy_ciphers::ProxyCiphers,
    &proxy_crlfile::ProxyCrlfile,
    &proxy_digest::ProxyDigest,
    &proxy_header::ProxyHeader,
    &proxy_http2::ProxyHttp2,
    &proxy_insecure::ProxyInsecure,
    &proxy_key::ProxyKey,
    &proxy_key_type::ProxyKeyType,
    &proxy_pass::ProxyPass,
    &proxy_pinnedpubkey::ProxyPinnedpubkey,
    &inert::PROXY_SERVICE_NAME,
    &inert::PROXY_SSL_ALLOW_BEAST,
    &inert::PROXY_SSL_AUTO_CLIENT_CERT,
    &proxy_tls13_ciphers::ProxyTls13Ciphers,
    &inert::PROXY_TLSV1,
    &proxy_user::ProxyUser,
    &proxy1_0::Proxy10,
    &proxytunnel::Proxytunnel,
    &inert::RANDOM_FILE,
    &range::Range,
    &rate::Rate,
    &raw::Raw,
    &referer::Referer,
    &remote_header_name::RemoteHeaderName,
    &remote_name::RemoteName,
    &remote_name_all::RemoteNameAll,
    &remote_time::RemoteTime,
    &remove_on_error::RemoveOnError,
    &request::Request,
    &request_target::RequestTarget,
    &resolve::Resolve,
    &retry::Retry,
    &retry_all_errors::RetryAllErrors,
    &retry_connrefused::RetryConnrefused,
    &retry_delay::RetryDelay,
    &retry_max_time::RetryMaxTime,
    &inert::SERVICE_NAME,
    &sessionid::Sessionid,
    &show_error::ShowError,
    &show_headers::ShowHeaders,
    &silent::Silent,
    &skip_existing::SkipExisting,
    &socks4::Socks4,
    &socks4a::Socks4a,
    &socks5::Socks5,
    &socks5_basic::Socks5Basic,
    &inert::SOCKS5_GSSAPI_NEC,
    &inert::SOCKS5_GSSAPI_SERVICE,
    &socks5_hostname::Socks5Hostname,
    &sort::Sort,
    &speed_limit::SpeedLimit,
    &speed_time::SpeedTime,
    &split::Split,
    &inert::SSL,
    &inert::SSL_ALLOW_BEAST,
    &inert::SSL_AUTO_CLIENT_CERT,
    &inert::SSL_NO_REVOKE,
    &inert::SSL_REQD,
    &inert::SSL_REVOKE_BEST_EFFORT,
    &inert::SSLV2,
    &inert::SSLV3,
    &stats::Stats,
    &stderr::Stderr,
    &styled_output::StyledOutput,
    &suppress_connect_headers::SuppressConnectHeaders,
    &inert::TCP_FASTOPEN,
    &inert::TCP_NODELAY,
    &then::Then,
    &threads::Threads,
    &time_cond::TimeCond,
    &tls_max::TlsMax,
    &tls13_ciphers::Tls13Ciphers,
    &tlsv1::Tlsv1,
    &tlsv1_0::Tlsv10,
    &tlsv1_1::Tlsv11,
    &tlsv1_2::Tlsv12,
    &tlsv1_3::Tlsv13,
    &tr_encoding::TrEncoding,
    &trace::Trace,
    &trace_ascii::TraceAscii,
    &trace_config::TraceConfig,
    &trace_ids::TraceIds,
    &trace_time::TraceTime,
    &unique::Unique,
    &unix_socket::UnixSocket,
    &unordered::Unordered,
    &upload_file::UploadFile,
    &url::Url,
    &url_query::UrlQuery,
    &inert::USE_ASCII,
    &user::User,
    &user_agent::UserAgent,
    &variable::Variable,
    &verbose::Verbose,
    &version::Version,
    &vlan_priority::VlanPriority,
    &write_out::WriteOut,
    &xattr::Xattr,
];

/// The flag of a long name. The table is searched where it lies: a map would have to be built
/// at every start.
pub fn find_long(name: &[u8]) -> Option<&'static dyn Flag> {
    let found = FLAGS.binary_search_by(|flag| flag.spec().long.as_bytes().cmp(name));
    found.ok().map(|at| FLAGS[at])
}

/// The flag of a letter.
pub fn find_short(letter: u8) -> Option<&'static dyn Flag> {
    let letter = Some(char::from(letter));
    FLAGS.iter().copied().find(|flag| flag.spec().short == letter)
}

#[cfg(test)]
mod tests;
