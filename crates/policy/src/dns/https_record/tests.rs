use core::time::Duration;

use domain::base::iana::{Rcode, Rtype};
use domain::base::rdata::UnknownRecordData;
use domain::base::{Message, MessageBuilder, Name};
use domain::rdata::Cname;

use super::*;
use crate::dns::message::{DnsQuery, DnsRecordType, DnsResponse};

const QUERY: DnsQuery<'_> =
    DnsQuery { name: "www.example", record_type: DnsRecordType::Https, id: 7, edns: false, trust_ad: false };

const ALPN_H3: (u16, &[u8]) = (1, b"\x02h3");

/// Returns the data of an HTTPS record with these parameters. The labels of `target` are separated
/// by dots.
fn rdata(priority: u16, target: &str, params: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = priority.to_be_bytes().to_vec();
    for label in target.split('.').filter(|label| !label.is_empty()) {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    for (key, value) in params {
        bytes.extend(key.to_be_bytes());
        bytes.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        bytes.extend(*value);
    }
    bytes
}

/// Returns a response that has these HTTPS records for `www.example`.
fn message(records: &[Vec<u8>]) -> Vec<u8> {
    let query = QUERY.to_bytes().unwrap();
    let mut answer =
        MessageBuilder::new_vec().start_answer(&Message::from_octets(query).unwrap(), Rcode::NOERROR).unwrap();
    let owner: Name<Vec<u8>> = Name::vec_from_str("WWW.example").unwrap();
    for data in records {
        answer.push((&owner, 300, UnknownRecordData::from_octets(Rtype::HTTPS, data).unwrap())).unwrap();
    }
    answer.finish()
}

fn set(records: &[Vec<u8>]) -> HttpsRecordSet {
    match QUERY.parse_response(&message(records)) {
        Some(DnsResponse::HttpsRecords { records, .. }) => records,
        other => panic!("{other:?}"),
    }
}

fn services(records: &[Vec<u8>]) -> Vec<HttpsRecord> {
    match set(records) {
        HttpsRecordSet::Services(services) => services,
        HttpsRecordSet::Alias(target) => panic!("{target}"),
    }
}

fn is_dropped(params: &[(u16, &[u8])]) -> bool {
    services(&[rdata(1, "", params)]).is_empty()
}

#[test]
fn https_record_has_protocols_port_target_and_hints() {
    let v6: std::net::Ipv6Addr = "2001:db8::1".parse().unwrap();
    let all: &[(u16, &[u8])] =
        &[(1, b"\x02h3\x02h2\x05weird"), (3, &[0x20, 0xfb]), (4, &[192, 0, 2, 1, 192, 0, 2, 2]), (6, &v6.octets())];
    let hints = ["192.0.2.1", "192.0.2.2", "2001:db8::1"].map(|text| text.parse().unwrap()).to_vec();
    assert_eq!(
        services(&[rdata(1, "SVC.example", all)]),
        [HttpsRecord {
            priority: 1,
            target: "svc.example".into(),
            port: Some(8443),
            protocols: vec![AlpnProtocol::H3, AlpnProtocol::H2, AlpnProtocol::H1],
            hints,
            ech: None,
        }]
    );
}

#[test]
fn https_root_target_stands_for_owner_name() {
    assert_eq!(services(&[rdata(1, "", &[ALPN_H3])])[0].target, "www.example");
}

#[test]
fn https_endpoints_are_ordered_by_priority() {
    let found = services(&[rdata(9, "c", &[]), rdata(1, "a", &[]), rdata(3, "b", &[])]);
    assert_eq!(found.iter().map(|record| &*record.target).collect::<Vec<_>>(), ["a", "b", "c"]);
}

#[test]
fn no_default_alpn_removes_http1() {
    assert_eq!(services(&[rdata(1, "", &[ALPN_H3, (2, b"")])])[0].protocols, [AlpnProtocol::H3]);
    assert_eq!(services(&[rdata(1, "", &[])])[0].protocols, [AlpnProtocol::H1]);
    assert!(is_dropped(&[(2, b"")]), "there is no protocol left");
}

#[test]
fn https_record_with_unsupported_mandatory_key_is_dropped() {
    let unknown: &[(u16, &[u8])] = &[(0, &[0, 99]), ALPN_H3, (99, b"x")];
    let found = services(&[rdata(1, "a", unknown), rdata(2, "b", &[(0, &[0, 1]), ALPN_H3])]);
    assert_eq!((found.len(), &*found[0].target), (1, "b"));
    assert!(!is_dropped(&[(5, b"ech"), (99, b"")]), "what is not mandatory is ignored");
}

#[test]
fn malformed_https_record_drops_all_records() {
    let wrong: [&[(u16, &[u8])]; 13] = [
        &[(1, b"")],
        &[(1, b"\0")],
        &[(1, b"\x03h3")],
        &[ALPN_H3, (2, b"x")],
        &[(3, b"\x01")],
        &[(3, b"\x01\x02\x03")],
        &[(4, b"")],
        &[(4, b"\x01\x02\x03")],
        &[(6, b"")],
        &[(6, &[0; 15])],
        &[(0, &[0, 1])],
        &[(0, &[0, 3, 0, 1]), ALPN_H3, (3, &[1, 1])],
        &[(3, &[1, 1]), ALPN_H3],
    ];
    for params in wrong {
        assert!(services(&[rdata(1, "a", &[ALPN_H3]), rdata(2, "b", params)]).is_empty(), "{params:?}");
    }
    let mut cut = rdata(1, "a", &[ALPN_H3]);
    cut.pop();
    assert!(services(&[cut]).is_empty());
    assert!(services(&[rdata(1, "a b", &[ALPN_H3])]).is_empty());
}

#[test]
fn https_alias_takes_precedence_over_endpoints() {
    let alias = rdata(0, "Other.example", &[]);
    assert_eq!(set(&[rdata(1, "a", &[]), alias]), HttpsRecordSet::Alias("other.example".into()));
    assert_eq!(set(&[rdata(0, "", &[])]), HttpsRecordSet::Services(Vec::new()));
}

#[test]
fn number_of_https_records_is_bounded() {
    let many: Vec<_> = (1..200u16).map(|priority| rdata(priority, "a", &[])).collect();
    assert_eq!(services(&many).len(), MAX_RECORDS);
    assert_eq!(services(&[rdata(1, "", &[(4, &[9; 400])])])[0].hints.len(), MAX_HINTS);
}

#[test]
fn https_records_are_found_through_a_cname() {
    let query = QUERY.to_bytes().unwrap();
    let mut answer =
        MessageBuilder::new_vec().start_answer(&Message::from_octets(query).unwrap(), Rcode::NOERROR).unwrap();
    let name = |text| Name::<Vec<u8>>::vec_from_str(text).unwrap();
    let data = rdata(1, "", &[ALPN_H3]);
    answer.push((name("cdn.example"), 60, UnknownRecordData::from_octets(Rtype::HTTPS, &data).unwrap())).unwrap();
    answer.push((name("www.example"), 300, Cname::new(name("cdn.example")))).unwrap();
    match QUERY.parse_response(&answer.finish()) {
        Some(DnsResponse::HttpsRecords { records: HttpsRecordSet::Services(found), ttl }) => {
            assert_eq!((&*found[0].target, ttl), ("cdn.example", Duration::from_secs(60)));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn truncated_https_record_never_panics() {
    let whole = message(&[rdata(1, "svc.example", &[(0, &[0, 1]), ALPN_H3, (3, &[1, 1]), (4, &[1; 8])])]);
    for length in 0..whole.len() {
        match QUERY.parse_response(&whole[..length]) {
            None | Some(DnsResponse::ServerFailure(_)) => {}
            other => panic!("{length}: {other:?}"),
        }
    }
}

proptest::proptest! {
    #[test]
    fn arbitrary_https_record_never_panics(data: Vec<u8>) {
        let data = &data[..data.len().min(1000)];
        assert!(QUERY.parse_response(&message(&[data.to_vec()])).is_some());
    }
}

#[test]
fn ech_keys_of_https_record_are_kept() {
    let list: &[u8] = &[0, 4, 0xfe, 0x0d, 0, 0];
    let found = services(&[rdata(1, "", &[(5, list)]), rdata(2, "", &[])]);
    let lists: Vec<Option<&[u8]>> = found.iter().map(|record| record.ech.as_deref()).collect();
    assert_eq!(lists, [Some(list), None]);
    // The key may be mandatory.
    assert_eq!(services(&[rdata(1, "", &[(0, &[0, 5]), (5, list)])])[0].ech.as_deref(), Some(list));
}

#[test]
fn empty_ech_key_is_malformed_and_huge_ignored() {
    assert!(is_dropped(&[(5, b"")]));
    let at_most = vec![7; MAX_ECH_LIST];
    assert_eq!(services(&[rdata(1, "", &[(5, &at_most)])])[0].ech.as_ref(), Some(&at_most));
    let more = vec![7; MAX_ECH_LIST + 1];
    assert_eq!(services(&[rdata(1, "", &[(5, &more)])])[0].ech, None);
}

#[test]
fn query_name_has_the_port_unless_443() {
    assert_eq!(query_name("H.Example.", 443), "h.example");
    assert_eq!(query_name("h.example", 8443), "_8443._https.h.example");
}

#[test]
fn http3_is_spoken_if_its_protocol_is_named() {
    let record = HttpsRecord {
        priority: 1,
        target: "h".into(),
        port: None,
        protocols: vec![AlpnProtocol::H1, AlpnProtocol::H3],
        hints: Vec::new(),
        ech: None,
    };
    assert!(record.speaks_http3());
    assert!(!HttpsRecord { protocols: vec![AlpnProtocol::H2], ..record }.speaks_http3());
}

#[test]
fn mandatory_keys_are_ascending() {
    let with = |mandatory: &'static [u8]| is_dropped(&[(0, mandatory), ALPN_H3, (3, b"\x01\xbb")]);
    assert!(!with(b"\0\x01\0\x03"));
    assert!(with(b"\0\x03\0\x01") && with(b"\0\x01\0\x01"));
}

#[test]
fn https_record_with_port_0_is_dropped_alone() {
    let found = services(&[rdata(1, "a", &[ALPN_H3, (3, &[0, 0])]), rdata(2, "b", &[ALPN_H3])]);
    assert_eq!(found.iter().map(|record| &*record.target).collect::<Vec<_>>(), ["b"]);
}

#[test]
fn named_http1_is_not_added_again() {
    let protocols = |alpn: &[u8]| services(&[rdata(1, "", &[(1, alpn)])])[0].protocols.clone();
    assert_eq!(protocols(b"\x08http/1.1\x02h3"), [AlpnProtocol::H1, AlpnProtocol::H3]);
}
