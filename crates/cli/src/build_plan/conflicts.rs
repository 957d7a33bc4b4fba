//! Refuses options of one group (`--next` separates groups) that contradict each other. If
//! curl refuses them too, the error message is curl's.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haul_policy::glob::{UrlGlob, template_names};

use super::misused_option_error;
use crate::checksum::ChecksumArg;
use crate::parsed_args::{ParsedRequestOptions, ParsedStage, ParsedUrlGroup};
use crate::plan::{
    ContinueAt, GlobalArgs, HttpVersion, OutputArg, RecordOutputFormat, UploadArg, UrlGroup, UrlSource, WarcArgs,
};
use crate::program_persona::ProgramPersona;
use crate::usage_error::{ArgPosition, UsageError, UsageErrorReason};

/// Refuses options of one `--next` group that contradict each other, and warns about options
/// without effect.
pub(super) fn check(
    group: &ParsedUrlGroup,
    persona: ProgramPersona,
    warnings: &mut Vec<String>,
) -> Result<(), UsageError> {
    for stage in &group.stages {
        check_continued(group, stage, persona)?;
        check_connection(stage, persona, warnings)?;
    }
    check_names(group, warnings)?;
    check_uploads(group)?;
    check_glob_names(group)?;
    check_entity_tag(group, persona)?;
    check_checksum(group)
}

/// Returns the request method that the options other than `-X` imply, such as `POST` for `-d`.
/// Fails with curl's message if two options imply different methods.
///
/// Unless haul acts as curl, `-G` may be combined with a form or an upload: the data of `-d` then
/// go into the URL.
pub(super) fn method(
    parsed: &ParsedRequestOptions,
    uploads: bool,
    persona: ProgramPersona,
) -> Result<&'static str, UsageError> {
    let data_in_url = parsed.get && !parsed.data.is_empty() && !parsed.head && persona.is_curl();
    let asked = [
        (parsed.head, "HEAD", "HEAD (-I, --head)", "--head"),
        (!parsed.form.is_empty(), "POST", "multipart formpost (-F, --form)", "--form"),
        (data_in_url, "GET", "GET (-G, --get)", "--get"),
        (!parsed.data.is_empty() && !parsed.get, "POST", "POST (-d, --data)", "--data"),
        (uploads, "PUT", "PUT (-T, --upload-file)", "--upload-file"),
    ];
    let mut asked = asked.iter().filter(|(applies, ..)| *applies);
    match (asked.next(), asked.next()) {
        (Some((_, _, first, _)), Some((_, _, second, option))) => {
            let asked = |first, second| {
                format!("You can only select one HTTP request method! You asked for both {first} and {second}")
            };
            if persona.is_curl() {
                let reason = UsageErrorReason::Methods(asked(second, first) + ".");
                return Err(UsageError::new(ArgPosition::Option((*option).into()), reason));
            }
            Err(misused_option_error(option, &asked(first, second)))
        }
        // Uploads belong to single URLs: the other URLs of the group are fetched.
        (Some((_, method, ..)), None) if !uploads => Ok(method),
        _ => Ok("GET"),
    }
}

/// Refuses `-C` (resume) together with options that contradict it, such as `--range`,
/// `--no-clobber` or `--data`.
fn check_continued(group: &ParsedUrlGroup, stage: &ParsedStage, persona: ProgramPersona) -> Result<(), UsageError> {
    let Some(from) = stage.request.continue_at else { return Ok(()) };
    // Standard output has no size. curl begins at 0 then, which programs count on that have one set
    // of options for heads and files (Vagrant); behind `>>` that is a second copy of what is there.
    let is_left_over = (group.outputs.len()..group.urls.len()).any(|index| !group.is_remote_named(index));
    let has_no_size = is_left_over || group.outputs.contains(&OutputArg::Stdout);
    // To curl a file that is not there, or has nothing in it, is no contradiction to content
    // either: that shows when it is opened.
    let begins_at_0 = from == ContinueAt::Offset(0) || from == ContinueAt::OutputSize && persona.is_curl();
    let refusals = [
        (stage.request.range.is_some(), "--continue-at is mutually exclusive with --range"),
        (group.remove_on_error, "--continue-at is mutually exclusive with --remove-on-error"),
        (group.clobber == Some(false), "--continue-at is mutually exclusive with --no-clobber"),
        (stage.request.has_content() && !begins_at_0, "--continue-at is mutually exclusive with --data"),
        (group.stages.len() > 1 || stage.takes_values(), "what is extracted cannot be gone on with"),
    ];
    if let Some((_, text)) = refusals.iter().find(|(applies, _)| *applies) {
        return Err(misused_option_error("-C", text));
    }
    // Of an upload it is about what is sent.
    if from == ContinueAt::OutputSize && group.uploads.is_empty() {
        if group.remote_header_name {
            return Err(misused_option_error("-C", "--continue-at and --remote-header-name cannot be combined"));
        }
        if has_no_size && !persona.is_curl() {
            return Err(misused_option_error(
                "-C",
                "\"-\" takes the size of the output file, and there is none: -o or -O",
            ));
        }
    }
    Ok(())
}

/// Refuses `--preproxy` if `--proxy` is a SOCKS proxy, and `--http3-only` with a proxy. If haul
/// acts as curl, `--http3-only` with a proxy is not refused here: the transfer fails with exit code
/// 3. Warns about a key without a certificate.
fn check_connection(
    stage: &ParsedStage,
    persona: ProgramPersona,
    warnings: &mut Vec<String>,
) -> Result<(), UsageError> {
    for (tls, prefix) in [(&stage.transfer.tls, ""), (&stage.proxy.tls, "proxy-")] {
        if tls.client.certificate.is_none() && tls.client.key.is_some() {
            warnings.push(format!("--{prefix}key does nothing without --{prefix}cert"));
        }
    }
    let has_proxy = stage.proxy.preproxy.is_some() || matches!(&stage.proxy.proxy, Some(Some(_)));
    if stage.transfer.http_version == HttpVersion::Http3Only && has_proxy && !persona.is_curl() {
        let text = "HTTP/3 cannot go through a proxy, since no proxy forwards UDP: use --http3, or leave the proxy out";
        return Err(misused_option_error("--http3-only", text));
    }
    if stage.proxy.preproxy.is_some() && matches!(&stage.proxy.proxy, Some(Some(proxy)) if proxy.kind().is_socks()) {
        return Err(misused_option_error("--preproxy", "the proxy behind a SOCKS proxy is an HTTP or HTTPS proxy"));
    }
    Ok(())
}

fn check_names(group: &ParsedUrlGroup, warnings: &mut Vec<String>) -> Result<(), UsageError> {
    let outputs = group.stages.iter().flat_map(|stage| &stage.outputs).chain(&group.outputs);
    let has_remote_name =
        !group.remote_name_all.is_empty() || outputs.into_iter().any(|output| *output == OutputArg::RemoteName);
    if group.remote_header_name && !has_remote_name {
        warnings.push("--remote-header-name does nothing without --remote-name".to_owned());
    }
    if group.skip_existing && group.stages[0].request.continue_at.is_some() {
        warnings.push("--skip-existing leaves nothing to --continue-at".to_owned());
    }
    Ok(())
}

/// Refuses `--unique` and `--sort` in a stage that extracts no values, and extraction options that
/// exclude each other.
pub(super) fn check_values(stage: &ParsedStage) -> Result<(), UsageError> {
    let options = [(stage.unique, "--unique"), (stage.sort, "--sort")];
    if let Some((_, option)) = options.iter().find(|(given, _)| *given && !stage.takes_values()) {
        return Err(misused_option_error(
            option,
            "needs --extract or --select in the same stage (a URL or a --then, with its options)",
        ));
    }
    let selects = !(stage.select.is_empty() && stage.select_json.is_empty());
    if stage.extract_bytes && selects {
        return Err(misused_option_error(
            "--extract-bytes",
            "what --select and --select-json find is text; leave one of them out",
        ));
    }
    if stage.extract_bytes && stage.extract.is_empty() {
        return Err(misused_option_error(
            "--extract-bytes",
            "needs --extract in the same stage (a URL or a --then, with its options)",
        ));
    }
    if !stage.select.is_empty() && !stage.select_json.is_empty() {
        return Err(misused_option_error(
            "--select-json",
            "--select in the same stage reads HTML, and a page is one or the other",
        ));
    }
    Ok(())
}

/// Refuses `--depth` in a stage (`--then` begins a further stage) that cannot be repeated: one that
/// is not the last, extracts no values, or sends content.
pub(super) fn check_depth(stage: &ParsedStage, is_last: bool) -> Result<(), UsageError> {
    let refusals = [
        (!is_last, "only the last stage can be repeated"),
        (!stage.takes_values(), "needs --extract or --select in the same stage (a URL or a --then, with its options)"),
        (stage.request.has_content(), "a request with a body is not repeated on what its reply says"),
    ];
    match refusals.iter().find(|(applies, _)| *applies && stage.depth > 0) {
        Some((_, text)) => Err(misused_option_error("--depth", text)),
        None => Ok(()),
    }
}

/// Refuses `-T` (upload) together with `--extract`, `--select` or `--then`, because no values are
/// extracted from the responses to uploads.
fn check_uploads(group: &ParsedUrlGroup) -> Result<(), UsageError> {
    let is_upload = |upload: &UploadArg| *upload != UploadArg::Nothing;
    let takes_values = group.stages.len() > 1 || group.stages[0].takes_values();
    match takes_values && group.uploads.iter().any(is_upload) {
        true => Err(misused_option_error(
            "--upload-file",
            "no values are taken from the replies to uploads: leave --extract and --select out, or send by --data-binary @FILE",
        )),
        false => Ok(()),
    }
}

/// Refuses an `-o` value whose placeholder `#<name>` names a glob that neither the URL nor the
/// upload contains.
fn check_glob_names(group: &ParsedUrlGroup) -> Result<(), UsageError> {
    if group.globoff {
        return Ok(());
    }
    for (at, output) in group.outputs.iter().enumerate() {
        let OutputArg::File(template) = output else { continue };
        let Some(UrlSource::Argument(url)) = group.urls.get(at).filter(|_| !group.urls.is_listed(at)) else { continue };
        let upload = match group.uploads.get(at) {
            Some(UploadArg::File(file)) => file.to_string_lossy(),
            _ => Cow::Borrowed(""),
        };
        let template = template.to_string_lossy();
        for (name, position) in template_names(&template) {
            // Errors in a glob itself are reported when it is used.
            let has_name = |glob: &str| UrlGlob::parse(glob).map_or(true, |glob| glob.has_name(name));
            if !has_name(url) && !has_name(&upload) {
                let template = template.clone().into_owned();
                return Err(UsageError::new(
                    ArgPosition::Option("--output".into()),
                    UsageErrorReason::GlobName { template, position },
                ));
            }
        }
    }
    Ok(())
}

/// Refuses `--etag-save` and `--etag-compare` for several URLs.
fn check_entity_tag(group: &ParsedUrlGroup, persona: ProgramPersona) -> Result<(), UsageError> {
    let mut requests = group.stages.iter().map(|stage| &stage.request);
    let option = requests.find_map(|request| match (&request.etag_save, &request.etag_compare) {
        (Some(_), _) => Some(("--etag-save", request.etag_follows_urls)),
        (None, Some(_)) => Some(("--etag-compare", request.etag_follows_urls)),
        (None, None) => None,
    });
    match option {
        // curl counts a glob, or a list, as one.
        Some((option, follows_urls)) if group.urls.len() > 1 || !persona.is_curl() && !is_one_url(group) => {
            // curl notices it at the last of them.
            let option = if persona.is_curl() && !follows_urls { "--url" } else { option };
            Err(misused_option_error(option, "The etag options only work on a single URL"))
        }
        _ => Ok(()),
    }
}

fn check_checksum(group: &ParsedUrlGroup) -> Result<(), UsageError> {
    let Some(checksum) = &group.checksum else { return Ok(()) };
    if group.stages.iter().any(ParsedStage::takes_values) {
        return Err(misused_option_error("--checksum", "what is extracted has no checksum"));
    }
    if group.stages[0].request.head {
        return Err(misused_option_error("--checksum", "a reply to HEAD has no body"));
    }
    match checksum {
        ChecksumArg::Digest(_) if !is_one_url(group) => {
            Err(misused_option_error("--checksum", "one checksum for several URLs, name a list instead"))
        }
        ChecksumArg::Digest(_) | ChecksumArg::From(_) => Ok(()),
    }
}

/// Refuses options that would print other text between the records of `--jsonl` or `--csv`, and
/// options that cannot be combined with records. Refuses `--csv` and `--with-url` if the last stage
/// (after the last `--then`) extracts no values.
pub(super) fn check_records(
    group: &ParsedUrlGroup,
    format: Option<RecordOutputFormat>,
    with_url: bool,
) -> Result<(), UsageError> {
    let Some(last) = group.stages.last() else { return Ok(()) };
    let needs_values =
        [(format == Some(RecordOutputFormat::Csv), "--csv"), (with_url && format.is_none(), "--with-url")];
    for (given, option) in needs_values {
        if given && !last.takes_values() {
            return Err(misused_option_error(
                option,
                "there is no --extract or --select in the last stage, whose values it prints",
            ));
        }
    }
    let changes_values = if with_url { Some("--with-url") } else { format.map(RecordOutputFormat::option) };
    if let Some(option) = changes_values.filter(|_| last.depth > 0) {
        let text = format!("its values are the links of the next level, which {option} would change: leave it out");
        return Err(misused_option_error("--depth", &text));
    }
    let Some(format) = format else { return Ok(()) };
    let is_stdout = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
    for stage in &group.stages {
        let refusals = [
            (stage.write_out.is_some(), "-w prints between the records: leave it out, or take its facts from --jsonl"),
            (stage.include, "-i prints heads between the records: leave it out, or take the fields from --jsonl"),
            (is_stdout(&stage.dump_header), "-D - prints heads between the records: name a file"),
            (is_stdout(&stage.transfer.cookies.jar), "-c - prints cookies behind the records: name a file"),
        ];
        if let Some((_, text)) = refusals.iter().find(|(applies, _)| *applies) {
            return Err(misused_option_error(format.option(), text));
        }
    }
    for (given, other) in [(last.unique, "--unique"), (last.sort, "--sort")] {
        if given && matches!(format, RecordOutputFormat::Jsonl { .. }) {
            return Err(misused_option_error(
                other,
                "--jsonl prints one line for each URL, and not values: leave one of both out",
            ));
        }
    }
    Ok(())
}

/// Refuses `--warc-max-size` and `--warc-secrets` without `--warc`, and `--http0.9` with `--warc`.
pub(super) fn check_archive(global: &GlobalArgs, groups: &[Arc<UrlGroup>]) -> Result<(), UsageError> {
    let WarcArgs { path, max_size, keeps_secrets } = &global.warc;
    let given = [(max_size.is_some(), "--warc-max-size"), (*keeps_secrets, "--warc-secrets")];
    match given.iter().find(|(given, _)| *given && path.is_none()) {
        Some((_, option)) => return Err(misused_option_error(option, "there is no --warc, whose archive it is about")),
        None if path.is_none() => return Ok(()),
        None => {}
    }
    let mut stages = groups.iter().flat_map(|group| &group.stages);
    if stages.any(|stage| stage.transfer.options.deviations.http09) {
        return Err(misused_option_error(
            "--http0.9",
            "an archive has no record for a reply without a head: leave --warc out",
        ));
    }
    Ok(())
}

fn is_one_url(group: &ParsedUrlGroup) -> bool {
    match group.urls.get(0) {
        Some(UrlSource::Argument(url)) if group.urls.len() == 1 && !group.stages[0].pagination.is_given() => {
            // A malformed glob is reported when the URL is used.
            group.globoff || UrlGlob::parse(url).map_or(true, |glob| glob.count() == Some(1))
        }
        _ => false,
    }
}
