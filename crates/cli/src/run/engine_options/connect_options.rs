//! Converts the connection settings of the plan to the engine's: proxies, sockets, local addresses,
//! client certificates.

use haul::Result;
use haul::net::happy_eyeballs::ConnectOptions;
use haul::net::local_address::LocalInterface;
use haul::net::proxy::{ProxyAuthScheme, ProxyOptions, SocksGssapi};
use haul::net::socket::TcpKeepalive;
use haul::net::tls::{ClientCertificateFiles, Passphrase, TlsOptions};
use haul_policy::auth::AllowedAuthSchemes;
use haul_policy::proxy::{Proxy, ProxyEnvironment, ProxyKind};

use super::{ech_keys, pinned_keys};
use crate::plan::{
    ClientCert, EchArgs, HeaderArg, HttpVersion, KeepaliveArgs, ProxyArgs, ProxyChoice, TlsArgs, TransferArgs,
};
use crate::program_persona::ProgramPersona;

/// Sets TCP keep-alive (`--keepalive-time`) and the local interface (`--interface`) in the engine's
/// connection options. No other connection setting of `args` needs a conversion: these settings
/// already have the engine's types.
pub(crate) fn set_connect_options(args: &TransferArgs, options: &mut ConnectOptions) -> Result<()> {
    options.keepalive = args.keepalive.map(|keepalive| TcpKeepalive {
        idle: keepalive.time,
        interval: keepalive.interval.unwrap_or(keepalive.time),
        // Nine is the system's own, and not set then: that saves a call for each connection.
        count: Some(keepalive.count).filter(|&count| count != KeepaliveArgs::default().count),
    });
    options.interface = args.interface.as_deref().map(LocalInterface::parse).transpose()?;
    Ok(())
}

/// Converts the proxy settings of a stage (`--then` begins a further stage) to the engine's.
/// Returns `None` for [`ProxyChoice::Direct`], which uses no proxy.
pub(crate) fn proxy_options(args: &ProxyArgs, persona: ProgramPersona) -> Result<Option<ProxyOptions>> {
    let (proxy, environment) = match &args.choice {
        ProxyChoice::Direct => return Ok(None),
        ProxyChoice::Given { proxy, environment } => (Some(proxy.clone()), environment.clone()),
        ProxyChoice::Environment(environment) => (None, environment.clone()),
    };
    let auth = match args.allowed {
        AllowedAuthSchemes::BASIC => ProxyAuthScheme::Basic,
        AllowedAuthSchemes::DIGEST => ProxyAuthScheme::Digest,
        AllowedAuthSchemes::NEGOTIATE => ProxyAuthScheme::Negotiate,
        AllowedAuthSchemes { negotiate: true, .. } => ProxyAuthScheme::AnyOrNegotiate,
        _ => ProxyAuthScheme::Any,
    };
    let field = |field: &HeaderArg| match field {
        HeaderArg::Set { name, value } => Some((name.clone(), value.clone())),
        HeaderArg::Empty { name } => Some((name.clone(), Vec::new())),
        HeaderArg::Remove { .. } => None,
    };
    let left_out = |field: &HeaderArg| match field {
        HeaderArg::Remove { name } => Some(name.clone()),
        HeaderArg::Set { .. } | HeaderArg::Empty { .. } => None,
    };
    let mut options = ProxyOptions::default();
    options.proxy = proxy;
    options.environment = environment;
    options.no_proxy.clone_from(&args.no_proxy);
    options.preproxy.clone_from(&args.preproxy);
    options.credentials.clone_from(&args.user);
    options.auth = auth;
    options.negotiate = super::credentials::negotiate_options(&args.negotiate);
    options.socks_gssapi = args
        .socks_gssapi
        .then(|| SocksGssapi { negotiate: super::credentials::socks_gssapi(&args.negotiate), nec: args.socks_nec });
    options.tunnel = args.tunnel;
    options.http2 = args.http2;
    options.http10 = args.http10;
    options.fields = args.fields.iter().filter_map(field).collect();
    options.without = args.fields.iter().filter_map(left_out).collect();
    // The TLS options of proxies need not be valid (an invalid pin, say) if no proxy uses TLS.
    if has_https_proxy(options.proxy.as_ref(), &options.environment) {
        options.tls = tls_options(&args.tls, HttpVersion::Http11, persona)?;
    }
    Ok(Some(options))
}

fn has_https_proxy(given: Option<&Proxy>, environment: &ProxyEnvironment) -> bool {
    given.map_or_else(|| environment.has_https_proxy(), |proxy| proxy.kind() == ProxyKind::Https)
}

/// Returns the TLS options for connections to the DNS server of `--doh-url`. They are the options
/// for transfers, without those that concern only the servers of the transfers' URLs.
pub(crate) fn doh_tls_options(args: &TransferArgs) -> Result<TlsOptions> {
    let of_server = TlsArgs { pins: None, ech: EchArgs::default(), client: ClientCert::default(), ..args.tls.clone() };
    let mut options = tls_options(&of_server, HttpVersion::Any, ProgramPersona::Haul)?;
    options.verify = !args.doh_insecure;
    options.require_status = false;
    Ok(options)
}

/// Converts the TLS settings of the command line to TLS options of the engine. `version` determines
/// the protocols that ALPN offers.
pub(crate) fn tls_options(args: &TlsArgs, version: HttpVersion, persona: ProgramPersona) -> Result<TlsOptions> {
    let mut options = args.options.clone();
    if options.ca_file.is_none() && options.ca_path.is_none() {
        // Set to nothing it is not set, as to curl: so people turn it off.
        options.ca_file = haul::trusted_environment_variables::variable("CURL_CA_BUNDLE")
            .filter(|path| !path.is_empty())
            .map(Into::into);
    }
    if let Some(pins) = &args.pins {
        options.pins = match pinned_keys::parse_pins(pins) {
            Err(_) if persona.is_curl() => vec![pinned_keys::UNMATCHABLE_PIN],
            pins => pins?,
        };
    }
    options.ech = ech_keys::options(&args.ech, persona)?;
    options.alpn = match version {
        _ if !args.alpn => Vec::new(),
        HttpVersion::Any | HttpVersion::Http2 | HttpVersion::Http3 | HttpVersion::Http3Only => {
            vec![b"h2".to_vec(), b"http/1.1".to_vec()]
        }
        HttpVersion::Http10 | HttpVersion::Http11 => vec![b"http/1.1".to_vec()],
        HttpVersion::Http2PriorKnowledge => vec![b"h2".to_vec()],
    };
    // Whether its files are PEM or DER is plain from what is in them.
    let ClientCert { certificate, key, passphrase, .. } = &args.client;
    options.identity = certificate
        .as_ref()
        .map(|certificate| ClientCertificateFiles { certificate: certificate.clone(), key: key.clone() });
    options.passphrase = passphrase.as_ref().map(|passphrase| Passphrase::new(passphrase.expose()));
    Ok(options)
}
