//! The arguments for the agent (the values of its options), on all systems.

use std::path::PathBuf;
use std::time::Duration;

/// The default time, one minute, that an agent waits for the next call before it exits.
pub const DEFAULT_IDLE_TIME: Duration = Duration::from_secs(60);

/// The values of the options `--agent` and `--agent-idle` of this run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentArgs {
    /// The path of the agent's socket; `None` is the default path under `XDG_RUNTIME_DIR`.
    pub socket: Option<PathBuf>,
    /// The time without a call after which the agent exits, if this run starts it. Whole seconds,
    /// at least 1; default [`DEFAULT_IDLE_TIME`].
    pub idle: Duration,
}

/// A command that the user sends by an option to a running agent: the background process that keeps
/// connections for later runs of haul.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentCommand {
    /// `--agent-status`: asks for the agent's status.
    Status,
    /// `--agent-stop`: asks the agent to exit once its transfers are complete.
    Stop,
}
