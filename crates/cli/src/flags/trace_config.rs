//! The option `--trace-config`: sets whether the lines of a trace begin with times and ids.

use super::prelude::*;

pub(super) struct TraceConfigFlag;

impl FlagDefinition for TraceConfigFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "trace-config",
            short: None,
            syntax: FlagSyntax::Value("words"),
            category: HelpCategory::Verbose,
            important: false,
            help: "Choose what a trace shows",
            doc: "What a trace shows, separated by commas: \"time\", \"ids\", \"all\"; a leading \"-\" removes one. \
                  The other words that curl knows (its components) have no effect.",
            example: "haul -v --trace-config time https://example.com/",
            see_also: "trace trace-time",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let trace = &mut args.global.trace;
        trace.is_configured = true;
        for word in value.content()?.split([',', ' ']).filter(|word| !word.is_empty()) {
            let (name, on) = word.strip_prefix('-').map_or((word, true), |name| (name, false));
            match name.to_ascii_lowercase().as_str() {
                "all" => (trace.time, trace.ids) = (on, on),
                "time" => trace.time = on,
                "ids" => trace.ids = on,
                _ => {}
            }
        }
        Ok(())
    }
}
