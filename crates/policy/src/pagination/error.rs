use std::fmt;

use crate::target::TargetError;

/// The reason why the next page of a paginated listing cannot be requested.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PaginationError {
    /// The page leads to another origin, and the user has not allowed that.
    OtherOrigin {
        /// The URL of the next page.
        url: String,
        /// The origin of the current page.
        page: String,
    },
    /// The reference to the next page is not an http or https URL.
    Reference {
        /// The reference as it stands in the page.
        text: String,
        /// The reason why the reference to the next page is not usable.
        error: TargetError,
    },
    /// The value in the page that identifies the next page has an unsuitable type.
    Unusable {
        /// The type of the value that was found, such as `an object`.
        kind: &'static str,
        /// True if the value that identifies the next page must be a URL; false if it must be a
        /// text or a number.
        wants_url: bool,
    },
    /// The listing has more pages than the default limit, and the user has set no limit.
    TooManyPages {
        /// The default limit on the number of pages.
        max: u64,
        /// The URL of the page that was not requested, the first beyond the limit.
        next: String,
    },
    /// The query parameter that numbers the pages has a value that is not a number.
    NotANumber {
        /// The name of the query parameter.
        name: String,
    },
    /// The number of the next page would be too large for the query parameter.
    NumberTooLarge {
        /// The name of the query parameter.
        name: String,
    },
}

impl PaginationError {
    /// Returns the exit code that curl has for a comparable error: 47 for too many pages, 1 for an
    /// unsupported scheme, 61 for a value that cannot be used, and 3 for all others.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::TooManyPages { .. } => 47,
            Self::Reference { error: TargetError::UnsupportedScheme(_), .. } => 1,
            Self::Unusable { .. } => 61,
            _ => 3,
        }
    }

    /// Returns the URL or reference that the error is about; `None` if the error is about the page
    /// itself.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::OtherOrigin { url, .. }
            | Self::Reference { text: url, .. }
            | Self::TooManyPages { next: url, .. } => Some(url),
            _ => None,
        }
    }
}

impl fmt::Display for PaginationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherOrigin { page, .. } => {
                write!(f, "the next page has another origin than the page, {page}")
            }
            Self::Reference { error, .. } => write!(f, "the next page is a {error}"),
            Self::Unusable { kind, wants_url: true } => write!(f, "the value for the next page is {kind} and no URL"),
            Self::Unusable { kind, wants_url: false } => {
                write!(f, "the value for the next page is {kind}; it has to be a text or a number")
            }
            Self::TooManyPages { max, .. } => {
                write!(f, "the listing has more than {max} pages")
            }
            Self::NotANumber { name } => {
                write!(f, "the parameter {name} in the query is no number from which pages can be counted")
            }
            Self::NumberTooLarge { name } => write!(f, "the parameter {name} in the query cannot be counted further"),
        }
    }
}

impl std::error::Error for PaginationError {}
