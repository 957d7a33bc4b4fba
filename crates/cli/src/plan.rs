//! The plan: a command line with everything resolved that needs no network.
//!
//! [`crate::resolve::resolve`] makes it from [`crate::args::LowArgs`]: files that options name are
//! read, outputs stand beside their URLs, defaults are filled in, contradictions are refused.
//! The engine's side of the program reads the plan and nothing else.
//!
//! ```
//! use haul_cli::{files::SystemFiles, parse::parse, plan::Output, resolve::resolve};
//!
//! let args = ["-o", "a", "http://h/1", "http://h/2", "--max-time", "5"].map(Into::into);
//! let low = parse(args, &mut SystemFiles).unwrap();
//! let plan = resolve(low, &mut SystemFiles).unwrap();
//! let operation = &plan.operations[0];
//! assert_eq!(operation.output_of(0), &Output::File("a".into()));
//! assert_eq!(operation.output_of(1), &Output::Stdout);
//! assert_eq!(operation.stages[0].transfer.max_time.unwrap().as_secs(), 5);
//! ```

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use haul_policy::template::Template;

pub use crate::urls::{UrlList, UrlSource};
pub use crate::write_out::WriteOut;

/// Everything that one run of the program does.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The groups that `--next` separates, carried out one after the other. Never empty.
    pub operations: Vec<Operation>,
    /// What holds for the whole run.
    pub global: Global,
    /// What the user should know before it starts; each is one `Warning: ` line unless silent.
    pub warnings: Vec<String>,
}

/// Settings of the whole run; `--next` does not reset them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    /// `-s`: neither progress nor messages.
    pub silent: bool,
    /// `-S`: messages even with `-s`.
    pub show_error: bool,
    /// `-v`: requests, replies and connections on stderr, redacted.
    pub verbose: bool,
    /// Whether a progress line may be drawn, should stderr be a terminal. Default on.
    pub progress: bool,
    /// `-#`: a bar instead of a line of figures.
    pub progress_bar: bool,
    /// Whether transfers run beside each other. Default on; `--no-parallel` is one at a time.
    pub parallel: bool,
    /// Most transfers at once over all hosts. Default 64.
    pub parallel_max: usize,
    /// Most connections to one host. Default 6.
    pub parallel_max_host: usize,
    /// Most worker threads; `None` is one a core.
    pub threads: Option<usize>,
    /// Bytes that may wait for their turn of the output. Default 64 MiB.
    pub max_memory: u64,
    /// Whole records in order of completion instead of input order.
    pub unordered: bool,
    /// HTTP/1.1 requests on the way on one connection. Default 1: no pipelining.
    pub pipeline: usize,
    /// Stop at the first failed transfer.
    pub fail_early: bool,
    /// Figures of the job on stderr at its end.
    pub stats: Option<StatsFormat>,
}

impl Default for Global {
    fn default() -> Self {
        Global {
            silent: false,
            show_error: false,
            verbose: false,
            progress: true,
            progress_bar: false,
            parallel: true,
            parallel_max: 64,
            parallel_max_host: 6,
            threads: None,
            max_memory: 64 << 20,
            unordered: false,
            pipeline: 1,
            fail_early: false,
            stats: None,
        }
    }
}

impl Global {
    /// Whether messages about failures are printed.
    pub fn shows_errors(&self) -> bool {
        !self.silent || self.show_error
    }
}

/// How `--stats` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatsFormat {
    /// For people.
    Text,
    /// One JSON object.
    Json,
}

/// The URLs of one `--next` group and what is done with them.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Where the first stage's URLs come from, in order. Never empty.
    pub urls: UrlList,
    /// `-g`: brackets and braces in URLs are literal.
    pub globoff: bool,
    /// The outputs of the sources in `urls`, by index; see [`Operation::output_of`].
    pub outputs: Vec<Output>,
    /// The output of sources beyond `outputs`.
    pub output_default: Output,
    /// `--output-dir`: where relative file names are put.
    pub output_dir: Option<PathBuf>,
    /// `--create-dirs`: make missing directories of an output.
    pub create_dirs: bool,
    /// The first stage, then one for each `--then`. Never empty.
    pub stages: Vec<StageArgs>,
}

impl Operation {
    /// Where the output of the source at this index goes.
    ///
    /// With several stages there is one output for all: that of the last stage.
    pub fn output_of(&self, index: usize) -> &Output {
        self.outputs.get(index).unwrap_or(&self.output_default)
    }
}

/// Where bodies, or what is extracted from them, go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// `-o`: a file name in which `#1` stands for the first glob's value.
    File(String),
    /// `-O`: the last part of the URL's path.
    RemoteName,
}

/// One stage: what is asked for and what becomes of the answer.
#[derive(Clone, Debug)]
pub struct StageArgs {
    /// The template of the `--then` that opened this stage; `None` for the first.
    pub template: Option<Template>,
    /// What is said to the server. Not inherited from the stage before.
    pub request: RequestArgs,
    /// How it is moved. Begins as that of the stage before.
    pub transfer: TransferArgs,
    /// What is printed beside the body. Not inherited.
    pub report: ReportArgs,
    /// `--extract`: print matches, or feed them to the next stage, instead of bodies.
    pub extract: Option<String>,
    /// `--unique`: print each value once.
    pub unique: bool,
    /// `--sort`: print values sorted by byte.
    pub sort: bool,
}

impl StageArgs {
    /// Whether replies are asked for compressed: when told to, else when the stage extracts.
    pub fn asks_compressed(&self) -> bool {
        self.transfer.compressed.unwrap_or(self.extract.is_some())
    }
}

/// What a stage says to the server.
///
/// `credentials`, `cookie`, and `Authorization` or `Cookie` among `fields`, are secrets bound to an
/// origin: the first URL's or one written literally in the stage's template. `Debug` shows no value
/// that may be one.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RequestArgs {
    /// The method, a valid token (RFC 9110 section 9.1).
    pub method: String,
    /// The method came from `-X`, so that no redirect changes it.
    pub custom_method: bool,
    /// `-I`: show fields, expect no body.
    pub head: bool,
    /// Fields to send, to leave out, or to send empty. Names are tokens; values hold no CR, LF, NUL.
    pub fields: Vec<FieldArg>,
    /// `User-Agent`; `None` sends none beyond `fields`.
    pub user_agent: Option<Vec<u8>>,
    /// `Referer` of the first request.
    pub referer: Option<Vec<u8>>,
    /// Set `Referer` to the URL that redirected.
    pub auto_referer: bool,
    /// `Cookie`, as given.
    pub cookie: Option<Vec<u8>>,
    /// `Authorization`.
    pub credentials: Option<Credentials>,
    /// The body; its `Content-Type` stands in `fields`.
    pub body: Option<Vec<u8>>,
    /// `Range` without its `bytes=`.
    pub range: Option<String>,
}

impl std::fmt::Debug for RequestArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.fields.iter().map(FieldArg::name).collect();
        f.debug_struct("RequestArgs")
            .field("method", &self.method)
            .field("head", &self.head)
            .field("fields", &names)
            .field("cookie", &self.cookie.is_some())
            .field("credentials", &self.credentials)
            .field("body", &self.body.as_ref().map(Vec::len))
            .field("range", &self.range)
            .finish_non_exhaustive()
    }
}

/// One `-H`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldArg {
    /// `Name: value` adds the field, or takes the place of haul's own of that name.
    Set {
        /// Field name.
        name: String,
        /// Field value without surrounding blanks.
        value: Vec<u8>,
    },
    /// `Name:` leaves haul's own field of that name out.
    Remove {
        /// Field name.
        name: String,
    },
    /// `Name;` sends the field without a value.
    Empty {
        /// Field name.
        name: String,
    },
}

impl FieldArg {
    /// The field's name.
    pub fn name(&self) -> &str {
        match self {
            FieldArg::Set { name, .. } | FieldArg::Remove { name } | FieldArg::Empty { name } => name,
        }
    }
}

/// What `Authorization` is made from. `Debug` does not show secrets.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// `-u`: RFC 7617.
    Basic {
        /// User name.
        user: Vec<u8>,
        /// Password.
        password: Vec<u8>,
    },
    /// `--oauth2-bearer`: RFC 6750.
    Bearer(String),
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Credentials::Basic { .. } => "Basic(redacted)",
            Credentials::Bearer(_) => "Bearer(redacted)",
        })
    }
}

/// How a stage's bodies are moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferArgs {
    /// Follow redirects. Default on.
    pub follow: bool,
    /// Most redirects of one transfer; `None` is no limit. Default 50.
    pub max_redirs: Option<u64>,
    /// A status of 400 or more is a failure (exit 22) without a body. Default on.
    pub fail: bool,
    /// Limit of one transfer from start to end, retries apart. Default none.
    pub max_time: Option<Duration>,
    /// Limit of name resolution, connection and TLS handshake together. Default 300 s.
    pub connect_timeout: Duration,
    /// When and how often to try again.
    pub retry: RetryArgs,
    /// `--compressed` or `--no-compressed`; see [`StageArgs::asks_compressed`].
    pub compressed: Option<bool>,
    /// Largest body taken (exit 63). Default no limit.
    pub max_filesize: Option<u64>,
    /// Keep `.` and `..` in URL paths.
    pub path_as_is: bool,
    /// Which addresses may be used.
    pub ip_version: IpVersion,
    /// Which HTTP versions may be used.
    pub http_version: HttpVersion,
    /// `--resolve`, in order; a later one for the same host and port wins.
    pub resolve: Vec<ResolveArg>,
    /// `--connect-to`, in order; the first that fits is used.
    pub connect_to: Vec<ConnectToArg>,
    /// TLS settings; part of the pool's key.
    pub tls: TlsArgs,
}

impl Default for TransferArgs {
    fn default() -> Self {
        TransferArgs {
            follow: true,
            max_redirs: Some(50),
            fail: true,
            max_time: None,
            connect_timeout: Duration::from_secs(300),
            retry: RetryArgs::default(),
            compressed: None,
            max_filesize: None,
            path_as_is: false,
            ip_version: IpVersion::Any,
            http_version: HttpVersion::Any,
            resolve: Vec::new(),
            connect_to: Vec::new(),
            tls: TlsArgs::default(),
        }
    }
}

/// Retries of one transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryArgs {
    /// How often a transient failure is tried again. Default 3.
    pub count: u32,
    /// A fixed pause; `None` backs off, with jitter.
    pub delay: Option<Duration>,
    /// No retry starts later than this after the first try; `None` is no limit.
    pub max_time: Option<Duration>,
    /// A refused connection is transient.
    pub connrefused: bool,
    /// Every failure is transient.
    pub all_errors: bool,
}

impl Default for RetryArgs {
    fn default() -> Self {
        RetryArgs { count: 3, delay: None, max_time: None, connrefused: false, all_errors: false }
    }
}

/// `-4`, `-6`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpVersion {
    /// Both, the faster one wins (RFC 8305).
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

/// `--http1.1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpVersion {
    /// The best that both sides speak.
    #[default]
    Any,
    /// HTTP/1.1 only.
    Http11,
}

/// TLS settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsArgs {
    /// `-k`: do not verify the server. Default off.
    pub insecure: bool,
    /// `--cacert`: trust these roots (PEM) instead of the system's.
    pub cacert: Option<PathBuf>,
    /// The oldest version spoken.
    pub min_version: TlsVersion,
}

/// TLS versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// TLS 1.2.
    #[default]
    V1_2,
    /// TLS 1.3.
    V1_3,
}

/// One `--resolve`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveArg {
    /// Host name in lower case, without brackets; `*` is every host.
    pub host: String,
    /// Port.
    pub port: u16,
    /// The addresses to use; empty takes an earlier `--resolve` back (`-HOST:PORT`).
    pub addresses: Vec<IpAddr>,
}

/// One `--connect-to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectToArg {
    /// Requests for this host (lower case, no brackets); `None` is any.
    pub host: Option<String>,
    /// Requests for this port; `None` is any.
    pub port: Option<u16>,
    /// Connect to this host instead; `None` keeps the request's.
    pub to_host: Option<String>,
    /// Connect to this port instead; `None` keeps the request's.
    pub to_port: Option<u16>,
}

/// What a stage prints beside bodies.
#[derive(Clone, Debug, Default)]
pub struct ReportArgs {
    /// `-i`: fields before the body.
    pub include: bool,
    /// `-D`: fields to this file; `-` is standard output.
    pub dump_header: Option<PathBuf>,
    /// `-w`: a line of facts after each transfer.
    pub write_out: Option<WriteOut>,
}
