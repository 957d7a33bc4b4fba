//! The parsed command line. The syntax of every value is checked, but no file has been read.
//!
//! Flags ([`crate::flags`]) write to these types, and [`crate::build_plan`] converts them to a
//! [`crate::plan::RunPlan`]. A value that needs no conversion already has the plan's type.
//!
//! ```
//! use haul_cli::{file_and_environment_access::SystemFilesAndEnvironment, parse::parse};
//!
//! let args = ["http://h/", "--extract", "a+", "--then", "http://h/{}", "-k"].map(Into::into);
//! let parsed = parse(args, &mut SystemFilesAndEnvironment).unwrap();
//! let stages = &parsed.groups[0].stages;
//! assert!(stages[0].transfer.tls.options.verify && !stages[1].transfer.tls.options.verify);
//! ```

mod data_option;
mod message_signature;

use std::path::PathBuf;
use std::sync::Arc;

use haul_policy::auth::{AllowedAuthSchemes, SigV4Parameters};
use haul_policy::proxy::Proxy;
use haul_policy::url_template::UrlTemplate;

use crate::checksum::ChecksumArg;
use crate::form::FormOfAllOptions;
use crate::given_option::GivenOption;
use crate::plan::{ClientCert, ContinueAt, GlobalArgs, HeaderArg, OutputArg, Secret, TlsArgs, TransferArgs, UploadArg};
use crate::program_persona::ProgramPersona;
use crate::record_input::RecordInputFormat;
use crate::secret_arguments::SecretArgumentPart;
use crate::url_sources::UrlSources;
use crate::usage_error::{UsageError, UsageErrorReason};

pub use data_option::{DataOptionKind, ParsedDataOption, TextOrFile};
pub use message_signature::{ParsedMessageSignature, ParsedSignatureKey};

/// The maximum number of warnings that are stored for the user. A config file could have millions
/// of bad lines.
const WARNINGS_MAX: usize = 100;

/// A parsed command line: settings of the whole run, and the groups of URLs and options (`--next`).
#[derive(Clone, Debug)]
pub struct ParsedArgs {
    /// The settings that apply to the whole run, not to one group.
    pub global: GlobalArgs,
    /// The groups of URLs and options, which `--next` separates. Never empty.
    pub groups: Vec<ParsedUrlGroup>,
    /// The option that prints a text, such as `--help`, after which no transfers run; `None` to run
    /// the transfers.
    pub info: Option<InfoOption>,
    /// The subjects of the `--help` options in config files, if haul acts as curl. `None` stands
    /// for `--help` without a subject. Their help texts are printed before the transfers run.
    pub help_first: Vec<Option<String>>,
    /// `--agent-status` or `--agent-stop`: a command for the agent, without any transfer. `None`
    /// without these options.
    pub agent_command: Option<crate::agent::status_and_stop_commands::AgentCommand>,
    /// The warnings for the user, which are printed before the first transfer.
    pub warnings: Vec<String>,
    /// The messages, such as the name of a config file that was read, that are printed only if haul
    /// acts as curl with `-v` or a trace.
    pub notes: Vec<String>,
    /// The error that ended the reading of the default config file (`.curlrc`); `None` if there was
    /// none.
    pub curlrc_fault: Option<UsageError>,
    /// The arguments that end in a secret, such as a password. The secret is overwritten so that
    /// other users cannot see it in the process list.
    pub secrets: Vec<SecretArgumentPart>,
    /// The options in the order in which they were given, for a run with a job (`--job`); otherwise
    /// `None`.
    pub given: Option<Vec<GivenOption>>,
    /// The config file that the flag `-K` asks the parser to read. The parser reads the file
    /// directly after the flag has set this field, and resets the field to `None`.
    pub(crate) config: Option<PathBuf>,
    /// The value of `--variable`, while this option is parsed. Then the parser sets the variable,
    /// and sets this field to `None`.
    pub(crate) variable: Option<Vec<u8>>,
    /// The file of URLs that curl's `--url @FILE` named, while this option is parsed. Then the
    /// parser reads the file and sets this field to `None`.
    pub(crate) list: Option<PathBuf>,
    /// The settings with which each `--next` group begins.
    pub(crate) defaults: NextGroupDefaults,
}

/// The transfer and proxy settings with which each `--next` group begins. The groups share them, so
/// that a list of thousands of groups needs no copies.
#[derive(Clone, Debug)]
pub(crate) struct NextGroupDefaults {
    transfer: Arc<TransferArgs>,
    proxy: Arc<ParsedProxyOptions>,
}

impl NextGroupDefaults {
    fn new(persona: ProgramPersona) -> Self {
        NextGroupDefaults { transfer: Arc::new(TransferArgs::with_defaults(persona)), proxy: Arc::default() }
    }
}

/// An option, such as `--help`, that prints a text and ends haul without a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InfoOption {
    /// `--help`, with its subject; `None` for the most used options.
    Help(Option<String>),
    /// `--version`: the version and features.
    Version,
    /// `--manual`: the whole manual.
    Manual,
}

/// The URLs and options between one `--next` and the following one.
#[derive(Clone, Debug)]
pub struct ParsedUrlGroup {
    /// True if this group begins after a `next` in a config file. The group may then run in
    /// parallel with the group before it.
    pub is_listed: bool,
    /// The sources of this group's URLs (arguments and files of URLs), in the order of the command
    /// line.
    pub urls: UrlSources,
    /// `--jsonl-in`: the format of the input files whose lines describe requests. `None` if each
    /// line is a URL.
    pub record_format: Option<RecordInputFormat>,
    /// `--allow-body-files`: true if a line of `--jsonl-in` may name a file to send as request
    /// content.
    pub allow_body_files: bool,
    /// The `-o` and `-O` options, in order. The first belongs to the first URL, and so on.
    pub outputs: Vec<OutputArg>,
    /// The `-T` options, in order. The first belongs to the first URL, and so on.
    pub uploads: Vec<UploadArg>,
    /// `--remote-name-all` (true) and `--no-remote-name-all` (false), each with the index of the
    /// first URL to which it applies.
    pub remote_name_all: Vec<(usize, bool)>,
    /// `-g`: brackets and braces in URLs are literal.
    pub globoff: bool,
    /// `--output-dir`: the directory to which relative names of output files refer. `None` means
    /// the working directory.
    pub output_dir: Option<PathBuf>,
    /// `--mirror-paths`: a URL without an output option is saved to a file that is named after host
    /// and path.
    pub mirror_paths: bool,
    /// `--create-dirs`: creates the missing directories of output files.
    pub create_dirs: bool,
    /// `-J`: takes the name of the output file from the response.
    pub remote_header_name: bool,
    /// `--remove-on-error`: removes the file of a failed transfer.
    pub remove_on_error: bool,
    /// `--skip-existing`: does not fetch a URL whose output file exists.
    pub skip_existing: bool,
    /// `--clobber` (true) or `--no-clobber` (false). `None` without either option.
    pub clobber: Option<bool>,
    /// `--fsync`: a transfer ends only when its file is on the disk.
    pub fsync: bool,
    /// `-R`: sets the modification time of files to the server's Last-Modified.
    pub remote_time: bool,
    /// `--xattr`: stores the URL and media type of files in extended attributes.
    pub xattr: bool,
    /// `--create-file-mode`: the permission bits of new files. `None` without the option.
    pub create_file_mode: Option<u32>,
    /// `--checksum`: the expected digest of the body, or a checksum list (SHA256SUMS). `None`
    /// without the option.
    pub checksum: Option<ChecksumArg>,
    /// The stages of this group, which `--then` separates. Never empty. While the command line is
    /// parsed, each request option applies to the last stage in this list.
    pub stages: Vec<ParsedStage>,
}

impl ParsedUrlGroup {
    /// Returns a `--next` group without URLs, with the default options of the program as which haul
    /// acts (`persona`: haul or curl).
    pub fn with_defaults(persona: ProgramPersona) -> Self {
        ParsedUrlGroup::with_settings(&NextGroupDefaults::new(persona))
    }

    /// Returns a `--next` group without URLs, which shares the default settings until an option
    /// changes them.
    fn with_settings(defaults: &NextGroupDefaults) -> Self {
        let (transfer, proxy) = (Arc::clone(&defaults.transfer), Arc::clone(&defaults.proxy));
        ParsedUrlGroup {
            is_listed: false,
            urls: UrlSources::default(),
            record_format: None,
            allow_body_files: false,
            outputs: Vec::new(),
            uploads: Vec::new(),
            remote_name_all: Vec::new(),
            globoff: false,
            output_dir: None,
            mirror_paths: false,
            create_dirs: false,
            remote_header_name: false,
            remove_on_error: false,
            skip_existing: false,
            clobber: None,
            fsync: false,
            remote_time: false,
            xattr: false,
            create_file_mode: None,
            checksum: None,
            stages: vec![ParsedStage::with_settings(transfer, proxy)],
        }
    }

    /// Returns the largest of three numbers: the URLs of this group, its `-o` and `-O` options, and
    /// its `-T` options.
    pub fn output_count(&self) -> usize {
        self.urls.len().max(self.outputs.len()).max(self.uploads.len())
    }

    /// Returns true if `--remote-name-all` is in effect for the URL at this index. The URL's own
    /// `-o` or `-O` takes precedence over it.
    pub fn is_remote_named(&self, index: usize) -> bool {
        self.remote_name_all.iter().rev().find(|(from, _)| *from <= index).is_some_and(|(_, on)| *on)
    }
}

/// The options of one stage of a group. The first stage fetches the group's URLs; each `--then`
/// begins a further stage, which fetches URLs made from the results of the previous stage.
#[derive(Clone, Debug)]
pub struct ParsedStage {
    /// The URL template after `--then`; `None` for the first stage.
    pub template: Option<UrlTemplate>,
    /// The `-o` and `-O` options after `--then`. Empty for the first stage, whose outputs are in
    /// [`ParsedUrlGroup::outputs`].
    pub outputs: Vec<OutputArg>,
    /// The values of `--extract`, in order: regular expressions whose matches are printed or used
    /// by the next stage.
    pub extract: Vec<String>,
    /// The values of `--select`, in order: CSS selectors of HTML elements, each with an attribute
    /// or none.
    pub select: Vec<String>,
    /// The values of `--select-json`, in order: JSONPath queries.
    pub select_json: Vec<String>,
    /// `--extract-bytes`: applies the patterns of `--extract` to the bytes of response bodies.
    /// Without it, the patterns are applied to the bodies as text.
    pub extract_bytes: bool,
    /// `--paginate` and similar options: the method by which the next page of a paginated listing
    /// is found.
    pub pagination: ParsedPagination,
    /// `--unique`: prints each extracted value once.
    pub unique: bool,
    /// `--sort`: prints the extracted values sorted by their bytes.
    pub sort: bool,
    /// `--depth`: the maximum number of further rounds of the stage after its first round. Each
    /// further round requests the links in the responses of the round before. 0 without the option.
    pub depth: u32,
    /// The settings of the stage's requests, such as the method and the header fields.
    pub request: ParsedRequestOptions,
    /// The settings of the stage's transfers: limits, retries, connections and TLS. Stages share
    /// one value until an option changes it.
    pub transfer: Arc<TransferArgs>,
    /// The settings of the stage's proxy. Stages share one value until an option changes it.
    pub proxy: Arc<ParsedProxyOptions>,
    /// `-i`: prints the header fields of each response before its body.
    pub include: bool,
    /// `-D`: the file to which the header fields of responses are written. `None` without the
    /// option.
    pub dump_header: Option<PathBuf>,
    /// `-w`: the format of the text that is printed after each transfer. `None` without the option.
    pub write_out: Option<TextOrFile>,
}

impl ParsedStage {
    /// Returns a stage with these settings of transfers and of the proxy, and no other options.
    fn with_settings(transfer: Arc<TransferArgs>, proxy: Arc<ParsedProxyOptions>) -> Self {
        ParsedStage {
            template: None,
            outputs: Vec::new(),
            extract: Vec::new(),
            select: Vec::new(),
            select_json: Vec::new(),
            extract_bytes: false,
            pagination: ParsedPagination::default(),
            unique: false,
            sort: false,
            depth: 0,
            request: ParsedRequestOptions::default(),
            transfer,
            proxy,
            include: false,
            dump_header: None,
            write_out: None,
        }
    }

    /// Returns true if the stage extracts values from its responses.
    pub fn takes_values(&self) -> bool {
        !(self.extract.is_empty() && self.select.is_empty() && self.select_json.is_empty())
    }
}

/// The pagination options of a stage (`--then` begins a further stage): the source of the next
/// page's URL, and the limits.
#[derive(Clone, Debug, Default)]
pub struct ParsedPagination {
    /// `--paginate`: the link that leads to the next page of a listing. `None` without the option.
    pub link: Option<ParsedPageLink>,
    /// `--paginate-json`: the JSONPath of the value in a page that leads to the next page. `None`
    /// without the option.
    pub json: Option<String>,
    /// `--paginate-query`: the name of the query parameter that is counted up from page to page.
    /// `:` and the step may follow the name. `None` without the option.
    pub query: Option<String>,
    /// `--paginate-any`: allows pages to lead to pages of other origins.
    pub any_origin: bool,
    /// `--paginate-max`: the maximum number of pages of one listing. `None` without the option.
    pub max: Option<u64>,
}

impl ParsedPagination {
    /// Returns true if an option says where the URL of the next page comes from.
    pub fn is_given(&self) -> bool {
        self.link.is_some() || self.json.is_some() || self.query.is_some()
    }
}

/// The argument of `--paginate`: where a page of a listing links to the next page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParsedPageLink {
    /// The word `link`: the link in the response's header field `Link`.
    HeaderField,
    /// A CSS selector of the HTML elements in the page that contain the link.
    Element(String),
}

/// The request settings of a stage (`--then` separates stages). The files that they name have not
/// been read yet. `Debug` omits the values that may be secret.
#[derive(Clone, Default)]
pub struct ParsedRequestOptions {
    /// `-X`: the request method. `None` without the option.
    pub method: Option<String>,
    /// `-I`: requests only the head of the response.
    pub head: bool,
    /// `-H`: header fields, or files with header fields, in order.
    pub fields: Vec<ParsedHeaderOption>,
    /// `-A`: the value of the header field `User-Agent`. `None` without the option.
    pub user_agent: Option<Vec<u8>>,
    /// `-e`: the value of the header field `Referer`. `None` without the option.
    pub referer: Option<Vec<u8>>,
    /// `-e ';auto'`: after a redirect, sends the URL that redirected in the header field `Referer`.
    pub auto_referer: bool,
    /// `-b TEXT`: the cookies to send. Several texts are joined by `;`. `None` without the option.
    pub cookie: Option<Vec<u8>>,
    /// `-u`: the user and password for the server. `None` without the option.
    pub user: Option<ParsedUserOption>,
    /// `--oauth2-bearer`: a bearer token for the server. `None` without the option.
    pub bearer: Option<Secret>,
    /// `--aws-sigv4`: the parameters for signing requests with AWS Signature Version 4. `None`
    /// without the option.
    pub signature: Option<SigV4Parameters>,
    /// `--httpsig-key` and similar options: signs requests by RFC 9421.
    pub httpsig: ParsedMessageSignature,
    /// `--service-name` and `--delegation`: the settings for Negotiate.
    pub negotiate: crate::plan::NegotiateArgs,
    /// `--basic` and similar options: the authentication schemes that may be used. `None` without
    /// such an option.
    pub allowed: Option<AllowedAuthSchemes>,
    /// `-n`: reads credentials from a netrc file. False after `--no-netrc`.
    pub netrc: bool,
    /// `--netrc-optional`: reads credentials from a netrc file if it exists.
    pub netrc_optional: bool,
    /// `--netrc-file`: the netrc file to read. `None` means the default file in the home directory.
    pub netrc_file: Option<PathBuf>,
    /// `-d` and similar options: the pieces of the request content, in order.
    pub data: Vec<ParsedDataOption>,
    /// `-G`: appends the data of `-d` to the query of the URL.
    pub get: bool,
    /// `--url-query`: parts that are added to the query of the URL, in order.
    pub query: Vec<ParsedDataOption>,
    /// `-F` and `--form-string`: the form that is sent as content.
    pub form: FormOfAllOptions,
    /// `--request-target`: the request target to send in place of the URL's path and query. `None`
    /// without the option.
    pub request_target: Option<String>,
    /// `-z`: a date for a conditional request, or the name of a file whose modification time is
    /// used. `None` without the option.
    pub time_cond: Option<String>,
    /// `--etag-save`: the file in which the entity tag of the response is stored. `None` without
    /// the option.
    pub etag_save: Option<PathBuf>,
    /// `--etag-compare`: the file with the entity tag for a conditional request. `None` without the
    /// option.
    pub etag_compare: Option<PathBuf>,
    /// True if `--etag-save` or `--etag-compare` follows several URLs on the command line.
    pub etag_follows_urls: bool,
    /// `--disallow-username-in-url`: refuses URLs with a user.
    pub no_user_in_url: bool,
    /// `--follow`: follows redirects. A redirect changes the method of `-X` only where RFC 9110
    /// demands it.
    pub follow: bool,
    /// `-r`: the byte ranges to request. `None` without the option.
    pub range: Option<String>,
    /// `-C`: the offset at which a download or upload resumes. `None` without the option.
    pub continue_at: Option<ContinueAt>,
}

impl ParsedRequestOptions {
    /// Returns true if `-d`, `-F` or a similar option sets the request content.
    pub fn has_content(&self) -> bool {
        !self.form.is_empty() || !self.data.is_empty() && !self.get
    }
}

impl std::fmt::Debug for ParsedRequestOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParsedRequestOptions")
            .field("method", &self.method)
            .field("head", &self.head)
            .field("fields", &self.fields)
            .field("data", &self.data)
            .field("form", &self.form)
            .finish_non_exhaustive()
    }
}

/// The proxy settings of a stage (`--then` separates stages). The files that they name have not
/// been read yet.
#[derive(Clone, Debug, Default)]
pub struct ParsedProxyOptions {
    /// `-x` and similar options: the proxy. `Some(None)` for `-x ''`, which turns off proxies.
    /// `None` without such an option.
    pub proxy: Option<Option<Proxy>>,
    /// `--preproxy`: the SOCKS proxy through which the proxy is reached. `None` without the option.
    pub preproxy: Option<Proxy>,
    /// `-U`: the user and password for the proxy. `None` without the option.
    pub user: Option<ParsedUserOption>,
    /// `--proxy-basic` and similar options: the named schemes for the proxy. `None` without such
    /// an option.
    pub allowed: Option<AllowedAuthSchemes>,
    /// `--proxy-anyauth`: allows every scheme for the proxy, whatever `allowed` says.
    pub anyauth: bool,
    /// `--proxy-service-name` and `--delegation`: the settings for Negotiate.
    pub negotiate: crate::plan::NegotiateArgs,
    /// `--socks5-gssapi`: allows GSS-API with SOCKS 5 proxies.
    pub socks_gssapi: bool,
    /// `--socks5-gssapi-nec`: exchanges the GSS-API protection level with the SOCKS 5 proxy without
    /// encryption.
    pub socks_nec: bool,
    /// `-p`: also uses a `CONNECT` tunnel for http URLs.
    pub tunnel: bool,
    /// `--proxy-http2`: offers HTTP/2 to an https proxy.
    pub http2: bool,
    /// `--proxy1.0`: sends CONNECT as HTTP/1.0.
    pub http10: bool,
    /// `--suppress-connect-headers`: does not print the heads of responses to CONNECT.
    pub suppress_connect_headers: bool,
    /// `--proxy-header`: header fields that are sent only to the proxy, in order.
    pub fields: Vec<ParsedHeaderOption>,
    /// `--noproxy`: the hosts that are reached without a proxy; `None` if the option is not given.
    pub no_proxy: Option<String>,
    /// The TLS settings for an https proxy: `--proxy-cacert` and similar options.
    pub tls: TlsArgs,
}

/// The value of `-u` or `-U`. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct ParsedUserOption {
    /// The user name.
    pub user: Vec<u8>,
    /// The password; `None` if the value has no colon. [`crate::build_plan`] then asks the user for
    /// the password.
    pub password: Option<Vec<u8>>,
}

impl std::fmt::Debug for ParsedUserOption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ParsedUserOption(..)")
    }
}

/// The value of one `-H` or `--proxy-header`: a header field, or a file of them.
#[derive(Clone, Debug)]
pub enum ParsedHeaderOption {
    /// A header field that is given on the command line.
    Field(HeaderArg),
    /// `@file`: a file with one header field per line.
    File(PathBuf),
}

impl Default for ParsedArgs {
    fn default() -> Self {
        ParsedArgs::with_defaults(ProgramPersona::default())
    }
}

impl ParsedArgs {
    /// Returns the parsed form of an empty command line: one group without URLs, with the default
    /// options of the persona.
    pub fn with_defaults(persona: ProgramPersona) -> Self {
        let defaults = NextGroupDefaults::new(persona);
        ParsedArgs {
            global: GlobalArgs::with_defaults(persona),
            groups: vec![ParsedUrlGroup::with_settings(&defaults)],
            info: None,
            help_first: Vec::new(),
            agent_command: None,
            warnings: Vec::new(),
            notes: Vec::new(),
            curlrc_fault: None,
            secrets: Vec::new(),
            given: None,
            config: None,
            variable: None,
            list: None,
            defaults,
        }
    }

    /// Removes the last `--next` group if it has no URL and is not the only group. Returns true if
    /// it was removed. A config file whose entries all end with `next` makes such a group. curl
    /// reports the missing URL only after the other groups have run.
    pub fn take_group_without_url(&mut self) -> bool {
        let is_one = self.groups.len() > 1 && self.groups.last().is_some_and(|group| group.urls.is_empty());
        if is_one {
            self.groups.pop();
        }
        is_one
    }

    /// Returns the last `--next` group, to which the next option of the command line applies.
    pub fn group(&mut self) -> &mut ParsedUrlGroup {
        let last = self.groups.len() - 1;
        &mut self.groups[last]
    }

    /// Returns the last stage (`--then`) of the last group, to which the next option of the command
    /// line applies.
    pub fn stage(&mut self) -> &mut ParsedStage {
        let stages = &mut self.group().stages;
        let last = stages.len() - 1;
        &mut stages[last]
    }

    /// Adds an output (`-o` or `-O`) to the last group, or to its last stage after a `--then`.
    pub(crate) fn push_output(&mut self, output: OutputArg) {
        let group = self.group();
        match group.stages.as_mut_slice() {
            [_, .., last] => last.outputs.push(output),
            _ => group.outputs.push(output),
        }
    }

    /// Returns the request settings of the last stage, to which the next option applies.
    pub fn request(&mut self) -> &mut ParsedRequestOptions {
        &mut self.stage().request
    }

    /// Returns the transfer settings of the last stage, to which the next option applies.
    pub fn transfer(&mut self) -> &mut TransferArgs {
        Arc::make_mut(&mut self.stage().transfer)
    }

    /// Returns the proxy settings of the last stage, to which the next option applies.
    pub fn proxy(&mut self) -> &mut ParsedProxyOptions {
        Arc::make_mut(&mut self.stage().proxy)
    }

    /// Adds a warning. Ignores the warning if `WARNINGS_MAX` warnings are already stored, or if
    /// haul acts as curl and is silent (`-s`).
    pub fn warn(&mut self, text: impl Into<String>) {
        if self.global.silent && self.global.persona.is_curl() {
            return;
        }
        match self.warnings.len() {
            WARNINGS_MAX.. => {}
            count if count + 1 == WARNINGS_MAX => {
                self.warnings.push("further warnings are not shown".to_owned());
            }
            _ => self.warnings.push(text.into()),
        }
    }

    /// Begins a new group of URLs and options for `--next`. Fails if the current group has no URL.
    pub(crate) fn next_group(&mut self) -> Result<(), UsageErrorReason> {
        if self.group().urls.is_empty() {
            return Err(UsageErrorReason::MissingUrlBeforeNext);
        }
        self.groups.push(ParsedUrlGroup::with_settings(&self.defaults));
        Ok(())
    }

    /// Begins a new stage for `--then`, which inherits the transfer and proxy settings of the
    /// previous stage.
    ///
    /// Trust, time limits and name resolution apply to all stages, so that `--cacert` need not be
    /// repeated. Options for the request itself (method, fields, content, credentials) are not
    /// inherited: the response of a server chooses the next URLs, so that a POST or a secret must
    /// be given again explicitly.
    pub(crate) fn next_stage(&mut self, template: UrlTemplate) {
        let stage = self.stage();
        let (mut transfer, proxy) = (Arc::clone(&stage.transfer), Arc::clone(&stage.proxy));
        // The new stage starts without the credentials of the stage before.
        if transfer.tls.client != ClientCert::default() || transfer.options.redirects.location_trusted {
            let transfer = Arc::make_mut(&mut transfer);
            transfer.tls.client = ClientCert::default();
            transfer.options.redirects.location_trusted = false;
        }
        let stage = ParsedStage { template: Some(template), ..ParsedStage::with_settings(transfer, proxy) };
        self.group().stages.push(stage);
    }
}
