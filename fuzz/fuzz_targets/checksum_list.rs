//! Fuzzes lists of checksums: a chosen digest occurs in the list, and neither the order of the
//! lines nor their line ends change the choice.
#![no_main]

use haul_cli::checksum::{ChecksumList, DigestLookupError, ExpectedDigest};
use libfuzzer_sys::fuzz_target;

const NAME: &str = "pool/a.iso";

fn pick(text: &[u8], path: &str) -> Result<ExpectedDigest, DigestLookupError> {
    ChecksumList::new(text.to_vec()).find(path)
}

fuzz_target!(|data: &[u8]| {
    let picked = pick(data, NAME);
    if let Ok(digest) = &picked {
        let hex: String = digest.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let text = data.to_ascii_lowercase();
        assert!(text.windows(hex.len()).any(|window| window == hex.as_bytes()));
    }
    // A mark of byte order is one only in front.
    if !data.starts_with(b"\xef\xbb\xbf") && !data.ends_with(b"\xef\xbb\xbf") {
        let mut lines: Vec<_> = data.split(|byte| matches!(byte, b'\n' | b'\r')).collect();
        assert_eq!(pick(&lines.join(&b"\r\n"[..]), NAME), picked);
        lines.reverse();
        if !lines[0].starts_with(b"\xef\xbb\xbf") {
            assert_eq!(pick(&lines.join(&b'\n'), NAME), picked);
        }
    }
});
