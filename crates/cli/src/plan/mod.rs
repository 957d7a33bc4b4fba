//! The plan: a command line with everything resolved that needs no network.
//!
//! [`crate::resolve::resolve`] makes it from [`crate::parsed_args::ParsedArgs`]: files that options
//! name are read, outputs stand beside their URLs, defaults are filled in, contradictions are
//! refused. The engine's side of the program reads the plan and nothing else.
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
pub use redirect::RedirectArgs;
pub use state_files::{CookieArgs, StoreArg};
pub use trace::{TraceArgs, TraceForm};
pub use transfer::{HttpVersion, ResolveArg, TlsArgs, TransferArgs};
pub use upload::{UploadArg, append_query, name_upload};
pub use value_template::{ValueEncoding, ValueTemplate};

/// The plan of one run of the program.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// The groups that `--next` separates, carried out one after the other. Never empty.
    pub operations: Vec<Operation>,
    /// The settings of the whole run.
    pub global: GlobalArgs,
    /// The warnings before the run starts. Each is one `Warning: ` line, unless the run is silent.
    pub warnings: Vec<String>,
    /// The number of leading warnings that a silent run prints as well.
    pub outspoken: usize,
    /// Notes for `-v` and its like. Each is one `Note: ` line.
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
    /// `-v`, `--trace` and their like: requests, replies and connections, redacted.
    pub trace: TraceArgs,
    /// Draw a progress line if stderr is a terminal. Default on.
    pub progress: bool,
    /// `-#`: a bar instead of a line of figures.
    pub progress_bar: bool,
    /// Run transfers in parallel. Default on; `--no-parallel` runs one at a time.
    pub parallel: bool,
    /// Most transfers at once over all hosts. Default 64.
    pub parallel_max: usize,
    /// Most connections to one host. Default 6.
    pub parallel_max_host: usize,
    /// `--threads`: the most worker threads; `None` is one for each core.
    pub threads: Option<usize>,
    /// `--max-memory`: the most bytes that wait for earlier output. Default 64 MiB.
    pub max_memory: u64,
    /// `--unordered`: whole records in order of completion instead of input order.
    pub unordered: bool,
    /// `--pipeline`: the most unanswered HTTP/1.1 requests of one connection. Default 1: no
    /// pipelining.
    pub pipeline: usize,
    /// `--rate`: the least time between the beginnings of two transfers that run one after the
    /// other.
    pub pace: Option<Duration>,
    /// Stop at the first failed transfer.
    pub fail_early: bool,
    /// `--stats`: prints the statistics of the run on stderr at its end.
    pub stats: Option<StatsFormat>,
    /// `--agent`: the agent that requests go through if they can.
    pub agent: Option<AgentArgs>,
    /// `--agent-idle`: how long an agent that is started waits for another call. Default 60 s.
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
    /// Returns the settings of a run of this program before any option.
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

    /// Returns true if notes are printed: only where haul stands in for curl, and a trace is on.
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
    /// The outputs of the sources in `urls`, by index; see [`Operation::output_of`].
    pub outputs: Vec<OutputArg>,
    /// The output of sources beyond `outputs`.
    pub output_default: OutputArg,
    /// `-T`, by index of `urls`; see [`Operation::upload_of`].
    pub uploads: Vec<UploadArg>,
    /// `--output-dir`: where relative file names are put.
    pub output_dir: Option<PathBuf>,
    /// `--create-dirs`: make missing directories of an output.
    pub create_dirs: bool,
    /// `-J`: the name that `Content-Disposition` gives takes the place of
    /// [`OutputArg::RemoteName`]'s.
    pub remote_header_name: bool,
    /// The treatment of an output file that exists already.
    pub existing: ExistingFile,
    /// `--remove-on-error`: nothing of a failed transfer stays on the disk.
    pub remove_on_error: bool,
    /// `--fsync`: a file is on the disk before its transfer is done.
    pub fsync: bool,
    /// `-R`: files get the date of their reply.
    pub remote_time: bool,
    /// `--xattr`: files get attributes that name their origin.
    pub xattr: bool,
    /// Files are written in place, as curl does, and not beside their target until they are
    /// complete.
    pub in_place: bool,
    /// `--create-file-mode`: permission bits (at most `0o777`) of new files before the umask;
    /// `None` is `0o666`.
    pub create_file_mode: Option<u32>,
    /// `--checksum`: the expected digest, or the list of digests. A [`ChecksumArg::Digest`]
    /// requires that there is one URL.
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

    /// Returns the treatment of an output's existing file. The output that discards content is
    /// always replaced.
    pub fn existing_of(&self, output: &OutputArg) -> ExistingFile {
        match output {
            OutputArg::Null => ExistingFile::Replace,
            _ => self.existing,
        }
    }

    /// The output that all pages of the last stage share, standard output included; `None` if each
    /// page has its own.
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

    /// Returns true if the source at this index, with this text, may stand for several URLs.
    pub fn is_glob(&self, index: usize, url: &str) -> bool {
        !self.globoff && !self.urls.is_listed(index) && url.contains(['[', ']', '{', '}', '\\'])
    }

    /// Returns the upload to the source at this index, in the first stage; `None` for a plain
    /// request.
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
    /// Returns true if the output is standard output, by any of its names.
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

/// Returns true if a name depends on a glob (`#1`, `#<name>`), or behind `--then` on the value
/// (also `{}`).
fn has_placeholder(name: &[u8], by_value: bool) -> bool {
    let is_hash = |pair: &[u8]| pair[0] == b'#' && (pair[1].is_ascii_digit() || pair[1] == b'<');
    name.windows(2).any(|pair| is_hash(pair) || by_value && pair == b"{}")
}

/// The treatment of an output file that exists.
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

/// `-C`: the position at which a body resumes an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContinueAt {
    /// At this byte, counted from 0. Never 0 in a plan, where it would not resume.
    Offset(u64),
    /// `-`: at the size of the output file; 0 if the file does not exist.
    OutputSize,
}

/// One stage: its requests, and the handling of their responses.
#[derive(Clone, Debug)]
pub struct StageArgs {
    /// The template of the `--then` that opened this stage; `None` for the first.
    pub template: Option<UrlTemplate>,
    /// The request to the server. Not inherited from the previous stage.
    pub request: RequestArgs,
    /// The transfer settings. Inherited from the previous stage.
    pub transfer: TransferArgs,
    /// The proxy settings. Inherited from the previous stage.
    pub proxy: ProxyArgs,
    /// The output beside the body. Not inherited.
    pub report: ReportArgs,
    /// The destination of the pages, in a stage that `--then` opened. The first stage uses the
    /// operation's outputs.
    pub output: OutputArg,
    /// `--extract`: print matches of these, or feed them to the next stage, instead of bodies.
    pub extract: Vec<String>,
    /// `--extract-bytes`: search the bytes of bodies, not their text.
    pub extract_bytes: bool,
    /// `--unique`: print each value once.
    pub unique: bool,
    /// `--sort`: print values sorted by byte.
    pub sort: bool,
}

impl StageArgs {
    /// Returns true if requests ask for compressed content: as the option says, else if the stage
    /// extracts.
    pub fn asks_compressed(&self) -> bool {
        self.transfer.compressed.unwrap_or(!self.extract.is_empty())
    }
}

/// The request settings of a stage.
///
/// `auth`, `cookie`, and `Authorization` or `Cookie` among `fields`, are secrets bound to an
/// origin: the first URL's or one written literally in the stage's template. `Debug` shows no value
/// that may be one.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RequestArgs {
    /// The method, a valid token (RFC 9110 section 9.1); see [`RequestArgs::method_for`].
    pub method: String,
    /// The method came from `-X`, so that no redirect changes it.
    pub custom_method: bool,
    /// `--follow` with `-X`: redirects take its method for the POST that it would be without, or
    /// not.
    pub is_post: Option<bool>,
    /// `-I`: show fields, expect no body.
    pub head: bool,
    /// Fields to send, to leave out, or to send empty. Names are tokens; values hold no CR, LF,
    /// NUL.
    pub fields: Vec<FieldArg>,
    /// `User-Agent`; `None` sends none beyond `fields`.
    pub user_agent: Option<Vec<u8>>,
    /// `Referer` of the first request.
    pub referer: Option<Vec<u8>>,
    /// Set `Referer` to the URL that redirected.
    pub auto_referer: bool,
    /// `-b TEXT`: goes in front of the cookies of the jar, to the first origin alone.
    pub cookie: Option<Vec<u8>>,
    /// The credentials for the servers.
    pub auth: AuthArgs,
    /// The body. Never beside uploads.
    pub body: Option<BodyArg>,
    /// The fields behind `--then` whose values hold `{}` for the value that led to the page.
    pub fields_by_value: Vec<(String, Vec<u8>)>,
    /// The body's `Content-Type`, unless `fields` have one; a form's is the layout's.
    pub content_type: Option<String>,
    /// `--request-target`.
    pub request_target: Option<String>,
    /// `-z`: the condition on the date of the content.
    pub time_cond: Option<TimeCond>,
    /// `--etag-save`.
    pub etag_save: Option<PathBuf>,
    /// `--disallow-username-in-url`.
    pub no_user_in_url: bool,
    /// `-G`, `--url-query`: appended to the query of each URL of the stage ([`append_query`]), not
    /// to redirects. Behind `--then`, `{}` in it stands for the value that led to the page.
    pub query: Option<String>,
    /// `Range` without its `bytes=`.
    pub range: Option<String>,
    /// `-C`: ask for the rest and append it to the output. Never beside `range`, a `Range` among
    /// `fields`, or extraction.
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
    /// The method for a source with or without an upload: an upload is a PUT unless `-X` says
    /// otherwise.
    pub fn method_for(&self, upload: Option<&UploadArg>) -> &str {
        let is_given = self.custom_method || self.is_post.is_some();
        match upload {
            Some(_) if !is_given => "PUT",
            _ => &self.method,
        }
    }
}

/// `-z`, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeCond {
    /// Only content that is newer.
    NewerThan(u64),
    /// Only content that is not newer: `-z -DATE`.
    OlderThan(u64),
}

/// One `-H`. `Debug` shows no value.
#[derive(Clone, PartialEq, Eq)]
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

/// The output of a stage beside bodies.
#[derive(Clone, Debug, Default)]
pub struct ReportArgs {
    /// `-i`: fields before the body.
    pub include: bool,
    /// `-D`: fields to this file; `-` is standard output.
    pub dump_header: Option<PathBuf>,
    /// `-w`: a line of facts after each transfer.
    pub write_out: Option<WriteOut>,
}
