//! The value of one flag, and its conversions to a text, a path, a number, a duration or a size.
//!
//! ```
//! use haul_cli::flag_value::FlagValue;
//! use std::time::Duration;
//!
//! assert_eq!(FlagValue::Text(b"64M").size().unwrap(), 64 << 20);
//! assert_eq!(FlagValue::Text(b"1.5").seconds().unwrap(), Duration::from_millis(1500));
//! assert!(FlagValue::Text(b"-1").seconds().is_err());
//! ```

use std::path::PathBuf;
use std::time::Duration;

use crate::program_persona::ProgramPersona;
use crate::system::os_text::os_str;
use crate::usage_error::UsageErrorReason;

/// The longest accepted time limit, in seconds. It is a century, so that adding it to the present
/// time does not overflow.
pub const SECONDS_MAX: u64 = 100 * 366 * 86_400;

/// The value of a flag, as the parser passes it to the flag.
///
/// Texts are bytes, because file names, form data and header values may have any encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagValue<'a> {
    /// A flag that takes no value: true for `--name`, false for `--no-name`.
    Switch(bool),
    /// The text that follows a flag which takes a value.
    Text(&'a [u8]),
    /// The flag is given without its value, which is optional.
    Absent,
}

impl<'a> FlagValue<'a> {
    /// Returns false for a switch that was turned off by `--no-name`, and true for any other value.
    pub fn is_on(self) -> bool {
        !matches!(self, FlagValue::Switch(false))
    }

    /// Returns the bytes of the flag's text. They are empty if the flag has no text.
    pub fn bytes(self) -> &'a [u8] {
        match self {
            FlagValue::Text(bytes) => bytes,
            FlagValue::Switch(_) | FlagValue::Absent => b"",
        }
    }

    /// Returns the flag's text. It is an error if the text is not UTF-8.
    pub fn text(self) -> Result<&'a str, UsageErrorReason> {
        std::str::from_utf8(self.bytes()).map_err(|_| UsageErrorReason::NotUtf8)
    }

    /// Returns the flag's text. It is an error if the text is not UTF-8 or is empty.
    pub fn content(self) -> Result<&'a str, UsageErrorReason> {
        match self.text()? {
            "" => Err(UsageErrorReason::Blank),
            text => Ok(text),
        }
    }

    /// Returns the flag's text as a file name. It is an error if the text is empty.
    pub fn path(self) -> Result<PathBuf, UsageErrorReason> {
        match self.bytes() {
            b"" => Err(UsageErrorReason::Blank),
            bytes => Ok(to_path(bytes)),
        }
    }

    /// Returns the flag's text as a whole number, in decimal digits.
    pub fn number(self) -> Result<u64, UsageErrorReason> {
        parse_digits(self.bytes())
    }

    /// Returns the flag's text as a whole number, in decimal digits. It is an error if the number
    /// is not from `least` to `most`.
    pub fn number_in(self, least: u64, most: u64) -> Result<u64, UsageErrorReason> {
        match self.number()? {
            number if number > most => Err(UsageErrorReason::TooLarge),
            number if number < least => Err(UsageErrorReason::bad_use(format!("the least value is {least}"))),
            number => Ok(number),
        }
    }

    /// Returns the flag's text, a decimal number of seconds, as a duration. If haul acts as curl,
    /// text after the number is ignored, as in curl.
    pub fn seconds_for(self, persona: ProgramPersona) -> Result<Duration, UsageErrorReason> {
        let bytes = self.bytes();
        let is_number = |at: usize| bytes[at].is_ascii_digit() || bytes[at] == b'.' && !bytes[..at].contains(&b'.');
        let end = (0..bytes.len()).find(|&at| !is_number(at));
        match end {
            Some(end) if end > 0 && persona.is_curl() => FlagValue::Text(&bytes[..end]).seconds(),
            _ => self.seconds(),
        }
    }

    /// Returns the flag's text, a decimal number of seconds, as a duration. The duration is
    /// truncated to milliseconds, as in curl. The text may end in `s`: `5s`.
    pub fn seconds(self) -> Result<Duration, UsageErrorReason> {
        let bytes = self.bytes();
        let bytes = bytes.strip_suffix(b"s").filter(|number| !number.is_empty()).unwrap_or(bytes);
        let (whole, fraction) = match bytes.iter().position(|&b| b == b'.') {
            Some(dot) => (&bytes[..dot], &bytes[dot + 1..]),
            None => (bytes, &b""[..]),
        };
        let seconds = if whole.is_empty() && !fraction.is_empty() { 0 } else { parse_digits(whole)? };
        if !fraction.iter().all(u8::is_ascii_digit) {
            return Err(UsageErrorReason::BadNumber);
        }
        if seconds > SECONDS_MAX {
            return Err(UsageErrorReason::BadNumber);
        }
        let digit = |at: usize| fraction.get(at).map_or(0, |&b| u64::from(b - b'0'));
        let millis = digit(0) * 100 + digit(1) * 10 + digit(2);
        Ok(Duration::from_millis(seconds * 1000 + millis))
    }

    /// Returns the flag's text, an octal number of permission bits. It is an error if the number is
    /// greater than `most`.
    pub fn octal(self, most: u32) -> Result<u32, UsageErrorReason> {
        let bytes = self.bytes();
        if let [b'-', ..] | [] = bytes {
            return Err(UsageErrorReason::BadNumber);
        }
        bytes.iter().try_fold(0u32, |sum, &byte| match byte {
            b'0'..=b'7' => match sum * 8 + u32::from(byte - b'0') {
                sum if sum > most => Err(UsageErrorReason::TooLarge),
                sum => Ok(sum),
            },
            _ => Err(UsageErrorReason::BadNumber),
        })
    }

    /// Returns the number of bytes that the flag's text, such as `1.5M`, means. The number may have
    /// a fraction, and be followed by a unit in upper or lower case: `B`, `K`, `M`, `G`, `T` or
    /// `P`, each 1024 times the previous one. A fraction of a byte is dropped.
    pub fn size(self) -> Result<u64, UsageErrorReason> {
        let bytes = self.bytes();
        let (number, shift) = match bytes.split_last() {
            Some((unit, number)) if unit.is_ascii_alphabetic() => {
                let shift = match unit.to_ascii_lowercase() {
                    b'b' => 0,
                    b'k' => 10,
                    b'm' => 20,
                    b'g' => 30,
                    b't' => 40,
                    b'p' => 50,
                    _ => return Err(UsageErrorReason::bad_use("unsupported unit, use B, K, M, G, T or P")),
                };
                (number, shift)
            }
            _ => (bytes, 0),
        };
        let (whole, fraction) = match number.iter().position(|&byte| byte == b'.') {
            Some(dot) => (&number[..dot], &number[dot + 1..]),
            None => (number, &b"0"[..]),
        };
        let whole = parse_digits(whole)?;
        // Nine digits are enough for every byte of a unit that fits a number, and cannot overflow.
        let shown = &fraction[..fraction.len().min(9)];
        if fraction.is_empty() || !fraction.iter().all(u8::is_ascii_digit) {
            return Err(UsageErrorReason::BadNumber);
        }
        let part = (u128::from(parse_digits(shown)?) << shift) / 10u128.pow(shown.len() as u32);
        let part = u64::try_from(part).map_err(|_| UsageErrorReason::TooLarge)?;
        whole.checked_mul(1 << shift).and_then(|whole| whole.checked_add(part)).ok_or(UsageErrorReason::TooLarge)
    }
}

/// Splits a list of names, such as the value of a flag, at colons, commas and blanks.
pub fn split_names(text: &str) -> Vec<String> {
    text.split([':', ',', ' ']).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Converts bytes to a file name.
pub(crate) fn to_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(os_str(bytes).into_owned())
}

fn parse_digits(bytes: &[u8]) -> Result<u64, UsageErrorReason> {
    if let Some(rest) = bytes.strip_prefix(b"-") {
        let negative = !rest.is_empty() && rest.iter().all(|b| b.is_ascii_digit() || *b == b'.');
        return Err(if negative { UsageErrorReason::Negative } else { UsageErrorReason::BadNumber });
    }
    if bytes.is_empty() {
        return Err(UsageErrorReason::BadNumber);
    }
    bytes.iter().try_fold(0u64, |sum, &byte| {
        if !byte.is_ascii_digit() {
            return Err(UsageErrorReason::BadNumber);
        }
        sum.checked_mul(10).and_then(|sum| sum.checked_add(u64::from(byte - b'0'))).ok_or(UsageErrorReason::TooLarge)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> Result<Duration, UsageErrorReason> {
        FlagValue::Text(text.as_bytes()).seconds()
    }

    fn size(text: &str) -> Result<u64, UsageErrorReason> {
        FlagValue::Text(text.as_bytes()).size()
    }

    #[test]
    fn seconds_accept_decimal_fractions() {
        assert_eq!(seconds("0"), Ok(Duration::ZERO));
        assert_eq!(seconds("2.5"), Ok(Duration::from_millis(2500)));
        assert_eq!(seconds("0.0019"), Ok(Duration::from_millis(1)));
        assert_eq!(seconds(".25"), Ok(Duration::from_millis(250)));
        assert_eq!(seconds("3."), Ok(Duration::from_secs(3)));
        assert_eq!(seconds("1.5s"), Ok(Duration::from_millis(1500)));
        for bad in ["", ".", "1,5", "s", "5m", "1.5 s", "5ss", "1e3", "0x10", "1.2.3", "+1", " 1"] {
            assert_eq!(seconds(bad), Err(UsageErrorReason::BadNumber), "{bad:?}");
        }
        assert_eq!(seconds("-1"), Err(UsageErrorReason::Negative));
        assert_eq!(seconds("-1.5"), Err(UsageErrorReason::Negative));
        assert_eq!(seconds("-x"), Err(UsageErrorReason::BadNumber));
        assert_eq!(seconds("99999999999999999999"), Err(UsageErrorReason::TooLarge));
        assert_eq!(seconds("18446744073709551"), Err(UsageErrorReason::BadNumber));
    }

    #[test]
    fn size_units_are_powers_of_1024() {
        assert_eq!(size("0"), Ok(0));
        assert_eq!(size("7B"), Ok(7));
        assert_eq!(size("64k"), Ok(64 << 10));
        assert_eq!(size("64M"), Ok(64 << 20));
        assert_eq!(size("2G"), Ok(2 << 30));
        assert_eq!(size("17179869184G"), Err(UsageErrorReason::TooLarge));
        assert_eq!(size("k"), Err(UsageErrorReason::BadNumber));
        assert_eq!(size("1kk"), Err(UsageErrorReason::BadNumber));
        assert_eq!(size("-1k"), Err(UsageErrorReason::Negative));
        assert!(matches!(size("1q"), Err(UsageErrorReason::BadUse(_))));
        assert_eq!(size("1.5k"), Ok(1536));
        assert_eq!(size("0.9999999999B"), Ok(0));
        assert_eq!(size("16383.999P"), Ok(((1u64 << 50) * 16383).saturating_add((u64::from(999u32) << 50) / 1000)));
        for bad in [".5k", "1.k", "1.", "1..5", "1.5.5", "1,5k", "1.-5", "-1.5k", "1.5 k"] {
            assert!(size(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn file_mode_is_octal() {
        let octal = |text: &str| FlagValue::Text(text.as_bytes()).octal(0o777);
        assert_eq!(octal("0640"), Ok(0o640));
        assert_eq!(octal("777"), Ok(0o777));
        assert_eq!(octal("0"), Ok(0));
        assert_eq!(octal("1000"), Err(UsageErrorReason::TooLarge));
        assert_eq!(octal("7777777777777777777777"), Err(UsageErrorReason::TooLarge));
        for bad in ["", "8", "-1", "0o644", "rw", " 7"] {
            assert_eq!(octal(bad), Err(UsageErrorReason::BadNumber), "{bad:?}");
        }
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        let value = FlagValue::Text(b"70000");
        assert_eq!(value.number_in(1, 65_535), Err(UsageErrorReason::TooLarge));
        assert!(matches!(FlagValue::Text(b"0").number_in(1, 9), Err(UsageErrorReason::BadUse(_))));
    }
}
