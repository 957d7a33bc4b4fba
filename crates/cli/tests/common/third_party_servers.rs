//! Runs servers of other projects for a test. They are found where Debian installs them, listen on
//! free ports of the loopback interface, and are stopped when dropped.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::{eventually, skipped};

/// A running server of another project, such as nginx. Dropping it stops the server.
pub struct ExternalServer(Child);

impl ExternalServer {
    /// Starts the server, and waits until the port on 127.0.0.1 accepts connections.
    pub fn start(command: &mut Command, port: u16) -> ExternalServer {
        ExternalServer::start_until(command, || TcpStream::connect(("127.0.0.1", port)).is_ok())
    }

    /// Starts the server with this command, and waits until `is_up` returns true.
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

/// Returns the path of a server program, which may be outside the user's PATH. If it is not
/// installed, prints on standard error that `what` is not tested, and returns `None`.
pub fn found(name: &str, what: &str) -> Option<PathBuf> {
    let places = ["/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin"];
    let path = places.iter().map(|dir| Path::new(dir).join(name)).find(|path| path.is_file());
    if path.is_none() {
        skipped(&format!("{what}: {name} is not installed"));
    }
    path
}

/// Creates a directory that every user can read and write, because servers started by root run as
/// another user.
pub fn open_directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    make_open(dir.path());
    dir
}

/// Lets every user read and write this file or directory.
pub fn make_open(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
}

/// Returns `true` if the tests run as root. The configuration of a server must then name the user
/// that the server runs as.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
