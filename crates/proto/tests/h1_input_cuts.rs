//! Checks that the events of an HTTP/1 machine do not depend on how the input is cut.

mod common;

use common::{H1Observation, InputEnd, asked, feed, get, with_method};
use haul_proto::ResponseError;
use haul_proto::h1::{ChunkFault, FieldLineFault, H1Config, H1Error, RequestHead};
use proptest::prelude::*;

const SESSIONS: &[&[u8]] = &[
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n\nHTTP/1.1 404 Not Found\nServer: x\n\
      Content-Length: 3\n\nno\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
      5\r\nhello\r\n0c;ext=\"a;b\"\r\n, wonderful \r\n5 ;x\r\nworld\r\n000\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX-Folded: a\r\n b\r\n\tc\r\nTransfer-Encoding: chunked\r\n\r\n\
      1\r\n\r\r\n1\r\n\n\r\n0\r\nDigest: abc\r\nEtag:\r\n\r\n",
    b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nHTTP/1.1 200 OK\r\n\r\nall of this is a body",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 304 Not Modified\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nyzHTTP/1.1 2x0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nA: b\r\nC\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nshort",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n",
    b"HTTP/1.1 200 O\x07K\r\nX: \x01a\x7f\r\nContent-Length: 1\r\n\r\nx",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity, chunked\r\n\r\n2 \nok\n1;x\n\n\n0\nA: b\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nServer:",
    b"",
];

fn session(wire: &[u8], requests: &[RequestHead<'_>], cuts: &[usize]) -> Vec<H1Observation> {
    feed(&mut asked(H1Config::default(), requests), wire, cuts, InputEnd::Clean)
}

#[test]
fn h1_input_cut_once_gives_the_same_events() {
    for wire in SESSIONS {
        let whole = session(wire, &[get(); 3], &[]);
        for cut in 0..=wire.len() {
            assert_eq!(session(wire, &[get(); 3], &[cut]), whole, "{} cut at {cut}", wire.escape_ascii());
        }
    }
}

#[test]
fn h1_input_byte_by_byte_gives_same_events() {
    for wire in SESSIONS {
        let cuts: Vec<usize> = (0..wire.len()).collect();
        assert_eq!(session(wire, &[get(); 3], &cuts), session(wire, &[get(); 3], &[]), "{}", wire.escape_ascii());
    }
}

/// Checks the number of complete responses in each session, and its final error. Three requests are
/// sent. If the connection could carry another response, its end is therefore an error.
#[test]
fn h1_test_sessions_cover_every_kind_of_framing() {
    let outcomes: Vec<(usize, Option<H1Error>)> = SESSIONS
        .iter()
        .map(|wire| {
            let seen = session(wire, &[get(); 3], &[]);
            let complete = seen.iter().filter(|event| matches!(event, H1Observation::Complete(..))).count();
            let error =
                seen.last().and_then(|event| if let H1Observation::Error(error) = event { Some(*error) } else { None });
            (complete, error)
        })
        .collect();
    let expected = [
        (1, Some(H1Error::Response(ResponseError::EndedBeforeResponse))),
        (1, Some(H1Error::Response(ResponseError::EndedBeforeResponse))),
        (1, Some(H1Error::Response(ResponseError::EndedBeforeResponse))),
        (1, Some(H1Error::Response(ResponseError::EndedBeforeResponse))),
        (1, None),
        (1, None),
        (3, Some(H1Error::Response(ResponseError::EndedIdle))),
        (2, Some(H1Error::StatusLine)),
        (0, Some(H1Error::Chunk(ChunkFault::SizeEnd))),
        (0, Some(H1Error::Field(FieldLineFault::Name))),
        (0, Some(H1Error::EndedInBody { expected: 7, got: 5 })),
        (0, Some(H1Error::EndedInChunks { got: 2 })),
        (1, Some(H1Error::Response(ResponseError::EndedBeforeResponse))),
        (1, None),
        (0, Some(H1Error::EndedInHead { got: 24 })),
        (0, Some(H1Error::Response(ResponseError::EndedBeforeResponse))),
    ];
    assert_eq!(outcomes, expected);
}

#[test]
fn tunnel_response_cut_once_gives_same_events() {
    let wire = b"HTTP/1.1 200 Established\r\nVia: x\r\n\r\n\r\nHTTP/1.1 is not read any more";
    let whole = session(wire, &[with_method("CONNECT")], &[]);
    assert!(matches!(&whole[..], [H1Observation::Tunnel(_, _, rest)] if rest.starts_with(b"\r\nHTTP")));
    for cut in 0..=wire.len() {
        assert_eq!(session(wire, &[with_method("CONNECT")], &[cut]), whole, "cut at {cut}");
    }
}

/// Generates pieces of text with a meaning in HTTP, which reach more of the parser than random
/// bytes.
fn fragment() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(b"\r\n".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"HTTP/1.1 200 OK\r\n".to_vec()),
        Just(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec()),
        Just(b"Content-Length: 3\r\n".to_vec()),
        Just(b"Transfer-Encoding: chunked\r\n".to_vec()),
        Just(b"Transfer-Encoding: identity\r\n".to_vec()),
        Just(b"Connection: keep-alive\r\n".to_vec()),
        Just(b" folded\r\n".to_vec()),
        Just(b"3\r\nabc\r\n".to_vec()),
        Just(b"0\r\n".to_vec()),
        Just(b"3 \nabc\n".to_vec()),
        Just(b"1;x=y\r\n".to_vec()),
        Just(b"X: y\r\n".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..4),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_cuts_give_the_same_h1_events(which in 0..SESSIONS.len(), raw in proptest::collection::vec(any::<u16>(), 0..12)) {
        let wire = SESSIONS[which];
        let mut cuts: Vec<usize> = raw.iter().map(|&cut| usize::from(cut) % (wire.len() + 1)).collect();
        cuts.sort_unstable();
        prop_assert_eq!(session(wire, &[get(); 3], &cuts), session(wire, &[get(); 3], &[]));
    }

    #[test]
    fn random_h1_input_gives_same_events_when_cut(
        fragments in proptest::collection::vec(fragment(), 0..16),
        raw in proptest::collection::vec(any::<u16>(), 0..12),
    ) {
        let wire = [b"HTTP/1.1 200 OK\r\n".to_vec(), fragments.concat()].concat();
        let mut cuts: Vec<usize> = raw.iter().map(|&cut| usize::from(cut) % (wire.len() + 1)).collect();
        cuts.sort_unstable();
        // More requests wait than can be answered, so nothing depends on whether bytes behind the
        // last response are there yet.
        let requests = [get(); 30];
        prop_assert_eq!(session(&wire, &requests, &cuts), session(&wire, &requests, &[]));
    }
}
