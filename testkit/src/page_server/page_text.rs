//! The pages: one line each, which contains the URL of the page, so that a client's output can be
//! checked regardless of the order of its pages.

/// Returns the page at this path of this host: one line that starts with the host and the path. Its
/// length in bytes is the first number in the path (300 for `/300/17`), or the length of the URL if
/// that is larger.
pub fn page(host: &str, path: &str) -> Vec<u8> {
    let mut text = Vec::new();
    append_page(&mut text, host, path);
    text
}

/// Returns a hash of the URL (host and path). The page consists of the URL and repetitions of this
/// hash.
pub fn page_key(host: &str, path: &str) -> u64 {
    let step = |key: u64, byte: u8| (key ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    host.bytes().chain([0]).chain(path.bytes()).fold(0xcbf2_9ce4_8422_2325, step)
}

/// Returns the length of the page at this path of this host, in bytes.
pub(super) fn page_len(host: &str, path: &str) -> usize {
    let least = host.len() + path.len() + 2;
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    first.parse::<usize>().unwrap_or(0).clamp(least, least.max(MAX_LEN))
}

/// The maximum length of a page in bytes. A limit is needed, since the client chooses the length in
/// the URL.
const MAX_LEN: usize = 1 << 20;

/// Appends the page at this path of this host to a buffer.
pub(super) fn append_page(buffer: &mut Vec<u8>, host: &str, path: &str) {
    let end = buffer.len() + page_len(host, path) - 1;
    buffer.extend(host.as_bytes());
    buffer.extend(path.as_bytes());
    buffer.push(b' ');
    let key = format!("{:016x}", page_key(host, path));
    let first = buffer.len();
    buffer.extend(key.as_bytes());
    while buffer.len() < end {
        // Doubles the text, so that a long page takes few steps.
        let more = (buffer.len() - first).min(end - buffer.len());
        buffer.extend_from_within(first..first + more);
    }
    buffer.truncate(end);
    buffer.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_requested_length_and_contains_its_url() {
        for (path, len) in [("/300/1", 300), ("/50000/22", 50_000), ("/3/1", 12), ("/", 9)] {
            let text = String::from_utf8(page("a.test", path)).unwrap();
            assert_eq!((text.len(), text.len()), (len, page_len("a.test", path)), "{path}");
            assert!(text.starts_with(&format!("a.test{path} ")) && text.ends_with('\n'));
            assert_eq!(text.lines().count(), 1);
        }
        assert_ne!(page_key("a", "/b"), page_key("a/", "b"));
        assert!(page("a.test", "/300/1").ends_with(b"\n"));
        assert_ne!(page("a.test", "/300/1")[20..], page("b.test", "/300/1")[20..]);
    }
}
