//! Tests of single transfers to a pipe whose reader pauses: the driver serves the connection
//! meanwhile, and loses no received byte.

use crate::common::TEST_TIMEOUT;
use crate::support::http2_replies::{CANCEL, body, defaults};

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::{Arc, mpsc};
use std::thread;

use haul::sink::descriptor_writer::{BlockingOutputSink, DescriptorWriter};
use haul::sink::pipe_capacity::enlarge;
use haul::trace::{TraceEvent, TransferObserver};
use haul::{Client, ErrorKind, RequestOptions, Result, Target};
use testkit::frames::{Frame, H2Peer, H2ScriptConnection, data, headers, ping, rst, settings};

const SIZE: usize = 20_000;

/// A full pipe, with the number of bytes that fill it.
struct FullPipe {
    reader: PipeReader,
    writer: PipeWriter,
    filled: usize,
}

impl FullPipe {
    fn new() -> FullPipe {
        let (reader, mut writer) = io::pipe().unwrap();
        enlarge(&writer);
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        let mut filled = 0;
        while let Ok(count) = writer.write(&[0; 4096]) {
            filled += count;
        }
        rustix::io::ioctl_fionbio(&writer, false).unwrap();
        FullPipe { reader, writer, filled }
    }

    /// Fetches a URL with its body written to the pipe. Meanwhile, calls `read` with the reader,
    /// and returns the results of both.
    fn fetch<T: Send>(
        self,
        url: &str,
        options: RequestOptions,
        read: impl FnOnce(PipeReader) -> T + Send,
    ) -> (Result<()>, T) {
        let sink = BlockingOutputSink::new(DescriptorWriter::new(self.writer.into()), None);
        let reader = self.reader;
        thread::scope(|scope| {
            let reading = scope.spawn(|| read(reader));
            let outcome = Client::new().fetch(Target::parse(url).unwrap(), Arc::new(options), Box::new(sink));
            (outcome.result, reading.join().unwrap())
        })
    }
}

/// Returns a function that a script calls to let the reader of the pipe continue, and the receiver
/// for which the reader waits.
fn pause() -> (impl Fn() -> io::Result<()> + Send + Sync + 'static, mpsc::Receiver<()>) {
    let (resume, resumed) = mpsc::channel();
    (move || resume.send(()).map_err(io::Error::other), resumed)
}

/// Waits for the end of the pause, and then reads the pipe to its end. Returns the bytes behind the
/// first `filled` ones.
fn read_late(mut reader: PipeReader, resumed: &mpsc::Receiver<()>, filled: usize) -> Vec<u8> {
    // The script has failed if it has not called the function.
    let _ = resumed.recv_timeout(TEST_TIMEOUT);
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    bytes.split_off(filled)
}

fn send_half(conn: &mut H2ScriptConnection, stream: u32) -> io::Result<()> {
    let head = headers(stream, false, &[(":status", "200"), ("content-length", &SIZE.to_string())]);
    conn.send([head, data(stream, false, &body(SIZE)[..SIZE / 2])].concat())
}

#[test]
fn ping_and_settings_are_acknowledged_while_reader_pauses() {
    let (resume, resumed) = pause();
    let peer = H2Peer::start(move |_, conn| {
        conn.greet(&[])?;
        let asked = conn.request()?;
        send_half(conn, asked.stream)?;
        for n in 0..3 {
            conn.send(ping([n; 8]))?;
            assert_eq!(conn.frame_of(Frame::PING)?.payload, [n; 8]);
        }
        conn.send(settings(&[(3, 10)]))?;
        conn.frame_of(Frame::SETTINGS)?;
        resume()?;
        conn.send(data(asked.stream, true, &body(SIZE)[SIZE / 2..]))?;
        conn.drain()
    });
    let pipe = FullPipe::new();
    let filled = pipe.filled;
    let (result, read) = pipe.fetch(&peer.url("/"), defaults(), move |reader| read_late(reader, &resumed, filled));
    assert!(result.is_ok(), "{result:?}");
    assert!(read == body(SIZE), "{} bytes", read.len());
}

#[test]
fn body_within_window_is_complete_after_pause() {
    // Just less than the first window of the stream.
    const LARGE: usize = 140_000;
    let (resume, resumed) = pause();
    let peer = H2Peer::start(move |_, conn| {
        conn.greet(&[])?;
        let asked = conn.request()?;
        conn.send(headers(asked.stream, false, &[(":status", "200")]))?;
        for piece in body(LARGE).chunks(16_384) {
            conn.send(data(asked.stream, false, piece))?;
        }
        conn.send(ping([1; 8]))?;
        conn.frame_of(Frame::PING)?;
        resume()?;
        conn.send(data(asked.stream, true, b"end"))?;
        conn.drain()
    });
    let pipe = FullPipe::new();
    let filled = pipe.filled;
    let (result, read) = pipe.fetch(&peer.url("/"), defaults(), move |reader| read_late(reader, &resumed, filled));
    assert!(result.is_ok(), "{result:?}");
    assert!(read == [&body(LARGE)[..], b"end"].concat(), "{} bytes", read.len());
}

#[test]
fn stream_reset_during_pause_loses_no_received_byte() {
    let (resume, resumed) = pause();
    let peer = H2Peer::start(move |_, conn| {
        conn.greet(&[])?;
        let asked = conn.request()?;
        send_half(conn, asked.stream)?;
        conn.send([rst(asked.stream, CANCEL), ping([1; 8])].concat())?;
        // The client has handled the reset before it answers.
        conn.frame_of(Frame::PING)?;
        resume()?;
        conn.drain()
    });
    let mut options = defaults();
    options.retry.max = 0;
    let pipe = FullPipe::new();
    let filled = pipe.filled;
    let (result, read) = pipe.fetch(&peer.url("/"), options, move |reader| read_late(reader, &resumed, filled));
    assert_eq!(result.map_err(|error| error.kind()), Err(ErrorKind::Http2Stream));
    assert!(read == body(SIZE)[..SIZE / 2], "{} bytes", read.len());
}

/// An observer that prints trailers on the output of the body.
#[derive(Debug)]
struct TrailerPrinter(PipeWriter);

impl TransferObserver for TrailerPrinter {
    fn event(&self, event: &TraceEvent<'_>) {
        if let TraceEvent::Trailers { fields } = event {
            (&self.0).write_all(fields.raw()).unwrap();
        }
    }
}

#[test]
fn trailers_are_printed_after_the_kept_body() {
    let (resume, resumed) = pause();
    let peer = H2Peer::start(move |_, conn| {
        conn.greet(&[])?;
        let asked = conn.request()?;
        send_half(conn, asked.stream)?;
        conn.send(data(asked.stream, false, &body(SIZE)[SIZE / 2..]))?;
        conn.send(ping([1; 8]))?;
        // The client keeps the body now.
        conn.frame_of(Frame::PING)?;
        conn.send(headers(asked.stream, true, &[("x-end", "1")]))?;
        resume()?;
        conn.drain()
    });
    let pipe = FullPipe::new();
    let (filled, printer) = (pipe.filled, TrailerPrinter(pipe.writer.try_clone().unwrap()));
    let options = RequestOptions { trace: Some(Arc::new(printer)), ..defaults() };
    let (result, read) = pipe.fetch(&peer.url("/"), options, move |reader| read_late(reader, &resumed, filled));
    assert!(result.is_ok(), "{result:?}");
    assert!(read.starts_with(&body(SIZE)) && read[SIZE..].starts_with(b"x-end"), "{} bytes", read.len());
}

#[test]
fn closed_reader_ends_a_waiting_transfer() {
    let (close, closed) = pause();
    let peer = H2Peer::start(move |_, conn| {
        conn.greet(&[])?;
        let asked = conn.request()?;
        send_half(conn, asked.stream)?;
        conn.send(ping([1; 8]))?;
        conn.frame_of(Frame::PING)?;
        close()?;
        // Nothing more comes from the server.
        conn.drain()
    });
    let (result, ()) = FullPipe::new().fetch(&peer.url("/"), defaults(), move |reader| {
        let _ = closed.recv_timeout(TEST_TIMEOUT);
        drop(reader);
    });
    assert_eq!(result.map_err(|error| error.kind()), Err(ErrorKind::Write));
}

#[cfg(feature = "http3")]
mod http3 {
    use std::time::Duration;

    use haul::request::Http3Policy;
    use testkit::h3_peer::{H3Peer, H3ScriptConnection, data, headers};
    use testkit::http3::Http3Settings;
    use testkit::test_certificates::TestCertificates;

    use super::*;
    use crate::common::trusting_ca;

    /// Starts a peer with an idle timeout of one second. It sends the head and half of the body in
    /// response to the first request, and then calls `serve` with the ID of the stream.
    fn start(serve: impl Fn(&mut H3ScriptConnection, u64) -> io::Result<()> + Send + Sync + 'static) -> H3Peer {
        let settings = Http3Settings::new().idle_timeout(Duration::from_secs(1));
        H3Peer::start_with(settings, &TestCertificates::generate(), move |_, conn| {
            conn.greet(&[])?;
            let request = conn.request()?;
            let head = headers(&[(":status", "200"), ("content-length", &SIZE.to_string())]);
            conn.send(request.stream, [head, data(&body(SIZE)[..SIZE / 2])].concat())?;
            serve(conn, request.stream)
        })
    }

    fn fetch<T: Send>(peer: &H3Peer, read: impl FnOnce(PipeReader, usize) -> T + Send) -> (Result<()>, T) {
        let (mut options, _ca) = trusting_ca(peer.ca_pem());
        options.http3 = Http3Policy::Only;
        options.retry.max = 0;
        let pipe = FullPipe::new();
        let filled = pipe.filled;
        pipe.fetch(&peer.url("/"), options, move |reader| read(reader, filled))
    }

    #[test]
    fn quic_pings_continue_while_reader_pauses() {
        let (resume, resumed) = pause();
        let peer = start(move |conn, stream| {
            // The reader pauses for longer than the idle timeout.
            conn.wait_for_pings(4)?;
            resume()?;
            conn.send(stream, data(&body(SIZE)[SIZE / 2..]))?;
            conn.finish(stream)?;
            conn.wait_closed()
        });
        let (result, read) = fetch(&peer, move |reader, filled| read_late(reader, &resumed, filled));
        assert!(result.is_ok(), "{result:?}");
        assert!(read == body(SIZE), "{} bytes", read.len());
    }

    #[test]
    fn quic_close_during_pause_loses_no_received_byte() {
        for (code, is_complete) in [(0x102, false), (0x100, true)] {
            let (resume, resumed) = pause();
            let peer = start(move |conn, stream| {
                conn.wait_for_pings(1)?;
                if is_complete {
                    conn.send(stream, data(&body(SIZE)[SIZE / 2..]))?;
                    conn.finish(stream)?;
                    // Waits until the client has received the whole stream.
                    conn.stop_sending_code(stream)?;
                }
                conn.close(code);
                resume()
            });
            let (result, read) = fetch(&peer, move |reader, filled| read_late(reader, &resumed, filled));
            assert_eq!(result.is_ok(), is_complete, "{result:?}");
            let len = if is_complete { SIZE } else { SIZE / 2 };
            assert!(read == body(SIZE)[..len], "{} bytes", read.len());
        }
    }

    #[test]
    fn closed_reader_ends_a_waiting_quic_transfer() {
        let (close, closed) = pause();
        let peer = start(move |conn, _| {
            conn.wait_for_pings(1)?;
            close()?;
            conn.wait_closed()
        });
        let (result, ()) = fetch(&peer, move |reader, _| {
            let _ = closed.recv_timeout(TEST_TIMEOUT);
            drop(reader);
        });
        assert_eq!(result.map_err(|error| error.kind()), Err(ErrorKind::Write));
    }
}
