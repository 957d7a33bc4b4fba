//! Refuses placeholders in options that cannot contain any. Some options replace placeholders by
//! values, in a stage after `--then` or in a group with `--csv-in`. Any other option would pass the
//! placeholder itself to the server or the file system.
//!
//! For example, `--then 'https://h/{}' -F 'id={}'` is an error, because forms have no placeholders.

use std::path::Path;

use super::misused_option_error;
use crate::form::{ParsedFormPart, ParsedPartContent};
use crate::parsed_args::ParsedStage;
use crate::plan::{PlaceholderEncoding, PlaceholderSyntax, ValueTemplate};
use crate::usage_error::UsageError;

/// The error message for a placeholder in a form.
const IN_FORM: &str = "values are not filled in forms: send them by -d or --json, and take a text with braces from a file (-F 'NAME=<FILE')";

/// The error message for a placeholder in the name of a file.
const IN_FILE_NAME: &str = "values are filled in no file name but that of -o: name one file, or use -w or --jsonl";

/// The error message for a placeholder in the request target.
const IN_TARGET: &str = "values are not filled in the request target: put the placeholder into the URL";

/// Refuses a stage that has placeholders of this syntax in options that cannot contain
/// placeholders.
///
/// # Errors
/// An option contains a placeholder. The error names the option.
pub(super) fn check(stage: &ParsedStage, syntax: PlaceholderSyntax) -> Result<(), UsageError> {
    let in_text = |text: &[u8]| ValueTemplate::parse(text, PlaceholderEncoding::Plain, syntax).literal_text().is_none();
    let in_path = |path: &Path| in_text(path.as_os_str().as_encoded_bytes());
    let request = &stage.request;
    if request.form.clone().into_parts().iter().any(|part| is_in_part(part, &in_text)) {
        return Err(misused_option_error("--form", IN_FORM));
    }
    let files = [
        ("--dump-header", &stage.dump_header),
        ("--etag-save", &request.etag_save),
        ("--etag-compare", &request.etag_compare),
    ];
    for (option, path) in files {
        if path.as_deref().is_some_and(in_path) {
            return Err(misused_option_error(option, IN_FILE_NAME));
        }
    }
    match &request.request_target {
        Some(target) if in_text(target.as_bytes()) => Err(misused_option_error("--request-target", IN_TARGET)),
        _ => Ok(()),
    }
}

/// Returns true if the name, the file name or the text of this part of a form contains a
/// placeholder.
fn is_in_part(part: &ParsedFormPart, in_text: &dyn Fn(&[u8]) -> bool) -> bool {
    let in_content = match &part.content {
        ParsedPartContent::Bytes(text) => in_text(text),
        ParsedPartContent::File { path, .. } => in_text(path.as_os_str().as_encoded_bytes()),
        ParsedPartContent::List(parts) => parts.iter().any(|part| is_in_part(part, in_text)),
    };
    in_content || [&part.name, &part.filename].into_iter().flatten().any(|text| in_text(text))
}
