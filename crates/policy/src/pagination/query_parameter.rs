//! The query parameter that selects a page of a paginated listing, and the number of the next page.

use std::borrow::Cow;
use std::fmt;

use super::PaginationError;
use crate::target::Target;
use crate::urlencode::{percent_decode, percent_encode};

/// The query parameter that selects the page: its name, and the step from one page to the next.
///
/// ```
/// use haul_policy::Target;
/// use haul_policy::pagination::QueryParameter;
///
/// let offset = QueryParameter::parse("offset:50").unwrap();
/// let url = Target::parse("http://h/items?offset=0&limit=50")?;
/// assert_eq!(offset.set(&url, "50").path_and_query(), "/items?offset=50&limit=50");
/// # Ok::<(), haul_policy::TargetError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryParameter {
    /// The name of the parameter, not percent-encoded.
    pub(super) name: String,
    /// The step of an offset, such as the number of items per page. `None` if the parameter is a
    /// page number, which counts from 1 in steps of 1.
    pub(super) step: Option<u64>,
}

impl QueryParameter {
    /// Parses `NAME` or `NAME:STEP`. With a step, the parameter is an offset that grows by the step
    /// from one page to the next.
    ///
    /// # Errors
    /// The name is empty, or the step is 0 or too large.
    pub fn parse(text: &str) -> Result<Self, ParseQueryParameterError> {
        let (name, step) = match text.rsplit_once(':') {
            Some((name, step)) if !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit()) => {
                let step = step.parse().ok().filter(|step| *step > 0).ok_or(ParseQueryParameterError::Step)?;
                (name, Some(step))
            }
            _ => (text, None),
        };
        if name.is_empty() {
            return Err(ParseQueryParameterError::NoName);
        }
        Ok(Self { name: name.to_owned(), step })
    }

    /// Returns the name of the parameter, not percent-encoded.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number that this parameter has in a URL's query. If the parameter is missing or
    /// empty, returns the first number: 1 for a page number, 0 for an offset (with a step).
    ///
    /// # Errors
    /// The value is not a number.
    pub(super) fn number_in(&self, url: &Target) -> Result<u64, PaginationError> {
        let parts = url.query().unwrap_or_default().split('&');
        let value = parts.filter_map(|part| self.value_in(part)).find(|value| !value.is_empty());
        let Some(value) = value else { return Ok(u64::from(self.step.is_none())) };
        let number = std::str::from_utf8(&value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let number = number.and_then(|text| text.parse().ok());
        number.ok_or_else(|| PaginationError::NotANumber { name: self.name.clone() })
    }

    /// Returns the number of the page after page `number`: `number` plus the step, or plus 1 if
    /// there is no step.
    ///
    /// # Errors
    /// The number would be too large.
    pub(super) fn number_after(&self, number: u64) -> Result<u64, PaginationError> {
        let next = number.checked_add(self.step.unwrap_or(1));
        next.ok_or_else(|| PaginationError::NumberTooLarge { name: self.name.clone() })
    }

    /// Returns `url` with this parameter set to `value`, which is percent-encoded. An existing
    /// parameter keeps its position and spelling in the query, and further parameters of the same
    /// name are removed. A new parameter is added at the end of the query.
    #[must_use]
    pub fn set(&self, url: &Target, value: &str) -> Target {
        let value = percent_encode(value.as_bytes());
        let mut query = String::new();
        let mut is_set = false;
        for part in url.query().unwrap_or_default().split('&').filter(|part| !part.is_empty()) {
            let is_mine = self.value_in(part).is_some();
            if is_mine && is_set {
                continue;
            }
            if !query.is_empty() {
                query.push('&');
            }
            if is_mine {
                let name = part.split_once('=').map_or(part, |(name, _)| name);
                query.extend([name, "=", &value]);
                is_set = true;
            } else {
                query.push_str(part);
            }
        }
        if !is_set {
            if !query.is_empty() {
                query.push('&');
            }
            query.extend([&percent_encode(self.name.as_bytes()), "=", &value]);
        }
        url.with_query(&query)
    }

    /// Returns the value of this parameter in `part`, one `name=value` element of a query. Returns
    /// `None` if the element is another parameter.
    pub(super) fn value_in<'q>(&self, part: &'q str) -> Option<Cow<'q, [u8]>> {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let is_mine = match name.contains('+') {
            true => *percent_decode(name.replace('+', " ").as_bytes()) == *self.name.as_bytes(),
            false => *percent_decode(name.as_bytes()) == *self.name.as_bytes(),
        };
        is_mine.then(|| percent_decode(value.as_bytes()))
    }
}

/// The reason why a text is not a [`QueryParameter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseQueryParameterError {
    /// The name is empty.
    NoName,
    /// The step is 0, or does not fit in 64 bits.
    Step,
}

impl fmt::Display for ParseQueryParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoName => "the name of the query parameter is empty",
            Self::Step => "the step after the colon has to be a number from 1 on",
        })
    }
}

impl std::error::Error for ParseQueryParameterError {}
