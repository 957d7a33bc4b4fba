//! A relay from a Unix socket to a TCP server, so that a test can reach each server of this crate
//! over a Unix socket.
//!
//! ```
//! use std::os::unix::net::UnixStream;
//! use testkit::{origin::Origin, unix_relay::UnixRelay};
//!
//! let origin = Origin::builder().start().unwrap();
//! let relay = UnixRelay::to(origin.http_addr()).unwrap();
//! assert!(UnixStream::connect(relay.path()).is_ok());
//! ```

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

use tempfile::TempDir;

/// A running relay. When it is dropped, it accepts no further connections.
pub struct UnixRelay {
    path: PathBuf,
    stopped: Arc<AtomicBool>,
    /// The directory that contains the Unix socket; removed with the relay.
    _directory: TempDir,
}

impl UnixRelay {
    /// Starts a relay that opens a connection to `server` for each connection to its Unix socket.
    ///
    /// # Errors
    /// The socket cannot be created in the directory for temporary files.
    pub fn to(server: SocketAddr) -> io::Result<UnixRelay> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path)?;
        let stopped = Arc::new(AtomicBool::new(false));
        let is_stopped = Arc::clone(&stopped);
        thread::spawn(move || {
            for client in listener.incoming() {
                if is_stopped.load(SeqCst) {
                    return;
                }
                if let (Ok(client), Ok(server)) = (client, TcpStream::connect(server)) {
                    thread::spawn(move || relay(&client, &server));
                }
            }
        });
        Ok(UnixRelay { path, stopped, _directory: directory })
    }

    /// Returns the path of the Unix socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for UnixRelay {
    fn drop(&mut self) {
        self.stopped.store(true, SeqCst);
        // A connection wakes the thread that accepts.
        let _ = UnixStream::connect(&self.path);
    }
}

/// Copies bytes in both directions until both have ended.
fn relay(client: &UnixStream, server: &TcpStream) {
    thread::scope(|scope| {
        scope.spawn(|| {
            let how = if io::copy(&mut &*client, &mut &*server).is_ok() { Shutdown::Write } else { Shutdown::Both };
            let _ = server.shutdown(how);
        });
        let how = if io::copy(&mut &*server, &mut &*client).is_ok() { Shutdown::Write } else { Shutdown::Both };
        let _ = client.shutdown(how);
    });
}
