//! The option `--output` (`-o`): writes the body to this file.

use haul_policy::file_names_by_system::OsFamily;

use super::prelude::*;
use crate::plan;

pub(super) struct OutputFlag;

impl FlagDefinition for OutputFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "output",
            short: Some('o'),
            syntax: FlagSyntax::Value("file"),
            category: HelpCategory::Output,
            important: true,
            help: "Write to a file",
            doc: "Writes the body of the next URL that has no output yet to FILE; \"-\" is standard output. In FILE, \
                  \"#1\" stands for the current value of the first glob of the URL, \"#2\" for that of the second, \
                  and \"#<name>\" for that of a glob that begins with a name: {<name>a,b}; globs of --upload-file \
                  count as well. \"{scheme}\", \"{host}\", \"{port}\", \"{path}\", \"{name}\" and \"{query}\" stand for \
                  the parts of the URL, decoded and made safe: no part leaves its directory, and an index page is \
                  index.html; --create-dirs makes the directories of '{host}/{path}'. Behind --then, \"#1\", \"{}\" and \"#<name>\", where (?<name>...) is group 1 of the \
                  --extract before it, stand for the value that the URL was made of, with \"_\" for each \"/\"; \
                  without any of them FILE is the output of all pages of the last stage. -o of a stage that feeds a \
                  --then keeps its pages. Two URLs of a run never replace each other's file: the second fails (23), \
                  or gets a number by --no-clobber. A name that ends in a slash is refused (23): use --output-dir \
                  for directories.",
            example: "haul 'http://example.com/[1-3]' -o 'page_#1.html'",
            see_also: "remote-name output-dir create-dirs clobber",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let output = match value.bytes() {
            b"-" => plan::OutputArg::Stdout,
            name if !name.is_empty() && names_directory(name, OsFamily::CURRENT) => {
                return Err(UsageErrorReason::Directory);
            }
            _ => plan::OutputArg::File(value.path()?.into_os_string()),
        };
        args.push_output(output);
        Ok(())
    }
}

/// Returns true if the last component of the name is empty, `.` or `..`, so that the name can only
/// belong to a directory.
fn names_directory(name: &[u8], family: OsFamily) -> bool {
    matches!(name.rsplit(|&byte| family.is_separator(byte)).next(), Some(b"" | b"." | b".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backslash_ends_a_directory_on_windows_alone() {
        for name in ["d/", "d/..", "."] {
            assert!([OsFamily::Unix, OsFamily::Windows].iter().all(|&family| names_directory(name.as_bytes(), family)));
        }
        assert!(names_directory(b"C:\\d\\", OsFamily::Windows) && !names_directory(b"C:\\d\\", OsFamily::Unix));
        assert!(!names_directory(b"d\\f", OsFamily::Windows));
    }
}
