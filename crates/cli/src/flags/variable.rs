//! The option `--variable`: sets a variable for options that begin with `--expand-`.

use super::prelude::*;

pub(super) struct VariableFlag;

impl FlagDefinition for VariableFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "variable",
            short: None,
            syntax: FlagSyntax::Value("assignment"),
            category: HelpCategory::General,
            important: false,
            help: "Set a variable for --expand",
            doc: "Sets a variable: \"name=text\", \"name@file\", or \"%NAME\" from the environment, where \
                  \"%NAME=default\" or \"%NAME@file\" gives a default. \"name[1-5]@file\" takes those bytes. \
                  --expand-OPTION replaces \"{{name}}\" in the value of OPTION; functions may be applied, as in \
                  \"{{name:trim:url}}\": trim, json, url, b64 and 64dec.",
            example: "haul --variable id=7 --expand-url 'https://example.com/{{id}}'",
            see_also: "config",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.variable = Some(value.bytes().to_vec());
        Ok(())
    }
}
