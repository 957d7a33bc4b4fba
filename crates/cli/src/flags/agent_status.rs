//! The option `--agent-status`: prints the status of the running agent.

use super::prelude::*;
use crate::agent::status_and_stop_commands::AgentCommand;

pub(super) struct AgentStatusFlag;

impl FlagDefinition for AgentStatusFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "agent-status",
            short: None,
            syntax: FlagSyntax::Once,
            category: HelpCategory::Connection,
            important: false,
            help: "Print the agent's status",
            doc: "Prints the agent's socket, process ID, age in seconds, idle limit, calls in progress, and totals of \
                  calls, requests and connections. Exits with 7 if no agent is running; it does not start one.",
            example: "haul --agent=/run/user/1000/haul/agent --agent-status",
            see_also: "agent",
        }
    }

    fn update(&self, _value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        crate::agent::check_available()?;
        args.agent_command = Some(AgentCommand::Status);
        Ok(())
    }
}
