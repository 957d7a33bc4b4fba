//! Starts the proxies squid, tinyproxy, Dante and microsocks.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use crate::common::skipped;
use crate::common::third_party_servers::{ExternalServer, found, is_root, make_open, open_directory};
use testkit::test_certificates::TestCertificates;
use testkit::unused_port::unused_port;

/// A running proxy, which accepts requests from this machine. Dropping it stops the proxy.
pub struct ProxyServer {
    _server: ExternalServer,
    pub dir: tempfile::TempDir,
    pub port: u16,
    /// The port on which the proxy accepts TLS connections; 0 if it does not accept them.
    pub tls_port: u16,
}

/// The authentication scheme that squid requires of clients, if any. The user is `me`, and the
/// password `secret`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SquidAuth {
    Nothing,
    Basic,
    Digest,
}

/// The script that squid runs to check a user and a password.
const BASIC_HELPER: &str = "#!/bin/sh\nwhile read -r user password\ndo\n[ \"$user $password\" = \"me secret\" ] && echo OK || echo ERR\ndone\n";

impl ProxyServer {
    /// Starts squid. It has a TLS port if it was built with TLS. If squid is not installed, prints
    /// that `what` is not tested, and returns `None`.
    pub fn squid(what: &str, asks: SquidAuth) -> Option<ProxyServer> {
        let squid = found("squid", what)?;
        let scratch = open_directory();
        let dir = scratch.path();
        let at = dir.display();
        let (port, tls_port) = (unused_port(), unused_port());
        let identity = TestCertificates::generate();
        fs::write(dir.join("ca"), identity.ca_pem()).unwrap();
        fs::write(dir.join("leaf"), identity.chain_pem()).unwrap();
        fs::write(dir.join("key"), identity.key_pem()).unwrap();
        fs::write(dir.join("helper"), BASIC_HELPER).unwrap();
        fs::write(dir.join("users"), "me:secret\n").unwrap();
        ["leaf", "key", "helper", "users"].iter().for_each(|name| make_open(&dir.join(name)));
        let digest = "/usr/lib/squid/digest_file_auth";
        if asks == SquidAuth::Digest && !Path::new(digest).exists() {
            skipped(&format!("{what}: squid has no helper for Digest"));
            return None;
        }
        let rules = match asks {
            SquidAuth::Nothing => "http_access allow all\n".to_owned(),
            SquidAuth::Basic => format!(
                "auth_param basic program {at}/helper\nauth_param basic realm proxy\nacl known proxy_auth REQUIRED\n\
                 http_access allow known\nhttp_access deny all\n"
            ),
            SquidAuth::Digest => format!(
                "auth_param digest program {digest} {at}/users\nauth_param digest realm proxy\n\
                 acl known proxy_auth REQUIRED\nhttp_access allow known\nhttp_access deny all\n"
            ),
        };
        let has_tls = Command::new(&squid)
            .arg("-v")
            .output()
            .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("--with-openssl"));
        let https = format!("https_port 127.0.0.1:{tls_port} tls-cert={at}/leaf tls-key={at}/key\n");
        let conf = format!(
            "http_port 127.0.0.1:{port}\n{}{rules}cache deny all\naccess_log stdio:{at}/access\ncache_log {at}/log\n\
             pid_filename {at}/pid\ncoredump_dir {at}\nshutdown_lifetime 0 seconds\nvisible_hostname localhost\n\
             pinger_enable off\nnetdb_filename none\ncache_store_log none\n",
            if has_tls { &https } else { "" }
        );
        fs::write(dir.join("conf"), conf).unwrap();
        let mut command = Command::new(squid);
        // By its name it finds memory that it shares with others of its name.
        command.args(["-N", "-n", &format!("haul{port}"), "-f"]).arg(dir.join("conf"));
        let last = if has_tls { tls_port } else { port };
        let server = ExternalServer::start(&mut command, last);
        Some(ProxyServer { _server: server, dir: scratch, port, tls_port: if has_tls { tls_port } else { 0 } })
    }

    /// Starts tinyproxy, which requires user `me` and password `secret` with Basic authentication.
    pub fn tinyproxy(what: &str) -> Option<ProxyServer> {
        let tinyproxy = found("tinyproxy", what)?;
        let (dir, port) = (open_directory(), unused_port());
        let conf = dir.path().join("conf");
        fs::write(&conf, format!("Port {port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 50\nBasicAuth me secret\n"))
            .unwrap();
        let server = ExternalServer::start(Command::new(tinyproxy).arg("-d").arg("-c").arg(conf), port);
        Some(ProxyServer { _server: server, dir, port, tls_port: 0 })
    }

    /// Starts Dante, a SOCKS4 and SOCKS5 proxy without authentication.
    pub fn dante(what: &str) -> Option<ProxyServer> {
        let danted = found("danted", what)?;
        let (dir, port) = (open_directory(), unused_port());
        let user = if is_root() { "user.privileged: root\nuser.unprivileged: nobody\n" } else { "" };
        let conf = format!(
            "logoutput: {}/log\ninternal: 127.0.0.1 port = {port}\nexternal: 127.0.0.1\nclientmethod: none\n\
             socksmethod: none\n{user}client pass {{ from: 127.0.0.0/8 to: 0.0.0.0/0 }}\n\
             socks pass {{ from: 127.0.0.0/8 to: 0.0.0.0/0 command: connect }}\n",
            dir.path().display()
        );
        fs::write(dir.path().join("conf"), conf).unwrap();
        let mut command = Command::new(danted);
        command.args(["-N", "1", "-p"]).arg(dir.path().join("pid")).arg("-f").arg(dir.path().join("conf"));
        let server = ExternalServer::start(&mut command, port);
        Some(ProxyServer { _server: server, dir, port, tls_port: 0 })
    }

    /// Starts microsocks, a SOCKS5 proxy. If `asks` is true, the proxy requires user `me` and
    /// password `secret`.
    pub fn microsocks(what: &str, asks: bool) -> Option<ProxyServer> {
        let microsocks = found("microsocks", what)?;
        let (dir, port) = (open_directory(), unused_port());
        let mut command = Command::new(microsocks);
        command.args(["-i", "127.0.0.1", "-p", &port.to_string()]);
        if asks {
            command.args(["-u", "me", "-P", "secret"]);
        }
        let server = ExternalServer::start_until(&mut command, || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(ProxyServer { _server: server, dir, port, tls_port: 0 })
    }

    pub fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    /// Returns the proxy's URL for `-x`. `userinfo` is `me:secret@`, or empty for a URL without
    /// credentials.
    pub fn url(&self, scheme: &str, userinfo: &str) -> String {
        let port = if scheme == "https" { self.tls_port } else { self.port };
        format!("{scheme}://{userinfo}localhost:{port}")
    }
}
