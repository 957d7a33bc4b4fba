//! The plan of a run: the command line with its files read and its defaults filled in, so that only
//! the network is still needed.
//!
//! [`crate::build_plan::resolve`] creates it from [`crate::parsed_args::ParsedArgs`]: it reads the
//! files that options name, assigns outputs to URLs, fills in defaults, and refuses contradictions.
//! [`crate::run`] uses only the plan.
//!
//! ```
//! use haul_cli::{file_and_environment_access::SystemFilesAndEnvironment, parse::parse, build_plan::resolve, plan::OutputArg};
//!
//! let args = ["-o", "a", "http://h/1", "http://h/2", "--max-time", "5"].map(Into::into);
//! let parsed = parse(args, &mut SystemFilesAndEnvironment).unwrap();
//! let plan = resolve(parsed, &mut SystemFilesAndEnvironment).unwrap();
//! let group = &plan.groups[0];
//! assert_eq!(group.output_of_source(0), &OutputArg::File("a".into()));
//! assert_eq!(group.output_of_source(1), &OutputArg::Stdout);
//! assert_eq!(group.stages[0].transfer.max_time.unwrap().as_secs(), 5);
//! ```

mod allowed_protocols;
mod auth;
mod body_args;
mod client_certificate;
mod job;
mod keepalive;
mod limit_retry_and_tls_args;
mod output_args;
mod proxy_args;
mod record_output;
mod request_args;
mod request_list_args;
mod state_files;
mod trace_args;
mod upload_args;
mod value_template;
mod warc;
mod written_files;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use haul::pagination::Pagination;
use haul_policy::file_url::is_file_url;
use haul_policy::output_name_placeholders::{has_url_part, placeholder_names};
use haul_policy::shard::UrlListShard;
use haul_policy::url_template::UrlTemplate;

use crate::extracted_value_name::ValueName;
use crate::program_persona::ProgramPersona;
use output_args::has_placeholder;

pub use crate::agent::AgentArgs;
pub use crate::checksum::ChecksumArg;
use crate::system::os_text::OsStrExt;
pub use crate::url_sources::{UrlSource, UrlSources};
pub use crate::write_out::WriteOut;
pub use allowed_protocols::AllowedProtocols;
pub use auth::{AuthArgs, NegotiateArgs, NetrcFileText, Secret};
pub use body_args::{FormArgs, FormPartArg, FormPartArgContent, FormPartSource, RequestBodyArg};
pub use client_certificate::{CertFormat, ClientCert};
pub use job::ResumableJobArgs;
pub use keepalive::KeepaliveArgs;
pub use limit_retry_and_tls_args::{EchArgs, HttpVersion, ResolveArg, RunSize, TlsArgs, TransferArgs};
pub use output_args::{ExistingFilePolicy, OutputArg, PAGE_PLACEHOLDER};
pub use proxy_args::{ProxyArgs, ProxyChoice};
pub use record_output::{RecordOutputArgs, RecordOutputFormat};
pub use request_args::{ContinueAt, HeaderArg, RequestArgs, TimeCond};
pub use request_list_args::RecordInputArgs;
pub use state_files::{CookieArgs, StateFileArg};
pub use trace_args::{TraceArgs, TraceFormat};
pub use upload_args::{UploadArg, append_query, name_upload};
pub use value_template::{PlaceholderEncoding, PlaceholderSyntax, ValueTemplate};
pub use warc::WarcArgs;

/// The plan of one run: its groups and settings, with defaults filled in and files read.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// The groups of options that `--next` separates, in order. Never empty.
    /// [`UrlGroup::is_listed`] says which groups may run in parallel.
    pub groups: Vec<Arc<UrlGroup>>,
    /// The settings that apply to all groups.
    pub global: GlobalArgs,
    /// The warnings, which are printed before the first transfer, one line each. `-s` suppresses
    /// all but the first [`RunPlan::always_shown_warnings`] warnings.
    pub warnings: Vec<String>,
    /// The number of warnings at the beginning of `warnings` that are printed even with `-s`.
    pub always_shown_warnings: usize,
    /// The notes that are printed if haul acts as curl, and only with `-v` or a trace, each as a
    /// line that begins with `Note: `.
    pub notes: Vec<String>,
}

/// Settings of the whole run; `--next` does not reset them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobalArgs {
    /// The program whose defaults and messages the run uses: haul or curl.
    pub persona: ProgramPersona,
    /// `-s`: prints neither progress nor messages.
    pub silent: bool,
    /// `-S`: prints error messages even with `-s`.
    pub show_error: bool,
    /// `--stderr`: the file that receives messages instead of standard error. `-` means standard
    /// output. `None` without the option.
    pub stderr: Option<PathBuf>,
    /// `-v`, `--trace` and similar options: prints requests, responses and connections, without
    /// secrets.
    pub trace: TraceArgs,
    /// `--progress-meter`: draws a progress line if standard error is a terminal. Default on.
    pub progress: bool,
    /// `-#`: draws a progress bar instead of the progress line.
    pub progress_bar: bool,
    /// Runs transfers in parallel. Default on; `--no-parallel` runs one at a time.
    pub parallel: bool,
    /// `-Z`: the groups that a `--next` on the command line separates run in parallel, too. Groups
    /// of a config file run in parallel by default.
    pub parallel_groups: bool,
    /// `--parallel-max`: the maximum number of simultaneous transfers, over all hosts. Default 64.
    pub parallel_max: usize,
    /// `--parallel-max-host`: the maximum number of connections to one host. `None` lets haul
    /// adjust the number, from 6 to 50.
    pub parallel_max_host: Option<usize>,
    /// `--parallel-immediate`: transfers do not wait for a connection that they may share.
    pub parallel_immediate: bool,
    /// `--threads`: the maximum number of worker threads; `None` is one for each core.
    pub threads: Option<usize>,
    /// `--max-memory`: the maximum number of bytes of bodies that are kept in memory while they
    /// wait until earlier output is written. Default 64 MiB.
    pub max_memory: u64,
    /// `--unordered`: prints the output of each transfer when it is complete. By default output has
    /// the order of the URLs.
    pub unordered: bool,
    /// `--pipeline`: the maximum number of unanswered HTTP/1.1 requests on one connection. Default
    /// 1, which means no pipelining.
    pub pipeline: usize,
    /// `--rate`: the minimum time between the beginnings of two consecutive transfers; `None` is no
    /// limit.
    pub pace: Option<Duration>,
    /// `--rate-host`: the minimum time between the beginnings of two transfers from the same host;
    /// `None` is no limit.
    pub host_pace: Option<Duration>,
    /// `--limit-rate-total`: the maximum number of bytes per second over the whole run, in each
    /// direction. `None` is no limit.
    pub limit_rate_total: Option<u64>,
    /// `--shard`: the part of all hosts whose URLs are fetched. `None` fetches the URLs of all
    /// hosts.
    pub shard: Option<UrlListShard>,
    /// `--fail-early`: begins no further transfers after one has failed.
    pub fail_early: bool,
    /// `--jsonl` or `--csv`: the format of the records that are printed instead of bodies or
    /// values. `None` without either option.
    pub record_output: Option<RecordOutputFormat>,
    /// `--with-url`: prints the URL of the page before each extracted value.
    pub with_url: bool,
    /// `--events`: the file for the events of the run, or the number of an open descriptor. `None`
    /// without the option.
    pub events: Option<PathBuf>,
    /// `--warc`: the archive of the run.
    pub warc: WarcArgs,
    /// `--stats`: the format in which the statistics of the run are printed on standard error at
    /// its end. `None` prints no statistics.
    pub stats: Option<StatsFormat>,
    /// `--summary` (true) or `--no-summary` (false); `None` prints a summary after many URLs if
    /// standard error is a terminal.
    pub summary: Option<bool>,
    /// `--job`: the file with the state of the run; `None` if the run has no job.
    pub job: Option<ResumableJobArgs>,
    /// `--refresh`: requests the URLs of the job again, and transfers only content that has
    /// changed.
    pub refresh: bool,
    /// `--agent`: the agent that sends the requests it supports. `None` if no agent is used.
    pub agent: Option<AgentArgs>,
    /// `--agent-idle`: the time without a call after which the agent exits, if this run starts it.
    /// Default 60 s.
    pub agent_idle: Duration,
}

impl Default for GlobalArgs {
    fn default() -> Self {
        GlobalArgs {
            persona: ProgramPersona::Haul,
            silent: false,
            show_error: false,
            stderr: None,
            trace: TraceArgs::default(),
            progress: true,
            progress_bar: false,
            parallel: true,
            parallel_groups: false,
            parallel_max: 64,
            parallel_max_host: None,
            parallel_immediate: false,
            threads: None,
            max_memory: 64 << 20,
            unordered: false,
            pipeline: 1,
            pace: None,
            host_pace: None,
            limit_rate_total: None,
            shard: None,
            fail_early: false,
            record_output: None,
            with_url: false,
            events: None,
            warc: WarcArgs::default(),
            stats: None,
            summary: None,
            job: None,
            refresh: false,
            agent: None,
            agent_idle: crate::agent::DEFAULT_IDLE_TIME,
        }
    }
}

impl GlobalArgs {
    /// Returns the default settings of a persona.
    pub fn with_defaults(persona: ProgramPersona) -> Self {
        match persona {
            ProgramPersona::Haul => GlobalArgs::default(),
            // curl has no limit for one host unless an option sets one.
            ProgramPersona::Curl => GlobalArgs {
                persona,
                parallel: false,
                parallel_max: 50,
                parallel_max_host: Some(usize::from(u16::MAX)),
                ..GlobalArgs::default()
            },
        }
    }

    /// Returns true if notes are printed: only if haul acts as curl, with `-v` or a trace, and
    /// without `-s`.
    pub fn shows_notes(&self) -> bool {
        self.persona.is_curl() && !self.silent && self.trace.form != TraceFormat::Off
    }

    /// Returns true if error messages are printed: without `-s`, or with `-S`.
    pub fn shows_errors(&self) -> bool {
        !self.silent || self.show_error
    }
}

/// The format in which `--stats` prints the statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatsFormat {
    /// Lines of text.
    Text,
    /// One JSON object.
    Json,
}

/// The URLs of one `--next` group and the settings for them.
#[derive(Clone, Debug)]
pub struct UrlGroup {
    /// True if the group may run in parallel with the previous group, because `next` in a config
    /// file began it or `-Z` is given. False if it runs after the previous group.
    pub is_listed: bool,
    /// The sources of the first stage's URLs (arguments and lists), in order. Never empty.
    pub urls: UrlSources,
    /// The format of the lists in `urls` whose lines describe requests; `None` if each line is a
    /// URL.
    pub records: Option<RecordInputArgs>,
    /// `-g`: brackets and braces in URLs are literal.
    pub globoff: bool,
    /// The outputs of the sources in `urls`: the first belongs to the first source, and so on.
    /// [`UrlGroup::output_of_source`] also returns the output of a source that has no entry here.
    pub outputs: Vec<OutputArg>,
    /// True if the options name more outputs than URLs.
    pub has_surplus_output: bool,
    /// The output of the sources that have no entry in `outputs`.
    pub output_default: OutputArg,
    /// `-T`: the uploads to the sources in `urls`. The first belongs to the first source, and so
    /// on. [`UrlGroup::upload_of_source`] returns the upload to a source.
    pub uploads: Vec<UploadArg>,
    /// `--output-dir`: the directory to which relative names of output files refer. `None` means
    /// the working directory.
    pub output_dir: Option<PathBuf>,
    /// `--create-dirs`: creates missing directories of output files.
    pub create_dirs: bool,
    /// `-J`: the name in `Content-Disposition` replaces the name of [`OutputArg::RemoteName`].
    pub remote_header_name: bool,
    /// The treatment of an output file that already exists.
    pub existing: ExistingFilePolicy,
    /// `--remove-on-error`: removes the file of a failed transfer.
    pub remove_on_error: bool,
    /// `--fsync`: a transfer ends only when its file is on the disk.
    pub fsync: bool,
    /// `-R`: sets the modification time of files to the time in the response's `Last-Modified`.
    pub remote_time: bool,
    /// `--xattr`: stores the URL and media type of files in extended attributes.
    pub xattr: bool,
    /// True if content is written to the file's final name from the beginning, as in curl. False if
    /// it is written to a temporary file, which is renamed once it is complete.
    pub in_place: bool,
    /// `--create-file-mode`: the permission bits of new files before the umask is applied, at most
    /// `0o777`. `None` is `0o666`.
    pub create_file_mode: Option<u32>,
    /// `--checksum`: the expected digest, or a list of digests. `None` without the option.
    /// [`ChecksumArg::Digest`] requires that there is exactly one URL.
    pub checksum: Option<ChecksumArg>,
    /// The stages: the first stage, and one stage for each `--then`. Never empty.
    pub stages: Vec<StageArgs>,
}

impl UrlGroup {
    /// Returns true if one of the URLs among the arguments is a `file:` URL.
    pub fn has_file_url(&self) -> bool {
        self.urls.iter().any(|source| matches!(source, UrlSource::Argument(url) if is_file_url(url)))
    }

    /// Returns the output of the first stage's source at this index. [`StageArgs::output`] is the
    /// output of a later stage.
    pub fn output_of_source(&self, index: usize) -> &OutputArg {
        match self.outputs.get(index) {
            Some(output) => output,
            None if self.urls.is_listed(index) && self.stages.len() == 1 => &OutputArg::RemoteName,
            None => &self.output_default,
        }
    }

    /// Returns the treatment of an existing file of an output. The null device of
    /// [`OutputArg::Null`] is always written.
    pub fn existing_file_policy(&self, output: &OutputArg) -> ExistingFilePolicy {
        match output {
            OutputArg::Null => ExistingFilePolicy::Replace,
            _ => self.existing,
        }
    }

    /// Returns the single output, possibly standard output, to which the last stage writes all its
    /// responses. Returns `None` if each response has its own output.
    pub fn shared_output(&self) -> Option<&OutputArg> {
        let output = match self.stages.as_slice() {
            [_] if self.urls.len() > 1 => return None,
            // The second URL of a list could not be stored in the same file anyway.
            [stage]
                if !stage.takes_values()
                    && stage.pagination.is_none()
                    && !(stage.records.is_some() && self.is_list(0)) =>
            {
                return None;
            }
            [stage] if stage.records.is_some() && *self.output_of_source(0) == OutputArg::Null => return None,
            [_] => self.output_of_source(0),
            [.., last] if last.records.is_some() && last.output == OutputArg::Null => return None,
            [.., last] => &last.output,
            [] => return None,
        };
        let is_shared = match output {
            OutputArg::File(name) => {
                !has_placeholder(name.as_bytes(), self.stages.len() > 1, self.has_pages()) && !self.has_url_part(name)
            }
            OutputArg::RemoteName | OutputArg::MirroredPath => false,
            OutputArg::Stdout | OutputArg::Null => true,
        };
        is_shared.then_some(output)
    }

    /// Returns true if the last stage fetches paginated listings.
    fn has_pages(&self) -> bool {
        self.stages.last().is_some_and(|stage| stage.pagination.is_some())
    }

    /// Returns true if an `-o` file name contains a placeholder for a part of the URL, such as
    /// `{host}`, or for a column of `--csv-in`. There are no such placeholders if haul acts as
    /// curl.
    pub fn has_url_part(&self, name: &OsStr) -> bool {
        let has_columns = self.records.as_ref().is_some_and(|records| records.format.has_columns());
        let has_column = || has_columns && placeholder_names(name.as_bytes()).next().is_some();
        !self.in_place && (has_url_part(name.as_bytes()) || has_column())
    }

    /// Returns the settings for the records that the group prints instead of bodies; `None` if it
    /// prints none.
    pub fn record_output(&self) -> Option<RecordOutputArgs> {
        self.stages.last()?.records
    }

    /// Returns true if the source at this index may have several URLs: a glob, or a file of URLs.
    fn is_list(&self, index: usize) -> bool {
        match self.urls.get(index) {
            Some(UrlSource::Argument(url)) => self.is_glob(index, url),
            Some(UrlSource::InputFile(_)) => true,
            None => false,
        }
    }

    /// Returns true if `url`, the source at this index, may be a glob, which stands for several
    /// URLs.
    pub fn is_glob(&self, index: usize, url: &str) -> bool {
        let is_special = |byte: u8| matches!(byte, b'[' | b']' | b'{' | b'}' | b'\\');
        // Without an early exit, the compiler can vectorise the loop.
        let has_special = || url.bytes().fold(false, |found, byte| found | is_special(byte));
        !self.globoff && !self.urls.is_listed(index) && has_special()
    }

    /// Returns the upload to the source at this index, in the first stage. Returns `None` if the
    /// URL is fetched.
    pub fn upload_of_source(&self, index: usize) -> Option<&UploadArg> {
        self.uploads.get(index).filter(|upload| **upload != UploadArg::Nothing)
    }
}

/// One stage: requests, and the processing of their responses. Each `--then` adds a stage. The URLs
/// of an added stage are made from the values that the previous stage extracts from its responses.
#[derive(Clone, Debug)]
pub struct StageArgs {
    /// The URL template after the `--then` that began this stage; `None` for the first stage.
    pub template: Option<UrlTemplate>,
    /// The settings of the requests. They are not inherited from the previous stage.
    pub request: RequestArgs,
    /// The settings of transfers, such as limits and TLS. They are inherited from the previous
    /// stage. Stages with the same settings share them.
    pub transfer: Arc<TransferArgs>,
    /// The proxy settings. They are inherited from the previous stage. Stages with the same
    /// settings share them.
    pub proxy: Arc<ProxyArgs>,
    /// The settings for output other than bodies, such as header fields. A later stage does not
    /// inherit them.
    pub report: HeadAndWriteOutArgs,
    /// The destination of the responses of a stage after `--then`. The first stage uses
    /// [`UrlGroup::outputs`] instead.
    pub output: OutputArg,
    /// `--extract`: regular expressions. Their matches are printed or passed to the next stage,
    /// instead of the bodies. With `--select` or `--select-json`, the expressions search each
    /// selected value instead of the body.
    pub extract: Vec<String>,
    /// `--select`: CSS selectors of HTML elements, each with an attribute or none.
    pub select: Vec<String>,
    /// `--select-json`: JSONPath queries.
    pub select_json: Vec<String>,
    /// `--extract-bytes`: applies the expressions of `--extract` to the bytes of bodies instead of
    /// their text.
    pub extract_bytes: bool,
    /// `--paginate` and similar options: each URL of the stage is the first page of a paginated
    /// listing. `None` without these options.
    pub pagination: Option<Pagination>,
    /// `--unique`: prints each extracted value once.
    pub unique: bool,
    /// `--sort`: prints the extracted values sorted by their bytes.
    pub sort: bool,
    /// `--depth`: the number of times that the stage is repeated, each time on the links in its
    /// previous responses.
    pub depth: u32,
    /// The names of the values that `extract` finds, in the order of its expressions. Empty if the
    /// values have no names or no records are printed.
    pub value_names: Vec<ValueName>,
    /// `--with-url`: prints the URL of the page before each extracted value. Only the last stage
    /// can have it.
    pub with_url: bool,
    /// The settings for the records that the stage prints instead of bodies or values. `None` if it
    /// prints no records, as in all stages but the last.
    pub records: Option<RecordOutputArgs>,
}

impl StageArgs {
    /// Returns true if the stage extracts values from its responses.
    pub fn takes_values(&self) -> bool {
        !(self.extract.is_empty() && self.select.is_empty() && self.select_json.is_empty())
    }

    /// Returns true if requests ask for compressed content. `--compressed` and `--no-compressed`
    /// decide. Without these options, requests ask for it if the stage extracts values or prints
    /// bodies in records.
    pub fn requests_compression(&self) -> bool {
        let decodes = self.takes_values() || self.records.is_some_and(RecordOutputArgs::has_all_bodies);
        self.transfer.compressed.unwrap_or(decodes)
    }
}

/// The settings of a stage (`--then` separates stages) for output other than bodies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadAndWriteOutArgs {
    /// `-i`: prints the header fields of each response before its body.
    pub include: bool,
    /// `-D`: the file to which the header fields of responses are written; `-` is standard output.
    /// `None` without the option.
    pub dump_header: Option<PathBuf>,
    /// True if each line of a response head is written twice to standard output as it arrives. curl
    /// does so with `-i` and `-D -`.
    pub doubles_heads: bool,
    /// `-w`: the format of the text that is printed after each transfer. `None` without the option.
    pub write_out: Option<WriteOut>,
}
