//! `--agent-stop`.

use super::prelude::*;
use crate::agent::control::Command;

pub(super) struct AgentStop;

impl Flag for AgentStop {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "agent-stop",
            short: None,
            takes: Takes::Once,
            category: Category::Connection,
            important: false,
            help: "Stop the agent",
            doc: "Stops the agent once the calls in progress are done. Exits with 7 if no agent is running.",
            example: "haul --agent-stop",
            see_also: &["agent"],
        }
    }

    fn update(&self, _value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.agent_command = Some(Command::Stop);
        Ok(())
    }
}
