//! The option `--rate-host`: limits how often transfers begin on the same host.

use super::prelude::*;
use super::rate::parse_interval;

pub(super) struct RateHostFlag;

impl FlagDefinition for RateHostFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "rate-host",
            short: None,
            syntax: FlagSyntax::Value("rate"),
            category: HelpCategory::Limits,
            important: false,
            help: "Maximum rate at which transfers start on a host",
            doc: "Starts at most N transfers on each host in a period: \"2/s\", \"3/m\", \"5/h\", as --rate. The host \
                  is that of the URL as it was given, with its port. It holds over the whole run: lists, stages and \
                  groups, in parallel or not. A retry counts, a redirect does not. Other hosts are not delayed. haul \
                  remembers 65,536 hosts.",
            example: "haul --rate-host 2/s --input-file urls.txt",
            see_also: "rate parallel-max-host",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.host_pace = Some(parse_interval(value.content()?)?);
        Ok(())
    }
}
