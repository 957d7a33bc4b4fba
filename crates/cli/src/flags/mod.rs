//! The table of flags. Each flag has a file with its names, help, example and effect. Parsing,
//! `--help`, the man page, the completions and the table of differences from curl are all generated
//! from [`FLAGS`].
//!
//! To add a flag, write its file and add it to the two lists below. If it has a letter, add the letter to
//! `letters.rs`. Tests then check that the table is sorted, names are unique, every flag is
//! documented, and the parser accepts every example.
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

pub use flag_spec::{Flag, FlagSpec, FlagSyntax, HelpCategory};

/// The imports that the file of each flag needs.
mod prelude {
    pub(super) use super::{Flag, FlagSpec, FlagSyntax, HelpCategory};
    pub(super) use crate::flag_value::FlagValue;
    pub(super) use crate::parsed_args::ParsedArgs;
    pub(super) use crate::usage_error::UsageErrorReason;
}

/// Every flag, sorted by long name.
pub const FLAGS: &[&dyn Flag] = &[
    &abstract_unix_socket::AbstractUnixSocketFlag,
    &agent::AgentFlag,
    &agent_idle::AgentIdleFlag,
    &agent_status::AgentStatusFlag,
    &agent_stop::AgentStopFlag,
    &allow_body_files::AllowBodyFilesFlag,
    &alpn::AlpnFlag,
    &alt_svc::AltSvcFlag,
    &anyauth::AnyauthFlag,
    &no_effect::APPEND,
    &aws_sigv4::AwsSigV4Flag,
    &basic::BasicFlag,
    &ca_native::CaNativeFlag,
    &cacert::CacertFlag,
    &capath::CapathFlag,
    &cert::CertFlag,
    &cert_status::CertStatusFlag,
    &cert_type::CertTypeFlag,
    &checksum::ChecksumFlag,
    &ciphers::CiphersFlag,
    &clobber::ClobberFlag,
    &compressed::CompressedFlag,
    &config::ConfigFlag,
    &connect_timeout::ConnectTimeoutFlag,
    &connect_to::ConnectToFlag,
    &continue_at::ContinueAtFlag,
    &cookie::CookieFlag,
    &cookie_jar::CookieJarFlag,
    &create_dirs::CreateDirsFlag,
    &create_file_mode::CreateFileModeFlag,
    &no_effect::CRLF,
    &crlfile::CrlfileFlag,
    &csv::CsvFlag,
    &csv_in::CsvInFlag,
    &curves::CurvesFlag,
    &data::DataFlag,
    &data_ascii::DataAsciiFlag,
    &data_binary::DataBinaryFlag,
    &data_raw::DataRawFlag,
    &data_urlencode::DataUrlencodeFlag,
    &delegation::DelegationFlag,
    &depth::DepthFlag,
    &digest::DigestFlag,
    &disable::DisableFlag,
    &no_effect::DISABLE_EPRT,
    &no_effect::DISABLE_EPSV,
    &disallow_username_in_url::DisallowUsernameInUrlFlag,
    &dns_interface::DnsInterfaceFlag,
    &dns_ipv4_addr::DnsIpv4AddrFlag,
    &dns_ipv6_addr::DnsIpv6AddrFlag,
    &dns_servers::DnsServersFlag,
    &doh_insecure::DohInsecureFlag,
    &doh_url::DohUrlFlag,
    &dump_header::DumpHeaderFlag,
    &ech::EchFlag,
    &no_effect::EGD_FILE,
    &etag_compare::EtagCompareFlag,
    &etag_save::EtagSaveFlag,
    &events::EventsFlag,
    &expect100_timeout::Expect100TimeoutFlag,
    &extract::ExtractFlag,
    &extract_bytes::ExtractBytesFlag,
    &fail::FailFlag,
    &fail_early::FailEarlyFlag,
    &fail_with_body::FailWithBodyFlag,
    &no_effect::FALSE_START,
    &follow::FollowFlag,
    &form::FormFlag,
    &form_escape::FormEscapeFlag,
    &form_string::FormStringFlag,
    &fsync::FsyncFlag,
    &no_effect::FTP_CREATE_DIRS,
    &no_effect::FTP_PASV,
    &no_effect::FTP_PORT,
    &no_effect::FTP_SKIP_PASV_IP,
    &get::GetFlag,
    &globoff::GloboffFlag,
    &happy_eyeballs_timeout_ms::HappyEyeballsTimeoutMsFlag,
    &haproxy_clientip::HaproxyClientipFlag,
    &haproxy_protocol::HaproxyProtocolFlag,
    &head::HeadFlag,
    &header::HeaderFlag,
    &help::HelpFlag,
    &hsts::HstsFlag,
    &http0_9::Http09Flag,
    &http1_0::Http10Flag,
    &http1_1::Http11Flag,
    &http2::Http2Flag,
    &http2_prior_knowledge::Http2PriorKnowledgeFlag,
    &http3::Http3Flag,
    &http3_only::Http3OnlyFlag,
    &httpsig_algo::HttpsigAlgoFlag,
    &httpsig_headers::HttpsigHeadersFlag,
    &httpsig_key::HttpsigKeyFlag,
    &httpsig_keyid::HttpsigKeyidFlag,
    &ignore_content_length::IgnoreContentLengthFlag,
    &include::IncludeFlag,
    &input_file::InputFileFlag,
    &insecure::InsecureFlag,
    &interface::InterfaceFlag,
    &ip_tos::IpTosFlag,
    &ipv4::Ipv4Flag,
    &ipv6::Ipv6Flag,
    &job::JobFlag,
    &json::JsonFlag,
    &jsonl::JsonlFlag,
    &jsonl_in::JsonlInFlag,
    &junk_session_cookies::JunkSessionCookiesFlag,
    &keepalive::KeepaliveFlag,
    &keepalive_cnt::KeepaliveCntFlag,
    &keepalive_intvl::KeepaliveIntvlFlag,
    &keepalive_time::KeepaliveTimeFlag,
    &key::KeyFlag,
    &key_type::KeyTypeFlag,
    &limit_rate::LimitRateFlag,
    &limit_rate_total::LimitRateTotalFlag,
    &local_port::LocalPortFlag,
    &location::LocationFlag,
    &location_trusted::LocationTrustedFlag,
    &manual::ManualFlag,
    &max_filesize::MaxFilesizeFlag,
    &max_memory::MaxMemoryFlag,
    &max_redirs::MaxRedirsFlag,
    &max_time::MaxTimeFlag,
    &mirror_paths::MirrorPathsFlag,
    &mptcp::MptcpFlag,
    &negotiate::NegotiateFlag,
    &netrc::NetrcFlag,
    &netrc_file::NetrcFileFlag,
    &netrc_optional::NetrcOptionalFlag,
    &next::NextFlag,
    &no_buffer::NoBufferFlag,
    &noproxy::NoproxyFlag,
    &no_effect::NPN,
    &oauth2_bearer::Oauth2BearerFlag,
    &out_null::OutNullFlag,
    &output::OutputFlag,
    &output_dir::OutputDirFlag,
    &paginate::PaginateFlag,
    &paginate_any::PaginateAnyFlag,
    &paginate_json::PaginateJsonFlag,
    &paginate_max::PaginateMaxFlag,
    &paginate_query::PaginateQueryFlag,
    &parallel::ParallelFlag,
    &parallel_immediate::ParallelImmediateFlag,
    &parallel_max::ParallelMaxFlag,
    &parallel_max_host::ParallelMaxHostFlag,
    &pass::PassFlag,
    &path_as_is::PathAsIsFlag,
    &pinnedpubkey::PinnedpubkeyFlag,
    &pipeline::PipelineFlag,
    &post301::Post301Flag,
    &post302::Post302Flag,
    &post303::Post303Flag,
    &preproxy::PreproxyFlag,
    &progress_bar::ProgressBarFlag,
    &progress_meter::ProgressMeterFlag,
    &proto::ProtoFlag,
    &proto_default::ProtoDefaultFlag,
    &proto_redir::ProtoRedirFlag,
    &proxy::ProxyFlag,
    &proxy_anyauth::ProxyAnyauthFlag,
    &proxy_basic::ProxyBasicFlag,
    &proxy_ca_native::ProxyCaNativeFlag,
    &proxy_cacert::ProxyCacertFlag,
    &proxy_capath::ProxyCapathFlag,
    &proxy_cert::ProxyCertFlag,
    &proxy_cert_type::ProxyCertTypeFlag,
    &proxy_ciphers::ProxyCiphersFlag,
    &proxy_crlfile::ProxyCrlfileFlag,
    &proxy_digest::ProxyDigestFlag,
    &proxy_header::ProxyHeaderFlag,
    &proxy_http2::ProxyHttp2Flag,
    &proxy_insecure::ProxyInsecureFlag,
    &proxy_key::ProxyKeyFlag,
    &proxy_key_type::ProxyKeyTypeFlag,
    &proxy_negotiate::ProxyNegotiateFlag,
    &proxy_pass::ProxyPassFlag,
    &proxy_pinnedpubkey::ProxyPinnedpubkeyFlag,
    &proxy_service_name::ProxyServiceNameFlag,
    &no_effect::PROXY_SSL_ALLOW_BEAST,
    &no_effect::PROXY_SSL_AUTO_CLIENT_CERT,
    &proxy_tls13_ciphers::ProxyTls13CiphersFlag,
    &no_effect::PROXY_TLSV1,
    &proxy_user::ProxyUserFlag,
    &proxy1_0::Proxy10Flag,
    &proxytunnel::ProxytunnelFlag,
    &no_effect::RANDOM_FILE,
    &range::RangeFlag,
    &rate::RateFlag,
    &rate_host::RateHostFlag,
    &raw::RawFlag,
    &referer::RefererFlag,
    &refresh::RefreshFlag,
    &remote_header_name::RemoteHeaderNameFlag,
    &remote_name::RemoteNameFlag,
    &remote_name_all::RemoteNameAllFlag,
    &remote_time::RemoteTimeFlag,
    &remove_on_error::RemoveOnErrorFlag,
    &request::RequestFlag,
    &request_target::RequestTargetFlag,
    &resolve::ResolveFlag,
    &retry::RetryFlag,
    &retry_all_errors::RetryAllErrorsFlag,
    &retry_connrefused::RetryConnrefusedFlag,
    &retry_delay::RetryDelayFlag,
    &retry_max_time::RetryMaxTimeFlag,
    &select::SelectFlag,
    &select_json::SelectJsonFlag,
    &service_name::ServiceNameFlag,
    &sessionid::SessionidFlag,
    &shard::ShardFlag,
    &show_error::ShowErrorFlag,
    &show_headers::ShowHeadersFlag,
    &sigalgs::SigalgsFlag,
    &silent::SilentFlag,
    &skip_existing::SkipExistingFlag,
    &socks4::Socks4Flag,
    &socks4a::Socks4aFlag,
    &socks5::Socks5Flag,
    &socks5_basic::Socks5BasicFlag,
    &socks5_gssapi::Socks5GssapiFlag,
    &socks5_gssapi_nec::Socks5GssapiNecFlag,
    &socks5_gssapi_service::Socks5GssapiServiceFlag,
    &socks5_hostname::Socks5HostnameFlag,
    &sort::SortFlag,
    &speed_limit::SpeedLimitFlag,
    &speed_time::SpeedTimeFlag,
    &split::SplitFlag,
    &no_effect::SSL,
    &no_effect::SSL_ALLOW_BEAST,
    &no_effect::SSL_AUTO_CLIENT_CERT,
    &no_effect::SSL_NO_REVOKE,
    &no_effect::SSL_REQD,
    &no_effect::SSL_REVOKE_BEST_EFFORT,
    &no_effect::SSLV2,
    &no_effect::SSLV3,
    &stall_time::StallTimeFlag,
    &stats::StatsFlag,
    &stderr::StderrFlag,
    &styled_output::StyledOutputFlag,
    &summary::SummaryFlag,
    &suppress_connect_headers::SuppressConnectHeadersFlag,
    &tcp_fastopen::TcpFastopenFlag,
    &no_effect::TCP_NODELAY,
    &then::ThenFlag,
    &threads::ThreadsFlag,
    &time_cond::TimeCondFlag,
    &tls_max::TlsMaxFlag,
    &tls13_ciphers::Tls13CiphersFlag,
    &tlsv1::Tlsv1Flag,
    &tlsv1_0::Tlsv10Flag,
    &tlsv1_1::Tlsv11Flag,
    &tlsv1_2::Tlsv12Flag,
    &tlsv1_3::Tlsv13Flag,
    &tr_encoding::TrEncodingFlag,
    &trace::TraceFlag,
    &trace_ascii::TraceAsciiFlag,
    &trace_config::TraceConfigFlag,
    &trace_ids::TraceIdsFlag,
    &trace_time::TraceTimeFlag,
    &tsv_in::TsvInFlag,
    &unique::UniqueFlag,
    &unix_socket::UnixSocketFlag,
    &unordered::UnorderedFlag,
    &upload_file::UploadFileFlag,
    &url::UrlFlag,
    &url_query::UrlQueryFlag,
    &no_effect::USE_ASCII,
    &user::UserFlag,
    &user_agent::UserAgentFlag,
    &variable::VariableFlag,
    &verbose::VerboseFlag,
    &version::VersionFlag,
    &vlan_priority::VlanPriorityFlag,
    &warc::WarcFlag,
    &warc_max_size::WarcMaxSizeFlag,
    &warc_secrets::WarcSecretsFlag,
    &with_url::WithUrlFlag,
    &write_out::WriteOutFlag,
    &xattr::XattrFlag,
];

/// Returns the flag with this long name. A binary search needs no map, which would have to be built
/// at every start.
pub fn find_long(name: &[u8]) -> Option<&'static dyn Flag> {
    let found = FLAGS.binary_search_by(|flag| flag.long().as_bytes().cmp(name));
    found.ok().map(|at| FLAGS[at])
}

/// Returns the flag with this letter, such as `m` for `-m`.
pub fn find_short(letter: u8) -> Option<&'static dyn Flag> {
    find_long(letters::long_name(letter)?.as_bytes())
}

#[cfg(test)]
mod tests;
