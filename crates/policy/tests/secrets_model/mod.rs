//! Model test with all secrets that a request can carry: `-u`, a URL's user, a token, netrc
//! entries, cookies that servers set, and the credentials of two proxies.
//!
//! The client in this test only combines the crate's decisions: it composes the messages that an
//! engine would send. The model (`expected_secrets`) determines from the redirects alone which
//! receiver may see which secret.

mod allowed_secret_receivers;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haul_policy::Target;
use haul_policy::auth::{Credentials, GivenCredentials, NetrcMode, credentials_for_target};
use haul_policy::cookie::CookieStore;
use haul_policy::proxy::socks::{SocksDestination, SocksHandshake, SocksStep};
use haul_policy::proxy::{Proxy, ProxyEnvironment, ProxyMode, absolute_form_target, connect_fields, forward_fields};
use haul_policy::redirect::{RedirectRules, SecretHandling, redirected_request};
use haul_policy::secret_fields::fields_to_send;
use proptest::collection::vec;
use proptest::prelude::*;

use allowed_secret_receivers::{
    DomainAttribute, HOSTS, ModelOrigin, ModelRedirect, ModelSetCookie, ModelUserOptions, NETRC,
};

const NOW: u64 = 1_800_000_000;

/// The receivers of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecretReceiver {
    Origin,
    /// The proxy for http URLs (0) or for https URLs (1).
    Proxy(usize),
}

/// Returns the fields as text, with Basic credentials decoded.
fn readable(fields: &[(String, Vec<u8>)]) -> String {
    let mut text = String::new();
    for (name, value) in fields {
        let value = String::from_utf8_lossy(value);
        let decoded = value.strip_prefix("Basic ").and_then(|encoded| STANDARD.decode(encoded).ok());
        let decoded = decoded.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        text.push_str(&format!("{name}: {value} {decoded}\n"));
    }
    text
}

/// Returns the messages of one request, each with its receiver.
fn messages(
    world: &ModelUserOptions,
    environment: &ProxyEnvironment,
    jar: &CookieStore,
    target: &Target,
    secrets: SecretHandling,
    downgraded: bool,
) -> Vec<(SecretReceiver, String)> {
    let user = world.user.then(|| Credentials::new("cli", "cli-pw").unwrap());
    let netrc = if world.netrc { NetrcMode::Optional(NETRC.as_bytes()) } else { NetrcMode::Off };
    let given =
        GivenCredentials { user: user.as_ref(), bearer: world.bearer.then_some(b"t0ken"), negotiate: false, netrc };
    let identity = credentials_for_target(&given, target, secrets, downgraded).unwrap();
    let own = [("X-Api-Key".to_owned(), b"api-key".to_vec())];
    let mut fields: Vec<(String, Vec<u8>)> = fields_to_send(&own, secrets).cloned().collect();
    // An engine sends one of the two; either way it must be allowed to.
    fields.extend(identity.credentials.map(|c| ("Authorization".to_owned(), c.basic_authorization())));
    fields.extend(identity.bearer.map(|token| ("Authorization".to_owned(), token)));
    fields.extend(jar.cookie_for(target, NOW).map(|value| ("Cookie".to_owned(), value)));
    let line = ("line".to_owned(), absolute_form_target(target, false).into_bytes());
    let request = readable(&[&[line][..], &fields].concat());

    let Some(url) = environment.proxy_for(target) else { return vec![(SecretReceiver::Origin, request)] };
    let proxy = Proxy::parse(url).unwrap();
    let authorization = proxy.credentials().map(Credentials::basic_authorization);
    let to_proxy = match proxy.route(target, world.tunnel) {
        ProxyMode::Forward => format!("{request}{}", readable(&forward_fields(authorization.as_deref(), &[]))),
        ProxyMode::Tunnel => readable(&connect_fields(target, authorization.as_deref(), None, &[])),
        ProxyMode::Socks => socks(&proxy, target),
    };
    let which = usize::from(target.scheme().as_str() == "https");
    vec![(SecretReceiver::Proxy(which), to_proxy), (SecretReceiver::Origin, request)]
}

/// Returns everything that is sent to a SOCKS proxy that requires authentication.
fn socks(proxy: &Proxy, target: &Target) -> String {
    let address = SocksDestination::Address([192, 0, 2, 1].into());
    let destination = if proxy.kind().resolves_names() { SocksDestination::Name(target.host_text()) } else { address };
    let mut handshake = SocksHandshake::new(proxy.kind(), destination, target.port(), proxy.credentials()).unwrap();
    let mut told = handshake.start().to_vec();
    let replies: &[&[u8]] = match told[0] {
        4 => &[&[0, 90, 0, 0, 0, 0, 0, 0]],
        _ => &[&[5, 2], &[1, 0], &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]],
    };
    for reply in replies {
        if let (_, SocksStep::Send(bytes)) = handshake.receive(reply).unwrap() {
            told.extend_from_slice(&bytes);
        }
    }
    String::from_utf8_lossy(&told).into_owned()
}

fn run(world: &ModelUserOptions, first: ModelOrigin, steps: &[ModelRedirect]) -> Result<(), TestCaseError> {
    let variable = |name: &str| match name {
        "http_proxy" => world.proxy_url(0),
        "https_proxy" => world.proxy_url(1),
        "no_proxy" => Some(world.no_proxy_text()),
        _ => None,
    };
    let environment = ProxyEnvironment::from_variables(variable);
    let rules = RedirectRules::default();
    let mut account = allowed_secret_receivers::SecretsModel::new(world, first);
    let mut jar = CookieStore::new();
    let mut target = Target::parse(&first.url(if world.url_user { "alice:url-pw@" } else { "" }, 0)).unwrap();
    let origin = target.origin();
    let (mut secrets, mut downgraded) = (SecretHandling::Keep, false);
    for (hops, step) in steps.iter().enumerate() {
        for (receiver, text) in messages(world, &environment, &jar, &target, secrets, downgraded) {
            account.check(receiver, &text)?;
        }
        for (number, cookie) in step.cookies.iter().enumerate() {
            let number = hops * 10 + number;
            let field = cookie.field(account.peer(), number);
            let taken = jar.set(&target, field.as_bytes(), NOW).is_ok();
            prop_assert_eq!(taken, account.on_cookie(cookie, number), "{} from {:?}", field, account.peer());
        }
        let (location, next) = step.location(account.peer());
        let hop = redirected_request(&rules, hops as u32, 302, Some(location.as_bytes()), "GET", &target, &origin);
        let hop = hop.map_err(|e| TestCaseError::fail(format!("{location}: {e}")))?.expect("followed");
        account.moved(next, step.userinfo);
        (target, secrets, downgraded) = (hop.target, hop.secrets, hop.downgraded);
    }
    Ok(())
}

fn worlds() -> impl Strategy<Value = ModelUserOptions> {
    let proxies = [0..7usize, 0..7usize];
    let given = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (given, proxies, vec(0..HOSTS.len(), 0..3), any::<bool>()).prop_map(|(given, proxies, no_proxy, tunnel)| {
        let (user, url_user, bearer, netrc) = given;
        ModelUserOptions { user, url_user, bearer, netrc, proxies, no_proxy, tunnel }
    })
}

fn peers() -> impl Strategy<Value = ModelOrigin> {
    (any::<bool>(), 0..HOSTS.len(), prop_oneof![3 => Just(None), 1 => Just(Some(8080))])
        .prop_map(|(tls, host, port)| ModelOrigin { tls, host, port: port.unwrap_or(if tls { 443 } else { 80 }) })
}

fn steps() -> impl Strategy<Value = Vec<ModelRedirect>> {
    let domain = prop_oneof![
        Just(DomainAttribute::None),
        Just(DomainAttribute::Own),
        Just(DomainAttribute::Parent),
        (0..HOSTS.len()).prop_map(DomainAttribute::Of),
    ];
    let cookie = (domain, any::<bool>()).prop_map(|(domain, secure)| ModelSetCookie { domain, secure });
    let step = (peers(), 0..2usize, any::<bool>(), prop_oneof![4 => Just(false), 1 => Just(true)], vec(cookie, 0..3));
    let step = step.prop_map(|(peer, spelling, stays, userinfo, cookies)| ModelRedirect {
        peer,
        spelling,
        stays,
        userinfo,
        cookies,
    });
    vec(step, 1..7)
}

proptest! {
    #![proptest_config(crate::common::config(20_000))]

    #[test]
    fn each_secret_reaches_only_its_own_peers(world in worlds(), first in peers(), steps in steps()) {
        run(&world, first, &steps)?;
    }
}
