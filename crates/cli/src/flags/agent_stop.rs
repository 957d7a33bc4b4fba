//! The option `--agent-stop`: ends the running agent once its transfers are complete.

use super::prelude::*;
use crate::agent::status_and_stop_commands::AgentCommand;

pub(super) struct AgentStopFlag;

impl FlagDefinition for AgentStopFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "agent-stop",
            short: None,
            syntax: FlagSyntax::Once,
            category: HelpCategory::Connection,
            important: false,
            help: "Stop the agent",
            doc: "Stops the agent once the calls in progress are done. Exits with 7 if no agent is running.",
            example: "haul --agent-stop",
            see_also: "agent",
        }
    }

    fn update(&self, _value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        crate::agent::check_available()?;
        args.agent_command = Some(AgentCommand::Stop);
        Ok(())
    }
}
