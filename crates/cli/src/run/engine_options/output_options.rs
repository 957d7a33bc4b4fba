//! The output of a transfer: standard output, or a file name with the engine's options for the
//! file.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use haul::fleet::RecordOptions;
use haul::sink::checksum::{ExpectedChecksum, HashAlgorithm};
use haul::sink::descriptor_writer::DescriptorWriter as Descriptor;
use haul::sink::file::{AppendPosition, FileOptions};
use haul::sink::temporary_and_final_names::ClobberMode;
use haul::system::file_metadata_and_flags::{NULL_DEVICE, is_null_device_name};
use haul::{Error, ErrorKind, Result, Target};
use haul_policy::file_names_by_system::OsFamily;
use haul_policy::filename::from_decoded_path;
use haul_policy::glob::{GlobValues, fill_template, placeholders};
use haul_policy::output_name_placeholders::{ColumnLookup, fill_url_parts, mirrored_path};

use crate::plan::{
    ContinueAt, ExistingFilePolicy, GlobalArgs, OutputArg, PAGE_PLACEHOLDER, RecordOutputFormat, StageArgs, UrlGroup,
};
use crate::run::report::error_message::empty_output_name;
use crate::run::transfers::reserved_output_names::ReservedOutputNames;
use crate::system::os_text::{OsStrExt, OsStringExt, os_str};

/// The name of the output file for `-O`, as in curl, if the URL's path does not end in a name.
const FALLBACK_NAME: &str = "curl_response";

/// Returns the output file for the URL `target`; `None` for standard output. `source` is the index
/// of the argument or list from which the URL comes. `parts` contains the values of the globs in
/// the URL, and `columns` the values of the URL's row in a CSV or TSV list. `page` is the page's
/// number if the stage fetches paginated listings.
pub(crate) fn output_file_path(
    group: &UrlGroup,
    source: usize,
    target: &Target,
    url: &str,
    parts: &GlobValues,
    columns: &ColumnLookup<'_>,
    page: u64,
) -> Result<Option<PathBuf>> {
    let name = match group.output_of_source(source) {
        OutputArg::Stdout => return Ok(None),
        OutputArg::File(template) if template == "-" => return Ok(None),
        OutputArg::File(template) => {
            let template = &*fill_page_number(&group.stages[0], template, page);
            if group.has_url_part(template) {
                let text = |text: &[u8]| fill_globs(text, parts);
                let name = fill_url_parts(OsFamily::CURRENT, template.as_bytes(), target, columns, &text);
                chosen_path(template, name.map_err(|error| unnamed_output_error(&error, target))?)
            } else if has_placeholder(template) {
                chosen_path(template, fill_globs(template.as_bytes(), parts))
            } else {
                template.to_owned()
            }
        }
        OutputArg::MirroredPath => {
            let path = mirrored_path(target).map_err(|error| unnamed_output_error(&error, target))?;
            chosen_path(OsStr::new(""), path.into_bytes())
        }
        OutputArg::Null => return Ok(Some(NULL_DEVICE.into())),
        OutputArg::RemoteName if group.in_place => {
            let name = haul_policy::filename::from_path_as_written(target, url);
            chosen_name(name.unwrap_or_else(|_| FALLBACK_NAME.to_owned()))
        }
        OutputArg::RemoteName => {
            chosen_name(from_decoded_path(target).map_err(|error| unnamed_output_error(&error, target))?)
        }
    };
    // curl ends the run. haul's own transfers fail one by one when they open the file.
    if name.is_empty() && group.in_place {
        return Err(empty_output_name());
    }
    let path = in_output_dir(group, name);
    refuse_to_resume(group, source, &path)?;
    Ok(Some(path))
}

/// Returns the output file of a source (an argument or a file of URLs) if all URLs of the source
/// may write to the same file: the null device or, if haul acts as curl, a file whose name has no
/// placeholders. Returns `None` for any other output.
pub(crate) fn fixed_output_path(group: &UrlGroup, source: usize) -> Result<Option<PathBuf>> {
    let name = match group.output_of_source(source) {
        OutputArg::Null => return Ok(Some(NULL_DEVICE.into())),
        OutputArg::File(name) if !has_placeholder(name) && (group.in_place || is_null_device_name(Path::new(name))) => {
            name
        }
        _ => return Ok(None),
    };
    let path = in_output_dir(group, name.clone());
    refuse_to_resume(group, source, &path)?;
    Ok(Some(path))
}

/// Returns a file name that a URL chose, changed so that it is a valid file name on this system.
pub(crate) fn chosen_name(name: String) -> OsString {
    match OsFamily::CURRENT.file_name(name.as_bytes()) {
        Cow::Borrowed(_) => name.into(),
        Cow::Owned(made) => OsString::from_vec(made),
    }
}

/// Returns the path of an output file whose name has placeholders. `template` is the name as the
/// user wrote it. `filled` is the name in which parts of a URL or extracted values replace the
/// placeholders. The returned path is `filled`, changed so that it is valid on this system.
pub(crate) fn chosen_path(template: &OsStr, filled: Vec<u8>) -> OsString {
    let written = OsFamily::CURRENT.literal_directory_length(template.as_bytes());
    match OsFamily::CURRENT.chosen_path(&filled, written) {
        Cow::Borrowed(_) => OsString::from_vec(filled),
        Cow::Owned(made) => OsString::from_vec(made),
    }
}

/// Returns true if the name of an output file may contain placeholders, such as `#1` or `{host}`.
fn has_placeholder(name: &OsStr) -> bool {
    name.as_bytes().iter().any(|byte| matches!(byte, b'#' | b'{'))
}

/// Returns the error for a URL from which no file name can be derived.
pub(crate) fn unnamed_output_error(error: &dyn std::error::Error, target: &Target) -> Error {
    Error::new(ErrorKind::Write, error.to_string()).with_url(target.to_url())
}

/// Returns the path of an output file: `name`, below the directory of `--output-dir` if that option
/// is given. An absolute `name` stays unchanged in haul. If haul acts as curl, even an absolute
/// `name` is appended to the directory.
pub(crate) fn in_output_dir(group: &UrlGroup, name: OsString) -> PathBuf {
    match &group.output_dir {
        // As by curl: a name that begins with a slash is below the directory, too.
        Some(dir) if group.in_place => {
            let mut path = dir.clone().into_os_string();
            path.push("/");
            path.push(name);
            path.into()
        }
        Some(dir) => dir.join(name),
        None => name.into(),
    }
}

/// Returns the directory below which an output file must be, because a URL, a column or an
/// extracted value determines a part of its path. Returns `None` if the user has given the complete
/// path.
pub(crate) fn chosen_below(group: &UrlGroup, output: &OutputArg) -> Option<PathBuf> {
    let written = match output {
        OutputArg::MirroredPath => OsString::new(),
        OutputArg::File(name) if group.has_url_part(name) || has_page_value(group, name) => {
            let bytes = name.as_bytes();
            os_str(&bytes[..OsFamily::CURRENT.literal_directory_length(bytes)]).into_owned()
        }
        _ => return None,
    };
    Some(in_output_dir(group, written))
}

/// Returns true if the `-o` file name may contain a value that was extracted from a page.
fn has_page_value(group: &UrlGroup, name: &OsStr) -> bool {
    !group.in_place && group.stages.len() > 1 && placeholders(name.as_bytes()).next().is_some()
}

/// Returns the path to use for an output file. A path that a URL chooses is changed if it is the
/// path of an existing directory, or if one of its directories has the name of a file (of this run
/// or on the disk).
pub(crate) fn avoid_blocked_path(
    group: &UrlGroup,
    names: &ReservedOutputNames,
    output: &OutputArg,
    path: PathBuf,
) -> PathBuf {
    match chosen_below(group, output) {
        Some(base) => names.avoid_blocked_path(&base, path),
        None => path,
    }
}

/// Replaces `{page}` in the name of an output file by the page's number, if the stage (`--then`
/// begins a further stage) fetches paginated listings.
pub(crate) fn fill_page_number<'n>(stage: &StageArgs, name: &'n OsStr, page: u64) -> Cow<'n, OsStr> {
    let bytes = name.as_bytes();
    let find = |from: usize| bytes[from..].windows(PAGE_PLACEHOLDER.len()).position(|text| text == PAGE_PLACEHOLDER);
    if stage.pagination.is_none() || find(0).is_none() {
        return Cow::Borrowed(name);
    }
    let (mut filled, mut from) = (Vec::new(), 0);
    while let Some(at) = find(from) {
        filled.extend_from_slice(&bytes[from..from + at]);
        filled.extend_from_slice(page.to_string().as_bytes());
        from += at + PAGE_PLACEHOLDER.len();
    }
    filled.extend_from_slice(&bytes[from..]);
    Cow::Owned(OsString::from_vec(filled))
}

/// Replaces the placeholders of globs, such as `#1`, in the name of an output file with the values
/// of the globs in one URL.
fn fill_globs(template: &[u8], parts: &GlobValues) -> Vec<u8> {
    let mut name = Vec::new();
    for chunk in template.utf8_chunks() {
        name.extend_from_slice(fill_template(chunk.valid(), parts).as_bytes());
        name.extend_from_slice(chunk.invalid());
    }
    name
}

/// Returns an error for `-C -` with request content if the output file `path` is not empty, because
/// haul cannot request only the rest of the response to such a request.
fn refuse_to_resume(group: &UrlGroup, source: usize, path: &Path) -> Result<()> {
    let request = &group.stages[0].request;
    let has_content = request.body.is_some() && group.upload_of_source(source).is_none();
    let goes_on = has_content && request.continue_at == Some(ContinueAt::OutputSize);
    if goes_on && path.metadata().is_ok_and(|metadata| metadata.len() > 0) {
        return Err(Error::new(ErrorKind::Setup, "cannot mix --continue-at with --data"));
    }
    Ok(())
}

/// Returns the engine's file options for the output of a source (an argument or a file of URLs).
/// `source` is the index of the source.
pub(crate) fn file_options(group: &UrlGroup, source: usize, checksum: Option<ExpectedChecksum>) -> FileOptions {
    options_for(group, group.output_of_source(source), checksum, None)
}

/// Returns the engine's file options for an output. If a response chooses the file name, the engine
/// reserves the name in `names` before it opens the file. With `--no-clobber`, the engine numbers
/// the files, so no name is reserved. `names` then only refuses the names of files that the run or
/// a job uses. If haul acts as curl, no name is checked.
pub(crate) fn options_for(
    group: &UrlGroup,
    output: &OutputArg,
    checksum: Option<ExpectedChecksum>,
    names: Option<&ReservedOutputNames>,
) -> FileOptions {
    let existing = group.existing_file_policy(output);
    let named_by_response = is_named_by_response(group, output);
    let is_checked = named_by_response && !group.in_place;
    let name_check = |names: &ReservedOutputNames| match existing {
        ExistingFilePolicy::Number => names.used_path_check(),
        existing => names.path_check(existing == ExistingFilePolicy::Skip),
    };
    FileOptions {
        create_dirs: group.create_dirs,
        beneath: chosen_below(group, output),
        named_by_response,
        name_check: names.filter(|_| is_checked).map(name_check),
        clobber: match existing {
            ExistingFilePolicy::ReplaceUnlessNamedByResponse => {
                names.and_then(ReservedOutputNames::overwritable_since).map_or(ClobberMode::Own, ClobberMode::OwnSince)
            }
            ExistingFilePolicy::Skip => ClobberMode::Skip,
            ExistingFilePolicy::Replace => ClobberMode::Replace,
            ExistingFilePolicy::Number => ClobberMode::Number,
        },
        sync: group.fsync,
        mode: group.create_file_mode,
        remove_on_error: group.remove_on_error,
        statuses_fail: group.stages[0].transfer.options.fail_with_body,
        append: group.stages[0].request.continue_at.map(|at| match at {
            ContinueAt::Offset(offset) => AppendPosition::At(offset),
            ContinueAt::OutputSize => AppendPosition::AtEnd,
        }),
        in_place: group.in_place,
        checksum,
    }
}

/// Returns the options of the output file for the response to an upload. With `-C`, which then
/// concerns the content that is sent, the whole response is appended to the file, as by curl.
/// Without `-C`, the options stay the same.
pub(crate) fn append_whole_response(options: FileOptions) -> FileOptions {
    FileOptions { append: options.append.map(|_| AppendPosition::WholeAtEnd), ..options }
}

/// Reserves the name of an output file for a URL in [`ReservedOutputNames`]. Returns `false` if the
/// file exists and `--skip-existing` is given.
///
/// Nothing is reserved with `--no-clobber`, which numbers files. A name that the response chooses
/// is reserved later, by [`ReservedOutputNames::path_check`].
///
/// # Errors
/// Another URL of the run has already reserved the name, or the run itself or a job uses the file.
pub(crate) fn reserve_output_name(
    group: &UrlGroup,
    names: &ReservedOutputNames,
    output: &OutputArg,
    path: &Path,
    url: &str,
) -> Result<bool> {
    let is_later = is_named_by_response(group, output);
    match group.existing_file_policy(output) {
        ExistingFilePolicy::Number if is_later => Ok(true),
        ExistingFilePolicy::Number => names.refuse_used(path, url).map(|()| true),
        ExistingFilePolicy::Skip if path.exists() && (is_later || !names.has(path)) => Ok(false),
        _ if is_later => Ok(true),
        _ => names.reserve_new(path, url).map(|()| true),
    }
}

/// Reserves the name of an output file for a URL of the command line or of a list (the first
/// stage). Returns `false` if the file exists and `--skip-existing` is given. If haul acts as curl,
/// nothing is reserved: several URLs may have the same output file, and the last one replaces it.
///
/// # Errors
/// Another URL of the run has already reserved the name.
pub(crate) fn reserve_first_stage_output_name(
    group: &UrlGroup,
    names: &ReservedOutputNames,
    output: &OutputArg,
    file: &Path,
    url: &str,
) -> Result<bool> {
    match group.in_place {
        true => Ok(group.existing_file_policy(output) != ExistingFilePolicy::Skip || !file.exists()),
        false => reserve_output_name(group, names, output, file, url),
    }
}

/// Returns true if all URLs with this output write to the file `path` with the same options, so
/// that no URL has to reserve the file name. This is the case for a device that `-o` names without
/// a placeholder, such as `/dev/null`.
pub(crate) fn is_common_output(group: &UrlGroup, names: &ReservedOutputNames, output: &OutputArg, path: &Path) -> bool {
    let has_one_name = match output {
        OutputArg::Null => true,
        OutputArg::File(name) => !has_placeholder(name),
        _ => false,
    };
    has_one_name
        && group.stages[0].request.continue_at.is_none()
        && match group.existing_file_policy(output) {
            ExistingFilePolicy::Skip => false,
            ExistingFilePolicy::Number => true,
            ExistingFilePolicy::Replace | ExistingFilePolicy::ReplaceUnlessNamedByResponse => {
                group.in_place || names.is_known_device(path)
            }
        }
}

/// Returns true if the response chooses the name of the output file (`-J` with `-O`).
pub(crate) fn is_named_by_response(group: &UrlGroup, output: &OutputArg) -> bool {
    group.remote_header_name && *output == OutputArg::RemoteName
}

/// Returns true if response bodies are written to standard output without an explicit `-o -`, and
/// standard output is a terminal.
pub(crate) fn shows_content(group: &UrlGroup) -> bool {
    let is_unnamed = (0..group.urls.len()).all(|source| *group.output_of_source(source) == OutputArg::Stdout);
    is_unnamed && group.stages.iter().all(|stage| stage.output == OutputArg::Stdout) && std::io::stdout().is_terminal()
}

/// Returns the options of the records (`--jsonl`, `--csv`) that a URL group (`--next` separates
/// groups) prints instead of bodies. Returns `None` if the group prints no records. One record may
/// take a quarter of `--max-memory`. The rest is for the records that wait for earlier output.
pub(crate) fn record_options(global: &GlobalArgs, group: &UrlGroup) -> Option<RecordOptions> {
    let records = group.record_output()?;
    Some(RecordOptions {
        max_content: (global.max_memory / 4).max(1),
        keeps_body: records.keeps_bodies,
        file_checksum: file_checksum(group),
    })
}

/// Returns the algorithm of the file checksum that records contain; `None` if the group prints no
/// records with checksums.
pub(crate) fn file_checksum(group: &UrlGroup) -> Option<HashAlgorithm> {
    let records = group.record_output()?;
    (records.format != RecordOutputFormat::Csv).then_some(HashAlgorithm::Sha256)
}

/// Returns standard output as the destination of response bodies. Unless `-o -` is given, the
/// returned output refuses binary content on a terminal.
pub(crate) fn standard_output(group: &UrlGroup) -> Descriptor {
    shown_output(group, Descriptor::stdout())
}

/// Returns `output`, a duplicate of standard output, as the destination of bodies or records. The
/// returned output refuses binary content on a terminal, unless `-o -` is given or the group prints
/// records.
pub(crate) fn shown_output(group: &UrlGroup, output: Descriptor) -> Descriptor {
    let is_records = group.record_output().is_some();
    if is_records || names_stdout(group) { output } else { output.refusing_binary_on_terminal() }
}

/// Returns true if an option names standard output (`-o -`).
pub(crate) fn names_stdout(group: &UrlGroup) -> bool {
    let of_stages = group.stages.iter().map(|stage| &stage.output).filter(|output| **output != OutputArg::Stdout);
    group.outputs.iter().chain(of_stages).any(OutputArg::is_stdout)
}
