//! Tests that an upload sends exactly the given content, with any buffer size, and as many times as
//! allowed.

use std::io::{Cursor, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use haul_policy::multipart::{FormNameEscape, FormPart, FormPartContent, MultipartBoundary};

use super::*;

fn all(upload: &mut dyn BodyUpload, step: usize) -> io::Result<Vec<u8>> {
    let mut got = Vec::new();
    let mut buffer = vec![0; step];
    loop {
        match upload.read(&mut buffer)? {
            0 => return Ok(got),
            n => got.extend_from_slice(&buffer[..n]),
        }
    }
}

#[test]
fn pieces_are_sent_in_order_with_any_buffer() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"0123456789").unwrap();
    let part = BodyPiece::File { path: file.path().to_owned(), offset: 2, length: 5 };
    let body = RequestBody::pieces([BodyPiece::Bytes(b"<"[..].into()), part, BodyPiece::Bytes(b">"[..].into())]);
    assert_eq!(body.length(), Some(7));
    for step in 1..10 {
        assert_eq!(all(&mut *body.upload(), step).unwrap(), b"<23456>", "{step}");
    }
}

#[test]
fn body_in_memory_is_readable_without_a_copy() {
    let body = RequestBody::from("0123456789");
    for step in 1..12 {
        let mut upload = body.upload();
        assert_eq!(all(&mut *upload, step).unwrap(), b"0123456789", "{step}");
        assert!(upload.ready().is_empty());
    }
    let mut upload = body.upload();
    assert_eq!(upload.ready(), b"0123456789");
    upload.consume(4);
    assert_eq!(upload.ready(), b"456789");
    assert_eq!(all(&mut *upload, 3).unwrap(), b"456789");
    assert!(RequestBody::pieces([BodyPiece::Bytes(b"a"[..].into())]).upload().ready().is_empty());
}

#[test]
fn upload_of_a_shrunk_file_is_an_error() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"0123456789").unwrap();
    let body = RequestBody::file(file.path()).unwrap();
    file.write_all(b"more").unwrap();
    assert_eq!(all(&mut *body.upload(), 4).unwrap(), b"0123456789");
    file.as_file().set_len(3).unwrap();
    assert_eq!(all(&mut *body.upload(), 4).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn repeatable_source_is_reopened_and_keeps_its_length() {
    let times = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&times);
    let open = move || {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(&b"0123456789"[..]) as Box<dyn Read + Send>)
    };
    let body = |length| {
        RequestBody::pieces([
            BodyPiece::Source(RepeatableSource::new(length, open.clone())),
            BodyPiece::Bytes(b"."[..].into()),
        ])
    };
    for length in [None, Some(10)] {
        let body = body(length);
        for step in 1..13 {
            assert_eq!(all(&mut *body.upload(), step).unwrap(), b"0123456789.", "{step}");
        }
        assert!(body.is_repeatable() && !body.is_consumed());
    }
    assert_eq!(times.load(Ordering::Relaxed), 24);
    assert_eq!(all(&mut *body(Some(4)).upload(), 3).unwrap(), b"0123.");
    assert_eq!(all(&mut *body(Some(11)).upload(), 3).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn reader_body_can_be_sent_only_once() {
    let body = RequestBody::reader(Cursor::new(b"abc"));
    let mut upload = body.upload();
    assert!(!body.is_consumed());
    assert_eq!(all(&mut *upload, 2).unwrap(), b"abc");
    assert!(body.is_consumed() && !body.is_repeatable());
}

#[test]
fn multipart_form_has_its_announced_length() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&[b'x'; 1000]).unwrap();
    let source = FormPartContent::Source { index: 0, length: Some(1000) };
    let parts = [FormPart::field("who", "me"), FormPart::file("what", "a.txt", source)];
    let layout = MultipartLayout::new(&parts, &MultipartBoundary::new([7; 16]), FormNameEscape::Percent).unwrap();
    let body = RequestBody::multipart(&layout, &[BodyPiece::file(file.path()).unwrap()]).unwrap();
    assert_eq!(body.length(), layout.length);
    assert_eq!(all(&mut *body.upload(), 333).unwrap().len() as u64, layout.length.unwrap());
    assert!(RequestBody::multipart(&layout, &[]).is_err());
}

#[test]
fn small_form_without_files_is_one_buffer() {
    let of = |length: usize| {
        let parts = [FormPart::field("who", "me"), FormPart::field("what", "x".repeat(length))];
        let layout = MultipartLayout::new(&parts, &MultipartBoundary::new([7; 16]), FormNameEscape::Percent).unwrap();
        RequestBody::multipart(&layout, &[]).unwrap()
    };
    assert!(matches!(of(300), RequestBody::Bytes(_)));
    assert!(!matches!(of(MAX_JOINED), RequestBody::Bytes(_)), "a large one is not copied once more");
}

#[test]
fn one_shot_content_is_claimed_by_one_upload() {
    let body = RequestBody::reader(Cursor::new(b"abc"));
    let (mut first, mut second) = (body.upload(), body.upload());
    assert_eq!(first.read(&mut [0; 2]).unwrap(), 2);
    let refused = second.read(&mut [0; 2]).unwrap_err();
    assert!(refused.to_string().contains("cannot be sent again"), "{refused}");
    assert_eq!(all(&mut *first, 2).unwrap(), b"c");
}

/// A test stream that panics when it is polled after its end.
struct EndOnceStream(bool);

impl futures_core::Stream for EndOnceStream {
    type Item = io::Result<&'static [u8]>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        assert!(!std::mem::replace(&mut self.0, true), "it was polled after its end");
        std::task::Poll::Ready(None)
    }
}

#[test]
fn stream_body_is_not_polled_after_its_end() {
    let mut upload = RequestBody::stream(EndOnceStream(false)).upload();
    assert_eq!(upload.read(&mut [0; 2]).unwrap(), 0);
    assert_eq!(upload.read(&mut [0; 2]).unwrap(), 0);
    let once = OneShotSource::stream(EndOnceStream(false));
    let mut reader = one_shot::OneShotReader::new(once, None);
    assert_eq!((reader.read(&mut [0; 2]).unwrap(), reader.read(&mut [0; 2]).unwrap()), (0, 0));
}

#[test]
fn stream_feeder_belongs_to_one_request() {
    let body = RequestBody::stream(EndOnceStream(false));
    let (fed, _feeders) = body.with_feeders().unwrap();
    let (other, _others) = body.with_feeders().unwrap();
    let (mut mine, mut others) = (fed.upload(), other.upload());
    for upload in [&mut mine, &mut others] {
        upload.set_waker(std::task::Waker::noop().clone());
    }
    assert_eq!(mine.read(&mut [0; 2]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    assert!(others.read(&mut [0; 2]).unwrap_err().to_string().contains("cannot be sent again"));
}
