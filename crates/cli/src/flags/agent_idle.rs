//! The option `--agent-idle`: sets the time without a call after which an agent started by this run
//! exits.

use super::prelude::*;

pub(super) struct AgentIdleFlag;

impl FlagDefinition for AgentIdleFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "agent-idle",
            short: None,
            syntax: FlagSyntax::Value("seconds"),
            category: HelpCategory::Connection,
            important: false,
            help: "End an idle agent after this long",
            doc: "How long an agent started by this call waits for the next call before it ends, in whole seconds, at \
                  least 1. Default 60.",
            example: "haul --agent --agent-idle 300 https://example.com/",
            see_also: "agent",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        crate::agent::check_available()?;
        let idle = value.seconds()?;
        if idle.as_secs() == 0 {
            return Err(UsageErrorReason::bad_use("an agent waits for a second at least"));
        }
        if idle.subsec_nanos() != 0 {
            return Err(UsageErrorReason::bad_use("an agent waits for whole seconds"));
        }
        args.global.agent_idle = idle;
        Ok(())
    }
}
