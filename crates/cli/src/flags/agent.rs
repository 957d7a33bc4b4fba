//! The option `--agent`: sends the request through the agent, a background process that keeps
//! connections open.

use super::prelude::*;
use crate::agent::{AgentArgs, DEFAULT_IDLE_TIME};

pub(super) struct AgentFlag;

impl FlagDefinition for AgentFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "agent",
            short: None,
            syntax: FlagSyntax::Optional("socket"),
            category: HelpCategory::Connection,
            important: false,
            help: "Keep connections warm between calls",
            doc: "Hands the request to a small background process of your own, which keeps connections, TLS sessions \
                  and DNS answers for the next call. The process is started if it is not running. SOCKET is where to \
                  reach it, by default haul/agent under XDG_RUNTIME_DIR; its directory must be accessible to you \
                  alone. Setting HAUL_AGENT has the same effect. What the agent cannot do (uploads, many URLs, -v) \
                  runs without it.",
            example: "haul --agent=/run/user/1000/haul/agent https://example.com/",
            see_also: "agent-idle agent-status agent-stop",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        crate::agent::check_available()?;
        args.global.agent = Some(AgentArgs {
            socket: match value {
                FlagValue::Absent => None,
                value => Some(value.path()?),
            },
            idle: DEFAULT_IDLE_TIME,
        });
        Ok(())
    }
}
