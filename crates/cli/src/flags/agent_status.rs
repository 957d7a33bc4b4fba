//! `--agent-status`.

use super::prelude::*;
use crate::agent::control::Command;

pub(super) struct AgentStatus;

impl Flag for AgentStatus {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "agent-status",
            short: None,
            takes: Takes::Once,
            category: Category::Connection,
            important: false,
            help: "Print the agent's status",
            doc: "Prints the agent's socket, process ID, age in seconds, idle limit, calls in progress, and totals of \
                  calls, requests and connections. Exits with 7 if no agent is running; it does not start one.",
            example: "haul --agent=/run/user/1000/haul/agent --agent-status",
            see_also: &["agent"],
        }
    }

    fn update(&self, _value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.agent_command = Some(Command::Status);
        Ok(())
    }
}
