//! Tests of forks: a child opens new connections, and the connections of its parent stay usable.
#![cfg(unix)]

mod common;

use std::panic::AssertUnwindSafe;
#[cfg(linux_calls)]
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use common::start_origin;
use haul::batch::BatchOptions;
#[cfg(linux_calls)]
use haul::buffer_pool::OfferedBodyBytes;
#[cfg(linux_calls)]
use haul::sink::Sink;
use haul::state::cookie_jar::SharedCookieJar;
use haul::{Client, Response};

#[test]
fn forked_child_opens_its_own_connections() {
    let read_on = |response: &mut Response| response.copy_to(&mut std::io::sink());
    let origin = start_origin();
    let client = Client::new();
    let get = |client: &Client| client.get(&origin.url("/small")).send().and_then(Response::text).unwrap();
    let mut half_read = client.get(&origin.url("/bytes/3000000")).send().ok();
    get(&client);
    assert_eq!(origin.connections(), 2);
    assert_in_forked_child(|| {
        get(&client);
        get(&client);
        // One new connection, not the inherited one.
        assert_eq!(client.stats().totals().connections, 1);
        // Reading this body in the child would take bytes from the parent.
        let is_refused = |error: haul::Error| error.to_string().contains("belongs to the parent");
        let mut inherited = half_read.take().unwrap();
        assert!(read_on(&mut inherited).is_err_and(is_refused) && inherited.bytes().is_err_and(is_refused));
    });
    assert_eq!(origin.connections(), 3);
    // The child closed only its copies of the descriptors.
    get(&client);
    assert_eq!(read_on(&mut half_read.unwrap()).unwrap(), 3_000_000);
    assert_eq!(origin.connections(), 3);
}

#[test]
fn forked_child_cannot_use_the_parents_batch() {
    let origin = start_origin();
    let client = Client::new();
    let batch = client.batch(BatchOptions::default());
    let request = || client.get(&origin.url("/delay/100/small")).build().unwrap();
    batch.submit(request());
    let mut all = client.fetch_all([request(), request()], BatchOptions::default());
    all.next().unwrap().1.unwrap();
    assert_in_forked_child(|| {
        let number = batch.submit(request());
        assert!(!batch.cancel(number) && batch.outstanding() == 0 && batch.try_next().is_none());
        assert!(batch.next().is_err_and(|error| error.to_string().contains("belong to the parent")));
        assert!(batch.fd().is_err_and(|error| error.to_string().contains("belong to the parent")));
        assert!(all.next().is_none());
    });
    assert!(batch.next().unwrap().unwrap().into_reply().is_ok());
    assert!(all.next().unwrap().1.is_ok() && all.next().is_none());
}

#[test]
fn forked_child_can_use_a_busy_jar() {
    let (jar, is_over) = (SharedCookieJar::new(), AtomicBool::new(false));
    let site = haul::Target::parse("http://h.example/").unwrap();
    jar.store_fields(&site, [&b"a=1"[..]]);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    jar.change(|_| ());
                }
            });
        }
        let forks = std::panic::catch_unwind(AssertUnwindSafe(|| {
            for _ in 0..50 {
                assert_in_forked_child(|| {
                    // SAFETY: sets a timer of this process, whose signal ends a child that hangs.
                    unsafe { libc::alarm(20) };
                    assert_eq!(jar.cookie_for(&site).unwrap(), b"a=1");
                    jar.store_fields(&site, [&b"a=2"[..]]);
                });
            }
        }));
        is_over.store(true, Ordering::SeqCst);
        forks.unwrap();
    });
    assert_eq!(jar.cookie_for(&site).unwrap(), b"a=1");
}

#[test]
fn forked_child_cannot_read_the_parents_async_response() {
    let origin = start_origin();
    let client = Client::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut response = runtime.block_on(client.get(&origin.url("/bytes/3000000")).send_async()).unwrap();
    let mut waiting = Box::pin(client.get(&origin.url("/delay/100/small")).send_async());
    let mut context = Context::from_waker(Waker::noop());
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    assert_in_forked_child(|| {
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(Err(error)) = response.poll_fill(&mut context) else { panic!("it was read") };
        assert!(error.to_string().contains("belongs to the parent"), "{error}");
        let Poll::Ready(Err(error)) = waiting.as_mut().poll(&mut context) else { panic!("it was awaited") };
        assert!(error.to_string().contains("belongs to the parent"), "{error}");
    });
    assert_eq!(runtime.block_on(response.bytes()).unwrap().len(), 3_000_000);
    assert!(runtime.block_on(waiting).is_ok());
}

/// A sink that records that it was dropped.
#[cfg(linux_calls)]
struct DropRecordingSink(Arc<AtomicBool>);

#[cfg(linux_calls)]
impl Sink for DropRecordingSink {
    fn bytes(&mut self, _: OfferedBodyBytes<'_>) -> haul::Result<()> {
        Ok(())
    }

    fn restart(&mut self) -> bool {
        true
    }
}

#[cfg(linux_calls)]
impl Drop for DropRecordingSink {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[cfg(linux_calls)]
#[test]
fn forked_child_does_not_drop_direct_sinks() {
    let origin = start_origin();
    let client = Client::new();
    let mut batch = Some(client.batch(BatchOptions { direct: true, ..BatchOptions::default() }));
    let _fd = batch.as_ref().unwrap().fd().unwrap();
    // Its connection is in the pool afterwards, so the batch sends the next request directly.
    client.get(&origin.url("/small")).send().and_then(Response::text).unwrap();
    let is_dropped = Arc::new(AtomicBool::new(false));
    let request = client.get(&origin.url("/delay/100/small")).build().unwrap();
    batch.as_ref().unwrap().submit_into(request, Box::new(DropRecordingSink(Arc::clone(&is_dropped))));
    assert_in_forked_child(|| {
        drop(batch.take());
        assert!(!is_dropped.load(Ordering::SeqCst));
    });
    assert!(batch.unwrap().next().unwrap().unwrap().outcome().result.is_ok());
}

fn assert_in_forked_child(check: impl FnOnce()) {
    // SAFETY: the child runs the code below alone, takes no lock that another thread of this test
    // could hold but those of the allocator, which the C library takes care of, and leaves by
    // `_exit`.
    match unsafe { libc::fork() } {
        0 => {
            let held = std::panic::catch_unwind(AssertUnwindSafe(check)).is_ok();
            // SAFETY: ends this process without running code of the test harness.
            unsafe { libc::_exit(if held { 0 } else { 1 }) }
        }
        child => {
            let mut status = -1;
            // SAFETY: waits for the child that was just made; `status` is a valid place for its
            // state.
            let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
            assert_eq!((waited, status), (child, 0));
        }
    }
}
