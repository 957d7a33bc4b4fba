//! Resolves `--jsonl-in` and `--csv-in`: separates the URLs of the command line from the input
//! files.

use haul_policy::secret_fields::is_secret_field;

use super::misused_option_error;
use crate::parsed_args::{ParsedDataOption, ParsedHeaderOption, ParsedUrlGroup, TextOrFile};
use crate::plan::{HeaderArg, RecordInputArgs, UploadArg, UrlSource, UrlSources};
use crate::record_input::RecordInputFormat;
use crate::usage_error::UsageError;

/// Returns the settings of `--jsonl-in` or `--csv-in` for a group. With these options, each line or
/// row of the input files describes a request. The URLs of the command line are then only the base
/// or the template of the requests' URLs, so they are moved from the group to the settings. Returns
/// `None` if the group has neither option.
pub(super) fn take_record_args(
    group: &mut ParsedUrlGroup,
    warnings: &mut Vec<String>,
) -> Result<Option<RecordInputArgs>, UsageError> {
    let Some(format) = group.record_format else {
        return match group.allow_body_files {
            true => Err(misused_option_error("--allow-body-files", "it needs --jsonl-in")),
            false => Ok(None),
        };
    };
    let mut urls = Vec::new();
    let mut lists = UrlSources::default();
    for source in group.urls.iter() {
        match source {
            UrlSource::InputFile(path) => lists.push_input_file(path),
            UrlSource::Argument(url) => urls.push(url.to_owned()),
        }
    }
    let option = format.option();
    if format == RecordInputFormat::JsonLines && urls.len() > 1 {
        return Err(misused_option_error(option, "only one URL can be the base of the requests; use --next"));
    }
    if group.allow_body_files && format != RecordInputFormat::JsonLines {
        return Err(misused_option_error("--allow-body-files", "it needs --jsonl-in"));
    }
    if lists.is_empty() {
        return Err(misused_option_error(option, "there is no list: name it by --input-file FILE"));
    }
    if group.uploads.iter().any(|upload| *upload != UploadArg::Nothing) {
        return Err(misused_option_error(
            "--upload-file",
            &format!("-T cannot be used with {option}; use \"body_file\" of --jsonl-in"),
        ));
    }
    if urls.is_empty() && has_credentials(group) {
        warnings.push(
            "the credentials of the command line are not sent to the URLs of the list: name the URL of their server, too"
                .to_owned(),
        );
    }
    if urls.is_empty() && has_bound_content(group, format) {
        let remedy = match format {
            RecordInputFormat::JsonLines => "put them into the lines, or name the URL of their server, too",
            RecordInputFormat::Csv | RecordInputFormat::Tsv => "use a column in them, or name the URL of their server",
        };
        warnings.push(format!(
            "the query and the content of the command line are not sent to the URLs of the list: {remedy}"
        ));
    }
    group.urls = lists;
    Ok(Some(RecordInputArgs { format, urls, allow_body_files: group.allow_body_files }))
}

/// Returns true if the first stage has a query or content that is sent only to the origins of the
/// URLs on the command line. That is the case for a form (`-F`), and for a query or data without a
/// placeholder. A query or data with a placeholder for a column, such as `{id}`, is sent to every
/// origin.
fn has_bound_content(group: &ParsedUrlGroup, format: RecordInputFormat) -> bool {
    let request = &group.stages[0].request;
    let is_bound = |options: &[ParsedDataOption]| {
        let has_column = |option: &ParsedDataOption| match &option.text {
            TextOrFile::Text(text) => text.contains(&b'{'),
            TextOrFile::File(_) => false,
        };
        let goes_to_all = format.has_columns() && options.iter().any(has_column);
        !options.is_empty() && !goes_to_all
    };
    !request.form.is_empty() || is_bound(&request.data) || is_bound(&request.query)
}

/// Returns true if the first stage (the options before `--then`) has credentials, which are sent
/// only to the origins of URLs on the command line.
fn has_credentials(group: &ParsedUrlGroup) -> bool {
    let request = &group.stages[0].request;
    let is_secret = |field: &ParsedHeaderOption| match field {
        ParsedHeaderOption::Field(HeaderArg::Set { name, .. }) => is_secret_field(name),
        _ => false,
    };
    request.user.is_some()
        || request.bearer.is_some()
        || request.cookie.is_some()
        || request.fields.iter().any(is_secret)
}
