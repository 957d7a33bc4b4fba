//! A UDP socket that counts its datagrams.

use std::fmt::{self, Debug, Formatter};
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};

/// The numbers of datagrams that a server has received and sent.
#[derive(Debug, Default)]
pub(super) struct DatagramCounts {
    pub(super) received: AtomicU64,
    pub(super) sent: AtomicU64,
}

/// A UDP socket that counts the datagrams it sends and receives.
pub(super) struct CountingSocket {
    pub(super) socket: Arc<dyn AsyncUdpSocket>,
    pub(super) counts: Arc<DatagramCounts>,
}

impl Debug for CountingSocket {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.debug_struct("CountingSocket").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl AsyncUdpSocket for CountingSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.socket.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.socket.try_send(transmit)?;
        let size = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
        self.counts.sent.fetch_add(transmit.contents.len().div_ceil(size) as u64, Relaxed);
        Ok(())
    }

    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let filled = ready!(self.socket.poll_recv(context, buffers, meta))?;
        let datagrams: usize = meta[..filled].iter().map(|meta| meta.len.div_ceil(meta.stride.max(1))).sum();
        self.counts.received.fetch_add(datagrams as u64, Relaxed);
        Poll::Ready(Ok(filled))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.socket.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.socket.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}
