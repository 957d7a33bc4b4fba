//! Reaching the agent, and starting it when there is none.
//!
//! ```text
//!  connect ── somebody is there ──────────────────────────────▶ use it
//!     │ nobody
//!     ▼
//!  lock ─▶ connect ── somebody else was faster ───────────────▶ use it
//!             │ nobody
//!             ▼
//!          bind + listen ─▶ start `haul`, the listener its standard input ─▶ connect ─▶ use it ─▶ unlock
//! ```
//!
//! The socket is bound by the call, so the call need not wait for the agent to be up: its connection lies in the queue. And
//! with the lock held there is at most one agent a socket, however many calls start at once.
//!
//! ```no_run
//! use std::time::Duration;
//! use haul_cli::agent::socket::Place;
//! use haul_cli::agent::spawn::reach;
//!
//! let place = Place::at("/run/user/1000/haul/agent").unwrap();
//! let agent = reach(&place, Duration::from_secs(60)).unwrap();
//! ```

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::socket::{Place, Refusal};

/// The first argument of the agent's own command line. No user types it: the listener must be standard input.
pub const SERVE: &str = "--agent-serve";

/// The agent; it is started if it is not there, and will end when it was idle for so long.
///
/// # Errors
/// [`Refusal`]: the call goes without it.
pub fn reach(place: &Place, idle: Duration) -> Result<UnixStream, Refusal> {
    if let Some(stream) = place.connect()? {
        return Ok(stream);
    }
    let lock = place.lock()?;
    if let Some(stream) = place.connect()? {
        return Ok(stream);
    }
    let listener = place.listen()?;
    let failed = |error| Refusal::System { path: place.socket().to_owned(), error };
    let started = program().and_then(|program| start(program.as_os_str(), listener, place, idle));
    if let Err(error) = started {
        place.remove(place.inode().unwrap_or(0));
        return Err(failed(error));
    }
    let stream = place.connect()?;
    drop(lock);
    stream.ok_or_else(|| failed(io::ErrorKind::ConnectionRefused.into()))
}

/// The program that we are: it may have been called by another name, and the agent needs none of its manners.
///
/// # Errors
/// The system's.
pub fn program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

fn start(program: &OsStr, listener: UnixListener, place: &Place, idle: Duration) -> io::Result<()> {
    // What we inherited is not the agent's: a pipe that it kept open would never end for its reader. We run no other program.
    close_fds::set_fds_cloexec(3, &[]);
    let child = Command::new(program)
        .arg0("haul-agent")
        .arg(SERVE)
        .arg(place.socket())
        .arg(idle.as_secs().to_string())
        // What a call wants goes with the call: the environment of the first one is no setting of the others.
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // It outlives us, and whoever takes orphans in reaps it.
    drop(child);
    Ok(())
}
