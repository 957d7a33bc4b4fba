//! Fuzzes `--then`: the input is a template, a line feed, and a match. The match never changes the
//! origin or the directory of the URL.
#![no_main]

use haul_policy::Target;
use haul_policy::url_template::UrlTemplate;
use libfuzzer_sys::fuzz_target;

/// Returns the directory that the URLs of all matches share: the path up to the last slash before
/// the first placeholder.
fn above(template: &UrlTemplate) -> String {
    let path = |matched: &[u8]| {
        let url = template.expand(matched).expect("a digit fits anywhere");
        Target::parse(&url).expect("a URL").path().to_owned()
    };
    let (one, two) = (path(b"1"), path(b"2"));
    let same = one.bytes().zip(two.bytes()).take_while(|(one, two)| one == two).count();
    one[..=one[..same].rfind('/').expect("a path begins with one")].to_owned()
}

fuzz_target!(|data: &[u8]| {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (text, matched) = (String::from_utf8_lossy(&data[..end]), data.get(end + 1..).unwrap_or_default());
    let Ok(template) = UrlTemplate::parse(&text) else { return };
    let Ok(url) = template.expand(matched) else { return };
    let Ok(target) = Target::parse(&url) else {
        panic!("{text:?} made {url:?}, which is no URL");
    };
    assert!(["http", "https"].contains(&target.scheme().as_str()));
    if let Some(origin) = template.literal_origin() {
        assert_eq!(target.origin(), origin);
        // It may itself go up where the user wrote that.
        if !text.contains("..") && !text.contains('%') {
            let above = above(&template);
            assert!(target.path().starts_with(&above), "{url} left {above}");
        }
    } else {
        assert!(target.userinfo_bytes().is_none(), "a user for a host that a page chose");
    }
});
