//! Questions about the next few bytes of a page, answered for eight or more bytes at once. They are
//! asked for each tag, where a loop over bytes costs a wrong branch prediction at its end.

use memchr::memchr;

/// A word with this byte in each place.
const fn repeated(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The highest bit of each byte of a word.
const HIGH: u64 = repeated(0x80);

/// Returns the eight bytes from this index on as a word, the first byte lowest; `None` if there are
/// fewer.
#[inline]
fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|chunk| u64::from_le_bytes(*chunk))
}

/// Returns the highest bit of each byte of the word from `first` to `last`, which are below 0x80.
#[inline]
const fn in_range(word: u64, first: u8, last: u8) -> u64 {
    let low = word & !HIGH;
    let from_first = low + repeated(0x80 - first);
    let after_last = low + repeated(0x7f - last);
    from_first & !after_last & !word & HIGH
}

/// Returns the bytes before the first one that is not in `set`, which has the highest bits of bytes.
#[inline]
const fn leading(set: u64) -> usize {
    (!set & HIGH).trailing_zeros() as usize / 8
}

#[inline]
const fn letters(word: u64) -> u64 {
    in_range(word | repeated(0x20), b'a', b'z')
}

/// Returns the name of one to seven letters and digits at this index, as the big-endian number of its
/// lower-case bytes, and its length. Returns `None` for other names, and near the end of `bytes`.
#[inline]
pub(super) fn short_name(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let word = word_at(bytes, at)?;
    let is_letter = letters(word);
    let length = leading(is_letter | in_range(word, b'0', b'9'));
    if is_letter & 0x80 == 0 || length == 8 {
        return None;
    }
    Some(((word | repeated(0x20)).swap_bytes() >> (64 - 8 * length), length))
}

/// Returns the number of letters, digits, hyphens, underscores and colons from this index on.
#[inline]
pub(super) fn attribute_name_length(bytes: &[u8], at: usize) -> usize {
    let mut end = at;
    while let Some(word) = word_at(bytes, end) {
        let digits_and_colon = in_range(word, b'0', b':');
        let length =
            leading(letters(word) | digits_and_colon | in_range(word, b'-', b'-') | in_range(word, b'_', b'_'));
        end += length;
        if length < 8 {
            return end - at;
        }
    }
    let is_usual = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':');
    end - at + bytes.get(end..).unwrap_or_default().iter().take_while(is_usual).count()
}

/// Returns true if the bytes have no control characters, no ampersand and no two adjacent blanks.
pub(super) fn is_plain_text(bytes: &[u8]) -> bool {
    let mut flaws = 0;
    // The highest bit of the lowest byte, if the byte before this word is a blank.
    let mut after_blank = 0;
    let mut look_at = |word: u64| {
        let blanks = in_range(word, b' ', b' ');
        flaws |= in_range(word, 0, 0x1f) | in_range(word, b'&', b'&') | blanks & (blanks << 8 | after_blank);
        after_blank = blanks >> 56;
    };
    let (words, rest) = bytes.as_chunks();
    words.iter().for_each(|word| look_at(u64::from_le_bytes(*word)));
    if !rest.is_empty() {
        let mut last = [b'x'; 8];
        last[..rest.len()].copy_from_slice(rest);
        look_at(u64::from_le_bytes(last));
    }
    flaws == 0
}

/// The number of bytes that [`find_near`] examines at once.
const NEAR: usize = 32;

/// Returns the index of the first `byte`, as `memchr` does. It is faster if the byte is near, as the
/// next tag and the end of an attribute mostly are.
#[inline]
pub(super) fn find_near(byte: u8, bytes: &[u8]) -> Option<usize> {
    let Some(near) = bytes.first_chunk::<NEAR>() else { return memchr(byte, bytes) };
    match equal_bytes(near, byte) {
        0 => memchr(byte, &bytes[NEAR..]).map(|at| NEAR + at),
        found => Some(found.trailing_zeros() as usize),
    }
}

/// Returns a bit for each byte that is equal to `byte`, which is below 0x80: the lowest for the first
/// byte.
#[inline]
fn equal_bytes(bytes: &[u8; NEAR], byte: u8) -> u32 {
    let (words, _) = bytes.as_chunks();
    words.iter().rev().fold(0, |bits, word| {
        let equal = in_range(u64::from_le_bytes(*word), byte, byte) >> 7;
        // The product has the lowest bits of the eight bytes side by side in its highest byte.
        bits << 8 | (equal.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_letters_and_digits() {
        let name = |text: &str| short_name(text.as_bytes(), 0).map(|(name, length)| (name.to_be_bytes(), length));
        assert_eq!(name("tD class"), Some((*b"\0\0\0\0\0\0td", 2)));
        assert_eq!(name("h1>......"), Some((*b"\0\0\0\0\0\0h1", 2)));
        assert_eq!(name("section>"), Some((*b"\0section", 7)));
        for other in ["template>", "1td.....", ">.......", "td>", "\u{e9}......."] {
            assert_eq!(name(other), None, "{other}");
        }
        for byte in 0..=255_u8 {
            let bytes = [b'a', byte, b'>', 0, 0, 0, 0, 0];
            let length = short_name(&bytes, 0).map(|(_, length)| length);
            assert_eq!(length, Some(if byte.is_ascii_alphanumeric() { 2 } else { 1 }), "{byte:#x}");
            let is_usual = byte.is_ascii_alphanumeric() || b"-_:".contains(&byte);
            assert_eq!(attribute_name_length(&bytes, 0), if is_usual { 2 } else { 1 }, "{byte:#x}");
            assert_eq!(attribute_name_length(&bytes[..3], 0), if is_usual { 2 } else { 1 }, "{byte:#x}");
        }
        assert_eq!(attribute_name_length(b"data-long-name=\"1\"", 0), 14);
        assert_eq!(attribute_name_length(b"data-long-name=", 0), 14);
        assert_eq!(attribute_name_length(b"data", 9), 0);
    }

    #[test]
    fn plain_text_has_no_adjacent_blanks_or_references() {
        let plain = |text: &[u8]| {
            let words = text.windows(2).all(|pair| pair != b"  ");
            words && text.iter().all(|byte| *byte >= 0x20 && *byte != b'&')
        };
        for length in 0..20 {
            for at in 0..length {
                for byte in 0..=255 {
                    let mut text = vec![b'x'; length];
                    text[at] = byte;
                    assert_eq!(is_plain_text(&text), plain(&text), "{text:?}");
                    text[(at + 1) % length] = b' ';
                    assert_eq!(is_plain_text(&text), plain(&text), "{text:?}");
                }
            }
        }
    }

    #[test]
    fn near_bytes_are_found_at_any_distance() {
        for length in 0..80 {
            for at in 0..length {
                let mut bytes = vec![b'x'; length];
                bytes[at..].fill(b'<');
                assert_eq!(find_near(b'<', &bytes), Some(at));
            }
            assert_eq!(find_near(b'<', &vec![b';'; length]), None);
        }
    }
}
