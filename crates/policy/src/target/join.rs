//! Resolves references, such as a Location, against the URL in which they were found (RFC 3986
//! §5.3).

use std::borrow::Cow;

use super::{PathQueryFragment, Target, TargetError, check_bytes, parse_scheme, skip_slashes, split_scheme};

impl Target {
    /// Resolves `reference` against this target.
    ///
    /// A reference is treated as browsers and curl treat a Location:
    ///
    /// * Surrounding blanks are removed. Spaces become `%20`, or `+` in a query. Non-ASCII
    ///   characters are encoded. Other control bytes are refused.
    /// * A backslash is an ordinary byte, as in curl, and does not start an authority.
    /// * A reference without a fragment inherits this target's fragment (RFC 9110 §10.2.2).
    /// * A reference that names no host keeps this target's userinfo.
    pub fn join(&self, reference: &str) -> Result<Target, TargetError> {
        let reference = escape_spaces(reference.trim_matches([' ', '\t', '\r', '\n']));
        check_bytes(&reference)?;
        let mut target = if let Some((scheme, rest)) = split_scheme(&reference) {
            Target::from_authority(parse_scheme(scheme)?, skip_slashes(rest)?, false)?
        } else if reference.starts_with("//") {
            // A third slash is ignored, as after a scheme.
            Target::from_authority(self.scheme(), skip_slashes(&reference)?, false)?
        } else {
            self.relative(PathQueryFragment::split(&reference))
        };
        if target.origin == self.origin {
            // One allocation for all targets of a chain or a page.
            target.origin = self.origin();
        }
        if target.fragment.is_none() {
            target.fragment.clone_from(&self.fragment);
        }
        Ok(target)
    }

    /// Resolves a reference without scheme and authority (RFC 3986 §5.2.2).
    fn relative(&self, tail: PathQueryFragment<'_>) -> Target {
        let mut target = self.clone();
        // `path_as_is` applied only to the URL that the user gave.
        target.path_as_is = false;
        target.fragment = tail.fragment.map(Box::from);
        if tail.path.starts_with('/') {
            target.set_path_and_query(tail.path, tail.query);
        } else if !tail.path.is_empty() {
            let base = self.path();
            let directory = &base[..=base.rfind('/').expect("a path begins with a slash")];
            target.set_path_and_query(&format!("{directory}{}", tail.path), tail.query);
        } else if tail.query.is_some() {
            target.set_path_and_query(self.path(), tail.query);
        }
        target
    }
}

/// Escapes spaces as curl does: `%20` in a path, `+` in a query.
fn escape_spaces(text: &str) -> Cow<'_, str> {
    if !text.contains(' ') {
        return Cow::Borrowed(text);
    }
    let end = text.find('#').unwrap_or(text.len());
    match text[..end].find('?') {
        Some(query) => {
            let (path, query, rest) = (&text[..query], &text[query..end], &text[end..]);
            Cow::Owned(format!("{}{}{}", path.replace(' ', "%20"), query.replace(' ', "+"), rest.replace(' ', "%20")))
        }
        None => Cow::Owned(text.replace(' ', "%20")),
    }
}
