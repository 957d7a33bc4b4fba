//! The option `--header` (`-H`): adds, replaces or removes a header field of the request.

use super::header_value_parser;
use super::prelude::*;
use crate::parsed_args::{ParsedHeaderOption, TextOrFile};

pub(super) struct HeaderFlag;

impl FlagDefinition for HeaderFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "header",
            short: Some('H'),
            syntax: FlagSyntax::Value("header/@file"),
            category: HelpCategory::Http,
            important: true,
            help: "Send a header",
            doc: "Sends the field \"Name: value\", in place of the one of that name that haul would send. \"Name:\" \
                  removes that field, \"Name;\" sends it empty. \"@file\" reads one field a line. Values with CR, LF \
                  or NUL are refused. Authorization, Cookie and fields that hold keys of well-known services \
                  (X-Api-Key, DD-API-KEY, X-Vault-Token and the like) do not follow a redirect to another origin. In \
                  curl's place only Authorization and Cookie stay. Values of fields whose names look secret are blanked \
                  in the process list.",
            example: "haul -H 'Accept: text/html' -H 'User-Agent:' https://example.com/",
            see_also: "user-agent referer cookie",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        if let Some(header) = read_header_option(value, args, "-H")? {
            args.request().fields.push(header);
        }
        Ok(())
    }
}

/// Parses the value of `-H` or `--proxy-header`. If it is not a header field, adds a warning and
/// returns `None`.
pub(super) fn read_header_option(
    value: FlagValue<'_>,
    args: &mut ParsedArgs,
    option: &str,
) -> Result<Option<ParsedHeaderOption>, UsageErrorReason> {
    Ok(match TextOrFile::new(value.bytes())? {
        TextOrFile::File(path) => Some(ParsedHeaderOption::File(path)),
        TextOrFile::Text(text) => {
            let field = header_value_parser::parse(&text, args.global.persona)?;
            if field.is_none() {
                args.warn(format!("a {option} value does not look like a header; it is left out"));
            }
            field.map(ParsedHeaderOption::Field)
        }
    })
}
