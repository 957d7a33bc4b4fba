//! The driver that waits: one transfer on one socket, with plain sends and receives. No event loop, no thread, no
//! wake-up; on a warm connection a small request is three system calls (peek, send, receive).
//!
//! Limits hold without an event loop: the connection is made under the deadline, and a receive waits no longer than
//! what is left of it (`SO_RCVTIMEO`), which costs a system call only when there is a limit.
//!
//! A large body is waited for in `poll` instead, on a socket that is non-blocking for as long: then it can be moved
//! past our memory ([`super::direct`]), and the wait ends early when a bulk body has slowed down ([`super::bulk`]). So is
//! the answer to a large upload, which may begin before the upload has ended.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::drive::direct::{Mover, Waited};
use crate::drive::link::{Finished, Link, Pipes, Progress, Waker};
use crate::net::connect::connect_blocking_by;
use crate::net::pool::Key;
use crate::net::proxy::{Opening, Route};
use crate::net::stream::Stream;
use crate::request::Split;
use crate::split::{self, Scout};
use crate::transfer::{After, Broke, Outcome, Transfer};
use crate::{Error, ErrorKind, Result};

/// In a blocking exchange the sink itself waits, so nobody is to be woken.
const NOBODY: Waker<'static> = Waker { wake: None, token: 0 };

/// With at least so much of a body to come, the waits are done by `poll`.
const WORTH_POLLING: u64 = 1 << 20;

/// Runs a transfer to its end.
pub fn run(client: &Client, mut transfer: Transfer) -> Outcome {
    let mut from = From::Pool;
    let mut split = transfer.options().split;
    let result = loop {
        let after;
        (transfer, after, from) = match exchange(client, transfer, from, split) {
            Exchange::Over(transfer, after, from) => (*transfer, after, from),
            Exchange::Split(mut transfer, After::Done(result)) => {
                transfer.facts.finished(Instant::now());
                let url = transfer.target().to_url();
                let after = After::Done(result.map_err(|error| error.with_url(url)));
                (*transfer, after, From::Pool)
            }
            Exchange::Split(transfer, again) => {
                // Once is enough: it was refused, or brought nothing.
                split.connections = 1;
                (*transfer, again, From::Pool)
            }
        };
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

/// What became of one request and its response.
enum Exchange {
    /// It is over, and what broke decides where the next connection comes from.
    Over(Box<Transfer>, After, From),
    /// Its body was split.
    Split(Box<Transfer>, After),
}

/// One request and its response.
fn exchange(client: &Client, mut transfer: Transfer, from: From, split: Split) -> Exchange {
    let now = Instant::now();
    let key = Key::new(transfer.target(), transfer.options());
    let warm = if from == From::Fresh || transfer.wants_fresh {
        None
    } else {
        client.take_idle(&key, now).filter(Link::can_start)
    };
    let mut link = match warm {
        Some(link) => link,
        None => match open(client, key, &mut transfer) {
            Ok(link) => link,
            Err(error) => {
                let after = transfer.on_failure(error, Broke::BeforeSending, Instant::now());
                return Exchange::Over(Box::new(transfer), after, From::Pool);
            }
        },
    };
    let mut finished = Finished::new();
    let deadline = transfer.deadline();
    link.start(transfer, Instant::now(), &mut finished);
    let mut scout = Scout::new(split);
    let waits = loop {
        let waits = drive(client, &mut link, deadline, &mut scout, &mut finished);
        if !finished.is_empty() {
            break waits;
        }
        match split::run(client, link, scout) {
            Ok((transfer, split::After::Done(result))) => {
                return Exchange::Split(Box::new(transfer), After::Done(result));
            }
            Ok((transfer, split::After::Alone)) => {
                return Exchange::Split(Box::new(transfer), After::Again(Duration::ZERO));
            }
            Err(back) => {
                link = *back;
                scout = Scout::Never;
            }
        }
    };
    let next = if link.is_idle() { From::Pool } else { From::Fresh };
    let socket = link.stream().socket();
    let unlimited =
        deadline.is_none() || socket.set_recv_timeout(None).and_then(|()| socket.set_send_timeout(None)).is_ok();
    // In the pool all connections are blocking ones.
    let blocks = waits == Waits::InReceive || socket.set_nonblocking(false).is_ok();
    if next == From::Pool && unlimited && blocks {
        client.put_idle(link, Instant::now());
    } else {
        client.stats().connection_closed(&link);
    }
    let (transfer, after) = finished.pop().expect("a link gives back every transfer that was started on it");
    Exchange::Over(Box::new(transfer), after, next)
}

/// Where an exchange waits for the server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// In the receive itself: one system call for what came.
    InReceive,
    /// In `poll`, before a receive or a move that does not wait: the socket is non-blocking.
    InPoll,
}

/// Sends and receives until the transfer is given back, or is to be split.
fn drive(
    client: &Client,
    link: &mut Link,
    deadline: Option<Instant>,
    scout: &mut Scout,
    finished: &mut Finished,
) -> Waits {
    let mut buffer = client.shelf().take();
    let mut wide = None;
    let mut mover = Mover::default();
    // A server that answers while it is sent to, and reads no more until its answer is taken, must not stop both sides.
    // Nor must one that is to be watched be waited for in a receive.
    let is_watched = link.is_uploading() || link.look_at() != deadline;
    let mut waits = if is_watched && link.stream().socket().set_nonblocking(true).is_ok() {
        Waits::InPoll
    } else {
        Waits::InReceive
    };
    let mut is_drained = false;
    let mut send_error = None;
    while finished.is_empty() {
        let now = Instant::now();
        if scout.is_worth_trying(link, now) {
            break;
        }
        if link.look_at().is_some_and(|at| at <= now) {
            link.expire(now, finished);
            if !finished.is_empty() {
                break;
            }
        }
        if let Some(deadline) = deadline {
            let left = deadline.saturating_duration_since(now);
            if left.is_zero() || (waits == Waits::InReceive && limit(link, left).is_err()) {
                link.break_off(timed_out(), now, finished);
                break;
            }
        }
        if send_error.is_none()
            && let Err(error) = link.pump()
        {
            // The server may have answered before it closed: look before giving up.
            send_error = Some(error);
        }
        let is_large = link.remaining() >= WORTH_POLLING || link.is_direct(Pipes::Awaited);
        if waits == Waits::InReceive
            && is_large
            && !link.has_output()
            && link.stream().socket().set_nonblocking(true).is_ok()
        {
            waits = Waits::InPoll;
            is_drained = true;
        }
        if waits == Waits::InPoll && is_drained && !link.stream().has_ahead() {
            match link.wait(link.look_at()) {
                Ok(Waited::Ready) => {}
                Ok(Waited::Quiet) => link.hurry(),
                Ok(Waited::Late) if deadline.is_none_or(|at| at > Instant::now()) => continue,
                Ok(Waited::Late) => {
                    link.break_off(too_late(send_error), Instant::now(), finished);
                    break;
                }
                Err(error) => {
                    let error = Error::with_source(ErrorKind::Receive, "the connection cannot be waited for", error);
                    link.break_off(error, Instant::now(), finished);
                    break;
                }
            }
        }
        let progress = if waits == Waits::InPoll && link.is_direct(Pipes::Awaited) {
            is_drained = true;
            link.move_body(&mut mover, Instant::now(), NOBODY, finished)
        } else {
            let buffer = if link.reads_wide() { wide.get_or_insert_with(|| client.wide().take()) } else { &mut buffer };
            let progress = link.receive(buffer, Instant::now(), NOBODY, finished);
            is_drained = progress != Progress::More;
            progress
        };
        if progress == Progress::Throttled {
            let until = [link.resumes_at(), link.look_at()].into_iter().flatten().min();
            std::thread::sleep(until.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now())));
            link.resume();
            is_drained = false;
        }
        if progress == Progress::WouldBlock && waits == Waits::InReceive {
            link.break_off(too_late(send_error.take()), Instant::now(), finished);
        }
    }
    waits
}

fn too_late(send_error: Option<io::Error>) -> Error {
    match send_error {
        Some(error) => Error::with_source(ErrorKind::Send, "the request could not be sent", error),
        None => timed_out(),
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

/// Makes a connection: names, address, proxies, TLS.
fn open(client: &Client, key: Key, transfer: &mut Transfer) -> Result<Link> {
    let started = transfer.facts.started;
    let options = Arc::clone(transfer.options());
    let deadline =
        [transfer.deadline(), Instant::now().checked_add(options.connect.timeout)].into_iter().flatten().min();
    let ask = |host: &str, port, family| client.resolver().resolve(host, port, family, deadline).map(Some);
    let Some(route) = Route::find(&key, ask)? else { return Err(timed_out()) };
    transfer.facts.resolved = started.elapsed();
    let mut opening = Opening::new(&key, &route)?;
    let (socket, peer) = connect_blocking_by(route.connector(&key, 0, Instant::now()), deadline)?;
    transfer.facts.connects += 1;
    transfer.facts.connected = started.elapsed();
    transfer.facts.local = socket.local_addr().ok();
    opening.connected(Stream::plain(socket, peer));
    if !opening.is_done() {
        let mut buffer = client.shelf().take();
        let outcome = opening.step(client.tls(), &mut buffer, deadline);
        transfer.facts.connect_status = opening.connect_status();
        if outcome.is_err() && opening.wants_another() {
            drop(opening);
            return open(client, key, transfer);
        }
        if !outcome? {
            return Err(Error::new(ErrorKind::Timeout, "the TLS handshake or that with a proxy timed out"));
        }
        if key.tls.is_some() {
            transfer.facts.secured = started.elapsed();
        }
    }
    let stream = opening.into_stream()?;
    if deadline.is_some() && stream.is_secure() || key.via.hop().is_some() {
        stream.socket().set_recv_timeout(None).map_err(|_| timed_out())?;
    }
    Ok(Link::new(stream, Arc::new(key), 1, client.windows()))
}
