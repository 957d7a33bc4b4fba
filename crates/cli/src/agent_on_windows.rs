//! The agent on Windows, where it does not exist: its options are refused, and `HAUL_AGENT` has no
//! effect but a warning.

#[path = "agent/agent_args.rs"]
mod agent_args;

use std::ffi::OsString;
use std::path::Path;

use crate::usage_error::UsageErrorReason;
pub use agent_args::{AgentArgs, DEFAULT_IDLE_TIME};

/// Returns an error for an option of the agent, because haul has no agent on Windows.
///
/// # Errors
/// Always.
pub(crate) fn check_available() -> Result<(), UsageErrorReason> {
    Err(UsageErrorReason::Refused("Windows has no agent; one run with many URLs shares its connections"))
}

/// Returns `None`, because no process is an agent.
#[must_use]
pub fn serve_if_called(_words: &[OsString]) -> Option<u8> {
    None
}

/// The commands to a running agent, which does not exist on Windows.
pub mod status_and_stop_commands {
    use haul::ErrorKind;

    use super::AgentArgs;
    pub use super::agent_args::AgentCommand;
    use crate::program_persona::ProgramPersona;

    /// Returns the exit code for an agent that does not exist. Never called, because the options are
    /// refused.
    #[must_use]
    pub fn run(_persona: ProgramPersona, _command: AgentCommand, _args: Option<AgentArgs>) -> u8 {
        ErrorKind::Setup.exit_code()
    }
}

/// Decides which requests go through the agent: none, because haul has no agent on Windows.
pub(crate) mod eligibility {
    use std::sync::Once;

    use haul::sink::file::FileOptions;
    use haul::transfer::TransferOutcome;
    use haul::{Client, RequestOptions, Result};

    use super::Path;
    use crate::file_and_environment_access::print_error_line;
    use crate::plan::{GlobalArgs, UrlGroup};
    use crate::run::report::progress::ProgressReporter;

    /// Returns `None`. Prints a warning, once in a run, if `HAUL_AGENT` asks for an agent.
    ///
    /// # Errors
    /// None.
    #[expect(clippy::unnecessary_wraps, reason = "its twin can fail")]
    pub(crate) fn fetch(
        _client: &Client,
        global: &GlobalArgs,
        _group: &UrlGroup,
        _url: &str,
        _request: &RequestOptions,
        _file: Option<(&Path, FileOptions)>,
        _progress: &ProgressReporter,
    ) -> Result<Option<TransferOutcome>> {
        static WARNING: Once = Once::new();
        if global.agent.is_some() && !global.silent {
            WARNING.call_once(|| print_error_line("Warning: HAUL_AGENT has no effect: Windows has no agent"));
        }
        Ok(None)
    }
}
