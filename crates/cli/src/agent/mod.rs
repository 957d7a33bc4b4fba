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
//! | `fetch_via_agent_or_directly`, `local_fetch_sinks` | a fetch that continues without the agent when the agent dies |
//! | [`server`] | the agent |
//!
//! `docs/design/agent.md` explains the design.

pub mod client;
pub mod connect_or_start_agent;
pub(crate) mod eligibility;
pub(crate) mod fetch_via_agent_or_directly;
pub(crate) mod local_fetch_sinks;
pub mod message_encoding;
pub mod protocol;
pub mod request;
pub mod server;
pub mod socket;
pub mod status_and_stop_commands;

use std::path::PathBuf;
use std::time::Duration;

/// The default time, one minute, that an agent waits for the next call before it exits.
pub const DEFAULT_IDLE_TIME: Duration = Duration::from_secs(60);

/// The values of the options `--agent` and `--agent-idle` of this run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentOptionValues {
    /// The path of the agent's socket; `None` is the default path under `XDG_RUNTIME_DIR`.
    pub socket: Option<PathBuf>,
    /// The time without a call after which the agent exits, if this run starts it. Whole seconds,
    /// at least 1; default [`DEFAULT_IDLE_TIME`].
    pub idle: Duration,
}

impl AgentOptionValues {
    /// Returns the path of the agent's socket.
    ///
    /// # Errors
    /// [`socket::AgentUnavailable`] if no path is given and there is no default path.
    pub fn socket_path(&self) -> Result<socket::AgentSocketPath, socket::AgentUnavailable> {
        match &self.socket {
            Some(path) => socket::AgentSocketPath::from_path(path),
            None => socket::AgentSocketPath::default_under(
                haul::trusted_environment_variables::variable("XDG_RUNTIME_DIR").map(PathBuf::from),
            ),
        }
    }
}
