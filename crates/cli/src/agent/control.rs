//! `--agent-status` and `--agent-stop`.
//!
//! ```no_run
//! use haul_cli::agent::control::{Command, carry_out};
//! use haul_cli::agent::socket::Place;
//!
//! let place = Place::at("/run/user/1000/haul/agent").unwrap();
//! print!("{}", carry_out(Command::Status, &place).unwrap());
//! ```

use super::client::Session;
use super::protocol::{Event, Order};
use super::socket::{Place, Refusal};

/// Commands for a running agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Say how you are.
    Status,
    /// End once the calls under way are done.
    Stop,
}

/// The reason why the agent gave no answer.
#[derive(Debug)]
pub enum NoAnswer {
    /// No agent listens on this socket.
    Nobody(Place),
    /// The socket is not safe to connect to.
    Refused(Refusal),
    /// The agent did not answer.
    Silent(std::io::Error),
}

impl std::fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nobody(place) => write!(f, "no agent runs at {}", place.socket().display()),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Silent(error) => write!(f, "the agent does not answer: {error}"),
        }
    }
}

/// Sends the command to the agent. Returns the text to print.
///
/// # Errors
/// [`NoAnswer`]. No agent is started for this.
pub fn carry_out(command: Command, place: &Place) -> Result<String, NoAnswer> {
    let stream = place.connect().map_err(NoAnswer::Refused)?.ok_or_else(|| NoAnswer::Nobody(place.clone()))?;
    let order = match command {
        Command::Status => Order::Status,
        Command::Stop => Order::Stop,
    };
    match Session::over(stream).ask(&order).map_err(NoAnswer::Silent)? {
        Event::State(text) => Ok(format!("socket: {}\n{text}", place.socket().display())),
        _ => Ok(String::new()),
    }
}
