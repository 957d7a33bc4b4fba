//! The option `--select-json`: prints values of JSON documents instead of the body.

use super::prelude::*;

pub(super) struct SelectJsonFlag;

impl FlagDefinition for SelectJsonFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "select-json",
            short: None,
            syntax: FlagSyntax::Value("jsonpath"),
            category: HelpCategory::Extract,
            important: true,
            help: "Print values of JSON instead of bodies",
            doc: "Prints each value that the JSONPath (RFC 9535) selects, one a line: strings as they are, other values \
                  as compact JSON; empty strings are left out except with --jsonl and --csv. A body is one JSON \
                  document, or several one after the other, such as lines of JSON; each is searched when it is \
                  complete. A document may take a quarter of --max-memory. A body that is not JSON fails with 61, after the values before the error. Several \
                  in a stage are searched for in turn. An --extract in the same stage is searched for in each value.",
            example: "haul --select-json '$.items[*].name' https://example.com/api",
            see_also: "select extract then max-memory",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.stage().select_json.push(value.content()?.to_owned());
        Ok(())
    }
}
