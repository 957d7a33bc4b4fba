//! The path of the agent's socket, and the checks by which the caller and the agent trust its
//! directory and each other.
//!
//! | checked | requirement |
//! |---|---|
//! | directory | a directory of this user (no link to one), mode `0700` or less; created if it is missing |
//! | socket | a socket of this user (no link to one), mode `0600` or less |
//! | peer | a process of this user |
//!
//! If a requirement is not met, the caller does not use the agent. A socket on which no process
//! listens is replaced.
//!
//! ```
//! use haul_cli::agent::socket::AgentSocketPath;
//!
//! let dir = tempfile::tempdir().unwrap();
//! let place = AgentSocketPath::from_path(dir.path().join("mine/agent")).unwrap();
//! assert!(place.connect().unwrap().is_none(), "nobody is there yet");
//! let listener = place.listen().unwrap();
//! assert!(place.connect().unwrap().is_some());
//! # drop(listener);
//! ```

use std::fmt;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};

/// The file name of the agent's socket in its default directory.
const SOCKET_NAME: &str = "agent";
/// The longest wait for the [`AgentStartLock`] while another process holds it.
const STUCK_LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// The name of the socket's default directory, which is below `XDG_RUNTIME_DIR`.
const DIRECTORY_NAME: &str = "haul";

/// The reason why a caller fetches without the agent (a background process that sends requests for
/// other haul processes).
#[derive(Debug)]
pub enum AgentUnavailable {
    /// There is no default path: `XDG_RUNTIME_DIR` is not set or is not absolute.
    NoDefaultPath,
    /// The path cannot name a socket: it has no parent directory or no file name.
    NoSocketPath(PathBuf),
    /// Another user owns or could reach the socket or its directory.
    Unsafe {
        /// The socket file or directory that another user owns or could reach.
        path: PathBuf,
        /// The reason why the file or directory is unsafe, as words for the error message.
        why: &'static str,
    },
    /// A system call on the agent's socket or its directory failed.
    System {
        /// The socket file or directory on which the system call was made.
        path: PathBuf,
        /// The error that the system call returned.
        error: io::Error,
    },
}

impl fmt::Display for AgentUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDefaultPath => {
                f.write_str("XDG_RUNTIME_DIR is not set: name a socket, as in --agent=/run/user/me/haul/agent")
            }
            Self::NoSocketPath(path) => write!(f, "{} cannot be a socket's path", path.display()),
            Self::Unsafe { path, why } => write!(f, "{} {why}", path.display()),
            Self::System { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for AgentUnavailable {}

/// The path of the Unix socket of the agent (the background process that keeps connections between
/// runs), in a directory that other users cannot enter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSocketPath {
    socket: PathBuf,
    directory: PathBuf,
}

impl AgentSocketPath {
    /// Returns the socket path for `path`. A relative path is resolved against the working
    /// directory.
    ///
    /// # Errors
    /// [`AgentUnavailable::NoSocketPath`] if `path` cannot name a socket.
    pub fn from_path(path: impl Into<PathBuf>) -> Result<Self, AgentUnavailable> {
        let path = path.into();
        let absolute = std::path::absolute(&path).map_err(|_| AgentUnavailable::NoSocketPath(path.clone()))?;
        match (absolute.parent(), absolute.file_name()) {
            (Some(directory), Some(_)) => Ok(Self { directory: directory.to_owned(), socket: absolute }),
            _ => Err(AgentUnavailable::NoSocketPath(path)),
        }
    }

    /// Returns the default path, `haul/agent` under `XDG_RUNTIME_DIR`, which must be absolute.
    ///
    /// # Errors
    /// [`AgentUnavailable::NoDefaultPath`] if `runtime`, the value of `XDG_RUNTIME_DIR`, is `None` or
    /// relative. `/tmp` is no alternative, because every user can write to it.
    pub fn default_under(runtime: Option<PathBuf>) -> Result<Self, AgentUnavailable> {
        let runtime = runtime.filter(|runtime| runtime.is_absolute()).ok_or(AgentUnavailable::NoDefaultPath)?;
        Self::from_path(runtime.join(DIRECTORY_NAME).join(SOCKET_NAME))
    }

    /// Returns the path of the agent's socket file.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Connects to the agent. Returns `None` if no agent is running.
    ///
    /// # Errors
    /// [`AgentUnavailable`] if the directory, the socket or the peer cannot be trusted.
    pub fn connect(&self) -> Result<Option<UnixStream>, AgentUnavailable> {
        if !self.check_directory()? || !self.check_socket()? {
            return Ok(None);
        }
        match UnixStream::connect(&self.socket) {
            Ok(stream) => {
                check_peer(&stream, &self.socket)?;
                Ok(Some(stream))
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound) => {
                Ok(None)
            }
            Err(error) => Err(self.system_error(error)),
        }
    }

    /// Waits for the [`AgentStartLock`], which lets this process start the agent. If many callers
    /// come at once, one of them starts the agent and the others connect to it. Creates the
    /// directory if it does not exist. The wait ends with an error after ten seconds, in case the
    /// holder of the lock is suspended.
    ///
    /// # Errors
    /// [`AgentUnavailable`] if the directory cannot be trusted, or the wait times out.
    pub fn lock(&self) -> Result<AgentStartLock, AgentUnavailable> {
        self.lock_within(STUCK_LOCK_TIMEOUT)
    }

    fn lock_within(&self, limit: Duration) -> Result<AgentStartLock, AgentUnavailable> {
        let until = Instant::now() + limit;
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(lock) = self.try_lock()? {
                return Ok(lock);
            }
            if Instant::now() >= until {
                let message =
                    "another call holds its lock: it has stopped while it started the agent; end that process";
                return Err(self.system_error(io::Error::new(io::ErrorKind::TimedOut, message)));
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// Acquires the [`AgentStartLock`] without waiting. Returns `None` while another process holds
    /// it.
    ///
    /// # Errors
    /// [`AgentUnavailable`] if the directory cannot be trusted, or a system call fails.
    pub fn try_lock(&self) -> Result<Option<AgentStartLock>, AgentUnavailable> {
        self.make_directory()?;
        let mut name = self.socket.clone().into_os_string();
        name.push(".lock");
        let path = PathBuf::from(name);
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = open(&path, flags, Mode::from_raw_mode(0o600)).map_err(|error| self.system_error(error.into()))?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(AgentStartLock { _file: file })),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                Err(error) => return Err(self.system_error(error.into())),
            }
        }
    }

    /// Binds the agent's socket and listens on it. Replaces a socket file on which no process
    /// listens. Only the holder of the [`AgentStartLock`] may call this, after
    /// [`AgentSocketPath::connect`] found no agent.
    ///
    /// # Errors
    /// [`AgentUnavailable`] if the directory cannot be trusted, or the socket cannot be bound.
    pub fn listen(&self) -> Result<UnixListener, AgentUnavailable> {
        self.make_directory()?;
        if self.check_socket()? {
            fs::remove_file(&self.socket).map_err(|error| self.system_error(error))?;
        }
        let listener = UnixListener::bind(&self.socket).map_err(|error| self.system_error(error))?;
        // No other user gets through the directory between these two calls.
        fs::set_permissions(&self.socket, fs::Permissions::from_mode(0o600))
            .map_err(|error| self.system_error(error))?;
        Ok(listener)
    }

    /// Removes the agent's socket file, but only if it has this inode: another agent may have
    /// replaced the file by its own.
    pub fn remove(&self, inode: u64) {
        if fs::symlink_metadata(&self.socket).is_ok_and(|metadata| metadata.ino() == inode) {
            // Where it cannot be removed it is stale, and the next call replaces it.
            let _ = fs::remove_file(&self.socket);
        }
    }

    /// Returns the inode of the agent's socket file, to be passed to [`AgentSocketPath::remove`].
    /// Returns `None` if there is no such file.
    #[must_use]
    pub fn inode(&self) -> Option<u64> {
        fs::symlink_metadata(&self.socket).ok().map(|metadata| metadata.ino())
    }

    fn make_directory(&self) -> Result<(), AgentUnavailable> {
        if !self.check_directory()? {
            match fs::DirBuilder::new().mode(0o700).create(&self.directory) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(self.system_error(error)),
                _ => {}
            }
            // Whoever made it: it must be as it must be.
            self.check_directory()?;
        }
        Ok(())
    }

    /// Checks that only this user can enter the directory of the agent's socket. Returns false if
    /// the directory does not exist.
    fn check_directory(&self) -> Result<bool, AgentUnavailable> {
        let unsafe_for = |why| Err(AgentUnavailable::Unsafe { path: self.directory.clone(), why });
        let metadata = match fs::symlink_metadata(&self.directory) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(AgentUnavailable::System { path: self.directory.clone(), error }),
        };
        match () {
            () if !metadata.is_dir() => unsafe_for("is no directory (a link to one will not do)"),
            () if metadata.uid() != our_uid() => unsafe_for("belongs to another user"),
            () if metadata.mode() & 0o077 != 0 => unsafe_for("is open to others: its mode must be 0700"),
            () => Ok(true),
        }
    }

    /// Checks that the agent's socket file belongs to this user. Returns false if the file does not
    /// exist.
    fn check_socket(&self) -> Result<bool, AgentUnavailable> {
        let unsafe_for = |why| Err(AgentUnavailable::Unsafe { path: self.socket.clone(), why });
        let metadata = match fs::symlink_metadata(&self.socket) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(self.system_error(error)),
        };
        match () {
            () if !metadata.file_type().is_socket() => unsafe_for("is no socket"),
            () if metadata.uid() != our_uid() => unsafe_for("belongs to another user"),
            () if metadata.mode() & 0o077 != 0 => unsafe_for("is open to others: its mode must be 0600"),
            () => Ok(true),
        }
    }

    fn system_error(&self, error: io::Error) -> AgentUnavailable {
        AgentUnavailable::System { path: self.socket.clone(), error }
    }
}

/// The lock that a process holds while it starts or ends the agent. Dropping the value releases the
/// lock. The lock file is never removed: another process that waits for the lock would otherwise
/// get a lock on the removed file.
#[derive(Debug)]
pub struct AgentStartLock {
    _file: rustix::fd::OwnedFd,
}

fn our_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Checks that the process at the other end of the agent's socket runs as this user.
///
/// # Errors
/// [`AgentUnavailable::Unsafe`] if the peer is another user's process.
pub fn check_peer(stream: impl AsFd, socket: &Path) -> Result<(), AgentUnavailable> {
    let refused = |why| Err(AgentUnavailable::Unsafe { path: socket.to_owned(), why });
    match peer_uid(stream) {
        Ok(uid) if uid == our_uid() => Ok(()),
        Ok(_) => refused("belongs to another user"),
        Err(_) => refused("does not report its user"),
    }
}

/// Returns the user ID of the process at the other end of a connected Unix socket.
#[cfg(target_os = "linux")]
fn peer_uid(stream: impl AsFd) -> std::io::Result<u32> {
    Ok(rustix::net::sockopt::socket_peercred(stream)?.uid.as_raw())
}

#[cfg(not(target_os = "linux"))]
fn peer_uid(stream: impl AsFd) -> std::io::Result<u32> {
    Ok(nix::unistd::getpeereid(stream)?.0.as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_start_lock_held_too_long_is_error() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let place = AgentSocketPath::from_path(dir.path().join("agent")).unwrap();
        let held = place.lock().unwrap();
        let refusal = place.lock_within(Duration::ZERO).unwrap_err();
        assert!(refusal.to_string().contains("holds its lock"), "{refusal}");
        drop(held);
        assert!(place.lock_within(Duration::ZERO).is_ok());
    }
}
