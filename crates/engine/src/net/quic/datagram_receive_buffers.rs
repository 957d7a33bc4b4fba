//! Receive buffers for datagrams. quinn-proto decrypts a datagram in place and keeps its payload
//! until the stream is read, so that the payload is not copied before it reaches its sink.
//!
//! ```text
//! slot:  │ datagram │ datagram │ datagram │ room for the next batch … │
//!          └─ handed to quinn-proto: the slot is used again once all of them are dropped
//! ```
//!
//! A slot stays in use as long as one of its datagrams is waiting (it arrived out of order, or the
//! sink is full). So the number of slots is limited. While all slots are in use, each datagram is
//! copied to a new allocation of its size. All connections of a thread share the slots.

use std::io::{self, IoSliceMut};
use std::sync::{Arc, Mutex};

use bytes::BytesMut;
use quinn_proto::EcnCodepoint;
use quinn_udp::RecvMeta;
use smallvec::SmallVec;

use super::socket::QuicSocket;
use crate::ignore_poison::IgnorePoison;

/// The maximum number of bytes that one receive buffer gets at once: the system can join several
/// datagrams into one batch (`UDP_GRO`).
const MAX_RECEIVE: usize = 64 << 10;
/// The size in bytes of a slot, which is one of a thread's receive buffers. It has room for two
/// batches of datagrams.
const SLOT_SIZE: usize = 2 * MAX_RECEIVE;
/// The maximum number of slots (receive buffers) of a thread. One receive call reads at most one
/// batch of datagrams into each slot.
const MAX_SLOTS: usize = 8;
/// The number of slots (receive buffers) that a thread has at first.
const FIRST_SLOTS: usize = 2;
/// The maximum number of unused sets of receive buffers that a pool keeps.
const MAX_FREE: usize = 8;

/// A pool of unused receive buffers for datagrams. Clones refer to the same pool.
#[derive(Debug, Clone, Default)]
pub(crate) struct DatagramBufferPool {
    free: Arc<Mutex<Vec<DatagramReceiveBuffers>>>,
}

impl DatagramBufferPool {
    /// Removes the receive buffers for one thread from the pool. If the pool is empty, returns new
    /// ones, which allocate their memory at the first receive.
    pub(super) fn take_buffers(&self) -> DatagramReceiveBuffers {
        self.free.lock().ignore_poison().pop().unwrap_or_default()
    }

    /// Puts buffers back into the pool.
    pub(super) fn put_buffers(&self, buffers: DatagramReceiveBuffers) {
        let mut free = self.free.lock().ignore_poison();
        if free.len() < MAX_FREE {
            free.push(buffers);
        }
    }
}

/// The receive buffers of one thread.
#[derive(Debug, Default)]
pub(super) struct DatagramReceiveBuffers {
    slots: Vec<BytesMut>,
    /// The indices of the slots (receive buffers) that the receive in progress uses.
    chosen: SmallVec<[usize; MAX_SLOTS]>,
    /// The number of slots (receive buffers) that the next receive should use. It grows when a
    /// receive fills all slots.
    wanted: usize,
    /// The buffer into which datagrams are received when all receive buffers are in use. Each
    /// datagram is copied out of it.
    copied: Vec<u8>,
}

impl DatagramReceiveBuffers {
    /// Receives available datagrams, and passes each of them to `handle`. Returns true if the
    /// socket may have more datagrams.
    ///
    /// # Errors
    /// The errors of `recvmmsg(2)`; `WouldBlock` if there is no datagram.
    pub(super) fn receive(
        &mut self,
        socket: &QuicSocket,
        mut handle: impl FnMut(BytesMut, Option<EcnCodepoint>),
    ) -> io::Result<bool> {
        self.choose_slots();
        let mut meta = [RecvMeta::default(); MAX_SLOTS];
        if self.chosen.is_empty() {
            self.copied.resize(MAX_RECEIVE, 0);
            socket.receive(&mut [IoSliceMut::new(&mut self.copied)], &mut meta)?;
            let batch = &self.copied[..meta[0].len];
            for datagram in batch.chunks(meta[0].stride.max(1)) {
                handle(BytesMut::from(datagram), ecn(&meta[0]));
            }
            return Ok(true);
        }
        let filled = {
            let chosen = |(index, _): &(usize, &mut BytesMut)| self.chosen.contains(index);
            let slots = self.slots.iter_mut().enumerate().filter(chosen);
            let mut pieces: SmallVec<[IoSliceMut<'_>; MAX_SLOTS]> =
                slots.map(|(_, slot)| IoSliceMut::new(&mut slot[..MAX_RECEIVE])).collect();
            socket.receive(&mut pieces, &mut meta)?
        };
        for (slot, meta) in self.chosen.iter().zip(&meta[..filled]) {
            let mut batch = self.slots[*slot].split_to(meta.len);
            while !batch.is_empty() {
                let len = meta.stride.clamp(1, batch.len());
                handle(batch.split_to(len), ecn(meta));
            }
        }
        let has_more = filled == self.chosen.len();
        if has_more {
            self.wanted = (2 * self.wanted).min(MAX_SLOTS);
        }
        Ok(has_more)
    }

    /// Chooses the slots (receive buffers) for the next receive, each with room for a batch of
    /// datagrams. Reuses the memory of a full slot when all datagrams in it have been processed and
    /// their memory is no longer referenced. Allocates further slots, up to [`MAX_SLOTS`].
    fn choose_slots(&mut self) {
        self.wanted = self.wanted.max(FIRST_SLOTS);
        self.chosen.clear();
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if slot.len() < MAX_RECEIVE {
                slot.clear();
                if !slot.try_reclaim(SLOT_SIZE) {
                    continue;
                }
                // SAFETY: `try_reclaim` allocates nothing: this is the memory with which the slot
                // was made, of which `SLOT_SIZE` bytes were initialised then.
                unsafe { slot.set_len(SLOT_SIZE) };
            }
            self.chosen.push(index);
            if self.chosen.len() == self.wanted {
                return;
            }
        }
        while self.chosen.len() < self.wanted && self.slots.len() < MAX_SLOTS {
            self.chosen.push(self.slots.len());
            self.slots.push(BytesMut::zeroed(SLOT_SIZE));
        }
    }
}

/// Converts the ECN codepoint of received datagrams from quinn-udp's type to quinn-proto's. Returns
/// `None` if the datagrams have no codepoint.
fn ecn(meta: &RecvMeta) -> Option<EcnCodepoint> {
    meta.ecn.map(|codepoint| match codepoint {
        quinn_udp::EcnCodepoint::Ect0 => EcnCodepoint::Ect0,
        quinn_udp::EcnCodepoint::Ect1 => EcnCodepoint::Ect1,
        quinn_udp::EcnCodepoint::Ce => EcnCodepoint::Ce,
    })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::super::socket::QuicSocketOpenError;
    use super::*;
    use crate::net::local_address::LocalBinding;

    fn pair() -> (QuicSocket, UdpSocket) {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let ours = QuicSocket::open(peer.local_addr().unwrap(), &LocalBinding::default());
        let ours =
            ours.map_err(|(QuicSocketOpenError::Bind(error) | QuicSocketOpenError::Connect(error))| error).unwrap();
        peer.connect(ours.local().unwrap()).unwrap();
        (ours, peer)
    }

    fn receive(buffers: &mut DatagramReceiveBuffers, socket: &QuicSocket) -> Vec<BytesMut> {
        let mut got = Vec::new();
        while !matches!(buffers.receive(socket, |datagram, _| got.push(datagram)), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
        {
        }
        got
    }

    #[test]
    fn unread_datagrams_do_not_exceed_slot_limit() {
        let (ours, peer) = pair();
        let mut buffers = DatagramReceiveBuffers::default();
        let mut kept = Vec::new();
        for n in 0..4 * MAX_SLOTS {
            peer.send(&vec![n as u8; 60_000]).unwrap();
            kept.extend(receive(&mut buffers, &ours));
        }
        assert!(buffers.slots.len() <= MAX_SLOTS);
        assert_eq!(kept.len(), 4 * MAX_SLOTS);
        assert!(kept.iter().enumerate().all(|(n, datagram)| datagram[..] == vec![n as u8; 60_000]));
        drop(kept);
        peer.send(b"again").unwrap();
        assert_eq!(receive(&mut buffers, &ours), [BytesMut::from(&b"again"[..])]);
        assert!(!buffers.chosen.is_empty(), "the slots are used again");
    }

    #[test]
    fn small_datagrams_share_a_receive_slot() {
        let (ours, peer) = pair();
        let mut buffers = DatagramReceiveBuffers::default();
        for n in 0..200u8 {
            peer.send(&[n; 100]).unwrap();
            assert_eq!(receive(&mut buffers, &ours), [BytesMut::from(&[n; 100][..])]);
        }
        assert_eq!(buffers.slots.len(), FIRST_SLOTS);
    }
}
