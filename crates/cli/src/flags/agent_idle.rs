//! `--agent-idle`.

use super::prelude::*;

pub(super) struct AgentIdle;

impl Flag for AgentIdle {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "agent-idle",
            short: None,
            takes: Takes::Value("seconds"),
            category: Category::Connection,
            important: false,
            help: "End an idle agent after this long",
            doc: "How long an agent started by this call waits for the next call before it ends, in whole seconds, at \
                  least 1. Default 60.",
            example: "haul --agent --agent-idle 300 https://example.com/",
            see_also: &["agent"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        let idle = value.seconds()?;
        if idle.as_secs() == 0 {
            return Err(Reason::bad_use("an agent waits for a second at least"));
        }
        args.global.agent_idle = idle;
        Ok(())
    }
}
