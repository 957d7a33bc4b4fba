//! Commands to a running agent: `--agent-status` and `--agent-stop`.
//!
//! ```no_run
//! use haul_cli::agent::status_and_stop_commands::{AgentCommand, run_command};
//! use haul_cli::agent::socket::AgentSocketPath;
//!
//! let place = AgentSocketPath::from_path("/run/user/1000/haul/agent").unwrap();
//! print!("{}", run_command(AgentCommand::Status, &place).unwrap());
//! ```

use std::io::Write;

pub use super::agent_args::AgentCommand;
use super::client::AgentConnection;
use super::protocol::{AgentMessage, CallerMessage};
use super::socket::{AgentSocketPath, AgentUnavailable};
use super::{AgentArgs, DEFAULT_IDLE_TIME};
use crate::program_persona::ProgramPersona;

/// The reason why a command to the agent (a background process that sends requests for other haul
/// processes) failed.
#[derive(Debug)]
pub enum AgentControlError {
    /// No agent runs: the socket with this path has no listener.
    Nobody(AgentSocketPath),
    /// The agent's socket cannot be used, for example because other users can reach it.
    Refused(AgentUnavailable),
    /// The connection to the agent failed before the agent answered the command.
    Silent(std::io::Error),
}

impl std::fmt::Display for AgentControlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nobody(place) => write!(f, "no agent runs at {}", place.socket().display()),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Silent(error) => write!(f, "the agent does not answer: {error}"),
        }
    }
}

/// Sends the command to a running agent, and returns the text to print. Never starts an agent.
///
/// # Errors
/// The agent does not run, cannot be trusted, or did not answer.
pub fn run_command(command: AgentCommand, place: &AgentSocketPath) -> Result<String, AgentControlError> {
    let stream =
        place.connect().map_err(AgentControlError::Refused)?.ok_or_else(|| AgentControlError::Nobody(place.clone()))?;
    let order = match command {
        AgentCommand::Status => CallerMessage::Status,
        AgentCommand::Stop => CallerMessage::Stop,
    };
    match AgentConnection::from_socket(stream).send_and_receive(&order).map_err(AgentControlError::Silent)? {
        AgentMessage::State(text) => Ok(format!("socket: {}\n{text}", place.socket().display())),
        _ => Ok(String::new()),
    }
}

/// Sends the command to the agent of `--agent` or `HAUL_AGENT`, and prints the answer. Returns the
/// exit code of the program.
#[must_use]
pub fn run(persona: ProgramPersona, command: AgentCommand, args: Option<AgentArgs>) -> u8 {
    let variable = || haul::trusted_environment_variables::variable("HAUL_AGENT");
    let args = args.or_else(|| crate::build_plan::agent_from_variable(variable()));
    let args = args.unwrap_or(AgentArgs { socket: None, idle: DEFAULT_IDLE_TIME });
    let answer = args.socket_path().map_err(AgentControlError::Refused).and_then(|place| run_command(command, &place));
    match answer {
        Ok(text) => {
            let _ = std::io::stdout().write_all(text.as_bytes());
            0
        }
        Err(error) => {
            let code = if matches!(error, AgentControlError::Refused(_)) { 2 } else { 7 };
            let _ = writeln!(std::io::stderr(), "{}: ({code}) {error}", persona.name());
            code
        }
    }
}
