//! Resolves the options for conditional requests: `-z` and `--etag-compare`.

use super::{PlanBuilder, has_field, misused_option_error};
use crate::date;
use crate::parsed_args::ParsedRequestOptions;
use crate::plan::{HeaderArg, TimeCond};
use crate::usage_error::UsageError;
use std::path::Path;

impl PlanBuilder<'_> {
    /// Adds the header field `If-None-Match` for `--etag-compare` to `fields`. As in curl, the
    /// field follows the fields of `-H`.
    pub(super) fn conditions(
        &mut self,
        parsed: &mut ParsedRequestOptions,
        fields: &mut Vec<HeaderArg>,
    ) -> Result<(), UsageError> {
        let set = |name: &str, value: &[u8]| HeaderArg::Set { name: name.to_owned(), value: value.to_vec() };
        if let Some(path) = parsed.etag_compare.take() {
            let text = match self.files.size(&path) {
                Ok(_) => self.read_file(&path, "--etag-compare")?,
                Err(_) => Vec::new(),
            };
            let tag = text.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii();
            if tag.contains(&b'\r') || tag.contains(&0) {
                return Err(misused_option_error("--etag-compare", "the file holds no entity tag"));
            }
            fields.push(set("If-None-Match", if tag.is_empty() { b"\"\"" } else { tag }));
        }
        Ok(())
    }

    /// Parses the date of `-z`, and inserts `If-Modified-Since` or `If-Unmodified-Since` before the
    /// fields of `-H`. An invalid date causes a warning, and `None` is returned, so that the
    /// request is unconditional.
    pub(super) fn time_cond(
        &mut self,
        text: Option<String>,
        fields: &mut Vec<HeaderArg>,
    ) -> Result<Option<TimeCond>, UsageError> {
        let Some(text) = text else { return Ok(None) };
        let (text, older) = match text.strip_prefix('-') {
            Some(rest) => (rest, true),
            None => (text.strip_prefix(['+', '=']).unwrap_or(&text), false),
        };
        let Some(seconds) = date::parse(text).or_else(|| self.files.modified(Path::new(text))) else {
            self.warnings.push(
                "Illegal date format for -z, --time-cond (and not a file name). Disabling time condition.".to_owned(),
            );
            return Ok(None);
        };
        let (name, condition) = match older {
            true => ("If-Unmodified-Since", TimeCond::OlderThan(seconds)),
            false => ("If-Modified-Since", TimeCond::NewerThan(seconds)),
        };
        if !has_field(fields, name) {
            fields.insert(0, HeaderArg::Set { name: name.to_owned(), value: date::http_date(seconds).into() });
        }
        Ok(Some(condition))
    }
}
