//! The text of `%{certs}`: the certificates that a server presented, in curl's format.

use std::io::{self, Write};

use crate::base64::encode;

/// The number of Base64 characters in one line of a PEM certificate (RFC 7468 section 2).
const LINE: usize = 64;

/// Appends the text of each certificate (given in DER) to `into`: its fields, one per line, and the
/// certificate in PEM.
pub(super) fn append(certificates: &[Vec<u8>], into: &mut Vec<u8>) -> io::Result<()> {
    for der in certificates {
        for (name, value) in haul::net::tls::certificate_details(der) {
            writeln!(into, "{name}:{value}")?;
        }
        writeln!(into, "-----BEGIN CERTIFICATE-----")?;
        for line in encode(der).as_bytes().chunks(LINE) {
            into.extend_from_slice(line);
            into.push(b'\n');
        }
        writeln!(into, "-----END CERTIFICATE-----")?;
    }
    Ok(())
}
