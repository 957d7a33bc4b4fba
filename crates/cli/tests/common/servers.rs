//! Servers of other people's making, run for one test: found where Debian puts them, started on free ports of loopback,
//! stopped when dropped.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::{eventually, skipped};

/// A server of others, which stops when dropped.
pub struct ExternalServer(Child);

impl ExternalServer {
    /// Runs it until it listens.
    pub fn start(command: &mut Command, port: u16) -> ExternalServer {
        ExternalServer::start_until(command, || TcpStream::connect(("127.0.0.1", port)).is_ok())
    }

    /// Runs it until this holds.
    pub fn start_until(command: &mut Command, mut is_up: impl FnMut() -> bool) -> ExternalServer {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut server = ExternalServer(child);
        eventually("it listens", || {
            assert!(server.0.try_wait().unwrap().is_none_or(|status| status.success()), "{command:?} ended");
            is_up()
        });
        server
    }
}

impl Drop for ExternalServer {
    fn drop(&mut self) {
        // One that has ended already needs no signal.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}

/// A port that nobody listens on now.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The path of a server, which may be in no user's PATH; says on stderr what is left out if it is not there.
pub fn found(name: &str, what: &str) -> Option<PathBuf> {
    let places = ["/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin"];
    let path = places.iter().map(|dir| Path::new(dir).join(name)).find(|path| path.is_file());
    if path.is_none() {
        skipped(&format!("{what}: {name} is not installed"));
    }
    path
}

/// A directory that a server's worker, who is another user than root, can read and write.
pub fn open_directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    make_open(dir.path());
    dir
}

/// Lets everybody read and write there.
pub fn make_open(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
}

/// Whether the tests run as root, whose servers need to be told which user to become.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
