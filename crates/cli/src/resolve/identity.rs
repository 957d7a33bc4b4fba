//! Resolves the credentials: asks for passwords, reads netrc, and separates those of proxies.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haul_policy::auth::{Allowed, Credentials};
use haul_policy::proxy::{Environment, NoProxy};

use super::{Resolver, has_field, misused};
use crate::args::{ProxyLow, RequestLow, UserLow};
use crate::plan::{AuthArgs, FieldArg, Netrc, ProxyArgs, ProxyChoice};
use crate::usage::{Place, Reason, UsageError, printable};

impl Resolver<'_> {
    /// Takes the credentials for servers out of `low`.
    pub(super) fn auth(&mut self, low: &mut RequestLow, fields: &[FieldArg]) -> Result<AuthArgs, UsageError> {
        let (user, bearer) = (low.user.take(), low.bearer.take());
        // A field given by -H takes the place of the option's, as in curl.
        if has_field(fields, "Authorization") {
            return Ok(AuthArgs::default());
        }
        let given = low.allowed.filter(|allowed| allowed.basic || allowed.digest);
        // A token alone is sent at once; with schemes beside it, the server says which it takes.
        let is_alone = bearer.is_some() && given.is_none();
        let schemes = given.unwrap_or(Allowed { basic: !is_alone, ..Allowed::BASIC });
        let allowed = Allowed { bearer: bearer.is_some(), ..schemes };
        // The program asks for no password that it does not need.
        let user = match user.filter(|user| bearer.is_none() || user.password.is_some()) {
            Some(user) => self.credentials(user, "host", "--user")?,
            None => None,
        };
        let netrc = self.netrc(low, user.is_some())?;
        Ok(AuthArgs { user, allowed, bearer, signature: low.signature.take().map(Arc::new), netrc })
    }

    /// Returns the user's credentials; `None` if both name and password are empty (`-u :`).
    fn credentials(
        &mut self,
        low: UserLow,
        whose: &str,
        option: &'static str,
    ) -> Result<Option<Credentials>, UsageError> {
        let password = match low.password {
            Some(password) => password,
            None => {
                let prompt = format!("Enter {whose} password for user '{}':", printable(&low.user));
                let asked = match self.files.password(&prompt) {
                    // curl takes what comes: in a job without a terminal that is most often
                    // nothing.
                    Err(_) if self.persona.is_curl() => self.files.password_line(&prompt),
                    asked => asked,
                };
                asked.map_err(|_| {
                    misused(option, "there is no password, and no terminal to ask for one; use USER:PASSWORD or netrc")
                })?
            }
        };
        if low.user.is_empty() && password.is_empty() {
            return Ok(None);
        }
        let credentials = Credentials::new(low.user, password);
        credentials.map(Some).map_err(|_| misused(option, "the password holds CR, LF or NUL"))
    }

    /// The netrc file. If credentials are given, a missing default file is ignored, as in curl.
    fn netrc(&mut self, low: &RequestLow, has_user: bool) -> Result<Netrc, UsageError> {
        let is_required = low.netrc || (low.netrc_file.is_some() && !low.netrc_optional);
        if !is_required && !low.netrc_optional {
            return Ok(Netrc::Off);
        }
        let path = low.netrc_file.clone().or_else(|| self.files.variable("NETRC").map(PathBuf::from)).or_else(|| {
            let home = self.files.variable("HOME").filter(|home| !home.is_empty());
            home.map(|home| Path::new(&home).join(".netrc"))
        });
        let text = match path {
            Some(path) => self.file(&path, if low.netrc_file.is_some() { "--netrc-file" } else { "--netrc" }),
            None => Err(misused("--netrc", "there is no home directory; use --netrc-file")),
        };
        match (text, is_required) {
            // With both, the one that asks for less counts, as in curl.
            (Ok(text), _) if low.netrc_optional => Ok(Netrc::Optional(text.into())),
            (Ok(text), _) => Ok(Netrc::Required(text.into())),
            (Err(_), false) => Ok(Netrc::Off),
            (Err(_), true) if has_user && low.netrc_file.is_none() => Ok(Netrc::Off),
            (Err(_), true) if self.persona.is_curl() => Ok(Netrc::Missing),
            (Err(error), true) => Err(error),
        }
    }

    pub(super) fn proxy(&mut self, low: ProxyLow) -> Result<ProxyArgs, UsageError> {
        let environment = Environment::read(|name| self.files.variable(name).map(OsString::into_vec));
        let is_curl = self.persona.is_curl();
        let environment = if is_curl { environment.without_ports() } else { environment };
        let no_proxy = |list: String| {
            let list = NoProxy::parse(&list);
            if is_curl { list.without_ports() } else { list }
        };
        let default = ProxyArgs::default();
        Ok(ProxyArgs {
            choice: match low.proxy {
                // A proxy before the proxy is a way by itself: the environment's are not put behind
                // it, as by curl.
                None | Some(None) if low.preproxy.is_some() => ProxyChoice::Environment(environment.without_proxies()),
                None => ProxyChoice::Environment(environment),
                Some(None) => ProxyChoice::Direct,
                Some(Some(proxy)) => ProxyChoice::Given { proxy, environment },
            },
            preproxy: low.preproxy,
            user: match low.user {
                Some(user) => self.credentials(user, "proxy", "--proxy-user")?,
                None => None,
            },
            allowed: low.allowed.filter(|allowed| allowed.basic || allowed.digest).unwrap_or(default.allowed),
            tunnel: low.tunnel,
            http2: low.http2,
            http10: low.http10,
            suppress_connect_headers: low.suppress_connect_headers,
            fields: self.fields(low.fields, "--proxy-header")?,
            no_proxy: low.no_proxy.map(no_proxy),
            tls: low.tls,
        })
    }
}

/// A proxy's text as a refusal of the option; curl finds it when it connects, and so are its codes.
pub(crate) fn refuse_proxy(error: haul_policy::proxy::ProxyError) -> Reason {
    Reason::Proxy { code: error.exit_code(), text: error.to_string() }
}

/// The option's place for an error that has no other.
pub(super) fn at(option: &str, reason: Reason) -> UsageError {
    UsageError::new(Place::Option(option.to_owned()), reason)
}
