//! Tests of the connector: races between addresses on the loopback network. Most tests pass the
//! time as an argument, so that they need not wait.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    os::fd::{AsRawFd, BorrowedFd, OwnedFd},
    time::{Duration, Instant},
};

use haul::{
    ErrorKind,
    net::{
        happy_eyeballs::{ConnectOptions, ConnectRace, ConnectRaceStatus, with_port},
        socket::{IdleSocketState, Socket, peek_idle},
    },
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{self, AddressFamily, SocketType};

/// Runs the connector until a connection is established or all addresses have failed. It waits with
/// `poll`.
fn race(addresses: Vec<SocketAddr>, options: &ConnectOptions) -> haul::Result<(Socket, SocketAddr)> {
    let mut connector = ConnectRace::new("host.test", addresses, options, Instant::now());
    loop {
        match connector.step(Instant::now(), &mut |_| ()) {
            ConnectRaceStatus::Pending => {}
            ConnectRaceStatus::Done { socket, peer } => return Ok((socket, peer)),
            ConnectRaceStatus::Failed(error) => return Err(error),
            ConnectRaceStatus::Local(_) => unreachable!("no local socket was asked for"),
        }
        let wait = connector.next_timeout().unwrap().saturating_duration_since(Instant::now());
        let mut fds: Vec<_> = connector.pending_fds().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT)).collect();
        poll(&mut fds, Some(&wait.try_into().unwrap())).unwrap();
    }
}

/// Returns a TCP listener on a free port of this machine, and its address.
fn open() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// An address that refuses connections, because no socket listens on its port.
struct RefusingAddress {
    _bound: OwnedFd,
    address: SocketAddr,
}

impl RefusingAddress {
    /// Binds a free port without listening, so that no other process can listen on it.
    fn new() -> Self {
        let bound = net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        net::bind(&bound, &"127.0.0.1:0".parse::<SocketAddr>().unwrap()).unwrap();
        let address = net::getsockname(&bound).unwrap().try_into().unwrap();
        Self { _bound: bound, address }
    }
}

/// An address that never answers a connection attempt: the listener's queue is full, so every
/// further SYN is dropped.
struct BlackHole {
    _listener: OwnedFd,
    _queue: Vec<Socket>,
    address: SocketAddr,
}

impl BlackHole {
    fn new() -> Self {
        let listener = net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        net::bind(&listener, &"127.0.0.1:0".parse::<SocketAddr>().unwrap()).unwrap();
        net::listen(&listener, 0).unwrap();
        let address = net::getsockname(&listener).unwrap().try_into().unwrap();
        let mut queue = Vec::new();
        loop {
            let socket = Socket::open(&address, true).unwrap();
            let _ = socket.connect(&address);
            // On loopback, an answer arrives before connect returns.
            let answered = socket.connect_result(&address).is_some();
            queue.push(socket);
            if !answered {
                return Self { _listener: listener, _queue: queue, address };
            }
            assert!(queue.len() < 1000, "the queue never fills");
        }
    }
}

/// Runs the connector at the fixed time `now`, until it has a result or waits for a timer. Adds the
/// descriptors that it opens to `shown`.
fn settle(connector: &mut ConnectRace, now: Instant, shown: &mut Vec<i32>) -> ConnectRaceStatus {
    for _ in 0..1000 {
        match connector.step(now, &mut |fd: BorrowedFd<'_>| shown.push(fd.as_raw_fd())) {
            ConnectRaceStatus::Pending => {}
            decided => return decided,
        }
    }
    ConnectRaceStatus::Pending
}

#[test]
fn refused_address_starts_the_next_attempt_immediately() {
    let refusing = RefusingAddress::new();
    let (_listener, good) = open();
    let now = Instant::now();
    let mut connector = ConnectRace::new("h", vec![refusing.address, good], &ConnectOptions::default(), now);
    let mut shown = Vec::new();
    match settle(&mut connector, now, &mut shown) {
        ConnectRaceStatus::Done { peer, socket } => {
            assert_eq!(peer, good);
            assert_eq!(socket.peer_addr().unwrap(), good);
            assert!(shown.contains(&socket.as_raw_fd()), "the winner was shown");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn silent_address_starts_next_after_attempt_delay() {
    let hole = BlackHole::new();
    let (_listener, good) = open();
    let start = Instant::now();
    let options = ConnectOptions::default();
    let mut connector = ConnectRace::new("h", vec![hole.address, good], &options, start);
    let mut shown = Vec::new();
    assert!(matches!(settle(&mut connector, start, &mut shown), ConnectRaceStatus::Pending));
    assert_eq!(connector.next_timeout(), Some(start + options.attempt_delay));
    let before = start + options.attempt_delay - Duration::from_millis(1);
    assert!(matches!(settle(&mut connector, before, &mut shown), ConnectRaceStatus::Pending));
    assert_eq!((shown.len(), connector.pending_fds().count()), (1, 1));
    match settle(&mut connector, start + options.attempt_delay, &mut shown) {
        ConnectRaceStatus::Done { peer, .. } => assert_eq!(peer, good),
        other => panic!("{other:?}"),
    }
    assert_eq!(shown.len(), 2);
    assert_eq!(connector.pending_fds().count(), 0, "the loser is closed");
}

#[test]
fn infinite_attempt_delay_tries_only_one_address() {
    let (hole, (_listener, good)) = (BlackHole::new(), open());
    let options = ConnectOptions { attempt_delay: Duration::MAX, ..ConnectOptions::default() };
    let now = Instant::now();
    let mut connector = ConnectRace::new("h", vec![hole.address, good], &options, now);
    let later = now + options.timeout - Duration::from_secs(1);
    for at in [now, later] {
        assert!(matches!(connector.step(at, &mut |_| {}), ConnectRaceStatus::Pending));
    }
    assert_eq!((connector.pending_fds().count(), connector.next_timeout()), (1, Some(now + options.timeout)));
}

#[test]
fn connect_timeout_covers_all_addresses() {
    let (one, two) = (BlackHole::new(), BlackHole::new());
    let start = Instant::now();
    let options = ConnectOptions { timeout: Duration::from_secs(5), ..ConnectOptions::default() };
    let mut connector = ConnectRace::new("h", vec![one.address, two.address], &options, start);
    let mut shown = Vec::new();
    for millis in [0, 200, 4999] {
        let now = start + Duration::from_millis(millis);
        assert!(matches!(settle(&mut connector, now, &mut shown), ConnectRaceStatus::Pending));
    }
    assert_eq!(shown.len(), 2);
    assert_eq!(connector.next_timeout(), Some(start + options.timeout));
    match settle(&mut connector, start + options.timeout, &mut shown) {
        ConnectRaceStatus::Failed(error) => {
            assert_eq!((error.kind(), error.exit_code()), (ErrorKind::Timeout, 28));
            assert!(error.to_string().contains("connect to h port "), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_addresses_refused_is_a_connect_error() {
    let refusing = RefusingAddress::new();
    let port = refusing.address.port();
    for count in 1..=3 {
        let addresses = vec![refusing.address; count];
        let error = race(addresses, &ConnectOptions::default()).unwrap_err();
        assert_eq!((error.kind(), error.exit_code()), (ErrorKind::Connect, 7));
        let text = error.to_string();
        assert!(text.starts_with(&format!("failed to connect to host.test port {port}: Connection refused")), "{text}");
    }
    let error = race(Vec::new(), &ConnectOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);
}

#[test]
fn connected_socket_is_configured_and_carries_bytes() {
    let refusing = RefusingAddress::new();
    let (listener, good) = open();
    for addresses in [vec![good], vec![refusing.address, good]] {
        let (socket, peer) = race(addresses, &ConnectOptions::default()).unwrap();
        assert_eq!(peer, good);
        let (mut server, _) = listener.accept().unwrap();
        socket.set_nonblocking(false).unwrap();
        assert!(rustix::io::fcntl_getfd(&socket).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
        assert!(net::sockopt::tcp_nodelay(&socket).unwrap());
        assert!(net::sockopt::socket_keepalive(&socket).unwrap());
        let timeout = net::sockopt::socket_timeout(&socket, net::sockopt::Timeout::Send).unwrap();
        assert_eq!(timeout, None, "the connect's limit is not left behind");
        socket.send(b"ping").unwrap();
        let mut buf = [0; 4];
        server.read_exact(&mut buf).unwrap();
        server.write_all(&buf).unwrap();
        assert_eq!(socket.recv(&mut [0; 8]).unwrap(), 4);
    }
}

#[test]
fn address_race_ends_at_connect_timeout() {
    let hole = BlackHole::new();
    for addresses in [vec![hole.address], vec![hole.address; 2]] {
        let options = ConnectOptions { timeout: Duration::from_millis(30), ..ConnectOptions::default() };
        let error = race(addresses.clone(), &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "by the option");
        let none = ConnectOptions { timeout: Duration::ZERO, ..ConnectOptions::default() };
        let error = race(addresses, &none).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "nothing was left");
    }
}

#[test]
fn address_race_finds_the_second_address() {
    let hole = BlackHole::new();
    let (_listener, good) = open();
    let options = ConnectOptions { attempt_delay: Duration::from_millis(10), ..ConnectOptions::default() };
    let (_, peer) = race(vec![hole.address, good], &options).unwrap();
    assert_eq!(peer, good);
}

#[test]
fn peek_at_idle_socket_distinguishes_silent_readable_closed() {
    let (listener, address) = open();
    let (socket, _) = race(vec![address], &ConnectOptions::default()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    assert_eq!(peek_idle(&socket), IdleSocketState::Silent);
    assert_eq!(socket.recv_nonblocking(&mut [0; 4]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    server.write_all(b"unasked").unwrap();
    wait_readable(&socket);
    assert_eq!(peek_idle(&socket), IdleSocketState::HasBytes);
    assert_eq!(socket.recv(&mut [0; 16]).unwrap(), 7, "looking takes nothing");
    assert_eq!(peek_idle(&socket), IdleSocketState::Silent);
    drop(server);
    wait_readable(&socket);
    assert_eq!(peek_idle(&socket), IdleSocketState::Closed);
}

#[test]
fn rcvlowat_delays_socket_readability() {
    let (listener, address) = open();
    let (socket, _) = race(vec![address], &ConnectOptions::default()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    socket.set_recv_lowat(1000).unwrap();
    let writer = std::thread::spawn(move || {
        server.write_all(&[1; 10]).unwrap();
        server.write_all(&[2; 990]).unwrap();
        server
    });
    wait_readable(&socket);
    assert_eq!(socket.recv_nonblocking(&mut [0; 2000]).unwrap(), 1000);
    socket.set_recv_lowat(1).unwrap();
    let mut server = writer.join().unwrap();
    server.write_all(&[3; 10]).unwrap();
    assert_eq!(socket.recv(&mut [0; 2000]).unwrap(), 10);
    socket.set_recv_timeout(Some(Duration::ZERO)).unwrap();
    assert_eq!(socket.recv(&mut [0; 1]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn with_port_adds_the_port_to_each_address() {
    let addresses = ["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()];
    assert_eq!(with_port(&addresses, 80), ["127.0.0.1:80".parse().unwrap(), "[::1]:80".parse::<SocketAddr>().unwrap()]);
}

fn wait_readable(socket: &Socket) {
    use rustix::event::{PollFd, PollFlags, poll};
    poll(&mut [PollFd::new(socket, PollFlags::IN)], None).unwrap();
}
