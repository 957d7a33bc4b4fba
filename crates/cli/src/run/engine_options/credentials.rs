//! Converts the credentials of the plan to the engine's.

use haul::state::auth::{AuthOptions, NegotiateOptions, NetrcFileUse};

use crate::plan::{self, AuthArgs, NegotiateArgs};

/// Converts the credentials of a stage (`--then` separates stages) to the engine's [`AuthOptions`].
pub(crate) fn auth_options(args: &AuthArgs) -> AuthOptions {
    AuthOptions {
        user: args.user.clone(),
        bearer: args.bearer.as_ref().map(|token| token.expose().into()),
        allowed: args.allowed,
        signature: args.signature.clone(),
        message_signature: args.message_signature.clone(),
        negotiate: negotiate_options(&args.negotiate),
        netrc: match &args.netrc {
            plan::NetrcFileText::Off | plan::NetrcFileText::Missing => NetrcFileUse::Off,
            plan::NetrcFileText::Optional(text) => NetrcFileUse::Optional(text.clone()),
            plan::NetrcFileText::Required(text) => NetrcFileUse::Required(text.clone()),
        },
        ..AuthOptions::default()
    }
}

/// Converts the settings for Negotiate to the engine's. All connections use the credentials of the
/// process's user.
pub(crate) fn negotiate_options(args: &NegotiateArgs) -> NegotiateOptions {
    let mut options = NegotiateOptions::with_system_library();
    options.delegation = args.delegation;
    if let Some(service) = &args.service {
        options.service.clone_from(service);
    }
    options
}

/// Converts the settings for GSS-API with a SOCKS proxy. As in curl, the default service name is
/// `rcmd`.
pub(crate) fn socks_gssapi(args: &NegotiateArgs) -> NegotiateOptions {
    let mut options = negotiate_options(args);
    if args.service.is_none() {
        options.service = "rcmd".to_owned();
    }
    options
}
