//! A test of connecting without free file descriptors (EMFILE): the error tells the caller to use
//! fewer connections. This is a separate test program, because the limit on descriptors applies to
//! the whole process.

use std::{net::TcpListener, os::fd::AsRawFd, time::Instant};

use haul::{
    ErrorKind,
    net::happy_eyeballs::{ConnectOptions, ConnectRace, ConnectRaceStatus},
};
use rustix::process::{Resource, getrlimit, setrlimit};

#[test]
fn connect_without_free_descriptors_reports_emfile() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // The lowest free descriptor is the first to be refused.
    let lowest = std::fs::File::open("/dev/null").unwrap().as_raw_fd();
    let before = getrlimit(Resource::Nofile);
    let mut tight = before;
    tight.current = Some(u64::try_from(lowest).unwrap());
    setrlimit(Resource::Nofile, tight).unwrap();

    let options = ConnectOptions::default();
    let now = Instant::now();
    let steps = [1, 2].map(|count| {
        let mut connector = ConnectRace::new("h", vec![address; count], &options, now);
        connector.step(now, &mut |_| ())
    });
    setrlimit(Resource::Nofile, before).unwrap();

    for step in steps {
        let ConnectRaceStatus::Failed(error) = step else { panic!("{step:?}") };
        assert_eq!(error.kind(), ErrorKind::Connect);
        assert_eq!(error.io_source().unwrap().raw_os_error(), Some(libc::EMFILE));
    }
    let mut connector = ConnectRace::new("h", vec![address], &options, now);
    assert!(!matches!(connector.step(now, &mut |_| ()), ConnectRaceStatus::Failed(_)), "there are descriptors again");
}
