//! Converts the parsed command line ([`ParsedArgs`]) to the plan of the run ([`RunPlan`]).
//!
//! The conversion reads the environment and the files that options such as `-d @FILE`, `-H @FILE`
//! and `-n` name, asks for passwords, fills in defaults, assigns outputs to URLs, and refuses
//! contradictory options.
//!
//! ```
//! use haul_cli::file_and_environment_access::SystemFilesAndEnvironment;
//! use haul_cli::{build_plan::resolve, parse::parse, plan::RequestBodyArg};
//!
//! let args = ["-d", "a=1", "-d", "b=2", "http://h/"].map(Into::into);
//! let plan = resolve(parse(args, &mut SystemFilesAndEnvironment).unwrap(), &mut SystemFilesAndEnvironment).unwrap();
//! let request = &plan.groups[0].stages[0].request;
//! assert_eq!(request.method, "POST");
//! assert_eq!(request.body, Some(RequestBodyArg::Bytes(b"a=1&b=2".to_vec())));
//! ```

mod body;
mod conditions;
mod conflicts;
pub(crate) mod credentials;
mod job_restrictions;
mod jsonl_and_csv_input;
mod misplaced_placeholders;
mod own_file_conflicts;
mod pagination;
mod upload;

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use haul_policy::proxy::ProxyEnvironment;

use crate::agent::{AgentArgs, DEFAULT_IDLE_TIME};
use crate::extracted_value_name::ValueName;
use crate::file_and_environment_access::FilesAndEnvironment;
use crate::flags::header_value_parser;
use crate::parsed_args::{
    DataOptionKind, ParsedArgs, ParsedHeaderOption, ParsedProxyOptions, ParsedRequestOptions, ParsedStage,
    ParsedUrlGroup, TextOrFile,
};
use crate::plan::{
    ContinueAt, ExistingFilePolicy, HeadAndWriteOutArgs, HeaderArg, OutputArg, PlaceholderEncoding, PlaceholderSyntax,
    ProxyArgs, RecordOutputArgs, RecordOutputFormat, RequestArgs, RequestBodyArg, RunPlan, StageArgs, UploadArg,
    UrlGroup, ValueTemplate,
};
use crate::program_persona::ProgramPersona;
use crate::usage_error::{ArgPosition, UsageError, UsageErrorReason, printable};
use crate::write_out::WriteOut;

/// Converts a parsed command line to a plan. If [`ParsedArgs::info`] is set, the caller must print
/// the requested text (such as that of `--help`) instead of calling this function.
pub fn resolve(parsed: ParsedArgs, files: &mut dyn FilesAndEnvironment) -> Result<RunPlan, UsageError> {
    job_restrictions::check(&parsed)?;
    // curl says them as it reads, and so before it reads of a -s.
    let always_shown_warnings = if parsed.global.persona.is_curl() { parsed.warnings.len() } else { 0 };
    let mut resolver = PlanBuilder {
        files,
        warnings: parsed.warnings,
        notes: parsed.notes,
        persona: parsed.global.persona,
        parallel_groups: parsed.global.parallel_groups,
        record_output: parsed.global.record_output,
        with_url: parsed.global.with_url,
        proxy_environment: None,
        last_proxy: None,
    };
    let groups = parsed.groups.into_iter().map(|group| resolver.group(group).map(Arc::new));
    let groups: Vec<_> = groups.collect::<Result<_, _>>()?;
    conflicts::check_archive(&parsed.global, &groups)?;
    own_file_conflicts::check(&parsed.global, &groups)?;
    let mut global = parsed.global;
    global.agent = resolver.agent(global.agent).map(|agent| AgentArgs { idle: global.agent_idle, ..agent });
    Ok(RunPlan { groups, global, warnings: resolver.warnings, always_shown_warnings, notes: resolver.notes })
}

struct PlanBuilder<'f> {
    files: &'f mut dyn FilesAndEnvironment,
    warnings: Vec<String>,
    notes: Vec<String>,
    persona: ProgramPersona,
    /// True if the groups that `--next` separates on the command line run in parallel, too. Becomes
    /// [`GlobalArgs::parallel_groups`](crate::plan::GlobalArgs::parallel_groups).
    parallel_groups: bool,
    record_output: Option<RecordOutputFormat>,
    with_url: bool,
    /// The proxies that the environment names, which are read once; `None` before they are read.
    proxy_environment: Option<ProxyEnvironment>,
    /// The proxy options of the previous stage, as given and as converted; `None` before the first
    /// stage.
    last_proxy: Option<(Arc<ParsedProxyOptions>, Arc<ProxyArgs>)>,
}

/// Returns the settings for the agent that the environment variable `HAUL_AGENT` selects. They
/// apply if `--agent` is not given. The value of the variable is the path of a socket, or `1` for
/// the default path. Returns `None` if the variable is unset, empty or `0`.
pub fn agent_from_variable(variable: Option<OsString>) -> Option<AgentArgs> {
    let variable = variable?;
    let socket = match variable.as_encoded_bytes() {
        b"" | b"0" => return None,
        b"1" => None,
        _ => Some(variable.into()),
    };
    Some(AgentArgs { socket, idle: DEFAULT_IDLE_TIME })
}

impl PlanBuilder<'_> {
    fn agent(&self, given: Option<AgentArgs>) -> Option<AgentArgs> {
        given.or_else(|| agent_from_variable(self.files.variable("HAUL_AGENT")))
    }

    fn group(&mut self, mut group: ParsedUrlGroup) -> Result<UrlGroup, UsageError> {
        if group.urls.is_empty() {
            return Err(UsageError::new(ArgPosition::Whole, UsageErrorReason::NoUrl));
        }
        let records = jsonl_and_csv_input::take_record_args(&mut group, &mut self.warnings)?;
        conflicts::check(&group, self.persona, &mut self.warnings)?;
        conflicts::check_records(&group, self.record_output, self.with_url)?;
        pagination::check(&group)?;
        if self.persona.is_curl() {
            self.check_files_exist(&group)?;
        }
        let mut outputs = std::mem::take(&mut group.outputs);
        let uploads = self.uploads(std::mem::take(&mut group.uploads), &group.urls, group.globoff)?;
        let default_of = |index| match group.is_remote_named(index) {
            true => OutputArg::RemoteName,
            false if group.mirror_paths => OutputArg::MirroredPath,
            false => OutputArg::Stdout,
        };
        let mut output_default = default_of(group.urls.len());
        if group.stages.len() > 1 {
            // It is about what is output: the pages of the last stage.
            output_default = OutputArg::Stdout;
            if outputs.contains(&OutputArg::Stdout) {
                return Err(misused_option_error("--output", PAGES_NEED_FILES));
            }
        }
        let has_surplus_output = outputs.len() > group.urls.len();
        if has_surplus_output {
            // `--no-remote-name` more than needed asks for nothing.
            if outputs[group.urls.len()..].iter().any(|output| *output != OutputArg::Stdout) {
                self.warnings.push("Got more output options than URLs".to_owned());
            }
            outputs.truncate(group.urls.len());
        } else if group.stages.len() == 1 && group.remote_name_all.iter().any(|(from, _)| *from > 0) {
            let is_listed = |index| group.urls.is_listed(index);
            let default_of = |index| if is_listed(index) { OutputArg::RemoteName } else { default_of(index) };
            outputs.extend((outputs.len()..group.urls.len()).map(default_of));
        }
        let last = group.stages.len() - 1;
        if last > 0 && group.is_remote_named(usize::MAX) && group.stages[last].outputs.is_empty() {
            group.stages[last].outputs.push(OutputArg::RemoteName);
        } else if last > 0 && group.mirror_paths && group.stages[last].outputs.is_empty() {
            group.stages[last].outputs.push(OutputArg::MirroredPath);
        }
        let stages = group.stages.into_iter().enumerate();
        let has_uploads = uploads.iter().any(|upload| *upload != UploadArg::Nothing);
        let is_listed = group.is_listed || self.parallel_groups;
        let fills_columns = records.as_ref().is_some_and(|records| records.format.has_columns());
        let stages = stages.map(|(at, stage)| {
            let first = (at == 0 && fills_columns).then_some(PlaceholderSyntax::Column);
            self.stage(stage, at == last, at == 0 && has_uploads, first)
        });
        let mut planned = UrlGroup {
            is_listed,
            stages: stages.collect::<Result<_, _>>()?,
            urls: group.urls,
            records,
            globoff: group.globoff,
            outputs,
            has_surplus_output,
            uploads,
            output_default,
            output_dir: group.output_dir,
            create_dirs: group.create_dirs || group.mirror_paths,
            remote_header_name: group.remote_header_name,
            existing: match group.clobber {
                _ if group.skip_existing => ExistingFilePolicy::Skip,
                Some(true) => ExistingFilePolicy::Replace,
                Some(false) => ExistingFilePolicy::Number,
                None => ExistingFilePolicy::ReplaceUnlessNamedByResponse,
            },
            remove_on_error: group.remove_on_error,
            fsync: group.fsync,
            in_place: self.persona.is_curl(),
            remote_time: group.remote_time,
            xattr: group.xattr,
            create_file_mode: group.create_file_mode,
            checksum: group.checksum,
        };
        check_values(&planned)?;
        pagination::check_outputs(&planned)?;
        self.set_record_output(&mut planned)?;
        Ok(planned)
    }

    /// Sets the format of the records (`--jsonl` or `--csv`) in the last stage, and the names of
    /// the extracted values.
    fn set_record_output(&self, group: &mut UrlGroup) -> Result<(), UsageError> {
        let Some(last) = group.stages.last_mut() else { return Ok(()) };
        last.with_url = self.with_url && self.record_output.is_none();
        let Some(format) = self.record_output else { return Ok(()) };
        // Beside selected values, the expressions of --extract only search these values.
        let (queries, option) = match (last.select.is_empty(), last.select_json.is_empty()) {
            (false, _) => (&mut last.select, "--select"),
            (true, false) => (&mut last.select_json, "--select-json"),
            (true, true) => (&mut last.extract, "--extract"),
        };
        last.value_names = ValueName::split_all(queries).map_err(|text| misused_option_error(option, &text))?;
        let keeps_bodies = format == RecordOutputFormat::Jsonl { bodies: true } && !last.takes_values();
        let records = RecordOutputArgs { format, keeps_bodies, has_files: false };
        last.records = Some(records);
        // A shared output has the records themselves.
        let has_files = group.shared_output().is_none()
            && match group.stages.as_slice() {
                [.., last] if group.stages.len() > 1 => !last.output.is_stdout(),
                _ => (0..group.urls.len()).any(|source| !group.output_of_source(source).is_stdout()),
            };
        if let Some(last) = group.stages.last_mut() {
            last.records = Some(RecordOutputArgs { has_files, ..records });
        }
        Ok(())
    }

    /// Returns the output of a stage after `--then`: its last `-o` or `-O`, or standard output
    /// without these. `is_last` is true for the last stage; any other stage must not write to
    /// standard output.
    fn output(&mut self, mut outputs: Vec<OutputArg>, is_last: bool) -> Result<OutputArg, UsageError> {
        if outputs.len() > 1 {
            self.warnings.push("Only the last -o of a stage behind --then counts".to_owned());
        }
        match outputs.pop() {
            Some(OutputArg::Stdout) if !is_last => Err(misused_option_error("--output", PAGES_NEED_FILES)),
            // Named by the user, it takes what is no text on a terminal, too.
            Some(OutputArg::Stdout) => Ok(OutputArg::File("-".into())),
            output => Ok(output.unwrap_or(OutputArg::Stdout)),
        }
    }

    fn stage(
        &mut self,
        mut stage: ParsedStage,
        last: bool,
        uploads: bool,
        placeholders: Option<PlaceholderSyntax>,
    ) -> Result<StageArgs, UsageError> {
        conflicts::check_values(&stage)?;
        conflicts::check_depth(&stage, last)?;
        let placeholders = if stage.template.is_some() { Some(PlaceholderSyntax::Value) } else { placeholders };
        if let Some(syntax) = placeholders {
            misplaced_placeholders::check(&stage, syntax)?;
        }
        let pagination = pagination::pagination(&stage)?;
        if !last && stage.sort {
            // Stages overlap: a sorted feed would have to wait for the last match.
            self.warnings.push("--sort before a --then sorts nothing".to_owned());
        }
        let has_content = stage.request.has_content();
        // With content it is a question to the output file: whether there is nothing in it.
        let is_due =
            |&from: &ContinueAt| from == ContinueAt::OutputSize || !has_content && from != ContinueAt::Offset(0);
        stage.request.continue_at = stage.request.continue_at.filter(is_due);
        if stage.request.continue_at.is_some() && !has_content {
            // The offset counts bytes of the plain body, which a compressed one does not have.
            // Programs written for curl (yt-dlp) always ask for both, so that curl's persona gets
            // no warning.
            if stage.transfer.compressed == Some(true) && !self.persona.is_curl() {
                self.warnings.push("--compressed is left out, as --continue-at counts plain bytes".to_owned());
            }
            Arc::make_mut(&mut stage.transfer).compressed = Some(false);
        }
        let write_out = match stage.write_out {
            Some(text) => {
                let is_file = matches!(text, TextOrFile::File(_));
                let mut format = self.read_text(text, "--write-out")?;
                if is_file {
                    // As curl: the lines of a file are one format, \n makes lines.
                    format.retain(|byte| !matches!(byte, b'\r' | b'\n' | 0));
                }
                let (format, unknown) = WriteOut::parse(&format);
                self.warnings.extend(unknown);
                Some(format)
            }
            None => None,
        };
        let scheme = stage.transfer.redirect.default_scheme;
        Ok(StageArgs {
            template: stage.template.map(|template| template.with_default_scheme(scheme)),
            output: self.output(stage.outputs, last)?,
            request: self.request(stage.request, uploads, placeholders)?,
            transfer: stage.transfer,
            proxy: self.shared_proxy(stage.proxy)?,
            report: HeadAndWriteOutArgs {
                include: stage.include,
                dump_header: stage.dump_header,
                doubles_heads: false,
                write_out,
            },
            extract: stage.extract,
            select: stage.select,
            select_json: stage.select_json,
            extract_bytes: stage.extract_bytes,
            pagination,
            unique: stage.unique,
            sort: stage.sort,
            depth: stage.depth,
            value_names: Vec::new(),
            with_url: false,
            records: None,
        })
    }

    fn request(
        &mut self,
        mut parsed: ParsedRequestOptions,
        uploads: bool,
        placeholders: Option<PlaceholderSyntax>,
    ) -> Result<RequestArgs, UsageError> {
        let own_method = conflicts::method(&parsed, uploads, self.persona)?;
        let custom_method = parsed.method.is_some() && !parsed.follow;
        let is_post = (parsed.method.is_some() && parsed.follow).then_some(own_method == "POST");
        self.warn_about_method(&parsed, own_method, uploads);
        let method = parsed.method.take().unwrap_or_else(|| own_method.to_owned());
        let (data, get) = match parsed.get {
            true => (Vec::new(), std::mem::take(&mut parsed.data)),
            false => (std::mem::take(&mut parsed.data), Vec::new()),
        };
        let is_json = data.iter().chain(&get).any(|data| data.kind == DataOptionKind::Json);
        let fields_by_value = placeholders.map_or_else(Vec::new, |syntax| fields_by_value(&parsed.fields, syntax));
        let mut fields = self.fields(std::mem::take(&mut parsed.fields), "--header")?;
        if parsed.continue_at.is_some() && has_field(&fields, "Range") {
            return Err(misused_option_error("-C", "--continue-at is mutually exclusive with a Range header"));
        }
        if is_json {
            add_field_if_missing(&mut fields, "Content-Type", "application/json");
            add_field_if_missing(&mut fields, "Accept", "application/json");
        }
        let is_form = !data.is_empty() && !has_field(&fields, "Content-Type");
        // Chunked content without any body is the last chunk alone. This also holds for a URL
        // beside those that receive content.
        let is_chunked = |value: &[u8]| value.eq_ignore_ascii_case(b"chunked");
        let in_chunks = |field: &HeaderArg| matches!(field, HeaderArg::Set { value, .. } if is_chunked(value));
        let mut framing = fields.iter().filter(|field| field.name().eq_ignore_ascii_case("Transfer-Encoding"));
        let is_empty = framing.any(in_chunks);
        self.conditions(&mut parsed, &mut fields)?;
        let time_cond = self.time_cond(parsed.time_cond.take(), &mut fields)?;
        let auth = self.auth(&mut parsed, &fields)?;
        // A field given by -H takes the place of the option's, as in curl.
        let user_agent = parsed.user_agent.unwrap_or_else(|| self.persona.user_agent().into_bytes());
        let keep = |name: &str| !has_field(&fields, name);
        Ok(RequestArgs {
            method,
            custom_method,
            is_post,
            head: parsed.head,
            user_agent: Some(user_agent).filter(|own| !own.is_empty() && keep("User-Agent")),
            referer: parsed.referer.filter(|_| keep("Referer")),
            auto_referer: parsed.auto_referer && keep("Referer"),
            auth,
            cookie: parsed.cookie,
            range: parsed.range.filter(|_| keep("Range")),
            continue_at: parsed.continue_at,
            body: if !parsed.form.is_empty() {
                Some(RequestBodyArg::Multipart(self.form(parsed.form)?))
            } else if !data.is_empty() {
                Some(self.request_body(data, placeholders.map(|syntax| (value_form(&fields), syntax)))?)
            } else {
                is_empty.then(|| RequestBodyArg::Bytes(Vec::new()))
            },
            content_type: is_form.then(|| "application/x-www-form-urlencoded".to_owned()),
            request_target: parsed.request_target,
            time_cond,
            etag_save: parsed.etag_save,
            no_user_in_url: parsed.no_user_in_url,
            query: self.join_query(parsed.query, get, placeholders)?,
            fields_by_value,
            fields,
        })
    }

    /// Adds curl's note if `-X` names the method that the request has without `-X`: `PUT` if
    /// `uploads` is true, and `own` otherwise. Adds curl's warning about any other `-X HEAD`. Adds
    /// nothing unless haul acts as curl.
    fn warn_about_method(&mut self, parsed: &ParsedRequestOptions, own: &str, uploads: bool) {
        let own = if uploads { "PUT" } else { own };
        match parsed.method.as_deref().filter(|_| self.persona.is_curl()) {
            Some(method) if method.eq_ignore_ascii_case(own) => {
                self.notes.push(format!("Unnecessary use of -X or --request, {own} is already inferred."));
            }
            Some(method) if method.eq_ignore_ascii_case("HEAD") => self.warnings.push(
                "Setting custom HTTP method to HEAD with -X/--request may not work the way you want. Consider using \
                 -I/--head instead."
                    .to_owned(),
            ),
            _ => {}
        }
    }

    fn fields(&mut self, parsed: Vec<ParsedHeaderOption>, option: &str) -> Result<Vec<HeaderArg>, UsageError> {
        let mut fields = Vec::with_capacity(parsed.len());
        for header in parsed {
            let path = match header {
                ParsedHeaderOption::Field(field) => {
                    fields.push(field);
                    continue;
                }
                ParsedHeaderOption::File(path) => path,
            };
            let text = self.read_file(&path, option)?;
            for line in text.split(|&byte| byte == b'\n') {
                let line =
                    if self.persona.is_curl() { line.strip_suffix(b"\r").unwrap_or(line) } else { line.trim_ascii() };
                let refuse = |reason| UsageError::new(ArgPosition::Option(option.into()), reason);
                match header_value_parser::parse(line, self.persona).map_err(refuse)? {
                    Some(field) => fields.push(field),
                    None if line.is_empty() => {}
                    None => self
                        .warnings
                        .push(format!("a line of '{}' does not look like a header; it is left out", path.display())),
                }
            }
        }
        Ok(fields)
    }

    /// Checks that the files of CA certificates, revocation lists and credentials that the options
    /// name exist, before any request is sent.
    fn check_files_exist(&mut self, group: &ParsedUrlGroup) -> Result<(), UsageError> {
        for stage in &group.stages {
            let (tls, proxy) = (&stage.transfer.tls, &stage.proxy.tls);
            let named = [
                (&tls.options.ca_file, "cacert"),
                (&tls.options.crl_file, "crlfile"),
                (&stage.request.netrc_file, "netrc-file"),
                (&proxy.options.ca_file, "proxy-cacert"),
                (&proxy.options.crl_file, "proxy-crlfile"),
            ];
            for (path, option) in named {
                let Some(path) = path else { continue };
                if self.files.size(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
                    let file = printable(path.as_os_str().as_encoded_bytes());
                    let text = format!("The file '{file}' provided to --{option} does not exist");
                    return Err(misused_option_error(&format!("--{option}"), &text));
                }
            }
        }
        Ok(())
    }

    fn read_text(&mut self, text: TextOrFile, option: &str) -> Result<Vec<u8>, UsageError> {
        match text {
            TextOrFile::Text(text) => Ok(text),
            TextOrFile::File(path) => self.read_file(&path, option),
        }
    }

    fn read_file(&mut self, path: &Path, option: &str) -> Result<Vec<u8>, UsageError> {
        let mut bytes = Vec::new();
        let read = self.files.open(path).and_then(|mut file| file.read_to_end(&mut bytes));
        match read {
            Ok(_) => Ok(bytes),
            Err(error) => {
                let reason = UsageErrorReason::unreadable_file(path, &error);
                Err(UsageError::new(ArgPosition::Option(option.to_owned()), reason))
            }
        }
    }
}

/// The error message for a stage that passes values to the next stage but also writes its responses
/// to standard output.
const PAGES_NEED_FILES: &str = "a stage that feeds a --then keeps its pages in files: name them by -o FILE or -O";

/// Refuses `--sort` and `--unique` if the extracted values of each response are written to a
/// separate file.
fn check_values(group: &UrlGroup) -> Result<(), UsageError> {
    let Some(last) = group.stages.last() else { return Ok(()) };
    let is_stdout = |source| group.output_of_source(source).is_stdout();
    let is_one = group.shared_output().is_some() || group.stages.len() == 1 && (0..group.urls.len()).all(is_stdout);
    for (given, option) in [(last.unique, "--unique"), (last.sort, "--sort")] {
        if given && !is_one {
            return Err(misused_option_error(
                option,
                "the values of each page go to a file of their own: name one file by -o for all",
            ));
        }
    }
    Ok(())
}

/// Returns the names and values of the `-H` fields whose values contain placeholders.
fn fields_by_value(fields: &[ParsedHeaderOption], syntax: PlaceholderSyntax) -> Vec<(String, Vec<u8>)> {
    let set = fields.iter().filter_map(|field| match field {
        ParsedHeaderOption::Field(HeaderArg::Set { name, value }) => Some((name.clone(), value.clone())),
        _ => None,
    });
    let template = |value: &[u8]| ValueTemplate::parse(value, PlaceholderEncoding::Plain, syntax);
    set.filter(|(_, value)| template(value).literal_text().is_none()).collect()
}

/// Returns the encoding in which extracted values are inserted into a request body. It depends on
/// the `Content-Type` in `fields`. Without a `Content-Type`, values are encoded as in a URL-encoded
/// form.
fn value_form(fields: &[HeaderArg]) -> PlaceholderEncoding {
    let is_type = |field: &&HeaderArg| field.name().eq_ignore_ascii_case("Content-Type");
    let Some(HeaderArg::Set { value, .. }) = fields.iter().find(is_type) else { return PlaceholderEncoding::Form };
    let value = String::from_utf8_lossy(value).to_ascii_lowercase();
    let media_type = value.split(';').next().unwrap_or_default().trim();
    match media_type {
        "application/x-www-form-urlencoded" => PlaceholderEncoding::Form,
        _ if media_type.ends_with("json") => PlaceholderEncoding::Json,
        _ if media_type.ends_with("xml") || media_type.ends_with("html") => PlaceholderEncoding::Markup,
        _ => PlaceholderEncoding::Plain,
    }
}

fn misused_option_error(option: &str, text: &str) -> UsageError {
    UsageError::new(ArgPosition::Option(option.to_owned()), UsageErrorReason::bad_use(text))
}

fn has_field(fields: &[HeaderArg], name: &str) -> bool {
    fields.iter().any(|field| field.name().eq_ignore_ascii_case(name))
}

fn add_field_if_missing(fields: &mut Vec<HeaderArg>, name: &str, value: &str) {
    if !has_field(fields, name) {
        fields.push(HeaderArg::Set { name: name.to_owned(), value: value.into() });
    }
}

#[cfg(test)]
mod tests;
