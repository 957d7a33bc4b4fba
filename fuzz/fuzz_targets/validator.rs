//! Fuzzes validators: the input is ETag, Last-Modified and Date of a response, separated by line
//! feeds. An accepted validator is a valid If-Range, can be stored, and agrees with the response it
//! was made from.
#![no_main]

use haul_policy::range::{Validator, ValidatorMatch};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some(stored) = Validator::from_bytes(data) {
        assert_eq!((stored.if_range(), stored.to_bytes()), (data, data.to_vec()));
    }
    let mut fields = data.split(|byte| *byte == b'\n').map(|field| Some(field).filter(|field| !field.is_empty()));
    let mut field = || fields.next().flatten();
    let (etag, modified, date) = (field(), field(), field());
    let Some(validator) = Validator::strong(etag, modified, date) else { return };
    let value = validator.if_range();
    assert!(!value.is_empty() && !value.iter().any(|byte| b"\r\n\0".contains(byte)));
    assert!(!value.starts_with(b"W/"));
    assert_eq!(validator.compare(etag, modified), ValidatorMatch::Same);
    assert_eq!(validator.compare(None, None), ValidatorMatch::Unsaid);
    assert_eq!(Validator::from_bytes(&validator.to_bytes()), Some(validator));
});
