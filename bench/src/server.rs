//! The server that the compared programs use: nginx if it is installed, else testkit's embedded
//! server.
//!
//! nginx runs as a child process with one worker, sendfile and no access log. Both servers offer
//! HTTP/1.1 with and without TLS. HTTP/2 over TLS has a separate port, since a client that supports
//! both protocols would select HTTP/2 on a common port.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use testkit::origin::Origin;
use testkit::site::GeneratedSite;

use crate::{Result, installed_programs, tls_files};

/// The longest time to wait until nginx listens.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// A running server of one site. Dropping it stops it. Clients must trust the certificate in the
/// file [`tls_files::CA`] of the working directory.
pub(crate) struct SiteServer {
    pub(crate) addr: SocketAddr,
    /// The address for HTTP/1.1 over TLS 1.3.
    pub(crate) tls: SocketAddr,
    /// The address for HTTP/2 over TLS 1.3.
    pub(crate) h2: SocketAddr,
    /// The server's name and version, for the report.
    pub(crate) name: String,
    _running: SiteServerBackend,
}

#[expect(dead_code, reason = "held for their Drop")]
enum SiteServerBackend {
    Nginx(NginxProcess),
    Embedded(Vec<Origin>),
}

struct NginxProcess(Child);

impl SiteServer {
    /// Starts a server for the files under `root`, which are the files of `site`. The server is
    /// nginx, or testkit's servers in this process if `embedded` is true or nginx is not installed.
    /// Temporary files go to `work`.
    pub(crate) fn start(site: &GeneratedSite, root: &Path, work: &Path, embedded: bool) -> Result<SiteServer> {
        match installed_programs::find("nginx").filter(|_| !embedded) {
            Some(program) => {
                let (nginx, [addr, tls, h2]) = NginxProcess::start(&program, root, work)?;
                let name = installed_programs::version(&program, "-v").replace("nginx version: ", "");
                Ok(SiteServer { addr, tls, h2, name, _running: SiteServerBackend::Nginx(nginx) })
            }
            None => SiteServer::embedded(site.clone().cached(), work),
        }
    }

    /// Starts testkit's servers for the site in this process, each on one thread.
    pub(crate) fn embedded(site: GeneratedSite, work: &Path) -> Result<SiteServer> {
        let origin = Origin::builder().site(site.clone()).record(false).start()?;
        let second = Origin::builder().site(site).record(false).http2(128).start()?;
        let (addr, tls, h2) = (origin.http_addr(), origin.https_addr(), second.https_addr());
        fs::write(work.join(tls_files::CA), format!("{}{}", origin.ca_pem(), second.ca_pem()))?;
        let running = SiteServerBackend::Embedded(vec![origin, second]);
        Ok(SiteServer { addr, tls, h2, name: "embedded origin".to_owned(), _running: running })
    }
}

impl NginxProcess {
    fn start(program: &Path, root: &Path, work: &Path) -> Result<(NginxProcess, [SocketAddr; 3])> {
        // These ports are free now. If another program binds one in the meantime, nginx reports
        // this and the wait below ends. All listeners are held until all ports are known, or two
        // ports could be the same.
        let bind = || TcpListener::bind("127.0.0.1:0");
        let held = [bind()?, bind()?, bind()?];
        let addrs = [held[0].local_addr()?, held[1].local_addr()?, held[2].local_addr()?];
        drop(held);
        tls_files::write_to(work)?;
        let dir = work.join("nginx");
        fs::create_dir_all(&dir)?;
        let file = dir.join("nginx.conf");
        fs::write(&file, configuration(addrs, root, work, &dir))?;
        let child = Command::new(program)
            .args([Path::new("-p"), &dir, Path::new("-c"), &file, Path::new("-e"), &dir.join("error.log")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut nginx = NginxProcess(child);
        let end = Instant::now() + START_TIMEOUT;
        while addrs.iter().any(|addr| TcpStream::connect(addr).is_err()) {
            let log = || fs::read_to_string(dir.join("error.log")).unwrap_or_default();
            if nginx.0.try_wait()?.is_some() || Instant::now() > end {
                return Err(format!("nginx does not serve: {}", log()).into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok((nginx, addrs))
    }

    fn stop(&mut self) -> io::Result<()> {
        let id = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        if let Some(id) = id {
            kill_process(id, Signal::TERM)?;
        }
        self.0.wait().map(drop)
    }
}

impl Drop for NginxProcess {
    fn drop(&mut self) {
        // Fails only if it has ended already.
        let _ = self.stop();
    }
}

/// Returns nginx's configuration. It allows a single cipher suite, because clients prefer different
/// suites, and suites are not compared.
fn configuration([addr, tls, h2]: [SocketAddr; 3], root: &Path, work: &Path, dir: &Path) -> String {
    // Under root, the worker would run as the user nobody, who may not enter the directory.
    let user = if rustix::process::geteuid().is_root() { "user root;\n" } else { "" };
    let [leaf, key] = [tls_files::LEAF, tls_files::KEY].map(|name| work.join(name));
    let (root, dir, leaf, key) = (root.display(), dir.display(), leaf.display(), key.display());
    format!(
        "{user}daemon off;\nworker_processes 1;\npid \"{dir}/pid\";\nerror_log \"{dir}/error.log\";\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n  access_log off;\n  sendfile on;\n  tcp_nodelay on;\n  keepalive_requests 100000;\n\
         \x20 keepalive_timeout 65s;\n  default_type text/html;\n  open_file_cache max=10000 inactive=60s;\n\
         \x20 client_body_temp_path \"{dir}/body\";\n  proxy_temp_path \"{dir}/proxy\";\n\
         \x20 fastcgi_temp_path \"{dir}/fastcgi\";\n  uwsgi_temp_path \"{dir}/uwsgi\";\n  scgi_temp_path \"{dir}/scgi\";\n\
         \x20 server {{\n    listen {addr};\n    listen {tls} ssl;\n    listen {h2} ssl http2;\n    root \"{root}\";\n\
         \x20   ssl_certificate \"{leaf}\";\n    ssl_certificate_key \"{key}\";\n    ssl_protocols TLSv1.3;\n\
         \x20   ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;\n  }}\n}}\n"
    )
}
