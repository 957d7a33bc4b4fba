//! The option `--path-as-is`: does not resolve `..` in the paths of URLs.

use super::prelude::*;

pub(super) struct PathAsIsFlag;

impl FlagDefinition for PathAsIsFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "path-as-is",
            short: None,
            syntax: FlagSyntax::Switch,
            category: HelpCategory::Http,
            important: false,
            help: "Do not resolve \"..\" in paths",
            doc: "Sends \"/./\" and \"/../\" in the path of a URL as given, instead of resolving them first.",
            example: "haul --path-as-is https://example.com/../../etc/passwd",
            see_also: "globoff",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.transfer().options.path_as_is = value.is_on();
        Ok(())
    }
}
