//! The option `--cert` (`-E`): names the file of the client certificate, and optionally the
//! passphrase of its key.

use super::prelude::*;
use crate::plan::Secret;
use std::path::PathBuf;

pub(super) struct CertFlag;

impl FlagDefinition for CertFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "cert",
            short: Some('E'),
            syntax: FlagSyntax::Value("certificate[:password]"),
            category: HelpCategory::Tls,
            important: false,
            help: "Show this client certificate",
            doc: "Presents the certificate in FILE to the server; the key is read from the same file if it is there. \
                  Text after a colon is the passphrase of an encrypted key; write \"\\:\" for a colon that belongs to \
                  the file name. A later --then does not inherit it.",
            example: "haul --cert me.pem --key me.key https://example.com/",
            see_also: "key pass cert-type",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        let (path, passphrase) = split(value.bytes())?;
        let client = &mut args.transfer().tls.client;
        client.certificate = Some(path);
        if passphrase.is_some() {
            client.passphrase = passphrase;
        }
        Ok(())
    }
}

/// Splits the value of `--cert` at the first colon into a file name and a passphrase. The
/// passphrase is `None` without a colon. A colon after a backslash is part of the file name.
pub(super) fn split(text: &[u8]) -> Result<(PathBuf, Option<Secret>), UsageErrorReason> {
    if text.starts_with(b"pkcs11:") {
        return Err(UsageErrorReason::bad_use("keys of tokens (pkcs11:) are not supported, name a PEM file"));
    }
    let mut name = Vec::with_capacity(text.len());
    let mut rest = text;
    let passphrase = loop {
        match rest {
            [] => break None,
            [b'\\', byte @ (b'\\' | b':'), after @ ..] => {
                name.push(*byte);
                rest = after;
            }
            [b':', password @ ..] => break Some(Secret::new(password)),
            [byte, after @ ..] => {
                name.push(*byte);
                rest = after;
            }
        }
    };
    FlagValue::Text(&name).path().map(|path| (path, passphrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cert_passphrase_follows_the_first_unescaped_colon() {
        let password = |text: &str| Some(Secret::new(text));
        for (text, name, expected) in [
            ("a.pem", "a.pem", None),
            ("a.pem:b:c\\:", "a.pem", password("b:c\\:")),
            ("a.pem:", "a.pem", password("")),
            ("c\\:\\a\\\\b:p", "c:\\a\\b", password("p")),
        ] {
            assert_eq!(split(text.as_bytes()), Ok((PathBuf::from(name), expected)), "{text}");
        }
        assert_eq!(split(b":x"), Err(UsageErrorReason::Blank));
        assert!(split(b"pkcs11:token=x").is_err());
    }
}
