//! Overwrites the secrets in the program's arguments with blanks. Otherwise every user could read
//! them with `ps` or in `/proc/PID/cmdline`, which shows the memory of this process.
//!
//! The arguments are overwritten through `/proc/self/mem`, because neither std nor a portable C
//! function gives access to their memory. This needs no `unsafe`, and it is sound: no reference to
//! these bytes exists in this process. Code that reads the arguments later gets blanks. If `/proc`
//! is not accessible, and on systems other than Linux, the arguments stay unchanged.
//!
//! As with curl, a secret on the command line is visible for about a millisecond. A secret in a
//! file (`-K`, netrc, `-H @FILE`) is never visible.

use std::ffi::OsString;
#[cfg(target_os = "linux")]
use std::io;

use haul_policy::secret_fields::{drop_userinfo, is_hidden_field};

/// The secret at the end of an argument of the program. It is the whole argument, or the value
/// after an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretArgumentPart {
    /// The number of the argument with the secret, counted from 1 after the program's name (and
    /// after `curl` in `haul curl`).
    pub argument: usize,
    /// The number of secret bytes at the end of the argument.
    pub length: usize,
}

/// Returns true if the value of an option is a secret. `option` is the long name of the option.
pub(crate) fn is_secret(option: &str, value: &[u8]) -> bool {
    match option.strip_prefix("expand-").unwrap_or(option) {
        "user" | "proxy-user" | "oauth2-bearer" | "pass" | "proxy-pass" => true,
        // "@" names a file.
        "httpsig-key" => value.first() != Some(&b'@'),
        "header" | "proxy-header" if value.first() == Some(&b'@') => false,
        "header" | "proxy-header" => {
            let name = value.split(|byte| matches!(byte, b':' | b';')).next().unwrap_or_default();
            std::str::from_utf8(name).is_ok_and(|name| is_hidden_field(name.trim()))
        }
        // A colon may begin a passphrase.
        "cert" | "proxy-cert" => value.contains(&b':'),
        // Without "=" it names a file.
        "cookie" => value.contains(&b'='),
        // The text of a variable is often a secret. "@" comes first if it is in a file, and an
        // environment variable has no text here.
        "variable" => {
            let text = value.iter().position(|&byte| byte == b'=');
            text.is_some_and(|text| !value[..text].contains(&b'@'))
        }
        // The login of a URL.
        "referer" => std::str::from_utf8(value).is_ok_and(|url| drop_userinfo(url) != url),
        "proxy" | "preproxy" | "proxy1.0" | "socks4" | "socks4a" | "socks5" | "socks5-hostname" => {
            value.contains(&b'@')
        }
        _ => false,
    }
}

/// Returns the part of a secret value that is not secret: the name of the header field in lower
/// case, or the name of the variable. The name tells the value apart from other values of the same
/// option. Returns `None` for options whose values do not have a name.
pub(crate) fn secret_name(option: &str, value: &[u8]) -> Option<String> {
    let before = |separators: &[u8]| {
        let name = value.split(|byte| separators.contains(byte)).next()?;
        Some(std::str::from_utf8(name).ok()?.trim().to_owned())
    };
    match option.strip_prefix("expand-").unwrap_or(option) {
        "header" | "proxy-header" => before(b":;").map(|name| name.to_ascii_lowercase()),
        "variable" => before(b"="),
        _ => None,
    }
}

/// Overwrites the secrets in the arguments of this process with blanks. `left` is the number of
/// arguments that the parser received. They are the last arguments of the command line.
pub fn blank_in_process_list(left: usize, secrets: &[SecretArgumentPart]) {
    if !secrets.is_empty() {
        let arguments: Vec<OsString> = std::env::args_os().collect();
        let first = arguments.len().saturating_sub(left);
        // A failure causes no message: the request itself is not affected.
        let _ = overwrite(&arguments, first, secrets);
    }
}

#[cfg(target_os = "linux")]
fn overwrite(arguments: &[OsString], first: usize, secrets: &[SecretArgumentPart]) -> io::Result<()> {
    use std::fs::File;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::FileExt;

    let malformed = || io::Error::from(io::ErrorKind::InvalidData);
    // proc_pid_stat(5): the second field is the program's name in parentheses, whatever it
    // contains; the 48th is `arg_start`.
    let stat = std::fs::read("/proc/self/stat")?;
    let behind_name = stat.rsplit(|byte| *byte == b')').next().unwrap_or_default();
    let fields = std::str::from_utf8(behind_name).map_err(|_| malformed())?;
    let start: u64 =
        fields.split_ascii_whitespace().nth(48 - 3).and_then(|field| field.parse().ok()).ok_or_else(malformed)?;
    let memory = File::options().read(true).write(true).open("/proc/self/mem")?;
    for secret in secrets {
        let number = first + secret.argument - 1;
        let argument = arguments.get(number).ok_or_else(malformed)?.as_bytes();
        let before: usize = arguments[..number].iter().map(|argument| argument.len() + 1).sum();
        let tail = argument.len().checked_sub(secret.length).ok_or_else(malformed)?;
        let place = start + (before + tail) as u64;
        let mut found = vec![0; secret.length];
        memory.read_exact_at(&mut found, place)?;
        // Not if the arguments are elsewhere: a process may have moved them.
        if found != argument[tail..] {
            return Err(malformed());
        }
        memory.write_all_at(&vec![b' '; secret.length], place)?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn overwrite(_: &[OsString], _: usize, _: &[SecretArgumentPart]) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credential_option_values_are_secret() {
        for (option, value) in [
            ("user", "me:pw"),
            ("oauth2-bearer", "x"),
            ("header", "authorization: Basic x"),
            ("header", "X-JFrog-Art-Api:x"),
            ("proxy-header", "Proxy-Authorization: x"),
            ("cookie", "sid=1"),
            ("cert", "me.pem:phrase"),
            ("proxy", "http://u:p@h:1"),
            ("variable", "token=x"),
            ("expand-header", "Authorization: Bearer {{token}}"),
            ("referer", "http://u:p@h/"),
        ] {
            assert!(is_secret(option, value.as_bytes()), "{option} {value}");
        }
        for (option, value) in [
            ("header", "Accept: x"),
            ("header", "@file-of-tokens"),
            ("header", "X-Author: me"),
            ("cookie", "file"),
            ("proxy", "http://h:1"),
            ("output", "token"),
            ("variable", "token@file"),
            ("variable", "%TOKEN"),
            ("referer", "http://h/a@b"),
        ] {
            assert!(!is_secret(option, value.as_bytes()), "{option} {value}");
        }
    }

    #[test]
    fn names_of_fields_and_variables_are_not_secret() {
        for (option, value, name) in [
            ("header", "X-Api-Key : k:1", Some("x-api-key")),
            ("expand-header", "Authorization: Bearer {{token}}", Some("authorization")),
            ("proxy-header", "Proxy-Authorization;", Some("proxy-authorization")),
            ("variable", "Token=a=b", Some("Token")),
            ("user", "me:pw", None),
        ] {
            assert_eq!(secret_name(option, value.as_bytes()).as_deref(), name, "{option} {value}");
        }
    }
}
