//! The agent: a background process that keeps connections, TLS sessions and DNS answers between
//! runs of the program. A call is one request that another haul process, the caller, sends to the
//! agent.
//!
//! ```text
//!  haul --agent URL ─▶ client ══ socket ══▶ server ─▶ the engine's worker ─▶ servers
//!        (plan, output descriptor)             └── body ─▶ the descriptor
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`message_encoding`], [`protocol`], [`request`] | the messages between caller and agent, as bytes; no I/O |
//! | [`socket`] | the path of the agent's socket, and the rules of mutual trust |
//! | [`connect_or_start_agent`] | starts the agent: at most one for each socket |
//! | [`client`] | sends a request to the agent, copies the body, and detects that the agent died |
//! | [`status_and_stop_commands`] | `--agent-status` and `--agent-stop` |
//! | `eligibility` | decides which requests go through the agent |
//! | `fetch_via_agent_or_directly`, `sinks_without_agent` | a fetch that continues without the agent when the agent dies |
//! | [`server`] | the agent |
//!
//! `docs/design/agent.md` explains the design.

mod agent_args;
pub mod client;
pub mod connect_or_start_agent;
pub(crate) mod eligibility;
pub(crate) mod fetch_via_agent_or_directly;
pub mod message_encoding;
pub mod protocol;
pub mod relay_output;
pub mod request;
pub mod server;
pub(crate) mod sinks_without_agent;
pub mod socket;
pub mod status_and_stop_commands;

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use crate::usage_error::UsageErrorReason;
pub use agent_args::{AgentArgs, DEFAULT_IDLE_TIME};
use socket::AgentSocketPath;

impl AgentArgs {
    /// Returns the path of the agent's socket.
    ///
    /// # Errors
    /// [`socket::AgentUnavailable`] if no path is given and there is no default path.
    pub fn socket_path(&self) -> Result<AgentSocketPath, socket::AgentUnavailable> {
        match &self.socket {
            Some(path) => AgentSocketPath::from_path(path),
            None => AgentSocketPath::default_under(
                haul::trusted_environment_variables::variable("XDG_RUNTIME_DIR").map(PathBuf::from),
            ),
        }
    }
}

/// Returns no error, because this system can run an agent.
///
/// # Errors
/// None.
#[expect(clippy::unnecessary_wraps, reason = "its twin refuses")]
pub(crate) fn check_available() -> Result<(), UsageErrorReason> {
    Ok(())
}

/// Runs the agent if the first argument is `--agent-serve`, with which a caller starts the agent's
/// process. Standard input is then the listening socket. Returns the exit code, or `None` for any
/// other command line.
#[must_use]
pub fn serve_if_called(words: &[OsString]) -> Option<u8> {
    let mut args = words.iter().skip(1);
    if args.next()? != connect_or_start_agent::SERVE_OPTION {
        return None;
    }
    let place = AgentSocketPath::from_path(args.next()?.clone()).ok()?;
    let idle = Duration::from_secs(args.next()?.to_str()?.parse().ok()?);
    let listener = std::io::stdin().as_fd().try_clone_to_owned().ok()?;
    // No one reads the error of the agent; the next call starts another one.
    Some(server::serve(listener, place, idle).map_or(1, |()| 0))
}
