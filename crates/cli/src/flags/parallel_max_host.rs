//! The option `--parallel-max-host`: sets the maximum number of connections to one host.

use super::prelude::*;

pub(super) struct ParallelMaxHostFlag;

impl FlagDefinition for ParallelMaxHostFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "parallel-max-host",
            short: None,
            syntax: FlagSyntax::Value("num"),
            category: HelpCategory::Parallel,
            important: false,
            help: "Maximum number of connections to a host",
            doc: "Number of connections to one host, from 1 to 65535. Without it, haul begins with 6, opens up to 50 \
                  while that makes the run faster, and goes back to 6 when the host answers 429 or 503, or refuses \
                  or resets connections. haul curl has no limit by default.",
            example: "haul --parallel-max-host 20 'https://example.com/[1-900]'",
            see_also: "parallel-max pipeline",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.parallel_max_host = Some(match value.number() {
            // To curl that is no limit.
            Ok(0 | 65_536..) if args.global.persona.is_curl() => usize::MAX,
            _ => value.number_in(1, 65_535)? as usize,
        });
        Ok(())
    }
}
