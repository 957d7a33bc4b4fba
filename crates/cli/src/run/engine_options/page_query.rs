//! Compiles the values that a stage takes from its pages: `--extract`, `--select`, `--select-json`.

use haul::Result;
use haul::extraction::{ExtractPattern, PageQuery};

use crate::plan::StageArgs;

/// Returns the query for the values of a stage, or `None` if it outputs the pages themselves.
///
/// # Errors
/// An expression, a selector or a JSONPath is malformed.
pub(crate) fn of(stage: &StageArgs) -> Result<Option<PageQuery>> {
    let matches = (!stage.extract.is_empty()).then(|| ExtractPattern::all_of(&stage.extract)).transpose()?;
    let selected = match (stage.select.as_slice(), stage.select_json.as_slice()) {
        ([], []) => return Ok(matches.map(|pattern| with_empty(stage, PageQuery::matches(pattern)))),
        (selectors, []) => elements(selectors)?,
        (_, paths) => json(paths)?,
    };
    let query = match matches {
        Some(pattern) => selected.filtered(pattern),
        None => selected,
    };
    Ok(Some(with_empty(stage, query)))
}

/// Makes a stage with records keep empty values, so that those of one item have the same number.
fn with_empty(stage: &StageArgs, query: PageQuery) -> PageQuery {
    if stage.records.is_some() { query.keeping_empty() } else { query }
}

#[cfg(feature = "select")]
fn elements(selectors: &[String]) -> Result<PageQuery> {
    use haul::extraction::CssQuery;
    PageQuery::css(&selectors.iter().map(|selector| CssQuery::new(selector)).collect::<Result<Vec<_>>>()?)
}

#[cfg(feature = "select")]
fn json(paths: &[String]) -> Result<PageQuery> {
    use haul::extraction::JsonPathQuery;
    Ok(PageQuery::json_path(&paths.iter().map(|path| JsonPathQuery::new(path)).collect::<Result<Vec<_>>>()?))
}

#[cfg(not(feature = "select"))]
fn elements(_: &[String]) -> Result<PageQuery> {
    Err(haul::Error::new(haul::ErrorKind::Setup, "--select is not part of this build; use --extract"))
}

#[cfg(not(feature = "select"))]
fn json(_: &[String]) -> Result<PageQuery> {
    Err(haul::Error::new(haul::ErrorKind::Setup, "--select-json is not part of this build; use --extract"))
}
