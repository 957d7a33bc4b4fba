//! The credentials of a request, from options such as `CURLOPT_USERPWD`, `CURLOPT_HTTPAUTH`,
//! `CURLOPT_XOAUTH2_BEARER` and `CURLOPT_NETRC`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use haul::RequestOptions;
use haul::state::auth::{
    AllowedAuthSchemes, AuthOptions, Credentials, Delegation, NegotiateOptions, NetrcFileUse, SigV4Parameters,
};

use super::TransferFailure;
use crate::codes::CURLE_BAD_FUNCTION_ARGUMENT;
use crate::easy::EasyState;
use crate::options::{
    EasyOptions,
    curlauth_constants::{AUTH_BASIC, AUTH_BEARER, AUTH_DIGEST, AUTH_NEGOTIATE},
    curlopt_numbers as opt,
};

/// Copies the credentials in the options to a request.
pub(super) fn set_credentials(state: &EasyState, request: &mut RequestOptions) -> Result<(), TransferFailure> {
    let options = &state.options;
    let wrong = |_| TransferFailure::from(CURLE_BAD_FUNCTION_ARGUMENT);
    let schemes = options.number(opt::HTTPAUTH).unwrap_or(AUTH_BASIC);
    let user = match (options.bytes(opt::USERNAME), options.bytes(opt::PASSWORD)) {
        (None, None) => None,
        (user, password) => match (user.unwrap_or_default(), password.unwrap_or_default()) {
            // As in libcurl 8.22, empty Basic credentials are not sent. Negotiate needs them.
            ([], []) if schemes == AUTH_BASIC => None,
            (user, password) => Some(Credentials::new(user, password).map_err(wrong)?),
        },
    };
    let bearer = options.bytes(opt::XOAUTH2_BEARER).filter(|_| schemes & AUTH_BEARER != 0);
    request.auth = AuthOptions {
        user,
        bearer: bearer.map(Arc::from),
        allowed: AllowedAuthSchemes {
            basic: schemes & AUTH_BASIC != 0,
            digest: schemes & AUTH_DIGEST != 0,
            bearer: bearer.is_some(),
            negotiate: haul::HAS_NEGOTIATE && schemes & AUTH_NEGOTIATE != 0,
        },
        signature: match options.text(opt::AWS_SIGV4) {
            Some(text) => Some(Arc::new(SigV4Parameters::parse(&text).map_err(wrong)?)),
            None => None,
        },
        netrc: netrc(options),
        negotiate: negotiate(options, opt::SERVICE_NAME),
        memory: state.auth_cache.clone(),
        ..AuthOptions::default()
    };
    if let Some(proxy) = &mut request.proxy {
        proxy.memory = state.proxy_auth_cache.clone();
    }
    Ok(())
}

/// Returns the settings for Negotiate authentication. `service` is the number of the option with
/// the service name. All requests use the Kerberos tickets of the process.
pub(super) fn negotiate(options: &EasyOptions, service: u32) -> NegotiateOptions {
    /// The bit `CURLGSSAPI_DELEGATION_POLICY_FLAG` of `CURLOPT_GSSAPI_DELEGATION`.
    const POLICY: i64 = 1;
    /// The bit `CURLGSSAPI_DELEGATION_FLAG` of `CURLOPT_GSSAPI_DELEGATION`.
    const ALWAYS: i64 = 2;
    let mut negotiate = NegotiateOptions::with_system_library();
    if let Some(service) = options.text(service) {
        negotiate.service = service.into_owned();
    }
    let flags = options.number(opt::GSSAPI_DELEGATION).unwrap_or(0);
    negotiate.delegation = match (flags & ALWAYS != 0, flags & POLICY != 0) {
        (true, _) => Delegation::Always,
        (false, true) => Delegation::Policy,
        (false, false) => Delegation::None,
    };
    negotiate
}

/// Reads the netrc file if the options select it. A missing file has no entries.
fn netrc(options: &EasyOptions) -> NetrcFileUse {
    const OPTIONAL: i64 = 1;
    let Some(use_of_it) = options.number(opt::NETRC).filter(|number| *number > 0) else { return NetrcFileUse::Off };
    let given = options.bytes(opt::NETRC_FILE).map(|path| PathBuf::from(OsStr::from_bytes(path)));
    let path = given.or_else(|| {
        haul::trusted_environment_variables::variable("HOME").map(|home| PathBuf::from(home).join(".netrc"))
    });
    let Some(text) = path.and_then(|path| std::fs::read(path).ok()) else { return NetrcFileUse::Off };
    if use_of_it == OPTIONAL { NetrcFileUse::Optional(text.into()) } else { NetrcFileUse::Required(text.into()) }
}
