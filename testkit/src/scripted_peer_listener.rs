//! Code that the scripted peers [`h1_peer`](crate::h1_peer), [`frames`](crate::frames) and
//! [`h3_peer`](crate::h3_peer) share: a listener on loopback, a thread for each connection, and a
//! state for whose changes tests can wait.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::lock_even_if_poisoned::lock;

/// The maximum time for which a read of a scripted peer waits for a silent client. After that time,
/// the peer's script ends with an error.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// A listener on loopback, and the state that its connections change. A test can wait for a change
/// of the state.
pub(crate) struct ScriptedPeer<T> {
    pub(crate) addr: SocketAddr,
    pub(crate) shared: Arc<ScriptedPeerState<T>>,
}

/// The state that the threads of a scripted peer share.
pub(crate) struct ScriptedPeerState<T> {
    state: Mutex<T>,
    changed: Condvar,
    stop: AtomicBool,
}

impl<T: Default + Send + 'static> ScriptedPeer<T> {
    /// Listens on loopback. Each connection gets its own thread, which calls `play` with the
    /// connection and its number, counted from 0. Before the thread starts, `accepted` is called
    /// with the state.
    ///
    /// # Panics
    /// If no port can be bound on loopback.
    pub(crate) fn start(
        accepted: impl Fn(&mut T) + Send + 'static,
        play: impl Fn(TcpStream, usize, &Arc<ScriptedPeerState<T>>) + Send + Sync + 'static,
    ) -> ScriptedPeer<T> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port on loopback");
        let addr = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(ScriptedPeerState::new());
        let (accepting, play) = (shared.clone(), Arc::new(play));
        thread::spawn(move || {
            for number in 0.. {
                let Ok((stream, _)) = listener.accept() else { return };
                if accepting.stop.load(SeqCst) {
                    return;
                }
                accepted(&mut accepting.lock());
                let (shared, play) = (accepting.clone(), play.clone());
                thread::spawn(move || {
                    let _ = stream.set_read_timeout(Some(WAIT_TIMEOUT));
                    play(stream, number, &shared);
                });
            }
        });
        ScriptedPeer { addr, shared }
    }
}

impl<T> Drop for ScriptedPeer<T> {
    fn drop(&mut self) {
        self.shared.stop.store(true, SeqCst);
        // Wakes the accept call; if it fails there is nobody to wake.
        let _ = TcpStream::connect(self.addr);
    }
}

impl<T: Default> ScriptedPeerState<T> {
    pub(crate) fn new() -> ScriptedPeerState<T> {
        ScriptedPeerState { state: Mutex::default(), changed: Condvar::new(), stop: AtomicBool::new(false) }
    }
}

impl<T> ScriptedPeerState<T> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        lock(&self.state)
    }

    /// Changes the state by calling `change`, and wakes the threads that wait for a change of the
    /// state.
    pub(crate) fn change(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits until `done` returns true for the state. Returns `false` if that takes more than 30
    /// seconds.
    pub(crate) fn wait(&self, done: impl Fn(&T) -> bool) -> bool {
        let end = Instant::now() + WAIT_TIMEOUT;
        let mut state = self.lock();
        while !done(&state) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}
