use domain::base::Ttl;
use domain::base::iana::Rcode;
use domain::base::message_builder::AnswerBuilder;
use domain::base::name::Name;
use domain::rdata::{A, Aaaa, Cname, Soa};

use super::*;

const QUERY: DnsQuery<'_> =
    DnsQuery { name: "www.example", record_type: DnsRecordType::A, id: 0x1234, edns: false, trust_ad: false };

fn name(text: &str) -> Name<Vec<u8>> {
    DnsQuery { name: text, ..QUERY }.wire_name().unwrap()
}

fn answer_to(query: DnsQuery<'_>, rcode: Rcode) -> AnswerBuilder<Vec<u8>> {
    let bytes = query.to_bytes().unwrap();
    MessageBuilder::new_vec().start_answer(&Message::from_octets(bytes).unwrap(), rcode).unwrap()
}

fn alias(answer: &mut AnswerBuilder<Vec<u8>>, owner: &str, target: &str) {
    answer.push((name(owner), 300, Cname::new(name(target)))).unwrap();
}

fn address(answer: &mut AnswerBuilder<Vec<u8>>, owner: &str, octets: [u8; 4], ttl: u32) {
    answer.push((name(owner), ttl, A::new(octets.into()))).unwrap();
}

fn addresses(octets: &[[u8; 4]], seconds: u64) -> Option<DnsResponse> {
    let addresses = octets.iter().map(|&octets| IpAddr::from(octets)).collect();
    Some(DnsResponse::Addresses { addresses, ttl: Duration::from_secs(seconds) })
}

#[test]
fn dns_query_has_one_question_and_asks_recursion() {
    let bytes = QUERY.to_bytes().unwrap();
    let expected = b"\x12\x34\x01\x00\0\x01\0\0\0\0\0\0\x03www\x07example\0\0\x01\0\x01";
    assert_eq!(bytes, expected);
}

#[test]
fn edns_option_announces_the_receive_buffer() {
    let bytes = DnsQuery { edns: true, trust_ad: true, record_type: DnsRecordType::Aaaa, ..QUERY }.to_bytes().unwrap();
    assert_eq!(bytes[2..4], [1, 0x20]);
    assert!(bytes.ends_with(b"\0\x1c\0\x01\0\0\x29\x04\xd0\0\0\0\0\0\0"), "{bytes:x?}");
}

#[test]
fn names_that_dns_cannot_encode_are_refused() {
    for wrong in ["", ".", "a..b", ".a", "a.", &"x".repeat(64), &["x".repeat(60).as_str(); 5].join(".")] {
        assert_eq!(DnsQuery { name: wrong, ..QUERY }.to_bytes(), Err(DnsNameError), "{wrong}");
    }
}

#[test]
fn cname_chain_is_followed_in_any_order() {
    let mut answer = answer_to(QUERY, Rcode::NOERROR);
    address(&mut answer, "c.example", [1, 1, 1, 1], 60);
    address(&mut answer, "c.example", [2, 2, 2, 2], 90);
    alias(&mut answer, "b.example", "C.example");
    alias(&mut answer, "WWW.example", "b.example");
    assert_eq!(QUERY.parse_response(&answer.finish()), addresses(&[[1, 1, 1, 1], [2, 2, 2, 2]], 60));
}

#[test]
fn addresses_of_other_names_are_ignored() {
    let mut answer = answer_to(QUERY, Rcode::NOERROR);
    address(&mut answer, "evil.example", [6, 6, 6, 6], 60);
    address(&mut answer, "www.example", [1, 1, 1, 1], 60);
    answer.push((name("www.example"), 60, Aaaa::new("::1".parse().unwrap()))).unwrap();
    assert_eq!(QUERY.parse_response(&answer.finish()), addresses(&[[1, 1, 1, 1]], 60));
}

#[test]
fn cname_loop_is_a_server_failure() {
    let mut answer = answer_to(QUERY, Rcode::NOERROR);
    alias(&mut answer, "www.example", "b.example");
    alias(&mut answer, "b.example", "www.example");
    assert!(matches!(QUERY.parse_response(&answer.finish()), Some(DnsResponse::ServerFailure(_))));
}

#[test]
fn dns_response_to_another_query_is_ignored() {
    let response = answer_to(QUERY, Rcode::NOERROR).finish();
    assert!(QUERY.parse_response(&response).is_some());
    assert_eq!(DnsQuery { id: 0x1235, ..QUERY }.parse_response(&response), None);
    assert_eq!(DnsQuery { name: "www.example2", ..QUERY }.parse_response(&response), None);
    assert_eq!(DnsQuery { record_type: DnsRecordType::Aaaa, ..QUERY }.parse_response(&response), None);
}

#[test]
fn dns_error_without_question_is_a_response() {
    let mut response = answer_to(QUERY, Rcode::SERVFAIL).finish();
    response.truncate(12);
    response[5] = 0;
    assert_eq!(QUERY.parse_response(&response), Some(DnsResponse::ServerFailure("SERVFAIL".into())));
    response[3] = 0;
    assert_eq!(QUERY.parse_response(&response), None);
}

#[test]
fn negative_dns_answer_lifetime_follows_soa_record() {
    let mut answer = answer_to(QUERY, Rcode::NXDOMAIN).authority();
    let seconds = Ttl::from_secs;
    let soa = Soa::new(name("ns"), name("mail"), 1.into(), seconds(1), seconds(1), seconds(1), seconds(40));
    answer.push((name("example"), 100, soa)).unwrap();
    let expected = DnsResponse::NoSuchName { ttl: Duration::from_secs(40) };
    assert_eq!(QUERY.parse_response(&answer.finish()), Some(expected));
    let without = answer_to(QUERY, Rcode::NXDOMAIN).finish();
    assert_eq!(QUERY.parse_response(&without), Some(DnsResponse::NoSuchName { ttl: Duration::ZERO }));
}

#[test]
fn ttl_with_the_highest_bit_counts_as_zero() {
    let mut answer = answer_to(QUERY, Rcode::NOERROR);
    address(&mut answer, "www.example", [1, 1, 1, 1], 0x8000_0000);
    assert_eq!(QUERY.parse_response(&answer.finish()), addresses(&[[1, 1, 1, 1]], 0));
}

#[test]
fn truncated_and_rejected_dns_queries_are_distinguished() {
    let mut response = answer_to(QUERY, Rcode::NOERROR).finish();
    response[2] |= 2;
    assert_eq!(QUERY.parse_response(&response), Some(DnsResponse::Truncated));
    let response = answer_to(QUERY, Rcode::FORMERR).finish();
    assert_eq!(QUERY.parse_response(&response), Some(DnsResponse::NotUnderstood));
}

#[test]
fn parsing_truncated_dns_response_never_panics() {
    let mut answer = answer_to(QUERY, Rcode::NOERROR);
    alias(&mut answer, "www.example", "b.example");
    address(&mut answer, "b.example", [1, 1, 1, 1], 60);
    let whole = answer.finish();
    for length in 0..whole.len() {
        let cut = QUERY.parse_response(&whole[..length]);
        assert!(matches!(cut, None | Some(DnsResponse::ServerFailure(_))), "{length}: {cut:?}");
    }
}

proptest::proptest! {
    #[test]
    fn parsing_arbitrary_dns_message_never_panics(bytes: Vec<u8>, rest: Vec<u8>) {
        let _ = QUERY.parse_response(&bytes);
        let mut message = answer_to(QUERY, Rcode::NOERROR).finish();
        message[7] = 3;
        message.extend(rest);
        let _ = QUERY.parse_response(&message);
    }
}

#[test]
fn malformed_record_of_the_name_fails_the_query() {
    let mut answer = answer_to(QUERY, Rcode::NOERROR);
    address(&mut answer, "www.example", [1, 1, 1, 1], 60);
    let mut bytes = answer.finish();
    let length = bytes.len();
    // The record's length and data: three bytes instead of four.
    bytes[length - 5] = 3;
    bytes.truncate(length - 1);
    assert!(matches!(QUERY.parse_response(&bytes), Some(DnsResponse::ServerFailure(_))));
}

#[test]
fn dns_lifetimes_end_at_their_maximum() {
    for (seconds, expected) in [(604_800, 604_800), (604_801, 604_800), (0x7fff_ffff, 604_800), (0x8000_0000, 0)] {
        let mut answer = answer_to(QUERY, Rcode::NOERROR);
        address(&mut answer, "www.example", [1, 1, 1, 1], seconds);
        assert_eq!(QUERY.parse_response(&answer.finish()), addresses(&[[1, 1, 1, 1]], expected));
    }
    let mut answer = answer_to(QUERY, Rcode::NXDOMAIN).authority();
    let day = Ttl::from_secs(86_400);
    let soa = Soa::new(name("ns"), name("mail"), 1.into(), day, day, day, day);
    answer.push((name("example"), 86_400, soa)).unwrap();
    let expected = DnsResponse::NoSuchName { ttl: Duration::from_secs(10_800) };
    assert_eq!(QUERY.parse_response(&answer.finish()), Some(expected));
}

#[test]
fn sixteen_aliases_are_followed() {
    for (count, is_followed) in [(16, true), (17, false)] {
        let mut answer = answer_to(DnsQuery { name: "0.example", ..QUERY }, Rcode::NOERROR);
        for at in 0..count {
            alias(&mut answer, &format!("{at}.example"), &format!("{}.example", at + 1));
        }
        address(&mut answer, &format!("{count}.example"), [1, 1, 1, 1], 60);
        let response = DnsQuery { name: "0.example", ..QUERY }.parse_response(&answer.finish());
        let expected = addresses(&[[1, 1, 1, 1]], 60).filter(|_| is_followed);
        assert_eq!(response.filter(|response| !matches!(response, DnsResponse::ServerFailure(_))), expected);
    }
}

#[test]
fn dns_error_codes_have_their_own_texts() {
    let response = |rcode| QUERY.parse_response(&answer_to(QUERY, rcode).finish());
    let failure = |text: &'static str| Some(DnsResponse::ServerFailure(text.into()));
    assert_eq!(response(Rcode::SERVFAIL), failure("SERVFAIL"));
    assert_eq!(response(Rcode::REFUSED), failure("REFUSED"));
    assert_eq!(response(Rcode::YXDOMAIN), failure("an unknown error"));
    assert_eq!(response(Rcode::NOTIMP), Some(DnsResponse::NotUnderstood));
}

#[test]
fn message_that_is_no_response_is_ignored() {
    let response = answer_to(QUERY, Rcode::NOERROR).finish();
    let changed = |at: usize, bits: u8| {
        let mut bytes = response.clone();
        bytes[at] ^= bits;
        QUERY.parse_response(&bytes)
    };
    assert_eq!([changed(2, 0x80), changed(2, 0x10), changed(12 + 11 + 4, 2)], [None, None, None]);
}

#[test]
fn age_shortens_the_lifetime_of_an_answer() {
    let aged = |response: DnsResponse| response.with_age(Duration::from_secs(40));
    let ttl = Duration::from_secs;
    assert_eq!(aged(addresses(&[], 100).unwrap()), addresses(&[], 60).unwrap());
    assert_eq!(aged(DnsResponse::NoSuchName { ttl: ttl(30) }), DnsResponse::NoSuchName { ttl: ttl(0) });
    assert_eq!(aged(DnsResponse::Truncated), DnsResponse::Truncated);
}

#[test]
fn aaaa_query_takes_ipv6_addresses_alone() {
    let query = DnsQuery { record_type: DnsRecordType::Aaaa, ..QUERY };
    let mut answer = answer_to(query, Rcode::NOERROR);
    address(&mut answer, "www.example", [1, 1, 1, 1], 60);
    answer.push((name("evil.example"), 60, Aaaa::new("2001:db8::6".parse().unwrap()))).unwrap();
    answer.push((name("www.example"), 90, Aaaa::new("2001:db8::1".parse().unwrap()))).unwrap();
    let expected =
        DnsResponse::Addresses { addresses: vec!["2001:db8::1".parse().unwrap()], ttl: Duration::from_secs(90) };
    assert_eq!(query.parse_response(&answer.finish()), Some(expected));
}

#[test]
fn addresses_of_another_class_are_ignored() {
    let mut answer = answer_to(QUERY, Rcode::NOERROR);
    answer.push((name("www.example"), Class::CH, 60, A::new([6, 6, 6, 6].into()))).unwrap();
    address(&mut answer, "www.example", [1, 1, 1, 1], 60);
    assert_eq!(QUERY.parse_response(&answer.finish()), addresses(&[[1, 1, 1, 1]], 60));
}

/// RFC 1034 §3.6.2 allows no other record beside a CNAME. Its target is not looked up then.
#[test]
fn address_beside_a_cname_is_the_answer() {
    let mut answer = answer_to(QUERY, Rcode::NOERROR);
    alias(&mut answer, "www.example", "b.example");
    address(&mut answer, "b.example", [2, 2, 2, 2], 60);
    address(&mut answer, "www.example", [1, 1, 1, 1], 90);
    assert_eq!(QUERY.parse_response(&answer.finish()), addresses(&[[1, 1, 1, 1]], 90));
}
