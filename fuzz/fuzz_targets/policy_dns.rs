//! Fuzzes DNS responses of hostile servers, and a lookup that receives them: the lookup always
//! ends. One lookup asks for addresses, another for HTTPS records.
#![no_main]

use std::sync::Arc;

use haul_policy::MonotonicTime;
use haul_policy::dns::message::DnsRecordType;
use haul_policy::dns::query_schedule::{DnsLookupStatus, NameLookup, OutgoingQuery, RequestedRecords};
use haul_policy::dns::resolv_conf::ResolvConf;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, bool, Vec<(bool, bool, Vec<u8>)>)| {
    let (config, is_https, messages) = input;
    let config = Arc::new(ResolvConf::parse(config));
    let subject = if is_https { RequestedRecords::HttpsRecords } else { RequestedRecords::Addresses };
    let Ok(mut lookup) = NameLookup::for_records(subject, "www.example", &config, 0) else { return };
    lookup.start(MonotonicTime(0));
    for (is_ipv6, is_tcp, mut message) in messages {
        let record_type = match (lookup.subject(), is_ipv6) {
            (RequestedRecords::HttpsRecords, _) => DnsRecordType::Https,
            (_, true) => DnsRecordType::Aaaa,
            (_, false) => DnsRecordType::A,
        };
        let query = lookup.query(record_type, 7);
        // With its own header and question before it, the message gets past the first checks.
        let mut whole = query.to_bytes().expect("a valid name");
        whole[2] |= 0x80;
        whole[7] = 2;
        let raw = query.parse_response(&message);
        whole.append(&mut message);
        let behind_question = query.parse_response(&whole);
        for response in [raw, behind_question].into_iter().flatten() {
            let to = OutgoingQuery { record_type, server: 0, tcp: is_tcp };
            lookup.on_response(MonotonicTime(0), to, response);
        }
    }
    while let Some(at) = lookup.next_timeout() {
        lookup.on_timeout(at);
    }
    assert_ne!(*lookup.status(), DnsLookupStatus::Waiting);
});
