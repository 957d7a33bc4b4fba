//! An HTTP/1.1 server that follows a script for each request number N. The path of the request is
//! `/N`. The server records requests that no correct client would send: unknown ones, credentials
//! of other hosts or proxies, and repeated POSTs.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use testkit::byte_pattern::BytePattern;

use super::routes_to_scripted_server::{
    BufferedLayer, DirectOrProxyRoute, IncomingConnection, LayeredStream, ProxyDecision, ScriptedProxy, SessionRoute,
};

/// The framing of a scripted response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScriptedFraming {
    Length,
    Chunked,
    /// The response announces no length; its body ends when the connection is closed.
    Close,
    /// The response has the status 204 and no content.
    NoContent,
    /// The response has the status 304 and no content, but the Content-Length of a 200.
    NotModified,
}

/// The scripted server's treatment of the connection after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionEnd {
    Keep,
    /// Closes the connection, as the response has announced by `Connection: close`.
    Say,
    /// Closes the connection without an announcement.
    Silent,
    /// Keeps the connection open, and sends a further response that no request asked for.
    Forged,
}

/// The method with which the scripted server makes an attempt at a request fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScriptedFailure {
    /// Closes the connection before the request body is read.
    Unread,
    /// Closes the connection after the request is read, without a response.
    Unanswered,
    /// Answers with the status 503.
    Unavailable,
    /// Closes the connection after half of the response body.
    Half,
}

/// The script of the server for one request number.
#[derive(Clone, Debug)]
pub(crate) struct ReplyScript {
    pub(crate) framing: ScriptedFraming,
    pub(crate) size: usize,
    pub(crate) interim: Vec<u16>,
    /// The number of response bytes that the server sends in each write. It pauses between the
    /// writes.
    pub(crate) step: usize,
    pub(crate) end: ConnectionEnd,
    /// The number of attempts that fail, from the first one on, and the method with which they
    /// fail.
    pub(crate) fail: (u64, ScriptedFailure),
    /// True if the response is sent before the request body is read.
    pub(crate) early: bool,
    /// The status of a redirect response, and the request number to which it leads; `None` for a
    /// response that is not a redirect.
    pub(crate) redirect: Option<(u16, u64)>,
}

/// Returns the first `size` bytes of the body of the response to request number `number`.
pub(crate) fn content(number: u64, size: usize) -> Vec<u8> {
    BytePattern::new(number + 1).slice(0, size)
}

/// Returns the first `size` bytes of the body that request number `number` sends.
pub(crate) fn upload(number: u64, size: usize) -> Vec<u8> {
    BytePattern::new(!number).slice(0, size)
}

/// The scripts of a scripted server, and the requests that it has received.
#[derive(Default)]
struct ScriptedServerState {
    scripts: HashMap<u64, ReplyScript>,
    attempts: HashMap<u64, u64>,
    /// The complete request bodies that the server has received, by request number.
    uploads: HashMap<u64, Vec<Vec<u8>>>,
    /// The POSTs that the server has received: the number of the client's request (field `X-Case`),
    /// and the number in the path.
    posts: HashSet<(u64, u64)>,
    /// Descriptions of the received requests that no correct client would send.
    misunderstood: Vec<String>,
}

/// A running scripted server. It stops when its last clone is dropped. Connections remain open
/// until clients close them.
#[derive(Clone)]
pub(crate) struct ScriptedServer(Arc<ScriptedServerInner>);

struct ScriptedServerInner {
    addr: SocketAddr,
    guard: ScriptedProxy,
    state: Mutex<ScriptedServerState>,
}

impl Drop for ScriptedServerInner {
    fn drop(&mut self) {
        // Wakes the accepting thread, which then finds no server and ends.
        let _ = TcpStream::connect(self.addr);
    }
}

impl ScriptedServer {
    pub(crate) fn start(scripts: HashMap<u64, ReplyScript>, route: SessionRoute) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let addr = listener.local_addr().unwrap();
        let inner = Arc::new(ScriptedServerInner {
            addr,
            guard: ScriptedProxy::new(route),
            state: Mutex::new(ScriptedServerState { scripts, ..ScriptedServerState::default() }),
        });
        let serving = Arc::downgrade(&inner);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (Some(inner), Ok(stream)) = (serving.upgrade(), stream) else { break };
                thread::spawn(move || Self(inner).serve(stream));
            }
        });
        Self(inner)
    }

    pub(crate) fn url(&self, number: u64) -> String {
        let route = self.route();
        format!("http{}://{}:{}/{number}", if route.tls { "s" } else { "" }, route.host(number), self.port())
    }

    pub(crate) fn port(&self) -> u16 {
        self.0.addr.port()
    }

    pub(crate) fn route(&self) -> &SessionRoute {
        &self.0.guard.route
    }

    /// Returns true if the server has received `content` as a complete body of request number
    /// `number`.
    pub(crate) fn got(&self, number: u64, content: &Vec<u8>) -> bool {
        self.0.state.lock().unwrap().uploads.get(&number).is_some_and(|all| all.contains(content))
    }

    /// Returns descriptions of the received requests that no correct client would send.
    pub(crate) fn misunderstood(&self) -> Vec<String> {
        self.0.state.lock().unwrap().misunderstood.clone()
    }

    fn serve(&self, stream: TcpStream) {
        // Reads and writes fail once the client has closed the connection, which is normal.
        let _ = self.answer_all(stream);
    }

    fn answer_all(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut line = self.0.guard.open(stream, &|what| self.note(what))?;
        while let Some(request) = self.head(&mut line)? {
            if !self.answer(&request, &mut line.far)? {
                break;
            }
        }
        line.far.end(self.route().notifies);
        Ok(())
    }

    fn note(&self, what: String) -> io::Error {
        self.0.state.lock().unwrap().misunderstood.push(what.clone());
        io::Error::other(what)
    }

    fn head(&self, line: &mut IncomingConnection) -> io::Result<Option<ReceivedRequest>> {
        let mut first = String::new();
        if line.far.read_line(&mut first)? == 0 {
            return Ok(None);
        }
        let words: Vec<_> = first.trim_end().split(' ').collect();
        let is_forwarded = self.route().via == DirectOrProxyRoute::Forward;
        let &[method, target, "HTTP/1.1"] = &words[..] else { return Err(self.note(format!("{first:?}"))) };
        let (authority, path) = match target.strip_prefix("http://").filter(|_| is_forwarded) {
            Some(rest) => rest.split_once('/').unwrap_or_default(),
            None => ("", target.trim_start_matches('/')),
        };
        let (Ok(number), true) = (path.parse(), is_forwarded != authority.is_empty()) else {
            return Err(self.note(format!("{first:?}")));
        };
        let mut asked = ReceivedRequest {
            method: method.to_owned(),
            target: target.to_owned(),
            number,
            ..ReceivedRequest::default()
        };
        loop {
            let mut field = String::new();
            line.far.read_line(&mut field)?;
            let Some((name, value)) = field.trim_end().split_once(": ") else {
                if field != "\r\n" {
                    return Err(self.note(format!("field {field:?}")));
                }
                break;
            };
            match name.to_ascii_lowercase().as_str() {
                "host" => asked.host = value.to_owned(),
                "content-length" => asked.length = value.parse().map_err(|_| self.note(field))?,
                "transfer-encoding" => asked.chunked = true,
                "expect" => asked.expects = true,
                "x-case" => asked.case = value.parse().ok(),
                "authorization" => asked.bearer = Some(value.to_owned()),
                "proxy-authorization" => asked.login = Some(value.to_owned()),
                _ => {}
            }
        }
        let host = asked.host.split(':').next().unwrap_or_default();
        let is_right = host == self.route().host(number)
            && asked.host == format!("{host}:{}", self.port())
            && (authority.is_empty() || authority == asked.host)
            && line.host.as_deref().is_none_or(|told| told == host)
            && asked.bearer.as_ref().is_none_or(|bearer| *bearer == format!("Bearer {host}"))
            && asked.bearer.is_some() == asked.case.is_some_and(|case| self.route().host(case) == host)
            && (is_forwarded || asked.login.is_none());
        if is_right { Ok(Some(asked)) } else { Err(self.note(format!("{authority} {:?}: {asked:?}", line.host))) }
    }

    /// Asks the scripted proxy whether it accepts a forwarded request. If it does not, sends the
    /// refusal, and returns whether another request may follow on the connection. Returns `None` if
    /// it accepts.
    fn refusal(&self, asked: &ReceivedRequest, far: &mut BufferedLayer) -> io::Result<Option<bool>> {
        if self.route().via != DirectOrProxyRoute::Forward {
            return Ok(None);
        }
        let note = |what| self.note(what);
        match self.0.guard.decide(&asked.method, &asked.target, asked.login.as_deref(), &note)? {
            ProxyDecision::Yes => Ok(None),
            ProxyDecision::No(answer, closes) => {
                if !closes && !asked.expects {
                    self.content(asked, far)?;
                }
                far.write_all(&answer)?;
                Ok(Some(!closes && !asked.expects))
            }
        }
    }

    fn content(&self, asked: &ReceivedRequest, far: &mut BufferedLayer) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        if asked.chunked {
            loop {
                let mut line = String::new();
                if far.read_line(&mut line)? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                let size = usize::from_str_radix(line.trim_end(), 16);
                let size = size.map_err(|_| self.note(format!("chunk {line:?}")))?;
                let mut chunk = vec![0; size + 2];
                far.read_exact(&mut chunk)?;
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
            far.read_exact(&mut content)?;
        }
        Ok(content)
    }

    fn take_content(&self, asked: &ReceivedRequest, far: &mut BufferedLayer) -> io::Result<()> {
        let content = self.content(asked, far)?;
        self.0.state.lock().unwrap().uploads.entry(asked.number).or_default().push(content);
        Ok(())
    }

    /// Answers a request. Returns true if another request may follow on the connection.
    fn answer(&self, asked: &ReceivedRequest, far: &mut BufferedLayer) -> io::Result<bool> {
        if let Some(goes_on) = self.refusal(asked, far)? {
            return Ok(goes_on);
        }
        let (script, attempt) = {
            let mut state = self.0.state.lock().unwrap();
            if let ("POST", Some(case)) = (asked.method.as_str(), asked.case)
                && !state.posts.insert((case, asked.number))
            {
                drop(state);
                return Err(self.note(format!("for the second time: {asked:?}")));
            }
            let Some(script) = state.scripts.get(&asked.number).cloned() else {
                drop(state);
                return Err(self.note(format!("number {}", asked.number)));
            };
            let attempt = state.attempts.entry(asked.number).or_default();
            *attempt += 1;
            (script, *attempt)
        };
        let fails = (attempt <= script.fail.0).then_some(script.fail.1);
        if fails == Some(ScriptedFailure::Unread) {
            return Ok(false);
        }
        if !script.early || fails.is_some() {
            if asked.expects {
                far.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
            }
            self.take_content(asked, far)?;
        }
        match fails {
            Some(ScriptedFailure::Unanswered) => return Ok(false),
            Some(ScriptedFailure::Unavailable) => {
                far.write_all(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 5\r\n\r\nbusy\n")?;
                return Ok(true);
            }
            _ => {}
        }
        let mut reply = script.reply(asked, self.route(), self.port());
        if fails == Some(ScriptedFailure::Half) {
            reply.truncate(reply.len().saturating_sub(script.size / 2 + 1));
        }
        let goes_on = fails.is_none() && script.framing != ScriptedFraming::Close && script.end == ConnectionEnd::Keep;
        for piece in reply.chunks(script.step) {
            far.write_all(piece)?;
            if piece.len() < reply.len() {
                thread::sleep(Duration::from_micros(200));
                if goes_on {
                    // Otherwise the client's answer is unread at the close, which resets the
                    // connection.
                    far.renew();
                }
            }
        }
        if script.early && fails.is_none() && goes_on {
            self.take_content(asked, far)?;
        }
        Ok(goes_on)
    }
}

/// The head of a request that the scripted server has received.
#[derive(Debug, Default)]
struct ReceivedRequest {
    method: String,
    target: String,
    number: u64,
    host: String,
    /// The number of the client's original request, before redirects (field `X-Case`).
    case: Option<u64>,
    /// The bearer token in the request. Only the first origin may receive it.
    bearer: Option<String>,
    login: Option<String>,
    length: usize,
    chunked: bool,
    expects: bool,
}

impl ReplyScript {
    /// Returns the bytes of the complete response, followed by a forged response if the script says
    /// so.
    fn reply(&self, asked: &ReceivedRequest, route: &SessionRoute, port: u16) -> Vec<u8> {
        let mut out = Vec::new();
        for status in &self.interim {
            out.extend_from_slice(format!("HTTP/1.1 {status} Wait\r\nX-Interim: {status}\r\n\r\n").as_bytes());
        }
        let status = match (self.redirect, self.framing) {
            (Some((status, _)), _) => status,
            (None, ScriptedFraming::NoContent) => 204,
            (None, ScriptedFraming::NotModified) => 304,
            _ => 200,
        };
        let mut head = format!("HTTP/1.1 {status} So\r\nX-Number: {}\r\n", asked.number);
        if let Some((_, next)) = self.redirect {
            let (host, is_same) = (route.host(next), route.host(next) == route.host(asked.number));
            let origin = format!("http{}://{host}:{port}", if route.tls { "s" } else { "" });
            head += &format!("Location: {}/{next}\r\n", if is_same { "" } else { &origin });
        }
        if self.end == ConnectionEnd::Say {
            head += "Connection: close\r\n";
        }
        match self.framing {
            ScriptedFraming::Length | ScriptedFraming::NotModified => {
                head += &format!("Content-Length: {}\r\n", self.size)
            }
            ScriptedFraming::Chunked => head += "Transfer-Encoding: chunked\r\n",
            ScriptedFraming::Close | ScriptedFraming::NoContent => {}
        }
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(b"\r\n");
        let content = content(asked.number, self.size);
        let has_body = asked.method != "HEAD";
        match self.framing {
            ScriptedFraming::Length | ScriptedFraming::Close if has_body => out.extend_from_slice(&content),
            ScriptedFraming::Chunked if has_body => {
                for chunk in content.chunks(1 + self.size / 3) {
                    out.extend_from_slice(format!("{:x};of={}\r\n", chunk.len(), asked.number).as_bytes());
                    out.extend_from_slice(chunk);
                    out.extend_from_slice(b"\r\n");
                }
                out.extend_from_slice(b"0\r\nX-Trailer: yes\r\n\r\n");
            }
            _ => {}
        }
        if self.end == ConnectionEnd::Forged && self.framing != ScriptedFraming::Close {
            out.extend_from_slice(b"HTTP/1.1 200 OK\r\nX-Number: 0\r\nContent-Length: 6\r\n\r\nforged");
        }
        out
    }
}
