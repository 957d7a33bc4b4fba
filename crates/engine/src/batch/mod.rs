//! Many requests of a program at once: given one by one, or as an iterator; their responses whole, in the order of the
//! requests or as they come.
//!
//! One thread moves all of them; it starts with the first request and ends by itself. What bodies hold is bounded, and a
//! program that takes no responses stops the servers.
//!
//! ```
//! # let origin = testkit::origin::Origin::builder().start().unwrap();
//! # let base = origin.url("/small");
//! use haul::batch::BatchOptions;
//!
//! let client = haul::Client::new();
//! let requests = (0..100).map(|i| client.get(&format!("{base}/{i}")).build().expect("a URL"));
//! for (index, reply) in client.fetch_all(requests, BatchOptions::default()) {
//!     assert_eq!(reply?.body, format!("small {index}\n").as_bytes());
//! }
//! # Ok::<(), haul::Error>(())
//! ```
//!
//! A [`Batch`] is the same without the iterator, and for foreign event loops: [`Batch::fd`] can be read when
//! [`Batch::try_next`] has something.

mod bell;
mod budget;
mod fetch;
pub(crate) mod hall;

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use haul_policy::queue::Caps;

pub use fetch::FetchAll;

use crate::fork;
use crate::interrupt::{Interrupt, TICK};
use crate::request::Request;
use crate::response::Reply;
use crate::sink::Sink;
use crate::sink::memory::Memory;
use crate::transfer::Outcome;
use crate::{Client, Error, ErrorKind, Result};
use bell::Bell;
use budget::{Budget, Counted};
use hall::Hall;

/// In which order responses are given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Order {
    /// That of the requests. The default.
    #[default]
    Input,
    /// As they come.
    Completion,
}

/// How a batch uses the machine and the network.
#[derive(Debug, Clone)]
pub struct BatchOptions {
    /// Requests at once, in all. Default 64.
    pub max_parallel: usize,
    /// Requests at once to one host, and so connections to it unless it speaks HTTP/2. Default 6.
    pub per_host: usize,
    /// Requests outstanding on an HTTP/1.1 connection (RFC 9112 section 9.3.2). Default 1: no pipelining.
    pub pipeline: usize,
    /// The order of the responses.
    pub order: Order,
    /// Bytes that bodies may hold, those under way and those that wait to be taken; one body more may come besides. Default
    /// 64 MiB.
    pub memory: u64,
    /// Who is asked, while the program waits, whether it shall go on waiting. Default: nobody.
    pub interrupt: Option<Interrupt>,
}

impl Default for BatchOptions {
    fn default() -> Self {
        Self { max_parallel: 64, per_host: 6, pipeline: 1, order: Order::Input, memory: 64 << 20, interrupt: None }
    }
}

/// Requests under way. Used from any number of threads. Dropped, it ends them all: connections are closed, and nobody is told.
///
/// In a forked child the requests of the parent are not there: nothing comes of them, and [`Batch::next`] answers `None`.
pub struct Batch {
    client: Client,
    hall: Arc<Hall>,
    shared: Arc<Shared>,
    interrupt: Option<Interrupt>,
    generation: u32,
}

struct Shared {
    budget: Arc<Budget>,
    order: Order,
    state: Mutex<State>,
    came: Condvar,
}

#[derive(Default)]
struct State {
    /// Those that came out of turn.
    early: BTreeMap<u64, Finished>,
    /// Those that may be taken.
    ready: VecDeque<Finished>,
    /// The next number in the order of the input.
    next: u64,
    /// Those that were not taken yet.
    outstanding: usize,
    bell: Option<Bell>,
}

/// A request of a [`Batch`] that is over.
pub struct Finished {
    id: u64,
    outcome: Outcome,
    sink: Option<Box<dyn Sink>>,
    cost: u64,
}

impl Finished {
    /// The number that [`Batch::submit`] gave it.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// What became of it.
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// The response with its body. (That of a request with a sink of its own is empty.)
    ///
    /// # Errors
    /// What kept it from coming.
    pub fn into_reply(self) -> Result<Reply> {
        let (outcome, memory) = self.into_parts::<Memory>();
        Reply::of(outcome, memory.map(Memory::into_bytes).unwrap_or_default())
    }

    /// What became of it, and the sink that it was given. `None` for one of another type, and for one that was lost because
    /// the system could not go on.
    #[must_use]
    pub fn into_parts<S: Sink>(self) -> (Outcome, Option<S>) {
        let sink = self.sink.map(|sink| sink as Box<dyn Any>);
        (self.outcome, sink.and_then(|sink| sink.downcast().ok()).map(|sink| *sink))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_done(&self, id: u64, outcome: Outcome, sink: Option<Box<dyn Sink>>) {
        let counted = sink.and_then(|sink| (sink as Box<dyn Any>).downcast::<Counted>().ok());
        let (sink, cost) = counted.map_or((None, 0), |counted| (Some(counted.sink), counted.bytes));
        let finished = Finished { id, outcome, sink, cost };
        let mut state = self.lock();
        match self.order {
            Order::Completion => state.ready.push_back(finished),
            Order::Input => {
                state.early.insert(id, finished);
                loop {
                    let next = state.next;
                    let Some(finished) = state.early.remove(&next) else { break };
                    state.ready.push_back(finished);
                    state.next += 1;
                }
                self.budget.head_is(state.next);
            }
        }
        let is_ready = !state.ready.is_empty();
        self.budget.hungers(!is_ready);
        if let Some(bell) = &mut state.bell {
            bell.set(is_ready);
        }
        drop(state);
        if is_ready {
            self.came.notify_all();
        }
    }
}

impl Batch {
    pub(crate) fn new(client: &Client, options: BatchOptions) -> Self {
        let BatchOptions { max_parallel, per_host, pipeline, order, memory, interrupt } = options;
        let budget = Arc::new(Budget::new(memory));
        let caps = Caps { total: max_parallel.max(1), per_host: per_host.max(1) };
        let hall = Hall::new(caps, pipeline, Some(budget.clone()));
        if order == Order::Input {
            budget.head_is(0);
        }
        let shared = Arc::new(Shared { budget, order, state: Mutex::default(), came: Condvar::new() });
        Self { client: client.clone(), hall, shared, interrupt, generation: fork::generation() }
    }

    /// Adds a request, whose body is kept in memory. Never waits. Answers its number; they count from 0.
    pub fn submit(&self, request: Request) -> u64 {
        self.submit_into(request, Box::new(Memory::default()))
    }

    /// Adds a request whose body goes into this sink, which comes back with it ([`Finished::into_parts`]). It is used on
    /// another thread.
    pub fn submit_into(&self, request: Request, sink: Box<dyn Sink>) -> u64 {
        self.shared.lock().outstanding += 1;
        self.hall.submit(&self.client, request, |id| {
            let sink = Counted { sink, id, bytes: 0, budget: Arc::clone(&self.shared.budget) };
            let shared = Arc::clone(&self.shared);
            (Box::new(sink), Box::new(move |outcome, sink| shared.is_done(id, outcome, sink)))
        })
    }

    /// Gives a request up; its connection is closed, or its stream is. It comes out as a failure
    /// ([`ErrorKind::Interrupted`]) all the same. `false` when it was over already.
    pub fn cancel(&self, id: u64) -> bool {
        self.hall.cancel(id)
    }

    /// How many requests were not taken yet.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.shared.lock().outstanding
    }

    /// The next one that is over, if there is one now.
    pub fn try_next(&self) -> Option<Finished> {
        self.take(&mut self.shared.lock())
    }

    /// The next one that is over, waiting for it. `None` when all were taken.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`] when the hook says so; nothing is lost by that.
    pub fn next(&self) -> Result<Option<Finished>> {
        self.next_by(None)
    }

    /// The same, waiting until this moment at most: `None` then, too.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn next_by(&self, deadline: Option<Instant>) -> Result<Option<Finished>> {
        let mut state = self.shared.lock();
        loop {
            if let Some(finished) = self.take(&mut state) {
                return Ok(Some(finished));
            }
            let now = Instant::now();
            let is_late = deadline.is_some_and(|at| at <= now);
            if state.outstanding == 0 || is_late || self.generation != fork::generation() {
                return Ok(None);
            }
            let left = deadline.map_or(Duration::MAX, |at| at - now);
            let wait = if self.interrupt.is_some() { left.min(TICK) } else { left };
            state = match wait {
                Duration::MAX => self.shared.came.wait(state).unwrap_or_else(PoisonError::into_inner),
                wait => self.shared.came.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0,
            };
            if let Some(hook) = &self.interrupt {
                drop(state);
                if hook.wants_to_stop() {
                    return Err(Error::new(ErrorKind::Interrupted, "it was interrupted"));
                }
                state = self.shared.lock();
            }
        }
    }

    /// A descriptor of its own that can be read as long as [`try_next`](Self::try_next) has something: for `poll` and its
    /// like. It is not to be read from. Without a call of this there is none, and none is paid for.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn fd(&self) -> io::Result<OwnedFd> {
        let mut state = self.shared.lock();
        if state.bell.is_none() {
            let mut bell = Bell::new()?;
            bell.set(!state.ready.is_empty());
            state.bell = Some(bell);
        }
        match &state.bell {
            Some(bell) => bell.as_fd().try_clone_to_owned(),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn take(&self, state: &mut State) -> Option<Finished> {
        let finished = state.ready.pop_front()?;
        state.outstanding -= 1;
        if state.ready.is_empty()
            && let Some(bell) = &mut state.bell
        {
            bell.set(false);
        }
        let is_hungry = self.shared.budget.hungers(state.ready.is_empty());
        if self.shared.budget.gives(finished.cost) || is_hungry && self.shared.budget.is_full() {
            self.hall.rouse();
        }
        Some(finished)
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        if self.generation == fork::generation() {
            // Waited for, for what a program unloads or exits after this must not be in use by a thread any more. It waits in
            // its event loop only, so it is done at once. One that panicked has said so.
            let _ = self.hall.close().map(JoinHandle::join);
        }
    }
}
