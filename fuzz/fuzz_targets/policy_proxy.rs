//! Fuzzes proxy URLs and no_proxy lists: both survive writing and reading, no credentials are
//! written, and a longer list matches no fewer hosts.
#![no_main]

use haul_policy::Target;
use haul_policy::proxy::{NoProxy, Proxy};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let hosts = ["http://a.example/", "http://10.1.2.3/", "http://[fd00::1]/"];
    let rules = NoProxy::parse(&text);
    // Another process that is told of the list acts by the same.
    assert_eq!(NoProxy::parse(&rules.to_string()), rules);
    let matches = hosts.map(|url| rules.matches(&Target::parse(url).expect("a URL")));
    // Adding to a list takes nothing from it.
    let more = NoProxy::parse(&format!("{text},b.example"));
    for (url, matched) in hosts.iter().zip(matches) {
        assert!(!matched || more.matches(&Target::parse(url).expect("a URL")));
    }
    if let Ok(proxy) = Proxy::parse(&text) {
        let again = Proxy::parse(&proxy.to_string()).expect("what was shown");
        assert_eq!((again.kind(), again.host(), again.port()), (proxy.kind(), proxy.host(), proxy.port()));
        assert_eq!(again.credentials(), None);
    }
});
