//! The driver that waits: one transfer on one socket, with plain sends and receives. No event loop, no thread, no
//! wake-up; on a warm connection a small request is three system calls (peek, send, receive).
//!
//! Limits hold without an event loop: the connection is made under the deadline, and a receive waits no longer than
//! what is left of it (`SO_RCVTIMEO`), which costs a system call only when there is a limit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::drive::link::{Finished, Link, Progress, Waker};
use crate::net::connect::{connect_blocking, with_port};
use crate::net::pool::Key;
use crate::net::stream::Stream;
use crate::net::tls::Tls;
use crate::transfer::{After, Broke, Outcome, Transfer};
use crate::{Error, ErrorKind, Result};

/// In a blocking exchange the sink itself waits, so nobody is to be woken.
const NOBODY: Waker<'static> = Waker { wake: None, token: 0 };

/// Runs a transfer to its end.
pub fn run(client: &Client, mut transfer: Transfer) -> Outcome {
    let mut from = From::Pool;
    let result = loop {
        let after;
        (transfer, after, from) = exchange(client, transfer, from);
        match after {
            After::Done(result) => break result,
            After::Again(wait) => std::thread::sleep(wait),
        }
    };
    let (outcome, _) = transfer.into_outcome(result);
    let mut totals = crate::stats::Totals::default();
    totals.transfer_finished(&outcome.facts, outcome.result.is_err());
    client.stats().add(&totals);
    outcome
}

/// Where a connection for the next exchange comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    /// The pool, if it has one.
    Pool,
    /// The network: the last connection broke, which makes the others of its age suspect.
    Fresh,
}

/// One request and its response.
fn exchange(client: &Client, mut transfer: Transfer, from: From) -> (Transfer, After, From) {
    let now = Instant::now();
    let key = Key::new(transfer.target(), transfer.options());
    let warm = if from == From::Fresh { None } else { client.take_idle(&key, now) };
    let mut link = match warm {
        Some(link) => link,
        None => match open(client, key, &mut transfer) {
            Ok(link) => link,
            Err(error) => {
                let after = transfer.on_failure(error, Broke::BeforeSending, Instant::now());
                return (transfer, after, From::Pool);
            }
        },
    };
    let mut finished = Finished::new();
    let deadline = transfer.deadline();
    link.start(transfer, Instant::now(), &mut finished);
    drive(client, &mut link, deadline, &mut finished);
    let next = if link.is_idle() { From::Pool } else { From::Fresh };
    let socket = link.stream().socket();
    let unlimited =
        deadline.is_none() || socket.set_recv_timeout(None).and_then(|()| socket.set_send_timeout(None)).is_ok();
    if next == From::Pool && unlimited {
        client.put_idle(link, Instant::now());
    } else {
        client.stats().connection_closed(&link);
    }
    let (transfer, after) = finished.pop().expect("a link gives back every transfer that was started on it");
    (transfer, after, next)
}

/// Sends and receives until the transfer is given back.
fn drive(client: &Client, link: &mut Link, deadline: Option<Instant>, finished: &mut Finished) {
    let mut buffer = client.shelf().take();
    let mut send_error = None;
    while finished.is_empty() {
        let now = Instant::now();
        if let Some(deadline) = deadline {
            let left = deadline.saturating_duration_since(now);
            if left.is_zero() || limit(link, left).is_err() {
                link.break_off(timed_out(), now, finished);
                return;
            }
        }
        if send_error.is_none()
            && let Err(error) = link.pump()
        {
            // The server may have answered before it closed: look before giving up.
            send_error = Some(error);
        }
        let progress = link.receive(&mut buffer, Instant::now(), NOBODY, finished);
        if progress == Progress::WouldBlock {
            let error = match send_error.take() {
                Some(error) => Error::with_source(ErrorKind::Send, "the request could not be sent", error),
                None => timed_out(),
            };
            link.break_off(error, Instant::now(), finished);
        }
    }
}

fn limit(link: &Link, left: Duration) -> Result<()> {
    let socket = link.stream().socket();
    socket
        .set_recv_timeout(Some(left))
        .and_then(|()| socket.set_send_timeout(Some(left)))
        .map_err(|error| Error::with_source(ErrorKind::Timeout, "the time limit cannot be set", error))
}

fn timed_out() -> Error {
    Error::new(ErrorKind::Timeout, "the operation timed out")
}

/// Makes a connection: name, address, TLS.
fn open(client: &Client, key: Key, transfer: &mut Transfer) -> Result<Link> {
    let started = transfer.facts.started;
    let options = Arc::clone(transfer.options());
    let deadline =
        [transfer.deadline(), Instant::now().checked_add(options.connect.timeout)].into_iter().flatten().min();
    let addresses = match key.address() {
        Some(address) => Arc::from([address]),
        None => client.resolver().resolve(&key.dial.0, key.dial.1, key.family, deadline)?,
    };
    transfer.facts.resolved = started.elapsed();
    let (socket, peer) = connect_blocking(&key.dial.0, with_port(&addresses, key.dial.1), &options.connect, deadline)?;
    transfer.facts.connects += 1;
    transfer.facts.connected = started.elapsed();
    transfer.facts.local = socket.local_addr().ok();
    let mut stream = Stream::plain(socket, peer);
    if let Some(tls) = &key.tls {
        stream = stream.secure(Tls::new(&*client.tls().context(tls)?, &key.host)?);
        let mut buffer = client.shelf().take();
        if let Some(deadline) = deadline {
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            stream.socket().set_recv_timeout(Some(left)).map_err(|_| timed_out())?;
        }
        if !stream.handshake(&mut buffer)? {
            return Err(Error::new(ErrorKind::Timeout, "the TLS handshake timed out"));
        }
        if deadline.is_some() {
            stream.socket().set_recv_timeout(None).map_err(|_| timed_out())?;
        }
        transfer.facts.secured = started.elapsed();
    }
    Ok(Link::new(stream, Arc::new(key), 1))
}
