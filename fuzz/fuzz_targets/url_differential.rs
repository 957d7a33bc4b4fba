//! Fuzzes URLs and references against the crate `url`, an implementation of the URL standard: what
//! both accept names the same scheme, host and port, and, in plain characters, the same path.
//!
//! The text before the first line break is a URL, the text after it a reference to resolve.
#![no_main]

use haul_policy::Target;
use libfuzzer_sys::fuzz_target;
use url::{Position, Url};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let (absolute, reference) = text.split_once('\n').unwrap_or((&text, ""));
    // Without a scheme, haul expects a host, and the standard a base.
    if !["http://", "https://"].iter().any(|scheme| absolute.starts_with(scheme)) {
        return;
    }
    let (Ok(ours), Ok(theirs)) = (Target::parse(absolute), Url::parse(absolute)) else { return };
    compare(&ours, &theirs, absolute);
    // To haul and curl a backslash is an ordinary byte, to the standard a slash.
    if absolute.contains('\\') || reference.contains('\\') {
        return;
    }
    // To haul and curl a scheme with one slash is followed by a host, to the standard by a path.
    let one_slash = |after: &str| after.starts_with('/') && !after.starts_with("//");
    if reference.split_once(':').is_some_and(|(_, after)| one_slash(after)) {
        return;
    }
    if let (Ok(ours), Ok(theirs)) = (ours.join(reference), theirs.join(reference)) {
        compare(&ours, &theirs, reference);
    }
});

fn compare(ours: &Target, theirs: &Url, text: &str) {
    // To the standard `0x` is the number 0, to haul and curl a label of a name.
    if ours.host_text().split('.').any(|label| label == "0x") {
        return;
    }
    assert_eq!(ours.scheme().as_str(), theirs.scheme());
    assert_eq!(Some(ours.port()), theirs.port_or_known_default());
    assert_eq!(Some(ours.host_text()), theirs.host_str().map(|host| host.trim_matches(['[', ']'])));
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~!$&()*+,;=:@/?".contains(&b);
    if text.bytes().all(plain) {
        assert_eq!(ours.path_and_query(), &theirs[Position::BeforePath..Position::AfterQuery]);
    }
}
