//! The connection options from the plan: proxies, sockets, local addresses, client certificates.

use haul::Result;
use haul::net::connect::ConnectOptions;
use haul::net::local::{Interface, Ports, UnixSocket};
use haul::net::proxy::{ProxyAuth, ProxyOptions};
use haul::net::socket::Keepalive;
use haul::net::tls::{Identity, Passphrase, TlsOptions, TlsVersion};
use haul_policy::auth::Allowed;
use haul_policy::proxy::{Environment, Proxy, ProxyKind};

use crate::plan::{self, ClientCert, ConnectionArgs, FieldArg, HttpVersion, ProxyArgs, ProxyChoice, TlsArgs};

/// Sockets and their ends.
pub(crate) fn connect(args: &ConnectionArgs, options: &mut ConnectOptions) -> Result<()> {
    options.attempt_delay = args.happy_eyeballs;
    options.keepalive = args.keepalive.map(|keepalive| Keepalive {
        idle: keepalive.time,
        interval: keepalive.interval.unwrap_or(keepalive.time),
        // Nine is the system's own, and not set then: that saves a call for each connection.
        count: Some(keepalive.count).filter(|&count| count != plan::KeepaliveArgs::default().count),
    });
    options.interface = args.interface.as_ref().map(interface).transpose()?;
    options.local_ports = args.local_port.as_ref().map(|ports| Ports { first: *ports.start(), last: *ports.end() });
    (options.type_of_service, options.priority) = (args.type_of_service, args.priority);
    options.unix_socket = args.unix_socket.as_ref().map(|socket| match socket {
        plan::UnixSocket::Path(path) => UnixSocket::Path(path.clone()),
        plan::UnixSocket::Abstract(name) => UnixSocket::Abstract(name.clone()),
    });
    options.haproxy_protocol = args.haproxy_protocol;
    options.haproxy_client = args.haproxy_client;
    Ok(())
}

fn interface(interface: &plan::Interface) -> Result<Interface> {
    match interface {
        plan::Interface::Any(text) => Interface::parse(text),
        plan::Interface::Device(device) => Ok(Interface { device: Some(device.clone()), host: None }),
        plan::Interface::Host(host) => Ok(Interface { device: None, host: Some(host.clone()) }),
        plan::Interface::DeviceAndHost { device, host } => {
            Ok(Interface { device: Some(device.clone()), host: Some(host.clone()) })
        }
    }
}

/// Through whom they go.
pub(crate) fn proxy(args: &ProxyArgs) -> Result<Option<ProxyOptions>> {
    let (proxy, environment) = match &args.choice {
        ProxyChoice::Direct => return Ok(None),
        ProxyChoice::Given { proxy, environment } => (Some(proxy.clone()), environment.clone()),
        ProxyChoice::Environment(environment) => (None, environment.clone()),
    };
    let auth = match args.allowed {
        Allowed::BASIC => ProxyAuth::Basic,
        Allowed::DIGEST => ProxyAuth::Digest,
        _ => ProxyAuth::Any,
    };
    let field = |field: &FieldArg| match field {
        FieldArg::Set { name, value } => Some((name.clone(), value.clone())),
        FieldArg::Empty { name } => Some((name.clone(), Vec::new())),
        FieldArg::Remove { .. } => None,
    };
    let left_out = |field: &FieldArg| match field {
        FieldArg::Remove { name } => Some(name.clone()),
        FieldArg::Set { .. } | FieldArg::Empty { .. } => None,
    };
    let mut options = ProxyOptions::default();
    options.proxy = proxy;
    options.environment = environment;
    options.no_proxy.clone_from(&args.no_proxy);
    options.preproxy.clone_from(&args.preproxy);
    options.credentials.clone_from(&args.user);
    options.auth = auth;
    options.tunnel = args.tunnel;
    options.http2 = args.http2;
    options.http10 = args.http10;
    options.fields = args.fields.iter().filter_map(field).collect();
    options.without = args.fields.iter().filter_map(left_out).collect();
    // The TLS options of proxies need not be valid (an invalid pin, say) if no proxy uses TLS.
    if has_tls(options.proxy.as_ref(), &options.environment) {
        options.tls = tls(&args.tls, HttpVersion::Http11)?;
    }
    Ok(Some(options))
}

fn has_tls(given: Option<&Proxy>, environment: &Environment) -> bool {
    given.map_or_else(|| environment.has_https_proxy(), |proxy| proxy.kind() == ProxyKind::Https)
}

/// Returns the TLS options.
pub(crate) fn tls(args: &TlsArgs, version: HttpVersion) -> Result<TlsOptions> {
    let mut options = TlsOptions::default();
    options.verify = !args.insecure;
    options.common_name = true;
    options.ca_file = args.cacert.clone().or_else(|| match args.capath {
        Some(_) => None,
        // Set to nothing it is not set, as to curl: so people turn it off.
        None => std::env::var_os("CURL_CA_BUNDLE").filter(|path| !path.is_empty()).map(Into::into),
    });
    let version_of = |version| match version {
        plan::TlsVersion::V1_2 => TlsVersion::V1_2,
        plan::TlsVersion::V1_3 => TlsVersion::V1_3,
    };
    options.min_version = version_of(args.min_version);
    options.max_version = version_of(args.max_version);
    options.ca_path.clone_from(&args.capath);
    options.crl_file.clone_from(&args.crlfile);
    options.tls12_ciphers.clone_from(&args.ciphers);
    options.tls13_ciphers.clone_from(&args.tls13_ciphers);
    options.groups.clone_from(&args.curves);
    options.resume = args.resume;
    if let Some(pins) = &args.pins {
        options.pins = crate::run::engine_options::pinned_keys::read(pins)?;
    }
    options.alpn = match version {
        _ if !args.alpn => Vec::new(),
        HttpVersion::Any => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        HttpVersion::Http10 | HttpVersion::Http11 => vec![b"http/1.1".to_vec()],
        HttpVersion::Http2PriorKnowledge => vec![b"h2".to_vec()],
    };
    // Whether its files are PEM or DER is plain from what is in them.
    let ClientCert { certificate, key, passphrase, .. } = &args.client;
    options.identity =
        certificate.as_ref().map(|certificate| Identity { certificate: certificate.clone(), key: key.clone() });
    options.passphrase = passphrase.as_ref().map(|passphrase| Passphrase::new(passphrase.expose()));
    Ok(options)
}
