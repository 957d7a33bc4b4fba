//! `file:` URLs (RFC 8089) and the local file that each names.
//!
//! A `file:` URL is never a [`Target`](crate::Target). A caller that accepts such URLs checks for
//! them first, and never follows a redirect to one.
//!
//! ```
//! use haul_policy::file_url;
//!
//! assert!(file_url::is_file_url("FILE:///etc/hosts") && !file_url::is_file_url("filed://h/"));
//! assert_eq!(file_url::parse_path("file:///a%20b?query#fragment").unwrap(), b"/a b");
//! assert_eq!(file_url::parse_path("file://localhost/a").unwrap(), b"/a");
//! assert!(file_url::parse_path("file://elsewhere.example/a").is_err());
//! ```

use crate::file_names_by_system::OsFamily;
use crate::urlencode;

/// The reason why a `file:` URL does not name a local file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileUrlError {
    /// The URL names a host that is not this machine (RFC 8089 section 2).
    OtherHost,
    /// The path of the URL does not begin with a slash, or the URL has another scheme.
    NoAbsolutePath,
    /// The path of the URL contains a NUL, which no file name may have.
    Nul,
}

impl core::fmt::Display for FileUrlError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            FileUrlError::OtherHost => "Bad file:// URL: it names another host",
            FileUrlError::NoAbsolutePath => "Bad file:// URL: it has no absolute path",
            FileUrlError::Nul => "Bad file:// URL: a NUL is in its path",
        })
    }
}

impl core::error::Error for FileUrlError {}

/// Returns `true` if the URL's scheme is `file`.
pub fn is_file_url(url: &str) -> bool {
    strip_file_scheme(url).is_some()
}

/// Returns the path of the file that the URL names, percent-decoded, without query and fragment.
///
/// # Errors
/// Fails if the URL does not name a local file. A URL with a scheme other than `file` gives the
/// same error as a `file:` URL without an absolute path, [`FileUrlError::NoAbsolutePath`].
pub fn parse_path(url: &str) -> Result<Vec<u8>, FileUrlError> {
    let rest = path_query_fragment(url)?;
    let path = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
    let path = urlencode::percent_decode(path.as_bytes()).into_owned();
    if path.contains(&0) { Err(FileUrlError::Nul) } else { Ok(path) }
}

/// Returns the path, the query and the fragment of the URL as written, without scheme and host.
///
/// # Errors
/// Fails if the URL does not name a local file, as [`parse_path`] does.
pub fn path_query_fragment(url: &str) -> Result<&str, FileUrlError> {
    let rest = strip_file_scheme(url).ok_or(FileUrlError::NoAbsolutePath)?;
    let path = match rest.strip_prefix("//") {
        None => rest,
        Some(rest) => {
            let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
            if !["", "localhost", "127.0.0.1"].iter().any(|here| host.eq_ignore_ascii_case(here)) {
                return Err(FileUrlError::OtherHost);
            }
            path
        }
    };
    if path.starts_with('/') { Ok(path) } else { Err(FileUrlError::NoAbsolutePath) }
}

/// Returns the path by which the system opens the file, from the path of a `file:` URL. On Windows,
/// `/C:/a` becomes `C:/a`.
///
/// # Errors
/// On Windows, a path that begins with two separators names another computer or a device.
pub fn local_path(path: &[u8], family: OsFamily) -> Result<&[u8], FileUrlError> {
    match (family, path) {
        (OsFamily::Unix, path) => Ok(path),
        (OsFamily::Windows, [_, second, ..]) if family.is_separator(*second) => Err(FileUrlError::OtherHost),
        (OsFamily::Windows, [_, rest @ ..]) => match rest {
            [letter, b':', ..] if letter.is_ascii_alphabetic() => Ok(rest),
            _ => Ok(path),
        },
        (OsFamily::Windows, path) => Ok(path),
    }
}

fn strip_file_scheme(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_at_checked("file:".len())?;
    scheme.eq_ignore_ascii_case("file:").then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_url_paths_are_decoded() {
        for (url, expected) in [
            ("file:/a", Ok("/a")),
            ("file:///a/b%2Fc", Ok("/a/b/c")),
            ("File://LOCALHOST/a", Ok("/a")),
            ("file://127.0.0.1/a", Ok("/a")),
            ("file:////a", Ok("//a")),
            ("file:///a%", Ok("/a%")),
            ("file:///?x", Ok("/")),
            ("file://h/a", Err(FileUrlError::OtherHost)),
            ("file://localhost:80/a", Err(FileUrlError::OtherHost)),
            ("file://user@localhost/a", Err(FileUrlError::OtherHost)),
            ("file://localhost", Err(FileUrlError::NoAbsolutePath)),
            ("file:a", Err(FileUrlError::NoAbsolutePath)),
            ("file:", Err(FileUrlError::NoAbsolutePath)),
            ("file:?/a", Err(FileUrlError::NoAbsolutePath)),
            ("http://h/", Err(FileUrlError::NoAbsolutePath)),
            ("file:///a%00b", Err(FileUrlError::Nul)),
        ] {
            assert_eq!(parse_path(url), expected.map(|path| path.as_bytes().to_vec()), "{url}");
        }
    }

    #[test]
    fn windows_file_urls_name_no_other_computer() {
        for (path, expected) in [
            ("/C:/a", Ok("C:/a")),
            ("/c:\\a", Ok("c:\\a")),
            ("/a/b", Ok("/a/b")),
            ("/1:/a", Ok("/1:/a")),
            ("/", Ok("/")),
            ("//server/share", Err(FileUrlError::OtherHost)),
            ("/\\server\\share", Err(FileUrlError::OtherHost)),
        ] {
            let found = local_path(path.as_bytes(), OsFamily::Windows);
            assert_eq!(found, expected.map(str::as_bytes), "{path}");
            assert_eq!(local_path(path.as_bytes(), OsFamily::Unix), Ok(path.as_bytes()));
        }
    }

    #[test]
    fn file_url_scheme_must_match_exactly() {
        for url in ["file", "files:///a", "fil\u{e9}:///a", "", " file:///a"] {
            assert!(!is_file_url(url), "{url}");
        }
    }

    #[test]
    fn scheme_is_case_insensitive() {
        assert!(is_file_url("file:///a") && is_file_url("FILE:a"));
    }
}
