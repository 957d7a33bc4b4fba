//! Connects to the agent, and starts it if none listens.
//!
//! ```text
//!  connect ── connected ──────────────────────────────────────▶ use it
//!     │ no listener
//!     ▼
//!  lock ─▶ connect ── another process has started it ─────────▶ use it
//!             │ no listener
//!             ▼
//!          bind + listen ─▶ start `haul` with the listener as standard input ─▶ connect ─▶ use it ─▶ unlock
//! ```
//!
//! The caller itself binds the socket. So it can connect before the agent accepts connections, and
//! need not wait until the agent has started. The lock ensures that simultaneous callers start only
//! one agent.
//!
//! ```no_run
//! use std::time::Duration;
//! use haul_cli::agent::socket::AgentSocketPath;
//! use haul_cli::agent::connect_or_start_agent::connect_or_start;
//!
//! let place = AgentSocketPath::from_path("/run/user/1000/haul/agent").unwrap();
//! let agent = connect_or_start(&place, Duration::from_secs(60)).unwrap();
//! ```

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::socket::{AgentSocketPath, AgentUnavailable};

/// The first argument with which a caller starts the agent's process. It is not for users: standard
/// input must be the listening socket. The socket's path, the idle time in seconds and the path of
/// the program follow.
pub const SERVE_OPTION: &str = "--agent-serve";

/// Connects to the agent, and starts it if none is running. `idle` is the time without a call after
/// which the new agent exits.
///
/// # Errors
/// [`AgentUnavailable`] if the agent cannot be used. The caller then fetches without it.
pub fn connect_or_start(place: &AgentSocketPath, idle: Duration) -> Result<UnixStream, AgentUnavailable> {
    match place.connect() {
        Ok(Some(stream)) => return Ok(stream),
        // A socket that is just being bound is open to others for a moment, in a directory that is
        // not: the holder of the lock has finished that.
        Ok(None) | Err(AgentUnavailable::Unsafe { .. }) => {}
        Err(refusal) => return Err(refusal),
    }
    let lock = place.lock()?;
    if let Some(stream) = place.connect()? {
        return Ok(stream);
    }
    let listener = place.listen()?;
    let failed = |error| AgentUnavailable::System { path: place.socket().to_owned(), error };
    let started = own_program().and_then(|program| start_agent(program.as_os_str(), listener, place, idle));
    if let Err(error) = started {
        place.remove(place.inode().unwrap_or(0));
        return Err(failed(error));
    }
    let stream = place.connect()?;
    drop(lock);
    stream.ok_or_else(|| failed(io::ErrorKind::ConnectionRefused.into()))
}

/// Returns the path of the running executable, from which the agent (the background process that
/// keeps connections between runs) is started.
///
/// # Errors
/// The error of the system call.
#[cfg(not(any(target_os = "openbsd", all(target_os = "linux", not(linux_calls)))))]
pub fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// Returns the path of the running executable, from which the agent (the background process that
/// keeps connections between runs) is started. OpenBSD does not report the path of a process, so
/// this function searches `PATH` for the program's name, as a shell does.
///
/// In the agent's own process, `argv[0]` is `haul-agent`, which is not the program's name. There,
/// the name is taken from the argument after the socket and the idle time.
#[cfg(any(target_os = "openbsd", all(target_os = "linux", not(linux_calls))))]
pub fn own_program() -> io::Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt;

    /// The directories to search if `PATH` is not set: the default directories of execvp(3), and
    /// the directory of OpenBSD's packages.
    const DEFAULT_PATH: &str = "/usr/bin:/bin:/usr/local/bin";

    let mut words = std::env::args_os();
    let mut name = PathBuf::from(words.next().unwrap_or_default());
    if words.next().is_some_and(|word| word == SERVE_OPTION) {
        name = PathBuf::from(words.nth(2).unwrap_or_default());
    }
    if name.components().count() > 1 {
        return name.canonicalize();
    }
    let directories = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    let is_program =
        |path: &PathBuf| path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
    std::env::split_paths(&directories)
        .map(|directory| directory.join(&name))
        .find(is_program)
        .ok_or_else(|| io::ErrorKind::NotFound.into())
        .and_then(|path| path.canonicalize())
}

fn start_agent(program: &OsStr, listener: UnixListener, place: &AgentSocketPath, idle: Duration) -> io::Result<()> {
    // What we inherited is not the agent's: a pipe that it kept open would never end for its
    // reader. We run no other program.
    close_fds::set_fds_cloexec(3, &[]);
    let child = Command::new(program)
        .arg0("haul-agent")
        .arg(SERVE_OPTION)
        .arg(place.socket())
        .arg(idle.as_secs().to_string())
        .arg(program)
        // A call's settings are sent with the call: the environment of the first one must not
        // affect the others.
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // It outlives us, and the process that adopts orphans reaps it.
    drop(child);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::thread;

    #[test]
    fn agent_caller_waits_while_socket_is_bound() {
        let dir = tempfile::tempdir().unwrap();
        set_permissions(dir.path(), Permissions::from_mode(0o700)).unwrap();
        let place = AgentSocketPath::from_path(dir.path().join("agent")).unwrap();
        let lock = place.lock().unwrap();
        let _listener = UnixListener::bind(place.socket()).unwrap();
        set_permissions(place.socket(), Permissions::from_mode(0o755)).unwrap();
        let other = thread::spawn({
            let place = place.clone();
            move || connect_or_start(&place, Duration::from_secs(1)).is_ok()
        });
        // Long enough for it to look; if it is slower it finds all as it should be.
        thread::sleep(Duration::from_millis(100));
        set_permissions(place.socket(), Permissions::from_mode(0o600)).unwrap();
        drop(lock);
        assert!(other.join().unwrap());
    }

    #[test]
    fn agent_socket_open_to_other_users_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        set_permissions(dir.path(), Permissions::from_mode(0o700)).unwrap();
        let place = AgentSocketPath::from_path(dir.path().join("agent")).unwrap();
        let _listener = UnixListener::bind(place.socket()).unwrap();
        set_permissions(place.socket(), Permissions::from_mode(0o620)).unwrap();
        assert!(matches!(connect_or_start(&place, Duration::from_secs(1)), Err(AgentUnavailable::Unsafe { .. })));
    }
}
