//! Fuzzes frames between a command and the agent: the result does not depend on how the input is
//! cut, and a message that was read is encoded to the same bytes.
#![no_main]

use std::time::Instant;

use haul_cli::agent::protocol::{AgentFrameSplitter, AgentMessage, CallerMessage};
use haul_cli::agent::request::AgentRequest;
use libfuzzer_sys::fuzz_target;

fn frames(parts: &[&[u8]]) -> Option<Vec<(u8, Vec<u8>)>> {
    let mut frames = AgentFrameSplitter::default();
    let mut found = Vec::new();
    for part in parts {
        frames.push(part);
        while let Some(frame) = frames.next().ok()? {
            found.push(frame);
        }
    }
    Some(found)
}

fuzz_target!(|data: &[u8]| {
    let Some((&cut, data)) = data.split_first() else { return };
    let whole = frames(&[data]);
    let (one, two) = data.split_at(usize::from(cut).min(data.len()));
    assert_eq!(whole, frames(&[one, two]));
    let started = Instant::now();
    for (kind, content) in whole.unwrap_or_default() {
        if let Ok(order) = CallerMessage::from_frame(kind, &content) {
            assert_eq!(order.to_frame()[5..], content);
            if let CallerMessage::Call { request, .. } = order
                && let Ok(request) = AgentRequest::from_bytes(&request)
            {
                // Another process may have written what is not handed over here; what is, comes
                // back.
                if let Some(bytes) = request.to_bytes() {
                    let again = AgentRequest::from_bytes(&bytes).expect("it was just written");
                    assert_eq!((&again.url, again.to_bytes()), (&request.url, Some(bytes)));
                }
            }
        }
        if let Ok(event) = AgentMessage::from_frame(kind, &content, started) {
            // Addresses have more than one spelling; what we write of them has one.
            let frame = event.to_frame();
            let again = AgentMessage::from_frame(frame[4], &frame[5..], started).expect("it was just written");
            assert_eq!(again.to_frame(), frame);
        }
    }
});
