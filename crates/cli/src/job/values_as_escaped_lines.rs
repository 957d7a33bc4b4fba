//! The encoding of several extracted values as one text: each value is a line, in which backslashes
//! and line feeds are escaped.
//!
//! ```text
//! "a", "b\\c", "two␊lines"   ⇒   a␊b\\\\c␊two\\nlines␊
//! ```
//!
//! Many values of a page share one row, because a row for each value would take longer to write
//! than the search for the value takes.

use haul::Result;

/// Appends a value to `lines`, encoded so that it is exactly one line.
pub(super) fn append(lines: &mut Vec<u8>, value: &[u8]) {
    let mut rest = value;
    while let Some(at) = memchr::memchr2(b'\\', b'\n', rest) {
        lines.extend_from_slice(&rest[..at]);
        lines.extend_from_slice(if rest[at] == b'\n' { b"\\n" } else { b"\\\\" });
        rest = &rest[at + 1..];
    }
    lines.extend_from_slice(rest);
    lines.push(b'\n');
}

/// Calls `each` with each value in `lines`, in order.
pub(super) fn for_each(lines: &[u8], mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let mut plain = Vec::new();
    for line in lines.split_inclusive(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if !line.contains(&b'\\') {
            each(line)?;
            continue;
        }
        plain.clear();
        let mut bytes = line.iter();
        while let Some(&byte) = bytes.next() {
            plain.push(match byte {
                b'\\' if bytes.next() == Some(&b'n') => b'\n',
                byte => byte,
            });
        }
        each(&plain)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values_of(lines: &[u8]) -> Vec<Vec<u8>> {
        let mut values = Vec::new();
        for_each(lines, |value| {
            values.push(value.to_vec());
            Ok(())
        })
        .unwrap();
        values
    }

    #[test]
    fn values_survive_encoding_as_lines() {
        let values: [&[u8]; 9] = [b"a", b"", b"\n", b"\\", b"\\n", b"a\\\nb\n\n", b"\r\n", b"\xff\\\\n", b"end"];
        let mut lines = Vec::new();
        values.iter().for_each(|value| append(&mut lines, value));
        assert_eq!(values_of(&lines), values);
        assert_eq!(lines.iter().filter(|&&byte| byte == b'\n').count(), values.len());
    }

    #[test]
    fn values_without_backslashes_are_stored_unchanged() {
        let mut lines = Vec::new();
        [b"10.0.0.0/8".as_slice(), b"a\\b"].iter().for_each(|value| append(&mut lines, value));
        assert_eq!(lines, b"10.0.0.0/8\na\\\\b\n");
        assert_eq!(values_of(b""), Vec::<Vec<u8>>::new());
    }
}
