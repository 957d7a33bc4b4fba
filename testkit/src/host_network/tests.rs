//! Tests of a host network from the view of its clients: names and pages.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use super::*;

#[test]
fn host_name_lookup_ignores_case() {
    assert_eq!(host_index(&host_name(4711)), Some(4711));
    assert_eq!(host_index("H12.HOSTS.test"), Some(12));
    for other in ["x1.hosts.test", "h1.test", "h.hosts.test", "hosts.test", ""] {
        assert_eq!(host_index(other), None, "{other}");
    }
}

#[test]
fn shuffled_urls_equal_unshuffled_urls_except_in_order() {
    let network = HostNetwork::builder(10).start().unwrap();
    let key = |url: &PageOnHost| url.key;
    let mut in_turn: Vec<u64> = network.urls_in_turn(25).iter().map(key).collect();
    let mut shuffled: Vec<u64> = network.urls_shuffled(25, 1).iter().map(key).collect();
    assert_ne!(in_turn, shuffled);
    in_turn.sort_unstable();
    shuffled.sort_unstable();
    assert_eq!(in_turn, shuffled);
    in_turn.dedup();
    assert_eq!(in_turn.len(), 25);
}

/// Queries the name server for an A record. Returns the response code and the last four bytes of
/// the response, which are the address if there is one.
fn look_up(network: &HostNetwork, host: &str) -> (u8, [u8; 4]) {
    let mut query = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in host.split('.') {
        query.push(label.len() as u8);
        query.extend(label.as_bytes());
    }
    query.extend([0, 0, 1, 0, 1]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket.send_to(&query, network.name_server()).unwrap();
    let mut response = [0; 512];
    let len = socket.recv(&mut response).unwrap();
    (response[3] & 15, response[len - 4..len].try_into().unwrap())
}

#[test]
fn name_server_answers_according_to_host_behaviour() {
    let network = HostNetwork::builder(3).mix(HostMix::First(1, HostBehaviour::NameMissing)).start().unwrap();
    assert_eq!(look_up(&network, "h0.hosts.test").0, NXDOMAIN);
    assert_eq!(look_up(&network, "h2.hosts.test"), (0, [127, 16, 0, 3]));
    assert_eq!(look_up(&network, "h3.hosts.test").0, NXDOMAIN);
    assert_eq!(network.take_queries().len(), 3);
    let network = HostNetwork::builder(1).mix(HostMix::First(1, HostBehaviour::NameFails)).start().unwrap();
    assert_eq!(look_up(&network, "h0.hosts.test").0, SERVFAIL);
}

#[test]
fn tls_hosts_have_certificates_and_resume_sessions() {
    let network = HostNetwork::builder(2).tls(true).start().unwrap();
    let config = crate::test_certificates::client_config(network.ca_pem().unwrap());
    let port: u16 = network.url(0, 0).split([':', '/']).nth(4).unwrap().parse().unwrap();
    for host in [0, 1, 0] {
        let name = host_name(host);
        let session = ClientConnection::new(Arc::clone(&config), ServerName::try_from(name.clone()).unwrap()).unwrap();
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        let mut stream = StreamOwned::new(session, stream);
        write!(stream, "GET /300/5 HTTP/1.1\r\nHost: {name}\r\n\r\n").unwrap();
        let mut response = Vec::new();
        let page = crate::page_server::page(&name, "/300/5");
        while !response.ends_with(&page) {
            let mut piece = [0; 1000];
            let len = stream.read(&mut piece).unwrap();
            assert_ne!(len, 0, "closed after {}", String::from_utf8_lossy(&response));
            response.extend(&piece[..len]);
        }
    }
    let counts = network.pages().counts();
    assert_eq!((counts.full_handshakes, counts.resumed_handshakes, counts.pages), (2, 1, 3));
}
