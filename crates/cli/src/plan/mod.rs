//! The plan of a run: the command line after everything that needs no network has been resolved.
//!
//! [`crate::resolve::resolve`] makes it from [`crate::parsed_args::ParsedArgs`]: it reads the files
//! that options name, assigns outputs to URLs, fills in defaults, and refuses contradictions.
//! [`crate::run`] uses only the plan.
//!
//! ```
//! use haul_cli::{file_access::SystemFiles, parse::parse, plan::OutputArg, resolve::resolve};
//!
//! let args = ["-o", "a", "http://h/1", "http://h/2", "--max-time", "5"].map(Into::into);
//! let parsed = parse(args, &mut SystemFiles).unwrap();
//! let plan = resolve(parsed, &mut SystemFiles).unwrap();
//! let operation = &plan.operations[0];
//! assert_eq!(operation.output_of(0), &OutputArg::File("a".into()));
//! assert_eq!(operation.output_of(1), &OutputArg::Stdout);
//! assert_eq!(operation.stages[0].transfer.max_time.unwrap().as_secs(), 5);
//! ```

mod auth;
mod body;
mod client_certificate;
mod keepalive;
mod proxy;
mod redirect;
mod state_files;
mod trace;
mod transfer;
mod upload;
mod value_template;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use haul_policy::template::UrlTemplate;

use crate::persona::Persona;

pub use crate::agent::AgentArgs;
pub use crate::checksum::ChecksumArg;
pub use crate::url_list::{UrlList, UrlSource};
pub use crate::write_out::WriteOut;
pub use auth::{AuthArgs, NetrcArg, Secret};
pub use body::{BodyArg, FormArg, PartArg, PartContent, PartSource};
pub use client_certificate::{CertFormat, ClientCert};
pub use keepalive::KeepaliveArgs;
pub use proxy::{ProxyArgs, ProxyChoice};
pub use redirect::ProtocolArgs;
pub use state_files::{CookieArgs, StateFileArg};
pub use trace::{TraceArgs, TraceForm};
pub use transfer::{HttpVersion, ResolveArg, TlsArgs, TransferArgs};
pub use upload::{UploadArg, append_query, name_upload};
pub use value_template::{ValueEncoding, ValueTemplate};

/// The plan of one run of the program.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// The groups of options that `--next` separates; they run one after the other. Never empty.
    pub operations: Vec<Operation>,
    /// The settings of the whole run.
    pub global: GlobalArgs,
    /// The warnings before the run starts. Each is one `Warning: ` line, unless the run is silent.
    pub warnings: Vec<String>,
    /// The number of warnings, from the first one, that are printed even if the run is silent.
    pub outspoken: usize,
    /// Notes that are printed with `-v` and similar options. Each is one `Note: ` line.
    pub notes: Vec<String>,
}

/// Settings of the whole run; `--next` does not reset them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobalArgs {
    /// The program whose defaults and messages the run has.
    pub persona: Persona,
    /// `-s`: neither progress nor messages.
    pub silent: bool,
    /// `-S`: messages even with `-s`.
    pub show_error: bool,
    /// `--stderr`: where messages go; `-` is standard output.
    pub stderr: Option<PathBuf>,
    /// `-v`, `--trace` and similar options: prints requests, responses and connections, without
    /// secrets.
    pub trace: TraceArgs,
    /// Draws a progress line if stderr is a terminal. Default on.
    pub progress: bool,
    /// `-#`: a bar instead of a line of figures.
    pub progress_bar: bool,
    /// Runs transfers in parallel. Default on; `--no-parallel` runs one at a time.
    pub parallel: bool,
    /// The most simultaneous transfers over all hosts. Default 64.
    pub parallel_max: usize,
    /// The most connections to one host. Default 6.
    pub parallel_max_host: usize,
    /// `--threads`: the most worker threads; `None` is one for each core.
    pub threads: Option<usize>,
    /// `--max-memory`: the most bytes of bodies that are kept in memory until earlier output is
    /// written. Default 64 MiB.
    pub max_memory: u64,
    /// `--unordered`: prints whole records in order of completion instead of input order.
    pub unordered: bool,
    /// `--pipeline`: the most unanswered HTTP/1.1 requests of one connection. Default 1: no
    /// pipelining.
    pub pipeline: usize,
    /// `--rate`: the least time between the starts of two consecutive transfers.
    pub pace: Option<Duration>,
    /// Stops at the first failed transfer.
    pub fail_early: bool,
    /// `--stats`: prints the statistics of the run on stderr at its end.
    pub stats: Option<StatsFormat>,
    /// `--agent`: the agent that fetches the requests for which it can be used.
    pub agent: Option<AgentArgs>,
    /// `--agent-idle`: the time after which an idle agent that this run starts ends. Default 60 s.
    pub agent_idle: Duration,
}

impl Default for GlobalArgs {
    fn default() -> Self {
        GlobalArgs {
            persona: Persona::Haul,
            silent: false,
            show_error: false,
            stderr: None,
            trace: TraceArgs::default(),
            progress: true,
            progress_bar: false,
            parallel: true,
            parallel_max: 64,
            parallel_max_host: 6,
            threads: None,
            max_memory: 64 << 20,
            unordered: false,
            pipeline: 1,
            pace: None,
            fail_early: false,
            stats: None,
            agent: None,
            agent_idle: crate::agent::IDLE,
        }
    }
}

impl GlobalArgs {
    /// Returns the default settings of a persona.
    pub fn of(persona: Persona) -> Self {
        match persona {
            Persona::Haul => GlobalArgs::default(),
            // curl has no limit for one host unless an option sets one.
            Persona::Curl => GlobalArgs {
                persona,
                parallel: false,
                parallel_max: 50,
                parallel_max_host: usize::from(u16::MAX),
                ..GlobalArgs::default()
            },
        }
    }

    /// Returns true if notes are printed: only for the curl persona, with a trace.
    pub fn shows_notes(&self) -> bool {
        self.persona.is_curl() && !self.silent && self.trace.form != TraceForm::Off
    }

    /// Returns true if messages about failures are printed.
    pub fn shows_errors(&self) -> bool {
        !self.silent || self.show_error
    }
}

/// The format of `--stats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatsFormat {
    /// Text.
    Text,
    /// One JSON object.
    Json,
}

/// The URLs of one `--next` group and the settings for them.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The sources of the first stage's URLs, in order. Never empty.
    pub urls: UrlList,
    /// `-g`: brackets and braces in URLs are literal.
    pub globoff: bool,
    /// The outputs of the sources in `urls`, by index. [`Operation::output_of`] adds the default.
    pub outputs: Vec<OutputArg>,
    /// The output of sources whose index is beyond `outputs`.
    pub output_default: OutputArg,
    /// `-T`, by the index of the source in `urls`. See [`Operation::upload_of`].
    pub uploads: Vec<UploadArg>,
    /// `--output-dir`: the directory of relative file names.
    pub output_dir: Option<PathBuf>,
    /// `--create-dirs`: creates missing directories of output files.
    pub create_dirs: bool,
    /// `-J`: the name in `Content-Disposition` replaces that of [`OutputArg::RemoteName`].
    pub remote_header_name: bool,
    /// The treatment of an output file that already exists.
    pub existing: ExistingFile,
    /// `--remove-on-error`: removes the file of a failed transfer.
    pub remove_on_error: bool,
    /// `--fsync`: a transfer ends only when its file is on the disk.
    pub fsync: bool,
    /// `-R`: sets the modification time of files to the one in the response (`Last-Modified`).
    pub remote_time: bool,
    /// `--xattr`: stores the URL and media type of files in extended attributes.
    pub xattr: bool,
    /// True if content is written to the file's final name from the beginning, as in curl. False if
    /// a temporary file is renamed when it is complete.
    pub in_place: bool,
    /// `--create-file-mode`: permission bits (at most `0o777`) of new files before the umask;
    /// `None` is `0o666`.
    pub create_file_mode: Option<u32>,
    /// `--checksum`: the expected digest, or a list of digests. [`ChecksumArg::Digest`] requires
    /// that there is exactly one URL.
    pub checksum: Option<ChecksumArg>,
    /// The first stage, then one for each `--then`. Never empty.
    pub stages: Vec<StageArgs>,
}

impl Operation {
    /// Returns the output of the source at this index.
    ///
    /// The outputs of later stages are in [`StageArgs::output`].
    pub fn output_of(&self, index: usize) -> &OutputArg {
        match self.outputs.get(index) {
            Some(output) => output,
            None if self.urls.is_listed(index) && self.stages.len() == 1 => &OutputArg::RemoteName,
            None => &self.output_default,
        }
    }

    /// Returns what happens to an existing file of an output. [`OutputArg::Null`] is always
    /// replaced.
    pub fn existing_of(&self, output: &OutputArg) -> ExistingFile {
        match output {
            OutputArg::Null => ExistingFile::Replace,
            _ => self.existing,
        }
    }

    /// Returns the output, possibly standard output, to which all pages of the last stage are
    /// written. Returns `None` if each page has its own.
    pub fn shared_output(&self) -> Option<&OutputArg> {
        let output = match self.stages.as_slice() {
            [stage] if self.urls.len() > 1 || stage.extract.is_empty() => return None,
            [_] => self.output_of(0),
            [.., last] => &last.output,
            [] => return None,
        };
        let is_shared = match output {
            OutputArg::File(name) => !has_placeholder(name.as_bytes(), self.stages.len() > 1),
            OutputArg::RemoteName => false,
            OutputArg::Stdout | OutputArg::Null => true,
        };
        is_shared.then_some(output)
    }

    /// Returns true if `url`, the source at this index, may be a glob that stands for several URLs.
    pub fn is_glob(&self, index: usize, url: &str) -> bool {
        !self.globoff && !self.urls.is_listed(index) && url.contains(['[', ']', '{', '}', '\\'])
    }

    /// Returns the upload to the source at this index, in the first stage. Returns `None` if
    /// nothing is uploaded.
    pub fn upload_of(&self, index: usize) -> Option<&UploadArg> {
        self.uploads.get(index).filter(|upload| **upload != UploadArg::Nothing)
    }
}

/// The destination of bodies, or of the text extracted from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputArg {
    /// Standard output.
    Stdout,
    /// `-o`: a file name in which `#1` stands for the first glob's value.
    File(OsString),
    /// `-O`: the last part of the URL's path.
    RemoteName,
    /// `--out-null`: the body is discarded.
    Null,
}

impl OutputArg {
    /// Returns true if the output is standard output, in any of its notations.
    pub fn is_stdout(&self) -> bool {
        match self {
            Self::Stdout => true,
            Self::File(name) => {
                matches!(name.as_bytes(), b"-" | b"/dev/stdout" | b"/dev/fd/1" | b"/proc/self/fd/1")
            }
            Self::RemoteName | Self::Null => false,
        }
    }
}

/// Returns true if a file name contains a placeholder of a glob (`#1`, `#<name>`) or, with
/// `by_value`, of an extracted value (`{}`).
fn has_placeholder(name: &[u8], by_value: bool) -> bool {
    let is_hash = |pair: &[u8]| pair[0] == b'#' && (pair[1].is_ascii_digit() || pair[1] == b'<');
    name.windows(2).any(|pair| is_hash(pair) || by_value && pair == b"{}")
}

/// The treatment of an output file that already exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExistingFile {
    /// Replaces the file; but if its name came from `Content-Disposition`, the transfer fails (exit
    /// 23). The default.
    #[default]
    ReplaceOwn,
    /// `--clobber`: replaces the file, also if the response named it.
    Replace,
    /// `--no-clobber`: tries `.1` to `.100` after the name, then the transfer fails (exit 23).
    Number,
    /// `--skip-existing`: keeps the file and fetches nothing, which counts as success.
    Skip,
}

/// `-C`: the offset at which a download or upload resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContinueAt {
    /// Resumes at this byte. Never 0, because `-C 0` does not resume.
    Offset(u64),
    /// `-`: the size of the output file; 0 if it does not exist.
    OutputSize,
}

/// One stage: a set of requests, and how their responses are used. A later stage (`--then`)
/// requests URLs that it makes from values extracted by the previous one.
#[derive(Clone, Debug)]
pub struct StageArgs {
    /// The URL template of the `--then` that began this stage; `None` for the first.
    pub template: Option<UrlTemplate>,
    /// The request to the server. Not inherited from the previous stage.
    pub request: RequestArgs,
    /// The transfer settings. Inherited from the previous stage.
    pub transfer: TransferArgs,
    /// The proxy settings. Inherited from the previous stage.
    pub proxy: ProxyArgs,
    /// The output besides the body. Not inherited.
    pub report: ReportArgs,
    /// The destination of pages in a stage after `--then`. The first stage uses the operation's
    /// outputs.
    pub output: OutputArg,
    /// `--extract`: regular expressions. Their matches are printed, or passed to the next stage,
    /// instead of bodies.
    pub extract: Vec<String>,
    /// `--extract-bytes`: searches the bytes of bodies instead of their text.
    pub extract_bytes: bool,
    /// `--unique`: prints each value once.
    pub unique: bool,
    /// `--sort`: prints values sorted by byte.
    pub sort: bool,
}

impl StageArgs {
    /// Returns true if requests ask for compressed content: as the options say, and otherwise if
    /// the stage extracts values.
    pub fn asks_compressed(&self) -> bool {
        self.transfer.compressed.unwrap_or(!self.extract.is_empty())
    }
}

/// The request settings of a stage.
///
/// `auth`, `cookie`, and `Authorization` or `Cookie` among `fields`, are secrets. They are sent
/// only to the origin of the first URL, or to one that is written literally in the stage's
/// template. `Debug` shows no value that may be secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RequestArgs {
    /// The method, a valid token (RFC 9110 section 9.1); see [`RequestArgs::method_for`].
    pub method: String,
    /// True if the method comes from `-X`, so that redirects do not change it.
    pub custom_method: bool,
    /// `--follow` with `-X`: true if the method without `-X` would be POST. Redirects then treat the
    /// given method as a POST.
    pub is_post: Option<bool>,
    /// `-I`: prints header fields and expects no body.
    pub head: bool,
    /// The fields to send, to leave out, or to send empty. Names are tokens; values contain no CR,
    /// LF or NUL.
    pub fields: Vec<FieldArg>,
    /// `User-Agent`; `None` sends none, except one among `fields`.
    pub user_agent: Option<Vec<u8>>,
    /// `Referer` of the first request.
    pub referer: Option<Vec<u8>>,
    /// Sets `Referer` to the URL that redirected.
    pub auto_referer: bool,
    /// `-b TEXT`: precedes the cookies of the jar, and is sent only to the first origin.
    pub cookie: Option<Vec<u8>>,
    /// The credentials for the servers.
    pub auth: AuthArgs,
    /// The body. `None` if there are uploads.
    pub body: Option<BodyArg>,
    /// The fields after `--then` whose values contain `{}`, the placeholder of the extracted value.
    pub fields_by_value: Vec<(String, Vec<u8>)>,
    /// The body's `Content-Type`, unless `fields` have one. A form's is in its layout.
    pub content_type: Option<String>,
    /// `--request-target`: the request target to send.
    pub request_target: Option<String>,
    /// `-z`: the condition on the date of the content.
    pub time_cond: Option<TimeCond>,
    /// `--etag-save`: the file in which the entity tag is stored.
    pub etag_save: Option<PathBuf>,
    /// `--disallow-username-in-url`: refuses URLs with a user.
    pub no_user_in_url: bool,
    /// `-G`, `--url-query`: appended to the query of each URL of the stage ([`append_query`]), but
    /// not to redirects. After `--then`, `{}` in it is the placeholder of the extracted value.
    pub query: Option<String>,
    /// The value of `Range` without `bytes=`.
    pub range: Option<String>,
    /// `-C`: requests the rest of the content and appends it to the output. `None` with `range`,
    /// with `Range` among `fields`, and with extraction.
    pub continue_at: Option<ContinueAt>,
}

impl std::fmt::Debug for RequestArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.fields.iter().map(FieldArg::name).collect();
        f.debug_struct("RequestArgs")
            .field("method", &self.method)
            .field("head", &self.head)
            .field("fields", &names)
            .field("cookie", &self.cookie.is_some())
            .field("auth", &self.auth)
            .field("body", &self.body)
            .field("range", &self.range)
            .field("continue_at", &self.continue_at)
            .finish_non_exhaustive()
    }
}

impl RequestArgs {
    /// Returns the request method for a source: PUT for an upload without `-X` or `--follow`,
    /// otherwise [`RequestArgs::method`].
    pub fn method_for(&self, upload: Option<&UploadArg>) -> &str {
        let is_given = self.custom_method || self.is_post.is_some();
        match upload {
            Some(_) if !is_given => "PUT",
            _ => &self.method,
        }
    }
}

/// The condition of `-z`. Times are seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeCond {
    /// Requests only content that is newer.
    NewerThan(u64),
    /// `-z -DATE`: requests only content that is not newer.
    OlderThan(u64),
}

/// One `-H`. `Debug` shows no value.
#[derive(Clone, PartialEq, Eq)]
pub enum FieldArg {
    /// `Name: value` adds the field, or replaces haul's own field with this name.
    Set {
        /// The field's name.
        name: String,
        /// The field's value without surrounding blanks.
        value: Vec<u8>,
    },
    /// `Name:` removes haul's own field with this name.
    Remove {
        /// The field's name.
        name: String,
    },
    /// `Name;` sends the field without a value.
    Empty {
        /// The field's name.
        name: String,
    },
}

impl FieldArg {
    /// Returns the field's name.
    pub fn name(&self) -> &str {
        match self {
            FieldArg::Set { name, .. } | FieldArg::Remove { name } | FieldArg::Empty { name } => name,
        }
    }
}

impl std::fmt::Debug for FieldArg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let form = match self {
            FieldArg::Set { .. } => "Set",
            FieldArg::Remove { .. } => "Remove",
            FieldArg::Empty { .. } => "Empty",
        };
        write!(f, "{form}({})", self.name())
    }
}

/// The output of a stage besides bodies.
#[derive(Clone, Debug, Default)]
pub struct ReportArgs {
    /// `-i`: prints header fields before the body.
    pub include: bool,
    /// `-D`: the file to which header fields are written; `-` is standard output.
    pub dump_header: Option<PathBuf>,
    /// `-w`: the format of the line that is printed after each transfer.
    pub write_out: Option<WriteOut>,
}
