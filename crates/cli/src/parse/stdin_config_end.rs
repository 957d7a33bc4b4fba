//! Finds the end of a config file on standard input. After an option such as `data = @-`, the rest
//! of standard input is content: curl reads a file as soon as it meets the option, and programs
//! write options and content into one pipe.

use crate::config_file::ConfigFileEntry;
use crate::flags;

/// Returns true if the option of this config file line reads the rest of standard input as content.
/// No more options can follow then.
pub(super) fn config_takes_stdin(entry: &ConfigFileEntry<'_>) -> bool {
    let Some(value) = entry.value else { return false };
    // Nearly every line, and there may be millions.
    if memchr::memmem::find(value, b"@-").is_none() && memchr::memmem::find(value, b"<-").is_none() {
        return false;
    }
    let flag = match entry.option {
        [b'-', letter] => flags::find_short(*letter),
        name => flags::find_long(name.strip_prefix(b"--").unwrap_or(name)),
    };
    match flag.map(|flag| flag.spec().long) {
        Some("data" | "data-ascii" | "data-binary" | "header" | "json" | "proxy-header" | "write-out") => {
            value == b"@-"
        }
        // NAME@FILE; behind a «=» it is text.
        Some("data-urlencode" | "url-query" | "variable") => value.ends_with(b"@-") && !value.contains(&b'='),
        Some("form") => {
            let file = value.splitn(2, |&byte| byte == b'=').nth(1).unwrap_or_default();
            let name = file.split(|&byte| byte == b';').next().unwrap_or_default();
            matches!(name, b"@-" | b"<-")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config_file::ConfigFileReader;

    #[test]
    fn config_options_that_read_stdin_are_recognized() {
        for (line, is_taken) in [
            ("data-binary = \"@-\"", true),
            ("--data-binary @-", true),
            ("-d @-", true),
            ("-H \"@-\"", true),
            ("form = \"f=@-;filename=a\"", true),
            ("-F f=<-", true),
            ("data-urlencode = \"name@-\"", true),
            ("data-urlencode = \"a=b@-\"", false),
            ("data-raw = \"@-\"", false),
            ("data = \"@-x\"", false),
            ("url = \"http://h/@-\"", false),
            ("header = \"X: @-\"", false),
            ("form-string = \"f=@-\"", false),
            ("upload-file = \"-\"", false),
        ] {
            let mut reader = ConfigFileReader::new(line.as_bytes());
            let entry = reader.next_entry().unwrap().unwrap();
            assert_eq!(config_takes_stdin(&entry), is_taken, "{line}");
        }
    }
}
