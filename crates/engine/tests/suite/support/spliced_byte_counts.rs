//! Helpers for the tests of spliced bodies: known bodies, sinks that count spliced and copied
//! bytes, and scripted servers.
use std::fmt::Display;
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread::{self, JoinHandle};

use haul::buffer_pool::OfferedBodyBytes;
use haul::sink::descriptor_writer::{BlockingOutputSink, DescriptorWriter};
use haul::sink::{ResponseForSink, Sink};
use haul::transfer::TransferOutcome;
use haul::{Client, Error, RequestOptions, Target};
use testkit::byte_pattern::BytePattern;
use testkit::h1_peer::{H1Peer, PeerScript, ScriptStep};

use crate::common::with_time_limit;

pub(crate) const MIB: usize = 1 << 20;

/// True if this build can splice bodies, i.e. let the kernel move them from the socket to their
/// destination.
pub(crate) const CAN_SPLICE: bool = cfg!(linux_calls);

pub(crate) fn body(len: usize) -> Vec<u8> {
    BytePattern::new(7).slice(0, len)
}

pub(crate) fn head(len: impl Display) -> ScriptStep {
    ScriptStep::send(format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n"))
}

/// Returns the script of a server that sends the head of a response, and then, only after the sink
/// has received the head ([`CountingSink::begin`]), the body of `len` bytes.
pub(crate) fn head_then_body(len: usize) -> PeerScript {
    vec![ScriptStep::ReadHead, head(len), ScriptStep::Await(1), ScriptStep::Send(body(len))]
}

/// A sink that passes a body on to another sink, and counts its spliced and its copied bytes.
pub(crate) struct CountingSink<S> {
    sink: S,
    counts: SpliceCounts,
    peer: Arc<H1Peer>,
    /// The sizes of the received part of the body at which the next step of the server's script is
    /// released, the largest first.
    marks: Vec<u64>,
}

/// The numbers of body bytes that were copied and that were spliced. Clones share the counts.
#[derive(Default, Clone)]
pub(crate) struct SpliceCounts {
    written: Arc<AtomicU64>,
    moved: Arc<AtomicU64>,
}

impl SpliceCounts {
    /// Returns the number of body bytes that haul copied to the sink instead of splicing them.
    pub(crate) fn written(&self) -> usize {
        self.written.load(SeqCst) as usize
    }

    /// Returns the number of bytes that were spliced.
    pub(crate) fn moved(&self) -> usize {
        self.moved.load(SeqCst) as usize
    }
}

impl<S: Sink> CountingSink<S> {
    /// Makes a counting sink around `sink`. It releases the next step of the script of `peer` when
    /// the head arrives, and when the received part of the body reaches each size in `marks`.
    pub(crate) fn new(sink: S, peer: &Arc<H1Peer>, marks: &[usize]) -> (Self, SpliceCounts) {
        let counts = SpliceCounts::default();
        let marks = marks.iter().rev().map(|&mark| mark as u64).collect();
        (Self { sink, counts: counts.clone(), peer: Arc::clone(peer), marks }, counts)
    }

    fn look(&mut self) {
        let got = (self.counts.written() + self.counts.moved()) as u64;
        while self.marks.last().is_some_and(|&mark| mark <= got) {
            self.marks.pop();
            self.peer.release();
        }
    }
}

impl<S: Sink> Sink for CountingSink<S> {
    fn begin(&mut self, begin: &ResponseForSink<'_>) -> haul::Result<()> {
        self.sink.begin(begin)?;
        self.peer.release();
        Ok(())
    }

    fn bytes(&mut self, offered: OfferedBodyBytes<'_>) -> haul::Result<()> {
        let len = offered.bytes().len() as u64;
        self.sink.bytes(offered)?;
        self.counts.written.fetch_add(len, SeqCst);
        self.look();
        Ok(())
    }

    fn direct(&mut self) -> Option<BorrowedFd<'_>> {
        self.sink.direct()
    }

    fn moved(&mut self, bytes: u64) {
        self.sink.moved(bytes);
        self.counts.moved.fetch_add(bytes, SeqCst);
        self.look();
    }

    fn write_error(&self, error: io::Error) -> Error {
        self.sink.write_error(error)
    }

    fn restart(&mut self) -> bool {
        self.sink.restart()
    }

    fn finish(&mut self) -> haul::Result<()> {
        self.sink.finish()
    }
}

/// The outcome of one transfer, with the numbers of its spliced and copied bytes.
pub(crate) struct SpliceOutcome {
    pub(crate) exit: u8,
    pub(crate) error: Option<Error>,
    pub(crate) got: u64,
    pub(crate) counts: SpliceCounts,
}

impl SpliceOutcome {
    pub(crate) fn of(outcome: TransferOutcome, counts: SpliceCounts) -> Self {
        let error = outcome.result.err();
        Self { exit: error.as_ref().map_or(0, Error::exit_code), error, got: outcome.facts.body_bytes, counts }
    }

    /// Asserts that the transfer succeeded and that its `len` bytes were spliced, or copied if this
    /// build cannot splice.
    #[track_caller]
    pub(crate) fn assert_spliced(&self, len: usize) {
        assert_eq!((self.exit, self.got), (0, len as u64), "{:?}", self.error);
        let (moved, written) = if CAN_SPLICE { (len, 0) } else { (0, len) };
        assert_eq!((self.counts.moved(), self.counts.written()), (moved, written));
    }

    /// Asserts that the transfer succeeded and that its `len` bytes were copied.
    #[track_caller]
    pub(crate) fn assert_copied(&self, len: usize) {
        assert_eq!((self.exit, self.got), (0, len as u64), "{:?}", self.error);
        assert_eq!((self.counts.moved(), self.counts.written()), (0, len));
    }
}

/// Fetches from a scripted server into this sink, with the blocking driver.
pub(crate) fn fetch(
    client: &Client,
    peer: &Arc<H1Peer>,
    sink: impl Sink + 'static,
    options: &RequestOptions,
) -> SpliceOutcome {
    fetch_with_marks(client, peer, sink, options, &[])
}

/// Fetches like [`fetch`]. Whenever the received part of the body reaches a size in `marks`, the
/// next step of the server's script is released.
pub(crate) fn fetch_with_marks(
    client: &Client,
    peer: &Arc<H1Peer>,
    sink: impl Sink + 'static,
    options: &RequestOptions,
    marks: &[usize],
) -> SpliceOutcome {
    let (sink, counts) = CountingSink::new(sink, peer, marks);
    let (client, options, url) = (client.clone(), Arc::new(options.clone()), peer.url("/"));
    let outcome = with_time_limit("the transfer", move || {
        client.fetch(Target::parse(&url).expect("a URL"), options, Box::new(sink))
    });
    SpliceOutcome::of(outcome, counts)
}

/// Creates a sink that writes a body to a descriptor, and waits while the descriptor is not
/// writable.
pub(crate) fn waiting_output(fd: impl Into<std::os::fd::OwnedFd>) -> BlockingOutputSink {
    BlockingOutputSink::new(DescriptorWriter::new(fd.into()), None)
}

/// Creates a pipe, and a thread that calls `read` with its read end. Returns the write end and the
/// thread.
pub(crate) fn pipe_read_by<T: Send + 'static>(
    read: impl FnOnce(io::PipeReader) -> T + Send + 'static,
) -> (io::PipeWriter, JoinHandle<T>) {
    let (reader, writer) = io::pipe().unwrap();
    (writer, thread::spawn(move || read(reader)))
}

pub(crate) fn read_all(mut reader: impl Read) -> Vec<u8> {
    let mut all = Vec::new();
    reader.read_to_end(&mut all).unwrap();
    all
}
