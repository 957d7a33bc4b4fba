//! Checks the options `--paginate`, `--paginate-json` and `--paginate-query`, and converts them to
//! the settings of the engine. A listing is a resource of several pages that link to each other.

use std::ffi::OsStr;

use haul::pagination::Pagination;

use super::misused_option_error;
use crate::parsed_args::{ParsedPageLink, ParsedPagination, ParsedStage, ParsedUrlGroup};
use crate::plan::{OutputArg, PAGE_PLACEHOLDER, UploadArg, UrlGroup};
use crate::system::os_text::OsStrExt;
use crate::usage_error::UsageError;

/// A condition under which an option is refused, the name of the option, and the reason.
type RefusedCombination<'a> = (bool, &'a str, &'a str);

/// Returns the pagination settings of a stage (`--then` separates stages); `None` if the stage
/// fetches no paginated listing.
pub(super) fn pagination(stage: &ParsedStage) -> Result<Option<Pagination>, UsageError> {
    let given = &stage.pagination;
    let Some(option) = first_given_option(given) else {
        let lonely = [(given.any_origin, "--paginate-any"), (given.max.is_some(), "--paginate-max")];
        return match lonely.iter().find(|(is_given, _)| *is_given) {
            Some((_, option)) => {
                Err(misused_option_error(option, "there is no --paginate, --paginate-json or --paginate-query"))
            }
            None => Ok(None),
        };
    };
    let is_header = given.link == Some(ParsedPageLink::HeaderField);
    let has_two_values = given.link.is_some() && given.json.is_some();
    if has_two_values || (is_header && given.query.is_some()) {
        return Err(misused_option_error(
            "--paginate",
            "the next page can come from one place only: leave out the other option",
        ));
    }
    let parameter = given.query.as_deref();
    let pagination = match (&given.link, &given.json, parameter) {
        (Some(ParsedPageLink::HeaderField), ..) => Ok(Pagination::by_link()),
        (Some(ParsedPageLink::Element(css)), ..) => by_css(css, parameter),
        (None, Some(path), _) => by_json(path, parameter),
        (None, None, parameter) => Pagination::by_count(parameter.unwrap_or_default()),
    };
    let pagination = pagination.map_err(|error| misused_option_error(option, &error.cause()))?;
    if stage.request.head && pagination.needs_body() {
        return Err(misused_option_error(option, "a reply to HEAD has no body in which a page could be found"));
    }
    let pagination = match given.max {
        Some(max) => pagination.max_pages(max),
        None => pagination,
    };
    Ok(Some(pagination.any_origin(given.any_origin)))
}

#[cfg(feature = "select")]
fn by_css(css: &str, parameter: Option<&str>) -> haul::Result<Pagination> {
    match parameter {
        Some(parameter) => Pagination::by_css_value(css, parameter),
        None => Pagination::by_css(css),
    }
}

#[cfg(not(feature = "select"))]
fn by_css(_css: &str, _parameter: Option<&str>) -> haul::Result<Pagination> {
    let text = "this build knows only the word link: it has no CSS selectors, since the feature \"select\" is off";
    Err(haul::Error::new(haul::ErrorKind::Setup, text))
}

#[cfg(feature = "select")]
fn by_json(path: &str, parameter: Option<&str>) -> haul::Result<Pagination> {
    match parameter {
        Some(parameter) => Pagination::by_json_value(path, parameter),
        None => Pagination::by_json(path),
    }
}

#[cfg(not(feature = "select"))]
fn by_json(_path: &str, _parameter: Option<&str>) -> haul::Result<Pagination> {
    Err(haul::Error::new(haul::ErrorKind::Setup, "this build has no JSONPath: the feature \"select\" is off"))
}

/// Returns the name of the first `--paginate…` option that is given; `None` if none is given.
fn first_given_option(given: &ParsedPagination) -> Option<&'static str> {
    let options = [
        (given.link.is_some(), "--paginate"),
        (given.json.is_some(), "--paginate-json"),
        (given.query.is_some(), "--paginate-query"),
    ];
    options.iter().find(|(is_given, _)| *is_given).map(|(_, option)| *option)
}

/// Refuses options that apply to a single response, such as `--range`, in a URL group
/// (`--next` separates groups) that fetches paginated listings.
pub(super) fn check(group: &ParsedUrlGroup) -> Result<(), UsageError> {
    if !group.stages.iter().any(|stage| stage.pagination.is_given()) {
        return Ok(());
    }
    let is_upload = |upload: &UploadArg| *upload != UploadArg::Nothing;
    let any = |is_given: fn(&ParsedStage) -> bool| group.stages.iter().any(is_given);
    let refusals: [RefusedCombination<'_>; 6] = [
        (group.uploads.iter().any(is_upload), "--upload-file", "an upload has no next page"),
        (any(|stage| stage.request.continue_at.is_some()), "--continue-at", "the pages of a listing are fetched whole"),
        (any(|stage| stage.request.range.is_some()), "--range", "the pages of a listing are fetched whole"),
        (any(|stage| stage.request.time_cond.is_some()), "--time-cond", "the pages of a listing are fetched whole"),
        (group.skip_existing, "--skip-existing", "a page that is not fetched names no next page"),
        (group.checksum.is_some(), "--checksum", "the pages of a listing have no checksum"),
    ];
    match refusals.iter().find(|(is_given, ..)| *is_given) {
        Some((_, option, reason)) => Err(misused_option_error(option, reason)),
        None => Ok(()),
    }
}

/// Refuses an `-o` file name without the placeholder `{page}`, because each page of a paginated
/// listing would overwrite the previous one.
pub(super) fn check_outputs(group: &UrlGroup) -> Result<(), UsageError> {
    let last = group.stages.len() - 1;
    let is_lone = |name: &OsStr| !name.as_bytes().windows(PAGE_PLACEHOLDER.len()).any(|text| text == PAGE_PLACEHOLDER);
    for (number, stage) in group.stages.iter().enumerate() {
        let is_shared = number == last && group.shared_output().is_some();
        if stage.pagination.is_none() || is_shared {
            continue;
        }
        let first = (0..group.urls.len()).map(|source| group.output_of_source(source));
        let outputs: Vec<&OutputArg> = if number == 0 { first.collect() } else { vec![&stage.output] };
        let file = outputs.iter().find(|output| match output {
            OutputArg::File(name) => !output.is_stdout() && is_lone(name),
            OutputArg::Stdout | OutputArg::RemoteName | OutputArg::MirroredPath | OutputArg::Null => false,
        });
        if file.is_some() {
            let text = "the pages of a listing need a name each: write {page} into it, as in -o 'list-{page}.json'";
            return Err(misused_option_error("--output", text));
        }
    }
    Ok(())
}
