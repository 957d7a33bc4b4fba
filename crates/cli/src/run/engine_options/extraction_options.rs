//! Compiles the expressions by which a stage extracts values from its pages: `--extract`,
//! `--select`, `--select-json`.

use haul::Result;
use haul::extraction::{ExtractRegexes, PageQuery};

use crate::plan::StageArgs;

/// Returns the query that extracts values from the pages of a stage (`--then` begins a further
/// stage); `None` if the stage outputs the pages themselves.
///
/// # Errors
/// An expression, a selector or a JSONPath is malformed.
pub(crate) fn query_of_stage(stage: &StageArgs) -> Result<Option<PageQuery>> {
    let matches = (!stage.extract.is_empty()).then(|| ExtractRegexes::all_of(&stage.extract)).transpose()?;
    let selected = match (stage.select.as_slice(), stage.select_json.as_slice()) {
        ([], []) => return Ok(matches.map(|pattern| keep_empty_if_requested(stage, PageQuery::matches(pattern)))),
        (selectors, []) => css_query(selectors)?,
        (_, paths) => json_path_query(paths)?,
    };
    let query = match matches {
        Some(pattern) => selected.filtered(pattern),
        None => selected,
    };
    Ok(Some(keep_empty_if_requested(stage, query)))
}

/// Makes the query keep empty values if the stage prints records (`--jsonl`, `--csv`). By default,
/// a query leaves empty values out. If it keeps them, the n-th values of all its expressions belong
/// to the same item of the page, and can form one record.
fn keep_empty_if_requested(stage: &StageArgs, query: PageQuery) -> PageQuery {
    if stage.records.is_some() { query.keeping_empty() } else { query }
}

#[cfg(feature = "select")]
fn css_query(selectors: &[String]) -> Result<PageQuery> {
    use haul::extraction::CssQuery;
    PageQuery::css(&selectors.iter().map(|selector| CssQuery::new(selector)).collect::<Result<Vec<_>>>()?)
}

#[cfg(feature = "select")]
fn json_path_query(paths: &[String]) -> Result<PageQuery> {
    use haul::extraction::JsonPathQuery;
    Ok(PageQuery::json_path(&paths.iter().map(|path| JsonPathQuery::new(path)).collect::<Result<Vec<_>>>()?))
}

#[cfg(not(feature = "select"))]
fn css_query(_: &[String]) -> Result<PageQuery> {
    Err(haul::Error::new(haul::ErrorKind::Setup, "--select is not part of this build; use --extract"))
}

#[cfg(not(feature = "select"))]
fn json_path_query(_: &[String]) -> Result<PageQuery> {
    Err(haul::Error::new(haul::ErrorKind::Setup, "--select-json is not part of this build; use --extract"))
}
