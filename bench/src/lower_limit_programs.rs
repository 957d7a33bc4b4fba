//! Programs that do the minimum of work for a transfer. The results of other programs are shown as
//! multiples of the results of these.
//!
//! ```text
//! bench limit recv URL              receive into one buffer of 256 KiB, and overwrite it each time
//! bench limit splice URL            socket → pipe → /dev/null
//! bench limit splice-pipe URL       socket → standard output, which is a pipe
//! bench limit splice-file URL FILE  socket → pipe → a new file, whose space is allocated first
//! bench limit sendfile FILE URL     a file → socket, by PUT; prints the reply
//! bench limit splice-put FILE URL   standard input, a pipe with the bytes of FILE → socket, by PUT; prints the reply
//! bench limit sealed-put FILE URL   as sendfile, but reads into a buffer, encrypts as much as TLS would, and sends by write
//! bench limit feed FILE             a file → standard output, which is a pipe
//! bench limit aes BYTES             AES-128-GCM over this many bytes, 16 KiB at a time, no network
//! ```
//!
//! `recv`, `splice` and `aes` print the length. Their HTTP is a request, a search for the end of
//! the head, and Content-Length. `aes` encrypts instead of decrypting: it is the same work, and
//! needs no fresh ciphertext. `sealed-put` encrypts a buffer of its own and sends the content in
//! the clear, so that the same server can check it.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use crate::Result;

/// The largest number of bytes that one receive or splice call moves.
const PIECE: usize = 256 << 10;
/// The largest size of a pipe in bytes that an unprivileged process may set.
const PIPE: usize = 1 << 20;
/// The number of bytes that a TLS upload reads from the file at a time: 16 records, few enough to
/// stay in the processor's second-level cache.
const UPLOAD_READ: usize = 256 << 10;
/// The largest number of payload bytes in a TLS record.
const RECORD: usize = 16 << 10;

/// Runs `bench limit`: one of the programs that do the minimum of work for a transfer. `arguments`
/// are the words of the command line after `limit`.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["aes", bytes] => {
            let bytes = bytes.parse()?;
            TlsRecordEncryptor::new()?.seal(bytes)?;
            println!("{bytes}");
        }
        ["recv", url] => {
            let mut body = PartiallyReadResponse::request(url)?;
            body.receive()?;
            println!("{}", body.len);
        }
        ["splice", url] => {
            let body = PartiallyReadResponse::request(url)?;
            splice::through_pipe(&body, File::create("/dev/null")?)?;
            println!("{}", body.len);
        }
        ["splice-pipe", url] => splice::to_pipe(&PartiallyReadResponse::request(url)?, std::io::stdout().as_fd())?,
        ["splice-file", url, file] => {
            let (body, file) = (PartiallyReadResponse::request(url)?, File::create_new(file)?);
            rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, body.len)?;
            splice::through_pipe(&body, file)?;
        }
        ["sendfile", file, url] => put(&File::open(file)?, url, |stream, file, left| {
            let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            Ok(rustix::fs::sendfile(stream, file, None, most)? as u64)
        })?,
        ["splice-put", file, url] => put(&File::open(file)?, url, |stream, _, left| {
            splice::splice_once(io::stdin().as_fd(), stream.as_fd(), left)
        })?,
        ["sealed-put", file, url] => {
            let (mut cipher, mut content) = (TlsRecordEncryptor::new()?, vec![0; UPLOAD_READ]);
            put(&File::open(file)?, url, |mut stream, mut file, _| {
                let len = file.read(&mut content)?;
                cipher.seal(len as u64)?;
                stream.write_all(&content[..len])?;
                Ok(len as u64)
            })?;
        }
        ["feed", file] => splice::file_to_pipe(&File::open(file)?, std::io::stdout().as_fd())?,
        _ => {
            let usage = "limit recv|splice|splice-pipe URL, splice-file URL FILE, \
                         sendfile|splice-put|sealed-put FILE URL, feed FILE, aes BYTES";
            return Err(usage.into());
        }
    }
    Ok(())
}

/// A response whose head has been read, but whose body may not have arrived completely.
struct PartiallyReadResponse {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// The number of body bytes that arrived together with the head, which are at the start of
    /// `buffer`.
    early: usize,
    len: u64,
}

impl PartiallyReadResponse {
    fn request(url: &str) -> Result<PartiallyReadResponse> {
        let rest = url.strip_prefix("http://").ok_or("not an http URL")?;
        let (host, path) = rest.split_once('/').ok_or("no path")?;
        let mut stream = TcpStream::connect(host)?;
        write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
        let mut buffer = vec![0; PIECE];
        let mut filled = 0;
        let end = loop {
            match stream.read(&mut buffer[filled..])? {
                0 => return Err("no head".into()),
                len => filled += len,
            }
            if let Some(at) = buffer[..filled].windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
        };
        let len = content_length(&String::from_utf8_lossy(&buffer[..end]))?;
        buffer.copy_within(end..filled, 0);
        Ok(PartiallyReadResponse { stream, buffer, early: filled - end, len })
    }

    fn receive(&mut self) -> Result<()> {
        let mut got = self.early as u64;
        while got < self.len {
            match self.stream.read(&mut self.buffer)? {
                0 => return Err(format!("{got} of {} bytes", self.len).into()),
                len => got += len as u64,
            }
        }
        Ok(())
    }
}

/// Returns the value of Content-Length in the head of a 200 response.
fn content_length(head: &str) -> Result<u64> {
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap_or_default();
    if status.split(' ').nth(1) != Some("200") {
        return Err(format!("not a 200: {status}").into());
    }
    let field = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok()).flatten()
    };
    lines.find_map(field).ok_or_else(|| "no Content-Length".into())
}

/// Sends a PUT request and prints the content of the reply. The content of the request has the
/// length of `file`; `send_some` sends it piece by piece. `send_some` sends at most the given
/// number of bytes, and returns how many it sent.
fn put(file: &File, url: &str, mut send_some: impl FnMut(&TcpStream, &File, u64) -> Result<u64>) -> Result<()> {
    let rest = url.strip_prefix("http://").ok_or("not an http URL")?;
    let (host, path) = rest.split_once('/').ok_or("no path")?;
    let mut stream = TcpStream::connect(host)?;
    let mut left = file.metadata()?.len();
    write!(stream, "PUT /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {left}\r\nConnection: close\r\n\r\n")?;
    while left > 0 {
        match send_some(&stream, file, left)? {
            0 => return Err("the content ended early".into()),
            sent => left -= sent,
        }
    }
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    print!("{}", reply.split_once("\r\n\r\n").ok_or("no head")?.1);
    Ok(())
}

/// Encrypts the same buffer repeatedly with AES-128-GCM, in the size of TLS records. It shows the
/// minimum CPU time that encryption needs.
struct TlsRecordEncryptor {
    key: LessSafeKey,
    record: Vec<u8>,
    sequence: u64,
}

impl TlsRecordEncryptor {
    fn new() -> Result<TlsRecordEncryptor> {
        let key = UnboundKey::new(&AES_128_GCM, &[1; 16]).map_err(|_| "no key")?;
        Ok(TlsRecordEncryptor { key: LessSafeKey::new(key), record: vec![0; RECORD], sequence: 0 })
    }

    /// Encrypts this number of bytes, in records of the largest size.
    fn seal(&mut self, bytes: u64) -> Result<()> {
        let mut left = bytes;
        while left > 0 {
            let len = left.min(RECORD as u64);
            let mut nonce = [0; 12];
            nonce[4..].copy_from_slice(&self.sequence.to_be_bytes());
            let nonce = Nonce::assume_unique_for_key(nonce);
            let sealed = self.key.seal_in_place_separate_tag(nonce, Aad::empty(), &mut self.record[..len as usize]);
            let _tag = black_box(sealed.map_err(|_| "does not seal")?);
            self.sequence += 1;
            left -= len;
        }
        Ok(())
    }
}

#[cfg(target_os = "linux")]
mod splice {
    //! Moves body bytes by `splice`, so that no process copies them.

    use std::fs::File;
    use std::io::{self, Write};
    use std::os::fd::{AsFd, BorrowedFd};

    use rustix::pipe::{SpliceFlags, fcntl_setpipe_size};

    use super::{PIPE, PartiallyReadResponse};
    use crate::Result;

    /// Moves the body from the socket through an intermediate pipe to a file or device.
    pub(super) fn through_pipe(body: &PartiallyReadResponse, mut to: File) -> Result<()> {
        to.write_all(&body.buffer[..body.early])?;
        let (reader, writer) = io::pipe()?;
        fcntl_setpipe_size(&writer, PIPE)?;
        let mut left = body.len - body.early as u64;
        while left > 0 {
            let mut in_pipe = splice_once(body.stream.as_fd(), writer.as_fd(), left)?;
            left -= in_pipe;
            while in_pipe > 0 {
                in_pipe -= splice_once(reader.as_fd(), to.as_fd(), in_pipe)?;
            }
        }
        Ok(())
    }

    /// Moves the body from the socket straight into a pipe.
    pub(super) fn to_pipe(body: &PartiallyReadResponse, to: BorrowedFd<'_>) -> Result<()> {
        File::from(to.try_clone_to_owned()?).write_all(&body.buffer[..body.early])?;
        fcntl_setpipe_size(to, PIPE)?;
        let mut left = body.len - body.early as u64;
        while left > 0 {
            left -= splice_once(body.stream.as_fd(), to, left)?;
        }
        Ok(())
    }

    /// Moves a whole file into a pipe.
    pub(super) fn file_to_pipe(file: &File, to: BorrowedFd<'_>) -> Result<()> {
        fcntl_setpipe_size(to, PIPE)?;
        let mut left = file.metadata()?.len();
        while left > 0 {
            left -= splice_once(file.as_fd(), to, left)?;
        }
        Ok(())
    }

    /// Moves between one and `most` bytes from the descriptor `from` to the descriptor `to`.
    pub(super) fn splice_once(from: BorrowedFd<'_>, to: BorrowedFd<'_>, most: u64) -> Result<u64> {
        let most = usize::try_from(most).unwrap_or(usize::MAX).min(PIPE);
        match rustix::pipe::splice(from, None, to, None, most, SpliceFlags::MOVE)? {
            0 => Err("the body ended early".into()),
            moved => Ok(moved as u64),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod splice {
    //! Functions for systems other than Linux, which have no `splice`: they only return an error.

    use std::fs::File;
    use std::os::fd::BorrowedFd;

    use super::PartiallyReadResponse;
    use crate::Result;

    pub(super) fn file_to_pipe(_: &File, _: BorrowedFd<'_>) -> Result<()> {
        Err("splice is Linux's".into())
    }

    pub(super) fn through_pipe(_: &PartiallyReadResponse, _: File) -> Result<()> {
        Err("splice is Linux's".into())
    }

    pub(super) fn to_pipe(_: &PartiallyReadResponse, _: BorrowedFd<'_>) -> Result<()> {
        Err("splice is Linux's".into())
    }

    pub(super) fn splice_once(_: BorrowedFd<'_>, _: BorrowedFd<'_>, _: u64) -> Result<u64> {
        Err("splice is Linux's".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_length_is_read_only_from_200() {
        assert_eq!(content_length("HTTP/1.1 200 OK\r\nServer: x\r\ncontent-length: 7\r\n\r\n").ok(), Some(7));
        for head in [
            "HTTP/1.1 206 Partial Content\r\nContent-Length: 7\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
            "",
        ] {
            assert!(content_length(head).is_err(), "{head}");
        }
    }

    #[test]
    fn tls_sealing_accepts_last_record_of_any_length() {
        for bytes in [0, 1, RECORD as u64, RECORD as u64 + 1] {
            assert!(TlsRecordEncryptor::new().unwrap().seal(bytes).is_ok());
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn spliced_body_arrives_whole() {
        let origin = testkit::origin::Origin::builder().start().unwrap();
        let dir = std::env::temp_dir().join(format!("haul-bench-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("out");
        let words = ["splice-file", &origin.url("/bytes/3000001"), &file.display().to_string()].map(str::to_owned);
        run(&words).unwrap();
        assert!(std::fs::read(&file).unwrap() == origin.pattern().slice(0, 3_000_001));
        std::fs::remove_dir_all(dir).unwrap();
    }
}
