//! `--agent`.

use super::prelude::*;
use crate::agent::{AgentArgs, IDLE};

pub(super) struct Agent;

impl Flag for Agent {
    fn spec(&self) -> &'static Spec {
        &Spec {
            long: "agent",
            short: None,
            takes: Takes::Optional("socket"),
            category: Category::Connection,
            important: false,
            help: "Keep connections warm between calls",
            doc: "Lets a small background process of your own carry the request out and keep its connections, TLS sessions and \
                  names for the next call. It is started when there is none. SOCKET is where it is reached, by default \
                  haul/agent under XDG_RUNTIME_DIR; its directory must be yours alone. The variable HAUL_AGENT does the \
                  same. What cannot go that way (uploads, many URLs, -v) goes without.",
            example: "haul --agent=/run/user/1000/haul/agent https://example.com/",
            see_also: &["agent-idle", "agent-status", "agent-stop"],
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut LowArgs) -> Result<(), Reason> {
        args.global.agent = Some(AgentArgs {
            socket: match value {
                FlagValue::Absent => None,
                value => Some(value.path()?),
            },
            idle: IDLE,
        });
        Ok(())
    }
}
