//! Fuzzes formats of `-w` with a server's response: nothing panics, and the JSON variables give
//! valid JSON whatever the server's bytes.
//!
//! The first byte is the length of the format; the rest is the fields of the response.
#![no_main]

use haul_cli::program_persona::ProgramPersona;
use haul_cli::write_out::{WriteOut, WriteOutValues};
use haul_proto::h1::{H1Config, H1Event, H1Machine, RequestHead};
use haul_proto::time::MonotonicTimestamp;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&length, rest)) = data.split_first() else { return };
    let (format, fields) = rest.split_at(usize::from(length).min(rest.len()));
    let mut wire = [b"HTTP/1.1 200 OK\r\n", fields, b"\r\n\r\n"].concat();
    let mut conn = H1Machine::new(H1Config::default());
    let request = RequestHead { fields: &[("Host", b"h")], ..RequestHead::default() };
    conn.enqueue(MonotonicTimestamp(0), &request).expect("a valid request");
    conn.advance_output(conn.output().len());
    let head = match conn.step(MonotonicTimestamp(0), &mut wire).map(|step| step.event) {
        Ok(H1Event::Head { head, .. }) => Some(head),
        _ => None,
    };
    let url = String::from_utf8_lossy(fields);
    let kind = head.as_ref().and_then(|head| head.get("content-type")).map(String::from_utf8_lossy);
    let facts = WriteOutValues {
        response_code: 200,
        url: &url,
        content_type: kind.as_deref(),
        head: head.as_ref(),
        ..WriteOutValues::default()
    };
    for persona in [ProgramPersona::Haul, ProgramPersona::Curl] {
        let (parsed, _) = WriteOut::parse(format);
        parsed.render(&facts, persona);
        for json in ["%{json}", "%{header_json}"] {
            let (parsed, warnings) = WriteOut::parse(json.as_bytes());
            let text = parsed.render(&facts, persona).stdout;
            assert!(warnings.is_empty() && serde_json::from_slice::<serde_json::Value>(&text).is_ok());
        }
    }
});
