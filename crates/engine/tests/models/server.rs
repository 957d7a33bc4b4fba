//! An HTTP/1.1 server that does to each request what was said of its number, in `/N`; what it does not understand it notes.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use testkit::pattern::Pattern;

/// How long a body is told to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Length,
    Chunked,
    /// Up to the end of the connection.
    Close,
    /// 204.
    NoContent,
    /// 304 with the Content-Length that a 200 would have had.
    NotModified,
}

/// What becomes of the connection behind a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Keep,
    /// `Connection: close`, and so it is.
    Say,
    /// Closed without a word.
    Silent,
    /// Another response comes that nobody asked for.
    Forged,
}

/// How an attempt fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fail {
    /// Closed before the content was read.
    Unread,
    /// Closed when all was read.
    Unanswered,
    /// 503 in place of the response.
    Unavailable,
    /// Closed behind half of the response's content.
    Half,
}

/// What is done to one request.
#[derive(Clone, Debug)]
pub struct Script {
    pub framing: Framing,
    pub size: usize,
    pub interim: Vec<u16>,
    /// Bytes of a write; less than all means a pause after each.
    pub step: usize,
    pub end: End,
    /// So many attempts fail first.
    pub fail: (u64, Fail),
    /// The response comes before the content is read.
    pub early: bool,
    /// Status, and the number that it leads to.
    pub redirect: Option<(u16, u64)>,
}

/// The content of the response to a number.
pub fn content(number: u64, size: usize) -> Vec<u8> {
    Pattern::new(number + 1).slice(0, size)
}

/// The content that is sent with a number.
pub fn upload(number: u64, size: usize) -> Vec<u8> {
    Pattern::new(!number).slice(0, size)
}

#[derive(Default)]
struct State {
    scripts: HashMap<u64, Script>,
    attempts: HashMap<u64, u64>,
    /// What was sent with a number, each time that it came whole.
    uploads: HashMap<u64, Vec<Vec<u8>>>,
    misunderstood: Vec<String>,
}

/// A running server. It ends when the last of its clones is dropped, and connections when their clients close them.
#[derive(Clone)]
pub struct Server(Arc<Inner>);

struct Inner {
    addr: SocketAddr,
    state: Mutex<State>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Who accepts sees that nobody is there.
        let _ = TcpStream::connect(self.addr);
    }
}

impl Server {
    pub fn start(scripts: HashMap<u64, Script>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let addr = listener.local_addr().unwrap();
        let inner = Arc::new(Inner { addr, state: Mutex::new(State { scripts, ..State::default() }) });
        let serving = Arc::downgrade(&inner);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (Some(inner), Ok(stream)) = (serving.upgrade(), stream) else { break };
                thread::spawn(move || Self(inner).serve(stream));
            }
        });
        Self(inner)
    }

    pub fn url(&self, number: u64) -> String {
        format!("http://{}/{number}", self.0.addr)
    }

    /// Whether this content came with this number, whole.
    pub fn got(&self, number: u64, content: &Vec<u8>) -> bool {
        self.0.state.lock().unwrap().uploads.get(&number).is_some_and(|all| all.contains(content))
    }

    /// What no client should have sent.
    pub fn misunderstood(&self) -> Vec<String> {
        self.0.state.lock().unwrap().misunderstood.clone()
    }

    fn serve(&self, stream: TcpStream) {
        // Writes and reads end when the client has gone, and that is no fault.
        let _ = self.answer_all(stream);
    }

    fn answer_all(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut output = stream.try_clone()?;
        let mut input = BufReader::new(stream);
        while let Some(request) = self.head(&mut input)? {
            if !self.answer(&request, &mut input, &mut output)? {
                break;
            }
        }
        Ok(())
    }

    fn note(&self, what: String) -> io::Error {
        self.0.state.lock().unwrap().misunderstood.push(what.clone());
        io::Error::other(what)
    }

    fn head(&self, input: &mut impl BufRead) -> io::Result<Option<Asked>> {
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let words: Vec<_> = line.trim_end().split(' ').collect();
        let number = words.get(1).and_then(|target| target.strip_prefix('/')).and_then(|number| number.parse().ok());
        let (&[method, _, "HTTP/1.1"], Some(number)) = (&words[..], number) else {
            return Err(self.note(format!("request line {line:?}")));
        };
        let mut asked = Asked { method: method.to_owned(), number, length: 0, chunked: false, expects: false };
        loop {
            let mut line = String::new();
            input.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                return if line == "\r\n" { Ok(Some(asked)) } else { Err(self.note(format!("field {line:?}"))) };
            };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => asked.length = value.parse().map_err(|_| self.note(line))?,
                "transfer-encoding" => asked.chunked = true,
                "expect" => asked.expects = true,
                _ => {}
            }
        }
    }

    fn content(&self, asked: &Asked, input: &mut impl BufRead) -> io::Result<()> {
        let mut content = Vec::new();
        if asked.chunked {
            loop {
                let mut line = String::new();
                if input.read_line(&mut line)? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                let size = usize::from_str_radix(line.trim_end(), 16);
                let size = size.map_err(|_| self.note(format!("chunk {line:?}")))?;
                let mut chunk = vec![0; size + 2];
                input.read_exact(&mut chunk)?;
                if !chunk.ends_with(b"\r\n") {
                    return Err(self.note("the end of a chunk".to_owned()));
                }
                content.extend_from_slice(&chunk[..size]);
                if size == 0 {
                    break;
                }
            }
        } else {
            content.resize(asked.length, 0);
            input.read_exact(&mut content)?;
        }
        self.0.state.lock().unwrap().uploads.entry(asked.number).or_default().push(content);
        Ok(())
    }

    /// Whether another request may follow.
    fn answer(&self, asked: &Asked, input: &mut impl BufRead, output: &mut TcpStream) -> io::Result<bool> {
        let (script, attempt) = {
            let mut state = self.0.state.lock().unwrap();
            let Some(script) = state.scripts.get(&asked.number).cloned() else {
                drop(state);
                return Err(self.note(format!("number {}", asked.number)));
            };
            let attempt = state.attempts.entry(asked.number).or_default();
            *attempt += 1;
            (script, *attempt)
        };
        let fails = (attempt <= script.fail.0).then_some(script.fail.1);
        if fails == Some(Fail::Unread) {
            return Ok(false);
        }
        if !script.early || fails.is_some() {
            if asked.expects {
                output.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
            }
            self.content(asked, input)?;
        }
        match fails {
            Some(Fail::Unanswered) => return Ok(false),
            Some(Fail::Unavailable) => {
                output.write_all(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 5\r\n\r\nbusy\n")?;
                return Ok(true);
            }
            _ => {}
        }
        let mut reply = script.reply(asked);
        if fails == Some(Fail::Half) {
            reply.truncate(reply.len().saturating_sub(script.size / 2 + 1));
        }
        for piece in reply.chunks(script.step) {
            output.write_all(piece)?;
            if piece.len() < reply.len() {
                thread::sleep(Duration::from_micros(200));
            }
        }
        let goes_on = fails.is_none() && script.framing != Framing::Close && script.end == End::Keep;
        if script.early && fails.is_none() && goes_on {
            self.content(asked, input)?;
        }
        Ok(goes_on)
    }
}

/// A request's head.
struct Asked {
    method: String,
    number: u64,
    length: usize,
    chunked: bool,
    expects: bool,
}

impl Script {
    /// All that is sent back, and what nobody asked for.
    fn reply(&self, asked: &Asked) -> Vec<u8> {
        let mut out = Vec::new();
        for status in &self.interim {
            out.extend_from_slice(format!("HTTP/1.1 {status} Wait\r\nX-Interim: {status}\r\n\r\n").as_bytes());
        }
        let status = match (self.redirect, self.framing) {
            (Some((status, _)), _) => status,
            (None, Framing::NoContent) => 204,
            (None, Framing::NotModified) => 304,
            _ => 200,
        };
        let mut head = format!("HTTP/1.1 {status} So\r\nX-Number: {}\r\n", asked.number);
        if let Some((_, next)) = self.redirect {
            head += &format!("Location: /{next}\r\n");
        }
        if self.end == End::Say {
            head += "Connection: close\r\n";
        }
        match self.framing {
            Framing::Length | Framing::NotModified => head += &format!("Content-Length: {}\r\n", self.size),
            Framing::Chunked => head += "Transfer-Encoding: chunked\r\n",
            Framing::Close | Framing::NoContent => {}
        }
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(b"\r\n");
        let content = content(asked.number, self.size);
        let has_body = asked.method != "HEAD";
        match self.framing {
            Framing::Length | Framing::Close if has_body => out.extend_from_slice(&content),
            Framing::Chunked if has_body => {
                for chunk in content.chunks(1 + self.size / 3) {
                    out.extend_from_slice(format!("{:x};of={}\r\n", chunk.len(), asked.number).as_bytes());
                    out.extend_from_slice(chunk);
                    out.extend_from_slice(b"\r\n");
                }
                out.extend_from_slice(b"0\r\nX-Trailer: yes\r\n\r\n");
            }
            _ => {}
        }
        if self.end == End::Forged && self.framing != Framing::Close {
            out.extend_from_slice(b"HTTP/1.1 200 OK\r\nX-Number: 0\r\nContent-Length: 6\r\n\r\nforged");
        }
        out
    }
}
