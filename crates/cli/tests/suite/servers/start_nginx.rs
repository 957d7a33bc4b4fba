//! Starts nginx with Basic authentication, client certificates and a Unix socket, over HTTP/1.1 and
//! HTTP/2.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::third_party_servers::{ExternalServer, found, is_root, open_directory};
use testkit::unused_port::unused_port;

/// A running nginx; dropping it stops the server and removes its files.
pub struct NginxServer {
    _server: ExternalServer,
    pub dir: tempfile::TempDir,
    /// The port on which nginx speaks HTTP/1.1 without TLS.
    pub port: u16,
    /// The port on which nginx speaks HTTP/2 without TLS.
    pub h2_port: u16,
    /// The port for HTTP/1.1 and HTTP/2 over TLS. The path `/mine` requires a client certificate.
    pub tls_port: u16,
}

impl NginxServer {
    /// Starts nginx. `prepare` writes its files to a directory: `leaf` and `key`, the certificate
    /// and key for TLS, and `clients`, the CA of client certificates. If nginx is not installed,
    /// prints that `what` is not tested, and returns `None`.
    pub fn start(what: &str, prepare: impl FnOnce(&Path)) -> Option<NginxServer> {
        let nginx = found("nginx", what)?;
        let dir = open_directory();
        prepare(dir.path());
        let at = dir.path().display();
        fs::write(dir.path().join("users"), "me:{PLAIN}secret\n").unwrap();
        fs::create_dir_all(dir.path().join("root/basic")).unwrap();
        fs::write(dir.path().join("root/basic/page"), "for me\n").unwrap();
        let (port, h2_port, tls_port) = (unused_port(), unused_port(), unused_port());
        let user = if is_root() { "user root;" } else { "" };
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {at}/{name};"))
            .concat();
        let places = format!(
            "root {at}/root; location /basic/ {{ auth_basic basic; auth_basic_user_file {at}/users; \
             add_header x-user $remote_user; }} \
             location /echo {{ return 200 \"$server_protocol $http_host $remote_addr:$remote_port [$http_authorization] \
             [$http_cookie]\\n\"; }}"
        );
        let conf = format!(
            "{user} daemon off; worker_processes 1; pid {at}/pid; error_log {at}/log; events {{}} http {{ access_log off; \
             default_type text/plain; {temporary} \
             server {{ listen 127.0.0.1:{port}; listen unix:{at}/socket; {places} }} \
             server {{ listen 127.0.0.1:{h2_port} http2; {places} }} \
             server {{ listen 127.0.0.1:{tls_port} ssl http2; ssl_certificate {at}/leaf; ssl_certificate_key {at}/key; \
             ssl_client_certificate {at}/clients; ssl_verify_client optional; {places} \
             location /mine {{ if ($ssl_client_verify != SUCCESS) {{ return 403 \"$ssl_client_verify\\n\"; }} \
             return 200 \"$server_protocol $ssl_client_s_dn\\n\"; }} }} }}"
        );
        fs::write(dir.path().join("conf"), conf).unwrap();
        let mut command = Command::new(nginx);
        command.arg("-c").arg(dir.path().join("conf")).arg("-e").arg(dir.path().join("log"));
        let server = ExternalServer::start(&mut command, tls_port);
        Some(NginxServer { _server: server, dir, port, h2_port, tls_port })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}
