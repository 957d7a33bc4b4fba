//! Fuzzes dates and waits as servers and users write them: an accepted date means the same when it
//! is written as an HTTP date.
#![no_main]

use std::time::{Duration, UNIX_EPOCH};

use haul_cli::date;
use haul_policy::retry::parse_retry_after;
use libfuzzer_sys::fuzz_target;

/// The latest accepted date: the last second of the year 9999, plus a hundred hours for time zones.
const LAST: u64 = 253_402_300_799 + 100 * 3600;

fuzz_target!(|data: &[u8]| {
    if let Some(seconds) = date::parse(&String::from_utf8_lossy(data)) {
        assert!(seconds <= LAST);
        if seconds < LAST - 200 * 3600 {
            let written = date::http_date(seconds);
            let moment = Some(UNIX_EPOCH + Duration::from_secs(seconds));
            assert_eq!(date::parse(&written), Some(seconds), "{written}");
            assert_eq!(date::parse_http_date(written.as_bytes()), moment, "{written}");
            assert_eq!(parse_retry_after(written.as_bytes(), 0), Some(Duration::from_secs(seconds)), "{written}");
        }
    }
    let _ = date::parse_http_date(data);
    // Later there is less to wait.
    let (now, later) = (parse_retry_after(data, 0), parse_retry_after(data, 1_000_000));
    assert!(now.is_some() == later.is_some() && later <= now);
});
