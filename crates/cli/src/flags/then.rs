//! The option `--then`: fetches a URL for each value that `--extract` or `--select` found.

use haul_policy::url_template::UrlTemplate;

use super::prelude::*;

pub(super) struct ThenFlag;

impl FlagDefinition for ThenFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "then",
            short: None,
            syntax: FlagSyntax::Value("template"),
            category: HelpCategory::Extract,
            important: true,
            help: "Fetch a URL for each match",
            doc: "Inserts each new value of the preceding --extract or --select for \"{}\" in TEMPLATE and fetches that URL, \
                  starting at once. Options after it belong to this new stage; options about connecting, verifying, \
                  time limits and retries are inherited, what is sent is not. Values are percent-encoded. A \
                  template that consists of \"{}\" alone takes URLs: relative ones are resolved against the URL of \
                  their page, &amp; in HTML stands for &, fragments are dropped, and what is no http or https URL is \
                  skipped. \"{}\" also stands for the value \
                  in the text of -d and its like (encoded for its form), of --json, -H, -A, -e, -b, --url-query and \
                  -o of the new stage; in a file that one of them names it stands for itself.",
            example: "haul https://example.com/ --extract 'id=([0-9]+)' --then 'https://example.com/item/{}' --extract 'price: (.*)'",
            see_also: "extract select unique",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let template =
            UrlTemplate::parse(value.content()?).map_err(|flaw| UsageErrorReason::bad_use(flaw.to_string()))?;
        if !args.stage().takes_values() {
            return Err(UsageErrorReason::bad_use("there is no --extract or --select before it to take values from"));
        }
        args.next_stage(template);
        Ok(())
    }
}
