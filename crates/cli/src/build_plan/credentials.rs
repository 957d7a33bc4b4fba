//! Resolves credentials: asks for passwords, and reads netrc files.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use haul_policy::auth::{AllowedAuthSchemes, Credentials, MessageSigner};
use haul_policy::file_names_by_system::OsFamily;
use haul_policy::proxy::{NoProxy, ProxyEnvironment};

use super::{PlanBuilder, has_field, misused_option_error};
use crate::home_files::{account_home, netrc_paths};
use crate::parsed_args::{
    ParsedMessageSignature, ParsedProxyOptions, ParsedRequestOptions, ParsedSignatureKey, ParsedUserOption,
};
use crate::plan::{AuthArgs, HeaderArg, NetrcFileText, ProxyArgs, ProxyChoice};
use crate::system::os_text::OsStringExt;
use crate::usage_error::{ArgPosition, UsageError, UsageErrorReason, printable};

impl PlanBuilder<'_> {
    /// Moves the credentials for servers (`-u`, `--oauth2-bearer`) out of `parsed`, and asks the
    /// user for a missing password. Returns empty credentials if `fields` sets or removes
    /// `Authorization`.
    pub(super) fn auth(
        &mut self,
        parsed: &mut ParsedRequestOptions,
        fields: &[HeaderArg],
    ) -> Result<AuthArgs, UsageError> {
        let (user, bearer) = (parsed.user.take(), parsed.bearer.take());
        let message_signature = self.message_signature(std::mem::take(&mut parsed.httpsig))?.map(Arc::new);
        // A field given by -H takes the place of the option's, as in curl.
        if has_field(fields, "Authorization") {
            return Ok(AuthArgs { message_signature, ..AuthArgs::default() });
        }
        let given = parsed.allowed.filter(|allowed| *allowed != AllowedAuthSchemes::NONE);
        // A token alone is sent at once; with schemes beside it, the server says which it takes.
        let is_alone = bearer.is_some() && given.is_none();
        let schemes = given.unwrap_or(AllowedAuthSchemes { basic: !is_alone, ..AllowedAuthSchemes::BASIC });
        let allowed = AllowedAuthSchemes { bearer: bearer.is_some(), ..schemes };
        // The program asks for no password that it does not need.
        let user = match user.filter(|user| bearer.is_none() || user.password.is_some()) {
            Some(user) => self.credentials(user, "host", "--user")?,
            None => None,
        };
        let netrc = self.netrc(parsed, user.is_some())?;
        let signature = parsed.signature.take().map(Arc::new);
        let negotiate = std::mem::take(&mut parsed.negotiate);
        Ok(AuthArgs { user, allowed, bearer, signature, message_signature, negotiate, netrc })
    }

    /// Returns the settings for signing requests by RFC 9421. Returns `None` if no such option is
    /// given.
    fn message_signature(&mut self, parsed: ParsedMessageSignature) -> Result<Option<MessageSigner>, UsageError> {
        let ParsedMessageSignature { algorithm, components, key, key_id } = parsed;
        if algorithm.is_none() && components.is_none() && key.is_none() && key_id.is_none() {
            return Ok(None);
        }
        let option = "--httpsig-key";
        let digits = match key
            .ok_or_else(|| misused_option_error(option, "no request is signed without a key; use --httpsig-key"))?
        {
            ParsedSignatureKey::Digits(digits) => digits.expose().to_vec(),
            ParsedSignatureKey::File(path) => self.read_file(&path, option)?,
        };
        let key_id = key_id
            .ok_or_else(|| misused_option_error("--httpsig-keyid", "the key has no name; use --httpsig-keyid"))?;
        MessageSigner::new(algorithm.unwrap_or_default(), &digits, &key_id, components.as_deref())
            .map(Some)
            .map_err(|error| misused_option_error(option, &error.to_string()))
    }

    /// Returns the user and the password of `-u` or `-U`, and asks the user for a missing password.
    /// Returns `None` if both are empty (`-u :`). `whose` is a word of the prompt, and `option` is
    /// the option that error messages name.
    fn credentials(
        &mut self,
        parsed: ParsedUserOption,
        whose: &str,
        option: &'static str,
    ) -> Result<Option<Credentials>, UsageError> {
        let password = match parsed.password {
            Some(password) => password,
            None => {
                let prompt = format!("Enter {whose} password for user '{}':", printable(&parsed.user));
                let asked = match self.files.password(&prompt) {
                    // curl takes what comes: in a job without a terminal that is most often
                    // nothing.
                    Err(_) if self.persona.is_curl() => self.files.password_line(&prompt),
                    asked => asked,
                };
                asked.map_err(|_| {
                    misused_option_error(
                        option,
                        "there is no password, and no terminal to ask for one; use USER:PASSWORD or netrc",
                    )
                })?
            }
        };
        if parsed.user.is_empty() && password.is_empty() {
            return Ok(None);
        }
        let credentials = Credentials::new(parsed.user, password);
        credentials.map(Some).map_err(|_| misused_option_error(option, "the password holds CR, LF or NUL"))
    }

    /// Reads the netrc file if `-n` or a similar option asks for it. As in curl, a missing default
    /// file is ignored if `-u` is given.
    fn netrc(&mut self, parsed: &ParsedRequestOptions, has_user: bool) -> Result<NetrcFileText, UsageError> {
        let is_required = parsed.netrc || (parsed.netrc_file.is_some() && !parsed.netrc_optional);
        if !is_required && !parsed.netrc_optional {
            return Ok(NetrcFileText::Off);
        }
        let path =
            parsed.netrc_file.clone().or_else(|| self.files.variable("NETRC").map(PathBuf::from)).or_else(|| {
                let mut paths: Vec<_> =
                    netrc_paths(OsFamily::CURRENT, |name| self.files.variable(name), account_home()).collect();
                let found = paths.iter().position(|path| paths.len() > 1 && self.files.open(path).is_ok());
                (!paths.is_empty()).then(|| paths.swap_remove(found.unwrap_or(0)))
            });
        let text = match path {
            Some(path) => self.read_file(&path, if parsed.netrc_file.is_some() { "--netrc-file" } else { "--netrc" }),
            None => Err(misused_option_error("--netrc", "there is no home directory; use --netrc-file")),
        };
        if let Ok(text) = &text
            && self.persona.is_curl()
            && let Err(error) = haul_policy::netrc::check_syntax(text)
        {
            let reason = UsageErrorReason::Read { path: ".netrc".to_owned(), error: error.to_string() };
            return Err(UsageError::new(ArgPosition::Option("--netrc".to_owned()), reason));
        }
        match (text, is_required) {
            // With both, the one that asks for less counts, as in curl.
            (Ok(text), _) if parsed.netrc_optional => Ok(NetrcFileText::Optional(text.into())),
            (Ok(text), _) => Ok(NetrcFileText::Required(text.into())),
            (Err(_), false) => Ok(NetrcFileText::Off),
            (Err(_), true) if has_user && parsed.netrc_file.is_none() => Ok(NetrcFileText::Off),
            (Err(_), true) if self.persona.is_curl() => Ok(NetrcFileText::Missing),
            (Err(error), true) => Err(error),
        }
    }

    /// Returns the proxies that the environment variables name. The environment is read only once
    /// for all groups.
    fn proxy_environment(&mut self) -> ProxyEnvironment {
        let (files, is_curl) = (&*self.files, self.persona.is_curl());
        let parse_list = if is_curl { NoProxy::parse_as_curl } else { NoProxy::parse };
        let read = || {
            let variable = |name: &str| files.variable(name).map(OsString::into_vec);
            ProxyEnvironment::from_variables_with(variable, parse_list)
        };
        self.proxy_environment.get_or_insert_with(read).clone()
    }

    /// Converts the proxy options of a stage. A stage that shares its options with the previous one
    /// shares the result, too.
    pub(super) fn shared_proxy(&mut self, parsed: Arc<ParsedProxyOptions>) -> Result<Arc<ProxyArgs>, UsageError> {
        if let Some((given, proxy)) = &self.last_proxy
            && Arc::ptr_eq(given, &parsed)
        {
            return Ok(Arc::clone(proxy));
        }
        let proxy = Arc::new(self.proxy(ParsedProxyOptions::clone(&parsed))?);
        self.last_proxy = Some((parsed, Arc::clone(&proxy)));
        Ok(proxy)
    }

    fn proxy(&mut self, parsed: ParsedProxyOptions) -> Result<ProxyArgs, UsageError> {
        let environment = self.proxy_environment();
        let is_curl = self.persona.is_curl();
        let no_proxy = |list: String| if is_curl { NoProxy::parse_as_curl(&list) } else { NoProxy::parse(&list) };
        let default = ProxyArgs::default();
        Ok(ProxyArgs {
            choice: match parsed.proxy {
                // A proxy before the proxy is a way by itself: the environment's are not put behind
                // it, as by curl.
                None | Some(None) if parsed.preproxy.is_some() => {
                    ProxyChoice::Environment(environment.without_proxies())
                }
                None => ProxyChoice::Environment(environment),
                Some(None) => ProxyChoice::Direct,
                Some(Some(proxy)) => ProxyChoice::Given { proxy, environment },
            },
            preproxy: parsed.preproxy,
            user: match parsed.user {
                Some(user) => self.credentials(user, "proxy", "--proxy-user")?,
                None => None,
            },
            allowed: proxy_schemes(parsed.allowed, parsed.anyauth).unwrap_or(default.allowed),
            negotiate: parsed.negotiate,
            socks_gssapi: parsed.socks_gssapi,
            socks_nec: parsed.socks_nec,
            tunnel: parsed.tunnel,
            http2: parsed.http2,
            http10: parsed.http10,
            suppress_connect_headers: parsed.suppress_connect_headers,
            fields: self.fields(parsed.fields, "--proxy-header")?,
            no_proxy: parsed.no_proxy.map(no_proxy),
            tls: parsed.tls,
        })
    }
}

/// The schemes that `--anyauth` and `--proxy-anyauth` allow: all that this build has.
pub(crate) const ANYAUTH_SCHEMES: AllowedAuthSchemes =
    AllowedAuthSchemes { negotiate: cfg!(feature = "negotiate"), ..AllowedAuthSchemes::ANY };

/// Returns the schemes that may be used with the proxy, or `None` if no option allows one. Like
/// curl, allows only the strongest of the named schemes, so that a proxy that asks for a weaker
/// one does not get the password.
fn proxy_schemes(named: Option<AllowedAuthSchemes>, anyauth: bool) -> Option<AllowedAuthSchemes> {
    if anyauth {
        return Some(ANYAUTH_SCHEMES);
    }
    let named = named?;
    let by_strength = [
        (named.negotiate, AllowedAuthSchemes::NEGOTIATE),
        (named.digest, AllowedAuthSchemes::DIGEST),
        (named.basic, AllowedAuthSchemes::BASIC),
    ];
    by_strength.into_iter().find_map(|(is_named, scheme)| is_named.then_some(scheme))
}

/// Converts the error of an invalid proxy argument to a usage error with exit code 5 or 7. (The
/// exit code of other usage errors is 2. curl parses the proxy only when it connects.)
pub(crate) fn refuse_proxy(error: haul_policy::proxy::ProxyParseError) -> UsageErrorReason {
    UsageErrorReason::Proxy { code: error.exit_code(), text: error.to_string() }
}

/// Returns the usage error `reason` about `option`, for errors that are found only after the
/// command line has been parsed.
pub(super) fn usage_error(option: &str, reason: UsageErrorReason) -> UsageError {
    UsageError::new(ArgPosition::Option(option.to_owned()), reason)
}
