//! Checks the output file that a record of a list names.

use std::fmt;
use std::path::PathBuf;

use haul_policy::file_names_by_system::OsFamily;

/// The reason why a record may not write to the file that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputPathFault {
    /// The file name is empty, or ends in a slash.
    Empty,
    /// The path is absolute.
    Absolute,
    /// A component of the path is `..`.
    Climbs,
    /// A component of the path begins with a dot.
    Hidden,
    /// The path contains a control character.
    Control,
    /// A component of the path has more than 255 bytes, or the whole path more than 4,000.
    TooLong,
    /// A component of the path is no safe file name on Windows: it is the name of a device,
    /// contains a character that is not allowed in names, or may be the short name of another file.
    Reserved,
}

impl fmt::Display for OutputPathFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OutputPathFault::Empty => "the name of the file is empty",
            OutputPathFault::Absolute => "an absolute path is refused; use a path below --output-dir",
            OutputPathFault::Climbs => "\"..\" is refused; use a path below --output-dir",
            OutputPathFault::Hidden => "a name that begins with a dot is refused",
            OutputPathFault::Control => "control characters are refused",
            OutputPathFault::TooLong => "the path is too long",
            OutputPathFault::Reserved => {
                "no safe name on Windows; avoid <>:\"|?*, ~ before a digit, a dot or space at the end, and names of devices"
            }
        })
    }
}

/// Parses a relative path that must not leave the directory to which it is relative.
///
/// ```
/// use haul_cli::record_input::{OutputPathFault, parse_output_path};
///
/// assert_eq!(parse_output_path("a/b.json").unwrap().to_str(), Some("a/b.json"));
/// assert_eq!(parse_output_path("a/../../x"), Err(OutputPathFault::Climbs));
/// assert_eq!(parse_output_path("/etc/passwd"), Err(OutputPathFault::Absolute));
/// ```
///
/// # Errors
/// The path is absolute, has a component `..` or a hidden one, or cannot be the name of a file.
pub fn parse_output_path(text: &str) -> Result<PathBuf, OutputPathFault> {
    check_output_path(text, OsFamily::CURRENT).map(|()| text.into())
}

/// Checks that a record may write to the path `text`, by the rules of this family of operating
/// systems.
fn check_output_path(text: &str, family: OsFamily) -> Result<(), OutputPathFault> {
    let is_separator = |c: char| c == '/' || c == '\\' && family == OsFamily::Windows;
    if text.is_empty() || text.ends_with(is_separator) {
        return Err(OutputPathFault::Empty);
    }
    if text.starts_with(is_separator) {
        return Err(OutputPathFault::Absolute);
    }
    if text.len() > 4000 {
        return Err(OutputPathFault::TooLong);
    }
    if text.chars().any(char::is_control) {
        return Err(OutputPathFault::Control);
    }
    for component in text.split(is_separator) {
        match component {
            "" => {}
            ".." => return Err(OutputPathFault::Climbs),
            _ if component.starts_with('.') => return Err(OutputPathFault::Hidden),
            _ if component.len() > 255 => return Err(OutputPathFault::TooLong),
            // This includes the colon of `C:a`.
            _ if *family.file_name(component.as_bytes()) != *component.as_bytes() => {
                return Err(OutputPathFault::Reserved);
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_path_stays_inside_its_directory() {
        for good in ["a", "a/b/c.txt", "a//b", "\u{e9}", "-x", "con"] {
            assert_eq!(parse_output_path(good).unwrap().to_str(), Some(good));
        }
        for (bad, fault) in [
            ("", OutputPathFault::Empty),
            ("a/", OutputPathFault::Empty),
            ("/a", OutputPathFault::Absolute),
            ("..", OutputPathFault::Climbs),
            ("a/../b", OutputPathFault::Climbs),
            (".", OutputPathFault::Hidden),
            ("./a", OutputPathFault::Hidden),
            (".bashrc", OutputPathFault::Hidden),
            ("a/.ssh/x", OutputPathFault::Hidden),
            ("a\nb", OutputPathFault::Control),
            ("a\0", OutputPathFault::Control),
        ] {
            assert_eq!(parse_output_path(bad), Err(fault), "{bad:?}");
        }
        assert_eq!(parse_output_path(&"x".repeat(256)), Err(OutputPathFault::TooLong));
        assert_eq!(parse_output_path(&"x/".repeat(2001)), Err(OutputPathFault::Empty));
        assert_eq!(parse_output_path(&("x/".repeat(2001) + "x")), Err(OutputPathFault::TooLong));
    }

    #[test]
    fn windows_output_path_names_no_drive_or_device() {
        let check = |text: &str| check_output_path(text, OsFamily::Windows);
        for good in ["a", "a/b\\c.txt", "a//b", "\u{e9}", "-x", "console"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (bad, fault) in [
            ("a\\", OutputPathFault::Empty),
            ("\\a", OutputPathFault::Absolute),
            ("\\\\server\\share", OutputPathFault::Absolute),
            ("a\\..\\b", OutputPathFault::Climbs),
            ("a\\.ssh\\x", OutputPathFault::Hidden),
            ("C:\\a", OutputPathFault::Reserved),
            ("C:a", OutputPathFault::Reserved),
            ("a:stream", OutputPathFault::Reserved),
            ("a/con", OutputPathFault::Reserved),
            ("nul.txt", OutputPathFault::Reserved),
            ("a. /b", OutputPathFault::Reserved),
            ("a?", OutputPathFault::Reserved),
            ("GIT~1/config", OutputPathFault::Reserved),
            ("a\\SSH~2\\x", OutputPathFault::Reserved),
        ] {
            assert_eq!(check(bad), Err(fault), "{bad}");
        }
    }
}
