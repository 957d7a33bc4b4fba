//! The settings of a client on which its connections depend: TLS, proxies and local addresses.
//! Requests with different settings never share a connection, even in a shared pool.
//!
//! ```
//! use haul_c::client::haul_client_new;
//! use haul_c::connection_settings::haul_client_set_proxy;
//! use haul_c::error::haul_status;
//! let mut client = haul_client_new().unwrap();
//! // SAFETY: the client lives, and the strings end with NUL.
//! unsafe {
//!     assert_eq!(haul_client_set_proxy(&mut *client, c"socks5h://127.0.0.1".as_ptr()), haul_status::Ok);
//!     assert_eq!(haul_client_set_proxy(&mut *client, c"gopher://h".as_ptr()), haul_status::Setup);
//! }
//! ```

use std::collections::HashMap;
use std::ffi::{c_char, c_int};
use std::path::PathBuf;

use haul::net::dns::ChosenDnsServers;
use haul::net::local_address::{LocalInterface, UnixSocketAddress};
use haul::net::proxy::ProxyOptions;
use haul::net::tls::ClientCertificateFiles;
use haul::request::{ConnectToRule, Http3Policy};
use haul_policy::proxy::{NoProxy, Proxy, ProxyEnvironment};

use crate::c_arguments;
use crate::client::haul_client;
use crate::client_settings::change_options;
use crate::error::{CallFailure, catch_panic, haul_status};
use crate::jar::file;

/// The version of HTTP to use.
///
/// cbindgen:rename-all=None
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub enum haul_http {
    /// HTTP/1.0. A body of unknown length cannot be sent.
    HAUL_HTTP_1_0 = 10,
    /// HTTP/1.1, the default.
    HAUL_HTTP_1_1 = 11,
    /// HTTP/2 if the server agrees to it over TLS, else HTTP/1.1.
    HAUL_HTTP_2 = 20,
    /// HTTP/2 without negotiation, also without TLS (RFC 9113 section 3.3).
    HAUL_HTTP_2_PRIOR = 21,
    /// HTTP/3 for https, if a QUIC connection opens sooner than a TCP connection; otherwise like
    /// HAUL_HTTP_2.
    HAUL_HTTP_3 = 30,
    /// HTTP/3 only. Needs https, and no proxy.
    HAUL_HTTP_3_ONLY = 31,
}

/// Converts a path from C. NULL becomes `None`.
///
/// # Safety
/// `path` is NULL or ends with NUL.
unsafe fn path(path: *const c_char) -> Result<Option<PathBuf>, CallFailure> {
    if path.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller guarantees it.
    Ok(Some(unsafe { file(path) }?.to_owned()))
}

/// Sets the version of HTTP to use; `version` is a haul_http.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_http(client: *mut haul_client, version: c_int) -> haul_status {
    // SAFETY: the header's contract: what is not NULL lives, and strings end with NUL. So in all
    // functions here.
    unsafe {
        change_options(client, |options| {
            let both = || vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            let policy = match version {
                n if n == haul_http::HAUL_HTTP_3 as c_int => Http3Policy::Race,
                n if n == haul_http::HAUL_HTTP_3_ONLY as c_int => Http3Policy::Only,
                _ => Http3Policy::Off,
            };
            if policy != Http3Policy::Off && !haul::HAS_HTTP3 {
                return Err(CallFailure::setup("this build of haul has no HTTP/3"));
            }
            (options.prior_knowledge, options.tls.alpn) = match version {
                _ if policy != Http3Policy::Off => (false, both()),
                n if n == haul_http::HAUL_HTTP_1_0 as c_int || n == haul_http::HAUL_HTTP_1_1 as c_int => {
                    (false, Vec::new())
                }
                n if n == haul_http::HAUL_HTTP_2 as c_int => (false, both()),
                n if n == haul_http::HAUL_HTTP_2_PRIOR as c_int => (true, both()),
                _ => return Err(CallFailure::setup("version is no haul_http")),
            };
            options.http3 = policy;
            options.deviations.http10 = version == haul_http::HAUL_HTTP_1_0 as c_int;
            Ok(())
        })
    }
}

/// Sets whether the certificates of servers are verified. Default on. Without verification, anyone
/// on the network can read and change everything.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_verify(client: *mut haul_client, on: bool) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            options.tls.verify = on;
            Ok(())
        })
    }
}

/// Sets a PEM file of CA certificates to trust instead of the system's. NULL means the system's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_ca_file(client: *mut haul_client, ca_file: *const c_char) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            options.tls.ca_file = path(ca_file)?;
            options.tls.common_name = true;
            Ok(())
        })
    }
}

/// Sets a directory of CA certificates to trust instead of the system's: PEM files named by the
/// hashes of their subjects. NULL means the system's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_ca_path(client: *mut haul_client, ca_path: *const c_char) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            options.tls.ca_path = path(ca_path)?;
            options.tls.common_name = true;
            Ok(())
        })
    }
}

/// Sets the client certificate and its key, as PEM files. If `key` is NULL, the key is in the file
/// of the certificate. If `certificate` is NULL, no certificate is sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_client_certificate(
    client: *mut haul_client,
    certificate: *const c_char,
    key: *const c_char,
) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            let key = path(key)?;
            options.tls.identity = path(certificate)?.map(|certificate| ClientCertificateFiles { certificate, key });
            Ok(())
        })
    }
}

/// Sets the proxy for all requests, such as "http://user:password@host:3128" or "socks5h://host".
/// NULL or "" means no proxy. This replaces the settings of haul_client_set_proxy_from_environment
/// and haul_client_set_scheme_proxies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_proxy(client: *mut haul_client, url: *const c_char) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            let url = c_arguments::optional_text(url, "url")?.filter(|url| !url.is_empty());
            let proxy = url.map(proxy).transpose()?;
            let kept = options.proxy.take().and_then(|kept| kept.no_proxy);
            if proxy.is_some() || kept.is_some() {
                let mut made = ProxyOptions::default();
                (made.proxy, made.no_proxy) = (proxy, kept);
                options.proxy = Some(made);
            }
            Ok(())
        })
    }
}

/// Sets one proxy for http URLs and one for https URLs. NULL or "" means no proxy for that scheme.
/// They replace the settings of haul_client_set_proxy and haul_client_set_proxy_from_environment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_scheme_proxies(
    client: *mut haul_client,
    http: *const c_char,
    https: *const c_char,
) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            let mut proxies = HashMap::new();
            for (name, url) in [("http_proxy", http), ("https_proxy", https)] {
                if let Some(url) = c_arguments::optional_text(url, name)?.filter(|url| !url.is_empty()) {
                    proxy(url)?;
                    proxies.insert(name, url.to_owned());
                }
            }
            let kept = options.proxy.take().and_then(|kept| kept.no_proxy);
            if proxies.is_empty() && kept.is_none() {
                // Without proxies, no lookup is needed for each request.
                return Ok(());
            }
            // The URLs are read as the environment's variables are.
            let environment = ProxyEnvironment::from_variables(|name| proxies.get(name).cloned());
            let mut made = ProxyOptions::default();
            (made.environment, made.no_proxy) = (environment, kept);
            options.proxy = Some(made);
            Ok(())
        })
    }
}

/// Sets the hosts that are reached without a proxy, as a list in the format of NO_PROXY
/// ("localhost, .example.com, 10.0.0.0/8", "*"). NULL, the default, removes the list.
/// haul_client_set_proxy and haul_client_set_scheme_proxies keep this list.
/// haul_client_set_proxy_from_environment replaces the list with the environment's no_proxy. The
/// next call of any of these four functions drops the environment's list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_no_proxy(client: *mut haul_client, list: *const c_char) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            let list = c_arguments::optional_text(list, "list")?;
            if list.is_some() || options.proxy.is_some() {
                // An empty list, because `None` stands for the environment's list.
                let list = NoProxy::parse(list.unwrap_or_default());
                options.proxy.get_or_insert_default().no_proxy = Some(list);
            }
            Ok(())
        })
    }
}

/// Sets the proxies to the current values of the environment variables http_proxy, https_proxy,
/// all_proxy and no_proxy (http_proxy in lower case only). In a set-user-ID program, no proxy is
/// set. Default: the environment is not used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_proxy_from_environment(client: *mut haul_client) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            options.proxy = Some(ProxyOptions::from_environment());
            Ok(())
        })
    }
}

/// Sets the address, interface or host name from which to connect. With NULL, the system chooses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_interface(client: *mut haul_client, name: *const c_char) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            options.connect.interface =
                c_arguments::optional_text(name, "name")?.map(LocalInterface::parse).transpose()?;
            Ok(())
        })
    }
}

/// Sets the name servers to query, for all clients that share the connections: addresses, with or
/// without a port, separated by commas. NULL means the system's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_dns_servers(client: *mut haul_client, list: *const c_char) -> haul_status {
    catch_panic(|| {
        // SAFETY: the header's contract.
        let (client, list) =
            unsafe { (c_arguments::required_object(client, "client")?, c_arguments::optional_text(list, "list")?) };
        let servers = list.map(ChosenDnsServers::parse).transpose()?.unwrap_or_default();
        client.shared().engine.resolver().use_servers(&servers);
        Ok(())
    })
}

/// Sets a Unix socket to which to connect, regardless of the host in the URL. NULL means none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_unix_socket(client: *mut haul_client, socket: *const c_char) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            options.connect.unix_socket = path(socket)?.map(UnixSocketAddress::Path);
            Ok(())
        })
    }
}

/// Adds a rule: connect to `to_host` and `to_port` instead of `host` and `port`. The request and
/// TLS do not change. NULL for `host` and 0 for `port` match any value. NULL for `to_host` and 0
/// for `to_port` keep the original value. The first rule that matches is used. With both hosts NULL
/// and both ports 0, the call removes all rules.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_connect_to(
    client: *mut haul_client,
    host: *const c_char,
    port: u16,
    to_host: *const c_char,
    to_port: u16,
) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            let host = c_arguments::optional_text(host, "host")?.map(str::to_owned);
            let to_host = c_arguments::optional_text(to_host, "to_host")?.map(str::to_owned);
            let (port, to_port) = ((port > 0).then_some(port), (to_port > 0).then_some(to_port));
            match (&host, port, &to_host, to_port) {
                (None, None, None, None) => options.connect_to.clear(),
                _ => options.connect_to.push(ConnectToRule { host, port, to_host, to_port }),
            }
            Ok(())
        })
    }
}

fn proxy(url: &str) -> Result<Proxy, CallFailure> {
    // The message does not contain the URL, which may have a password.
    Proxy::parse(url).map_err(|error| CallFailure::setup(format!("the proxy cannot be used: {error}")))
}
