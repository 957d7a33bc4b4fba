//! Starts Apache with Basic and Digest authentication, a CGI program that echoes requests, DAV for
//! uploads, and HTTP/2 with and without TLS.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::skipped;
use crate::common::third_party_servers::{ExternalServer, found, is_root, make_open, open_directory};
use testkit::test_certificates::TestCertificates;
use testkit::unused_port::unused_port;

/// The user and password, as a value of `-u`, of all protected paths on the Apache server.
pub const LOGIN: &str = "me:secret";

/// A running Apache; dropping it stops the server and removes its files.
pub struct ApacheServer {
    _server: ExternalServer,
    dir: tempfile::TempDir,
    pub port: u16,
    pub tls_port: u16,
    /// The port of a second virtual host, which is another origin for haul.
    pub other: u16,
}

/// A CGI program that echoes a request: it prints a line for each request variable, an empty line,
/// and the content.
const ECHO: &str = "#!/bin/sh
printf 'Content-Type: text/plain\\r\\n'
case \"$QUERY_STRING\" in
*set=*) printf 'Set-Cookie: %s\\r\\n' \"${QUERY_STRING#*set=}\" | sed 's/+/ /g' ;;
esac
printf '\\r\\n'
for name in REQUEST_METHOD SERVER_PROTOCOL REMOTE_USER AUTH_TYPE QUERY_STRING CONTENT_TYPE CONTENT_LENGTH \\
    HTTP_AUTHORIZATION HTTP_COOKIE HTTP_REFERER HTTP_ACCEPT HTTP_EXPECT HTTP_X_OWN HTTP_PROXY_AUTHORIZATION
do
    eval \"value=\\${$name-}\"
    [ -z \"$value\" ] || printf '%s=%s\\n' \"$name\" \"$value\"
done
printf '\\n'
cat
";

impl ApacheServer {
    /// Starts Apache. If Apache or one of its modules is not installed, prints that `what` is not
    /// tested, and returns `None`.
    pub fn start(what: &str) -> Option<ApacheServer> {
        let apache = found("apache2", what)?;
        let modules = Path::new("/usr/lib/apache2/modules");
        let wanted = [
            "mpm_event",
            "unixd",
            "authn_core",
            "authn_file",
            "authz_core",
            "authz_user",
            "auth_basic",
            "auth_digest",
            "cgi",
            "alias",
            "dav",
            "dav_fs",
            "env",
            "headers",
            "http2",
            "socache_shmcb",
            "ssl",
            "log_config",
        ];
        if let Some(missing) = ["http2", "cgi", "auth_digest", "dav_fs"]
            .iter()
            .find(|name| !modules.join(format!("mod_{name}.so")).exists())
        {
            skipped(&format!("{what}: apache2 has no mod_{missing}"));
            return None;
        }
        let load: String = wanted
            .iter()
            .filter(|name| modules.join(format!("mod_{name}.so")).exists())
            .map(|name| format!("LoadModule {name}_module {}/mod_{name}.so\n", modules.display()))
            .collect();
        let scratch = open_directory();
        let dir = scratch.path();
        let put = |name: &str, text: &str| fs::write(dir.join(name), text).unwrap();
        let identity = TestCertificates::generate();
        put("ca", identity.ca_pem());
        put("leaf", &identity.chain_pem());
        put("key", &identity.key_pem());
        // SHA-1 of the password, and MD5 of user, realm and password.
        put("users", "me:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n");
        put("digests", "me:digest:519f956c2e1a5b0b72f4ce3fb2cc7f52\n");
        put("echo", ECHO);
        make_open(&dir.join("echo"));
        for name in ["root", "root/dav", "root/dav/open", "root/dav/basic", "root/dav/digest"] {
            fs::create_dir(dir.join(name)).unwrap();
            make_open(&dir.join(name));
        }
        let (port, tls_port, other) = (unused_port(), unused_port(), unused_port());
        put("conf", &configuration(&load, dir, port, tls_port, other));
        let mut command = Command::new(apache);
        command.arg("-f").arg(dir.join("conf")).arg("-X");
        let server = ExternalServer::start(&mut command, other);
        Some(ApacheServer { _server: server, dir: scratch, port, tls_port, other })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns the URL of a path on the server. The scheme is https for the TLS port, and http for
    /// the other ports.
    pub fn url(&self, port: u16, path: &str) -> String {
        let scheme = if port == self.tls_port { "https" } else { "http" };
        format!("{scheme}://localhost:{port}{path}")
    }

    /// Returns the ways to connect to the server, one for each protocol. Each is a port, and the
    /// options for haul and curl.
    pub fn ways(&self) -> [(u16, Vec<String>); 4] {
        let ca = self.path("ca").display().to_string();
        let with_ca = |option: &str| vec![option.to_owned(), "--cacert".to_owned(), ca.clone()];
        [
            (self.port, vec!["--http1.1".to_owned()]),
            (self.port, vec!["--http2-prior-knowledge".to_owned()]),
            (self.tls_port, with_ca("--http1.1")),
            (self.tls_port, with_ca("--http2")),
        ]
    }
}

fn configuration(load: &str, dir: &Path, port: u16, tls_port: u16, other: u16) -> String {
    let user = if is_root() { "User nobody\nGroup nogroup\n" } else { "" };
    let at = dir.display();
    let basic = format!("AuthType Basic\nAuthName basic\nAuthUserFile {at}/users\nRequire valid-user");
    let digest = format!(
        "AuthType Digest\nAuthName digest\nAuthDigestProvider file\nAuthUserFile {at}/digests\nRequire valid-user"
    );
    let redirects: String = ["301", "302", "303", "307", "308"]
        .iter()
        .map(|status| {
            format!(
                "RedirectMatch {status} ^/{status}/here/(.*)$ /$1\n\
                 RedirectMatch {status} ^/{status}/there/(.*)$ http://localhost:{other}/$1\n"
            )
        })
        .collect();
    format!(
        "{load}{user}ServerRoot {at}\nPidFile {at}/pid\nErrorLog {at}/log\nServerName localhost\nDefaultRuntimeDir {at}\n\
         Listen 127.0.0.1:{port}\nListen 127.0.0.1:{tls_port}\nListen 127.0.0.1:{other}\nDocumentRoot {at}/root\n\
         LogFormat \"%m %U %>s %H\" short\nCustomLog {at}/access short\n\
         Protocols h2 h2c http/1.1\nDavLockDB {at}/davlock\n\
         ScriptAliasMatch ^/(open|basic|digest)/echo$ {at}/echo\n{redirects}\
         <Directory {at}>\nRequire all granted\nCGIPassAuth On\n</Directory>\n\
         <Location /basic>\n{basic}\n</Location>\n<Location /digest>\n{digest}\n</Location>\n\
         <Location /dav>\nDav On\n</Location>\n<Location /dav/basic>\n{basic}\n</Location>\n\
         <Location /dav/digest>\n{digest}\n</Location>\n\
         <Location /hsts>\nHeader always set Strict-Transport-Security \"max-age=600\"\n</Location>\n\
         <Location /alt>\nHeader always set Alt-Svc \"h2=\\\":{tls_port}\\\"; ma=600\"\n</Location>\n\
         <VirtualHost 127.0.0.1:{tls_port}>\nSSLEngine on\nSSLCertificateFile {at}/leaf\n\
         SSLCertificateKeyFile {at}/key\n</VirtualHost>\n"
    )
}
