//! Fuzzes cookie files in both formats: cookies that were read are the same after writing and
//! reading again.
#![no_main]

use haul_policy::cookie::{CookieStore, lwp, netscape};
use libfuzzer_sys::fuzz_target;

const NOW: u64 = 1_800_000_000;

fuzz_target!(|data: &[u8]| {
    for read in [Some(netscape::read(data, NOW)), lwp::read(data, NOW)].into_iter().flatten() {
        let mut jar = CookieStore::new();
        jar.load(read.cookies);
        let written = netscape::write(&jar, NOW);
        let mut again = CookieStore::new();
        again.load(netscape::read(&written, NOW).cookies);
        assert_eq!(again.len(), jar.len());
        assert_eq!(netscape::write(&again, NOW), written);
        assert!(jar.changes().is_empty());
    }
});
