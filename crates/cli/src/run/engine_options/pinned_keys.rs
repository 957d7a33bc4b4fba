//! Parses `--pinnedpubkey`: hashes of public keys, or the name of a file with a key, which is then
//! hashed.

use std::fs;

use haul::net::tls::{PublicKeyPin, key_pin};
use haul::{Error, ErrorKind, Result};

/// A hash that matches no public key. It replaces a pin that cannot be parsed, because curl reports
/// such a pin only after the server has sent its key.
pub(crate) const UNMATCHABLE_PIN: PublicKeyPin = [0; 32];

/// Returns the hashes in `text`, the value of `--pinnedpubkey`. If the value names a file, returns
/// the hash of the public key in that file.
pub(crate) fn parse_pins(text: &str) -> Result<Vec<PublicKeyPin>> {
    let none = |why: &str| Error::new(ErrorKind::PinnedKey, format!("no public key to compare with: {why}"));
    if !text.starts_with("sha256//") {
        let bytes = fs::read(text).map_err(|error| {
            Error::with_source(ErrorKind::PinnedKey, format!("cannot read the public key in {text}"), error)
        })?;
        return Ok(vec![key_pin(&bytes).ok_or_else(|| none("the file has none"))?]);
    }
    let pins: Vec<PublicKeyPin> =
        text.split(';').filter_map(|part| decode_pin(part.trim().strip_prefix("sha256//")?)).collect();
    if pins.is_empty() { Err(none("no hash has 32 bytes of base64")) } else { Ok(pins) }
}

fn decode_pin(base64: &str) -> Option<PublicKeyPin> {
    crate::base64::decode(base64)?.try_into().ok()
}
