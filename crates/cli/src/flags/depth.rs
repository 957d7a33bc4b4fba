//! The option `--depth`: fetches the links that the last stage extracts, then the links on those
//! pages, and so on.

use super::prelude::*;

/// The largest accepted value of `--depth`. The depth is limited because each level reserves a part
/// of `--max-memory`.
const MAX: u64 = 100;

pub(super) struct DepthFlag;

impl FlagDefinition for DepthFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "depth",
            short: None,
            syntax: FlagSyntax::Value("num"),
            category: HelpCategory::Extract,
            important: false,
            help: "Follow the links of the last stage",
            doc: "Fetches the URLs that the last stage finds with the options of that stage, and the URLs that these \
                  pages give, and so on for NUM levels (at most 100). The values are links, as for a --then \"{}\": \
                  absolute and without fragments. Each is printed once, and each URL is fetched once. Belongs to the \
                  last stage, which needs an --extract, --select or --select-json and has no body.",
            example: "haul --select 'a.next@href' --depth 10 https://example.com/list",
            see_also: "then select extract",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let depth = value.number()?;
        if depth > MAX {
            return Err(UsageErrorReason::bad_use(format!("a depth is at most {MAX}")));
        }
        args.stage().depth = depth as u32;
        Ok(())
    }
}
