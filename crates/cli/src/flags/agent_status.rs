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
            help: "Ask the agent how it is",
            doc: "Prints the agent's socket, process number, age in seconds, idle limit, calls under way, and the calls, \
                  requests and connections so far. Exit 7 when there is none; none is started.",
            example: "haul --agent=/run/user/1000/haul/agent --agent-status",
            see_also: &["agent"],
        }
    }

    fn update(&self, _value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.agent_command = Some(Command::Status);
        Ok(())
    }
}
