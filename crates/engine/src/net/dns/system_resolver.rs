//! Lookups by the system's resolver, `getaddrinfo`. Only `getaddrinfo` supports sources such as
//! mDNS and LDAP.
//!
//! `getaddrinfo` blocks, so each lookup runs on a helper thread. Threads start on demand and end
//! after five idle seconds.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::lookup_answer::{LookupAnswer, LookupFailure};
use super::{AddressFamily, LOCAL_FAILURE_CACHE_TIME, ResolverInner};
use crate::ignore_poison::IgnorePoison;
use crate::spawn_with_signals_blocked;

/// The maximum number of threads that call `getaddrinfo` at the same time: about as many as a fleet
/// (a run of many parallel transfers) has transfers at the same time.
pub(super) const MAX_THREADS: usize = 1024;
/// The time after which a helper thread ends if it has no name to look up.
const THREAD_IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// Looks up the addresses of a name with `getaddrinfo`. Blocks the calling thread.
pub(super) fn look_up(host: &str) -> io::Result<Vec<IpAddr>> {
    Ok((host, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
}

impl ResolverInner {
    /// Queues a name for the helper threads, which look it up with `getaddrinfo`. Starts a thread
    /// if all threads are busy.
    pub(super) fn ask_system(self: &Arc<Self>, name: Arc<str>) {
        let mut state = self.lock();
        state.queue.push_back(name);
        if state.queue.len() <= state.idle {
            drop(state);
            self.work.notify_one();
        } else if state.threads < MAX_THREADS {
            state.threads += 1;
            drop(state);
            self.start_thread();
        }
    }

    fn start_thread(self: &Arc<Self>) {
        let shared = Arc::clone(self);
        let started = spawn_with_signals_blocked::start("haul-dns", move || shared.run_thread());
        if let Err(error) = started {
            let mut state = self.lock();
            state.threads -= 1;
            // As long as another thread runs, it will get to the name; the last hope gone, the
            // names fail.
            let orphans = if state.threads == 0 { std::mem::take(&mut state.queue) } else { VecDeque::new() };
            drop(state);
            for name in orphans {
                self.cache_and_notify(
                    &name,
                    AddressFamily::Any,
                    Err(LookupFailure::from(&error)),
                    LOCAL_FAILURE_CACHE_TIME,
                );
            }
        }
    }

    /// Runs a helper thread: looks up queued names, and ends after [`THREAD_IDLE_TIMEOUT`] without
    /// a name.
    fn run_thread(&self) {
        let mut state = self.lock();
        loop {
            if let Some(name) = state.queue.pop_front() {
                drop(state);
                let _ = self.look_up_with_system(&name);
                state = self.lock();
                continue;
            }
            state.idle += 1;
            let (guard, wait) = self.work.wait_timeout(state, THREAD_IDLE_TIMEOUT).ignore_poison();
            state = guard;
            state.idle -= 1;
            if wait.timed_out() && state.queue.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }

    /// Looks up a name on this thread, caches the answer, and notifies all callers that wait for
    /// it.
    pub(super) fn look_up_with_system(&self, name: &str) -> LookupAnswer {
        // A panic of the program's own function counts as a failure, so that no thread waits for
        // ever.
        let asked = catch_unwind(AssertUnwindSafe(|| (self.ask)(name)));
        let answer = match asked.unwrap_or_else(|_| Err(io::Error::other("the look-up panicked"))) {
            Ok(addresses) if addresses.is_empty() => Err(LookupFailure::about_name("the name has no address")),
            Ok(mut addresses) => {
                let mut seen = HashSet::new();
                addresses.retain(|address| seen.insert(*address));
                Ok(Arc::from(addresses))
            }
            Err(error) => Err(LookupFailure::from(&error)),
        };
        let life = match &answer {
            Ok(_) => self.options.ttl,
            Err(failure) if failure.is_local() => LOCAL_FAILURE_CACHE_TIME,
            Err(_) => self.options.negative_ttl,
        };
        self.cache_and_notify(name, AddressFamily::Any, answer.clone(), life);
        answer
    }
}
