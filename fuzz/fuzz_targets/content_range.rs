//! Fuzzes Content-Range: an accepted range is ordered and within its total, and means the same when
//! it is written again.
#![no_main]

use haul_policy::range::content_range::{ContentRange, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some(range) = parse(data) else { return };
    let ContentRange { span, total } = &range;
    let total_text = total.map_or("*".to_owned(), |total| total.to_string());
    let span_text = match span {
        Some(span) => {
            assert!(span.start < span.end && total.is_none_or(|total| span.end <= total));
            assert_eq!(range.is_exactly(span.start, span.end, total.unwrap_or(0)), total.is_some());
            format!("{}-{}", span.start, span.end - 1)
        }
        None => {
            assert!(total.is_some());
            "*".to_owned()
        }
    };
    assert_eq!(parse(format!("bytes {span_text}/{total_text}").as_bytes()), Some(range));
});
