//! Parses URLs into targets, and refuses URLs that options forbid.

use haul::{Error, ErrorKind, Result, Target};

use crate::plan::{NetrcFileText, StageArgs, append_query};

/// Parses a URL of a stage (`--then` separates stages), and adds the query of `-G` and
/// `--url-query`. Returns an error if the scheme of the URL is not allowed.
pub(crate) fn parse_target(stage: &StageArgs, url: &str) -> Result<Target> {
    let redirect = &stage.transfer.redirect;
    let shown = || crate::usage_error::shown_url(url);
    let queried = stage.request.query.as_ref().map(|query| append_query(url, query));
    let text = queried.as_deref().unwrap_or(url);
    let target =
        Target::parse_with(text, redirect.default_scheme, stage.transfer.options.path_as_is).map_err(|error| {
            let kind = if error.exit_code() == 1 { ErrorKind::UnsupportedScheme } else { ErrorKind::Url };
            Error::with_source(kind, "the URL cannot be used", error).with_url(shown())
        })?;
    refuse_protocol(stage, &target).map_err(|error| error.with_url(shown()))?;
    Ok(target)
}

/// Returns an error if `--proto` does not allow the scheme of the target.
pub(crate) fn refuse_protocol(stage: &StageArgs, target: &Target) -> Result<()> {
    if stage.transfer.redirect.protocols.allows(target.scheme()) {
        return Ok(());
    }
    let message = format!("{} is not among the protocols that --proto allows", target.scheme().as_str());
    Err(Error::new(ErrorKind::UnsupportedScheme, message))
}

/// Returns an error if the URL contains a user name and `--disallow-username-in-url` is given, or
/// if `-n` is given and the netrc file is missing.
pub(crate) fn refuse_login(stage: &StageArgs, target: &Target) -> Result<()> {
    if stage.request.auth.netrc == NetrcFileText::Missing {
        return Err(Error::new(ErrorKind::Read, ".netrc error: no such file"));
    }
    if stage.request.no_user_in_url && target.userinfo_bytes().is_some() {
        return Err(Error::new(ErrorKind::Login, "the URL has a user name, which is not allowed"));
    }
    Ok(())
}
