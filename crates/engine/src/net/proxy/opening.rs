//! The exchanges on a connection before requests can be sent: with proxies, then TLS with the origin.
//!
//! One machine for both drivers. On a non-blocking socket [`Opening::step`] goes as far as it gets; on a blocking one it
//! waits, until the deadline.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::time::Instant;

use haul_policy::alt_svc::Protocol;
use haul_policy::proxy::ProxyKind;
use haul_policy::proxy::socks::{Destination, Handshake, SocksError, Step};
use haul_proto::head::Head;

use super::connect::{Exchange, Verdict};
use super::route::{Route, proxies};
use crate::net::pool::Key;
use crate::net::stream::{Received, Stream};
use crate::net::tls::{Place, Tls, TlsContexts, TlsOptions};
use crate::{Error, ErrorKind, Result};

/// How many connections are made instead of one because a proxy leaves after asking: it can say for ever that its nonce was
/// too old.
const MAX_OTHERS: u32 = 3;

/// A connection that is being opened.
pub struct Opening {
    stream: Option<Stream>,
    stages: VecDeque<Stage>,
    outgoing: Vec<u8>,
    sent: usize,
    connect_status: u16,
    connect_heads: Vec<Head>,
    wants_another: bool,
    /// It leads to an alternative service, which has to speak this.
    alternative: Option<Protocol>,
}

enum Stage {
    Socks {
        handshake: Box<Handshake>,
        has_begun: bool,
    },
    Connect {
        exchange: Box<Exchange>,
        has_begun: bool,
    },
    /// The line that tells both ends (the PROXY protocol, version 1).
    Ends {
        /// Told in place of one's own address.
        client: Option<IpAddr>,
    },
    Tls(Box<TlsStage>),
    Handshake {
        is_proxy: bool,
    },
}

struct TlsStage {
    options: TlsOptions,
    place: Place,
    name: String,
    is_proxy: bool,
}

impl Opening {
    /// The exchanges for a connection of this key. Impossible ones are found here, before anything is connected.
    ///
    /// # Errors
    /// [`ErrorKind::Proxy`] for names that SOCKS cannot express, [`ErrorKind::Setup`] for fields that cannot be sent.
    pub fn new(key: &Key, route: &Route) -> Result<Self> {
        let mut stages = VecDeque::new();
        let proxies = proxies(key);
        for (place, proxy) in proxies.iter().enumerate() {
            let Some(hop) = key.via.hop() else { break };
            if let Some(tls) = hop.tls.as_ref().filter(|_| proxy.kind() == ProxyKind::Https) {
                stages.push_back(Stage::Tls(Box::new(TlsStage {
                    options: tls.clone(),
                    place: key.proxy_place(proxy),
                    name: proxy.host_text().to_owned(),
                    is_proxy: true,
                })));
            }
            // One that forwards is asked for nothing.
            let Some(address) = route.asked.get(place) else { break };
            let (host, port) = match proxies.get(place + 1) {
                Some(next) => (next.host_text(), next.port()),
                None => (key.dial.0.as_str(), key.dial.1),
            };
            stages.push_back(if proxy.kind().is_socks() {
                let destination = address.map_or(Destination::Name(host), Destination::Address);
                let handshake = Handshake::new(proxy.kind(), destination, port, proxy.credentials());
                Stage::Socks { handshake: Box::new(handshake.map_err(socks_error)?), has_begun: false }
            } else {
                Stage::Connect { exchange: Box::new(Exchange::new(hop.clone(), host, port)?), has_begun: false }
            });
        }
        if key.connect.haproxy_protocol {
            stages.push_back(Stage::Ends { client: key.connect.haproxy_client });
        }
        if let Some(tls) = &key.tls {
            stages.push_back(Stage::Tls(Box::new(TlsStage {
                options: tls.clone(),
                place: key.place(),
                name: key.host.clone(),
                is_proxy: false,
            })));
        }
        Ok(Self {
            stream: None,
            stages,
            outgoing: Vec::new(),
            sent: 0,
            connect_status: 0,
            connect_heads: Vec::new(),
            wants_another: false,
            alternative: key.alternative,
        })
    }

    /// The connection stands.
    pub fn connected(&mut self, stream: Stream) {
        self.stream = Some(stream);
    }

    /// The status of the last answer to a CONNECT; 0 where there was none.
    #[must_use]
    pub fn connect_status(&self) -> u16 {
        self.connect_status
    }

    /// The heads of the answers to CONNECT that have come since this was asked last.
    pub fn take_connect_heads(&mut self) -> Vec<Head> {
        std::mem::take(&mut self.connect_heads)
    }

    /// After an error: a proxy asked who we are and left. The answer is known now, so all of this is to be done again, on
    /// another connection, unless that was done so `often` already.
    #[must_use]
    pub fn wants_another(&self, often: u32) -> bool {
        self.wants_another && often < MAX_OTHERS
    }

    /// Whether nothing has to be said.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.stages.is_empty() && self.sent == self.outgoing.len()
    }

    /// The stream, when everything is done.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`] if it was never [`connected`](Self::connected); [`ErrorKind::TlsHandshake`] where an alternative service
    /// does not speak what it is known for (RFC 7838 section 2.4).
    pub fn into_stream(self) -> Result<Stream> {
        let stream = self.stream.ok_or_else(|| Error::new(ErrorKind::Setup, "the connection does not stand"))?;
        if self.alternative == Some(Protocol::H2) && stream.alpn() != Some(b"h2") {
            return Err(Error::new(ErrorKind::TlsHandshake, "the alternative service does not speak HTTP/2"));
        }
        Ok(stream)
    }

    /// Makes progress. `false` if it has to wait: for the socket, or on a blocking socket because the deadline has passed (it has a receive timeout
    /// then).
    ///
    /// # Errors
    /// A proxy's refusal or invalid answer; a failure of TLS.
    pub fn step(&mut self, contexts: &TlsContexts, buffer: &mut [u8], deadline: Option<Instant>) -> Result<bool> {
        loop {
            match self.flush() {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) => {
                    self.wants_another = matches!(self.stages.front(), Some(Stage::Connect { exchange, .. }) if exchange.wants_another());
                    return Err(error);
                }
            }
            let Some(mut stage) = self.stages.pop_front() else { return Ok(true) };
            let goes_on = match &mut stage {
                Stage::Tls(next) => {
                    let tls = Tls::new(&contexts.context(&next.options)?.at(&next.place), &next.name)?;
                    self.stream = self.stream.take().map(|stream| stream.secure(tls));
                    self.stages.push_front(Stage::Handshake { is_proxy: next.is_proxy });
                    continue;
                }
                Stage::Handshake { is_proxy } => {
                    let is_proxy = *is_proxy;
                    let outcome = self.stream()?.handshake(buffer, deadline);
                    outcome.map_err(|error| if is_proxy { error.about("the proxy") } else { error })?
                }
                Stage::Ends { client } => {
                    self.say(self.ends(*client));
                    true
                }
                Stage::Socks { has_begun, handshake } if !*has_begun => {
                    *has_begun = true;
                    self.say(handshake.start().to_vec());
                    self.stages.push_front(stage);
                    continue;
                }
                Stage::Connect { has_begun, exchange } if !*has_begun => {
                    *has_begun = true;
                    let asked = exchange.begin(self.stream()?.alpn())?;
                    self.say(asked);
                    self.stages.push_front(stage);
                    continue;
                }
                Stage::Socks { handshake, .. } => self.hear_socks(handshake, buffer, deadline)?,
                Stage::Connect { exchange, .. } => {
                    let outcome = self.hear_connect(exchange, buffer, deadline);
                    self.connect_status = exchange.status;
                    self.connect_heads.append(&mut exchange.heads);
                    self.wants_another = outcome.is_err() && exchange.wants_another();
                    outcome?
                }
            };
            if !goes_on {
                self.stages.push_front(stage);
                // Something to say is no reason to wait.
                if self.sent == self.outgoing.len() {
                    return Ok(false);
                }
            }
        }
    }

    fn stream(&mut self) -> Result<&mut Stream> {
        self.stream.as_mut().ok_or_else(|| Error::new(ErrorKind::Setup, "the connection does not stand"))
    }

    fn say(&mut self, bytes: Vec<u8>) {
        self.outgoing = bytes;
        self.sent = 0;
    }

    /// Sends pending bytes. `true` when all of them were sent.
    fn flush(&mut self) -> Result<bool> {
        let Some(stream) = &mut self.stream else { return Ok(false) };
        let broke = |error| Error::with_source(ErrorKind::Send, "the connection to the proxy broke", error);
        while self.sent < self.outgoing.len() {
            match stream.send(&self.outgoing[self.sent..]) {
                Ok(n) => self.sent += n,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(broke(error)),
            }
        }
        stream.flush().map_err(broke)
    }

    /// Receives once, no more than fits. `None` where it has to wait, `Some(0)` at the end.
    fn receive(&mut self, buffer: &mut [u8], deadline: Option<Instant>) -> Result<Option<usize>> {
        let broke = |error| Error::with_source(ErrorKind::Receive, "the connection to the proxy broke", error);
        let stream = self.stream()?;
        loop {
            // Before each receive: a proxy that sends a byte now and then must not outlive the deadline.
            if let Some(deadline) = deadline {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(None);
                }
                stream.socket().set_recv_timeout(Some(left)).map_err(broke)?;
            }
            match stream.receive(buffer) {
                Ok(Received::Bytes { filled, .. }) => return Ok(Some(filled)),
                Ok(Received::WouldBlock) => return Ok(None),
                Ok(Received::End) => return Ok(Some(0)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(broke(error)),
            }
        }
    }

    /// `true` when the stage is over.
    fn hear_socks(&mut self, handshake: &mut Handshake, buffer: &mut [u8], deadline: Option<Instant>) -> Result<bool> {
        loop {
            // No byte of what follows: that is not the proxy's any more.
            let wants = handshake.wants().min(buffer.len());
            let Some(filled) = self.receive(&mut buffer[..wants], deadline)? else { return Ok(false) };
            if filled == 0 {
                return Err(Error::new(ErrorKind::Proxy, "the SOCKS proxy closed the connection in the handshake"));
            }
            match handshake.feed(&buffer[..filled]).map_err(socks_error)?.1 {
                Step::NeedMore => {}
                Step::Done => return Ok(true),
                Step::Send(bytes) => {
                    self.say(bytes);
                    return Ok(false);
                }
            }
        }
    }

    /// `true` when the stage is over.
    fn hear_connect(&mut self, exchange: &mut Exchange, buffer: &mut [u8], deadline: Option<Instant>) -> Result<bool> {
        loop {
            let Some(filled) = self.receive(buffer, deadline)? else { return Ok(false) };
            if filled == 0 {
                return Err(exchange.ended());
            }
            let mut plain = Vec::new();
            let (mut at, stream) = (0, self.stream()?);
            let is_over = loop {
                match stream.open(buffer, &mut at, filled)? {
                    (Some(range), _) => plain.extend_from_slice(&buffer[range]),
                    (None, is_over) => break is_over,
                }
            };
            match exchange.feed(&plain)? {
                Verdict::More if is_over => return Err(exchange.ended()),
                Verdict::More => {}
                Verdict::Again => {
                    self.say(exchange.take_output());
                    return Ok(false);
                }
                Verdict::Open(ahead, tunnel) => {
                    stream.nest(ahead, tunnel);
                    return Ok(true);
                }
            }
        }
    }

    /// The line of the PROXY protocol, version 1.
    fn ends(&self, client: Option<IpAddr>) -> Vec<u8> {
        let stream = self.stream.as_ref();
        let ends = stream.and_then(|stream| Some((stream.socket().local_addr().ok()?, stream.peer?)));
        match ends {
            Some((local, peer)) => {
                // Another client is of a family of its own, of which nothing is known at the other end: as by curl it stands there, too.
                let (ours, theirs) = client.map_or((local.ip(), peer.ip()), |client| (client, client));
                let family = if matches!(ours, IpAddr::V4(_)) { "TCP4" } else { "TCP6" };
                format!("PROXY {family} {ours} {theirs} {} {}\r\n", local.port(), peer.port()).into_bytes()
            }
            None => b"PROXY UNKNOWN\r\n".to_vec(),
        }
    }
}

fn socks_error(error: SocksError) -> Error {
    Error::with_source(ErrorKind::Proxy, "cannot go through the SOCKS proxy", error)
}

impl std::fmt::Debug for Opening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opening")
            .field("stream", &self.stream)
            .field("stages", &self.stages.len())
            .finish_non_exhaustive()
    }
}
