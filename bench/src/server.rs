//! The servers the contestants ask: nginx when it is installed, else the embedded origin.
//!
//! nginx runs as a child in the foreground with a configuration of its own: one worker, sendfile, no access log.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use testkit::origin::Origin;
use testkit::site::Site;

use crate::{Result, tools};

/// How long nginx may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server of one site; it stops when dropped.
pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    /// Name and version, for the report.
    pub(crate) name: String,
    _running: Running,
}

#[expect(dead_code, reason = "held for their Drop")]
enum Running {
    Nginx(Nginx),
    Embedded(Origin),
}

struct Nginx(Child);

impl Server {
    /// Serves the files under `root`, which are those of `site`; scratch files go to `work`.
    pub(crate) fn start(site: &Site, root: &Path, work: &Path, embedded: bool) -> Result<Server> {
        match tools::find("nginx").filter(|_| !embedded) {
            Some(program) => {
                let (nginx, addr) = Nginx::start(&program, root, work)?;
                let name = tools::version(&program, "-v").replace("nginx version: ", "");
                Ok(Server { addr, name, _running: Running::Nginx(nginx) })
            }
            None => Server::embedded(site.clone().cached()),
        }
    }

    /// The embedded origin in this process, on one thread.
    pub(crate) fn embedded(site: Site) -> Result<Server> {
        let origin = Origin::builder().site(site).record(false).start()?;
        let addr = origin.http_addr();
        Ok(Server { addr, name: "embedded origin".to_owned(), _running: Running::Embedded(origin) })
    }
}

impl Nginx {
    fn start(program: &Path, root: &Path, work: &Path) -> Result<(Nginx, SocketAddr)> {
        // Free now; should someone take it in between, nginx says so and the wait below ends.
        let addr = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let dir = work.join("nginx");
        fs::create_dir_all(&dir)?;
        let file = dir.join("nginx.conf");
        fs::write(&file, configuration(addr, root, &dir))?;
        let child = Command::new(program)
            .args([Path::new("-p"), &dir, Path::new("-c"), &file, Path::new("-e"), &dir.join("error.log")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut nginx = Nginx(child);
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(addr).is_err() {
            let log = || fs::read_to_string(dir.join("error.log")).unwrap_or_default();
            if nginx.0.try_wait()?.is_some() || Instant::now() > end {
                return Err(format!("nginx does not serve: {}", log()).into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok((nginx, addr))
    }

    fn stop(&mut self) -> io::Result<()> {
        let id = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        if let Some(id) = id {
            kill_process(id, Signal::TERM)?;
        }
        self.0.wait().map(drop)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Nothing is left to do for one that has ended already.
        let _ = self.stop();
    }
}

fn configuration(addr: SocketAddr, root: &Path, dir: &Path) -> String {
    // A worker of root's would be nobody, who may not enter the directory.
    let user = if rustix::process::geteuid().is_root() { "user root;\n" } else { "" };
    let (root, dir) = (root.display(), dir.display());
    format!(
        "{user}daemon off;\nworker_processes 1;\npid \"{dir}/pid\";\nerror_log \"{dir}/error.log\";\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n  access_log off;\n  sendfile on;\n  tcp_nodelay on;\n  keepalive_requests 100000;\n\
         \x20 keepalive_timeout 65s;\n  default_type text/html;\n  open_file_cache max=10000 inactive=60s;\n\
         \x20 client_body_temp_path \"{dir}/body\";\n  proxy_temp_path \"{dir}/proxy\";\n\
         \x20 fastcgi_temp_path \"{dir}/fastcgi\";\n  uwsgi_temp_path \"{dir}/uwsgi\";\n  scgi_temp_path \"{dir}/scgi\";\n\
         \x20 server {{ listen {addr}; root \"{root}\"; }}\n}}\n"
    )
}
