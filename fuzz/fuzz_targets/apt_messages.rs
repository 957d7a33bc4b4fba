//! Fuzzes apt's protocol: messages do not depend on how the input is cut and survive writing and
//! reading; configurations and netrc files of any text cause no panic, and no login is sent
//! unencrypted unless the file allows it.
#![no_main]

use std::io::{BufReader, Read};

use haul::Target;
use haul_cli::apt::auth_conf::{AuthConfLookupResult, find};
use haul_cli::apt::config::AptConfig;
use haul_cli::apt::message::AptMessage;
use libfuzzer_sys::fuzz_target;

/// Returns the messages read up to the first error, and whether there was an error. Each read
/// returns at most `step` bytes.
fn messages(source: impl Read, step: usize) -> (Vec<AptMessage>, bool) {
    let mut reader = BufReader::with_capacity(step.max(1), source);
    let mut found = Vec::new();
    loop {
        match AptMessage::read(&mut reader) {
            Ok(Some(message)) => found.push(message),
            Ok(None) => return (found, false),
            Err(_) => return (found, true),
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&step, text)) = data.split_first() else { return };
    let (found, failed) = messages(text, 8192);
    assert_eq!(messages(text, usize::from(step)), (found.clone(), failed));
    for message in found {
        let written = message.to_text();
        let again = AptMessage::read(&mut written.as_bytes()).expect("it was just written").expect("a message");
        assert_eq!(again.to_text(), written);
        let config = AptConfig::from_message(&message);
        for name in ["dir::etc::netrc", "dir::etc::netrcparts"] {
            assert!(config.path(name).is_none_or(|path| config.value(name).is_some() && !path.as_os_str().is_empty()));
        }
        let _ = config.get("tor+https", "timeout", "a.example");
    }
    let text = String::from_utf8_lossy(text);
    let target = |url| Target::parse(url).expect("a URL");
    if let AuthConfLookupResult::Login(..) = find(&text, &target("http://a.example/b")) {
        assert!(text.contains("http://"), "a login went out in the clear");
    }
    assert!(!matches!(find(&text, &target("https://a.example/b")), AuthConfLookupResult::InTheClear(_)));
});
