//! Opens connections for the blocking driver: resolves the host name, and runs the connecting state
//! machine until the connection is open or has failed.
//!
//! ```text
//!  open_for ─▶ open ─▶ Connecting::step ◀─▶ wait in poll
//!                           └─▶ resolve
//! ```

use std::cell::RefCell;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use haul_policy::dns::https_record::HttpsRecord;

use crate::client::Client;
use crate::drive::connection::HttpConnection;
use crate::interrupt_callback::InterruptCallbackTimer;
use crate::net::connecting::{ConnectContext, ConnectProgress, Connecting};
use crate::net::dns::{AddressFamily, AvailableAddresses, HttpsLookupStatus, LookupCaller};
use crate::net::http3_discovery_by_dns;
use crate::net::pool::ConnectionKey;
#[cfg(feature = "http3")]
use crate::net::quic::QuicConnectionLoad;
use crate::transfer::Transfer;
use crate::transfer_facts::TransferPhase;
use crate::{Error, ErrorKind, Result};

/// The interval at which a blocking thread asks for further addresses while its connection attempts
/// run. No socket reports them.
const LATE_ADDRESS_INTERVAL: Duration = Duration::from_millis(10);

/// Opens a connection for the transfer's next exchange (a request and its response). If the process
/// has no file descriptor left, closes an idle connection and tries again.
pub(super) fn open_connection_for(
    client: &Client,
    transfer: &mut Transfer,
    timer: &mut InterruptCallbackTimer,
) -> Result<HttpConnection> {
    let key = Arc::new(ConnectionKey::new(transfer.target(), transfer.options()));
    transfer.set_route(&key);
    http3_discovery_by_dns::begin_lookup(
        client.resolver(),
        LookupCaller::BlockingThread,
        transfer.target(),
        transfer.options(),
        &key,
    );
    loop {
        match open_connection(client, &key, transfer, timer) {
            // The descriptor of an idle connection can be used instead.
            Err(error) if error.lacks_descriptors() && client.close_oldest_pooled() => {}
            outcome => return outcome,
        }
    }
}

/// Opens a connection for the transfer. Blocks this thread until the connection is open or has
/// failed.
fn open_connection(
    client: &Client,
    key: &Arc<ConnectionKey>,
    transfer: &mut Transfer,
    timer: &mut InterruptCallbackTimer,
) -> Result<HttpConnection> {
    let options = Arc::clone(transfer.options());
    let now = Instant::now();
    transfer.facts.enter_phase(TransferPhase::Resolve, now);
    let opens_by = crate::time_conversions::add_saturating(now, options.connect.timeout);
    let opens_by = transfer.deadline().map_or(opens_by, |at| at.min(opens_by));
    let mut connecting = Connecting::new(Arc::clone(key), &options, 0, opens_by);
    // Most plain connections need no buffer.
    let mut buffer = None;
    // True once a lookup has given the addresses of one family, and goes on in the background.
    let mut has_early_addresses = false;
    let name_news = connecting.name_news();
    loop {
        let now = Instant::now();
        timer.call_if_due(now)?;
        let read_buffer =
            connecting.needs_buffer().then(|| buffer.get_or_insert_with(|| client.buffer_pool().take_buffer()));
        let shared_timer = RefCell::new(&mut *timer);
        let progress = connecting.step(&mut ConnectContext {
            now,
            tls: client.tls(),
            buffer: read_buffer.map_or(&mut [], |buffer| &mut buffer[..]),
            #[cfg(feature = "http3")]
            quic: client.quic_resources(QuicConnectionLoad::One),
            resolve: &mut |host, port, family| {
                let found = match has_early_addresses || key.may_connect_without(host) {
                    true => {
                        let news = Arc::clone(&name_news);
                        let notify = move || news.store(true, Ordering::Release);
                        client.resolver().lookup_for_connection(
                            (host, port),
                            family,
                            LookupCaller::EventLoop,
                            notify,
                        )?
                    }
                    false => Some(resolve(client, host, port, family, opens_by, &mut shared_timer.borrow_mut())?),
                };
                let is_early = found.as_ref().is_some_and(|found| !found.is_complete);
                if is_early && !has_early_addresses {
                    // The next step asks again, with a callback.
                    name_news.store(true, Ordering::Release);
                }
                has_early_addresses |= is_early;
                Ok(found)
            },
            https_records: &mut |host, port| {
                https_records(client, host, port, opens_by, &mut shared_timer.borrow_mut()).map(Some)
            },
            watch: &mut |_| Ok(()),
            observer: transfer,
        })?;
        match progress {
            ConnectProgress::Resolved | ConnectProgress::Advanced => {}
            ConnectProgress::Waits => {
                let mut until = connecting.next_timeout();
                if has_early_addresses && connecting.awaits_addresses() {
                    until = until.min(Instant::now() + LATE_ADDRESS_INTERVAL);
                }
                connecting.wait(timer.limit_wait(Some(until), Instant::now()).unwrap_or(until))?;
            }
            ConnectProgress::Open(opened) => {
                let rate = options.lowest_rate();
                // TCP may have won against QUIC.
                let key = connecting.key();
                let connection = HttpConnection::new(opened, Arc::clone(key), 1, client.recv_memory(), rate);
                return match connection.set_nonblocking(false) {
                    Ok(()) => Ok(connection),
                    Err(error) => {
                        let message = format!("failed to connect to {}", key.host);
                        Err(Error::with_source(ErrorKind::Connect, message, error))
                    }
                };
            }
        }
    }
}

/// Resolves a host name, and waits for the result until `deadline`. Calls the interrupt callback
/// during the wait.
fn resolve(
    client: &Client,
    host: &str,
    port: u16,
    family: AddressFamily,
    deadline: Instant,
    timer: &mut InterruptCallbackTimer,
) -> Result<AvailableAddresses> {
    loop {
        let now = Instant::now();
        let answer =
            client.resolver().resolve_for_connection(host, port, family, timer.limit_wait(Some(deadline), now));
        let is_late = || deadline <= Instant::now();
        match answer {
            Err(error) if error.kind() == ErrorKind::Timeout && !is_late() => timer.call_if_due(Instant::now())?,
            answer => return answer,
        }
    }
}

/// Looks up the HTTPS records of an origin, and waits for them until `deadline`. Calls the
/// interrupt callback during the wait. The query goes to name servers directly, even if the
/// system's resolver looks up addresses. The system's resolver has no function for HTTPS records.
fn https_records(
    client: &Client,
    host: &str,
    port: u16,
    deadline: Instant,
    timer: &mut InterruptCallbackTimer,
) -> Result<Arc<[HttpsRecord]>> {
    let (sender, receiver) = mpsc::channel();
    let notify = move || {
        // The receiver is gone if the deadline has passed.
        let _ = sender.send(());
    };
    let mut status = client.resolver().https_records(host, port, notify);
    loop {
        if let HttpsLookupStatus::Ready { records, .. } = status {
            return Ok(records);
        }
        let now = Instant::now();
        if deadline <= now {
            return Err(Error::new(ErrorKind::Timeout, format!("the lookup of HTTPS records timed out: {host}")));
        }
        timer.call_if_due(now)?;
        let until = timer.limit_wait(Some(deadline), now).unwrap_or(deadline);
        if receiver.recv_timeout(until.saturating_duration_since(now)) != Err(mpsc::RecvTimeoutError::Timeout) {
            status = client.resolver().https_records(host, port, || ());
        }
    }
}
