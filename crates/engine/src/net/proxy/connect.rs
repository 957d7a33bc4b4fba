//! A CONNECT and its answer (RFC 9110 §9.3.6), by the same HTTP/1.1 machine as all requests: with its limits on heads and on
//! interim responses, and its idea of where the body of a refusal ends.

use std::sync::Arc;

use haul_policy::proxy::{connect_authority, connect_fields};
use haul_policy::target::Target;
use haul_proto::h1::{self, BodyLength, Conn, Event};
use haul_proto::head::Head;
use haul_proto::time::Time;

use super::Hop;
use crate::{Error, ErrorKind, Result};

/// How often a proxy may ask anew: it can say for ever that its nonce was too old.
const MAX_ROUNDS: u32 = 4;

/// One CONNECT, repeated as often as the proxy may ask who we are.
pub(super) struct Exchange {
    conn: Conn,
    hop: Arc<Hop>,
    target: Target,
    rounds: u32,
    answered: bool,
    /// The status of its last answer; 0 before.
    pub(super) status: u16,
    /// The heads of its answers, for who wants to see them.
    pub(super) heads: Vec<Head>,
    /// The answer is a refusal whose body is read to its end, to ask again.
    again: bool,
    tail: Vec<u8>,
}

/// Where an exchange stands.
pub(super) enum Verdict {
    /// Read on.
    More,
    /// Send [`Exchange::take_output`], then read on.
    Again,
    /// The tunnel is open, and these bytes came out of it already.
    Open(Vec<u8>),
}

impl Exchange {
    /// For a tunnel to this host.
    pub(super) fn new(hop: Arc<Hop>, host: &str, port: u16) -> Result<Self> {
        let host = host.trim_matches(['[', ']']);
        let text =
            if host.contains(':') { format!("http://[{host}]:{port}/") } else { format!("http://{host}:{port}/") };
        let target = Target::parse(&text)
            .map_err(|error| Error::with_source(ErrorKind::Setup, "a proxy cannot be asked for this host", error))?;
        let liberties = h1::Liberties { http10: hop.http10, ..h1::Liberties::default() };
        let conn = Conn::new(h1::Config { liberties, ..h1::Config::default() });
        let mut exchange = Self {
            conn,
            hop,
            target,
            rounds: 0,
            answered: false,
            status: 0,
            heads: Vec::new(),
            again: false,
            tail: Vec::new(),
        };
        exchange.ask()?;
        Ok(exchange)
    }

    fn ask(&mut self) -> Result<()> {
        let (hop, authority) = (&self.hop, connect_authority(&self.target));
        let authorization = hop.memory.authorization(&hop.proxy, hop.auth, "CONNECT", &authority)?;
        self.answered = authorization.is_some();
        self.rounds += 1;
        let agent = hop.user_agent.as_deref().map(str::as_bytes);
        let fields = connect_fields(&self.target, authorization.as_deref(), agent, &hop.fields);
        let fields: Vec<(&str, &[u8])> = fields.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect();
        let request = h1::Request {
            method: "CONNECT",
            target: &authority,
            fields: &fields,
            body: BodyLength::None,
            expect_continue: false,
        };
        self.again = false;
        match self.conn.enqueue(Time(0), &request) {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::with_source(ErrorKind::Setup, "the proxy cannot be asked", error)),
        }
    }

    /// What is to be sent.
    pub(super) fn take_output(&mut self) -> Vec<u8> {
        let output = self.conn.output().to_vec();
        self.conn.advance_output(output.len());
        output
    }

    /// Takes what has come.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<Verdict> {
        self.tail.extend_from_slice(bytes);
        let mut input = std::mem::take(&mut self.tail);
        let mut at = 0;
        loop {
            let step = self.conn.step(Time(0), &mut input[at..]).map_err(|error| self.broken(error))?;
            at += step.consumed;
            match step.event {
                Event::NeedInput => {
                    self.tail = input.split_off(at);
                    return Ok(Verdict::More);
                }
                Event::Interim { .. } | Event::Body { .. } => {}
                Event::Tunnel { head, .. } => {
                    self.status = head.status();
                    self.heads.push(head);
                    return match self.status {
                        200..300 => Ok(Verdict::Open(input.split_off(at))),
                        // 101 changes to a protocol that nobody asked for.
                        _ => Err(self.refused()),
                    };
                }
                Event::Head { head, .. } => {
                    self.status = head.status();
                    let hop = &self.hop;
                    let again = self.status == 407
                        && self.rounds < MAX_ROUNDS
                        && hop.memory.asked(&hop.proxy, hop.auth, &head, self.answered)?;
                    self.heads.push(head);
                    if !again {
                        return Err(self.refused());
                    }
                    self.again = true;
                }
                Event::Complete { reuse, .. } => {
                    if !self.again || reuse.is_err() {
                        return Err(self.refused());
                    }
                    self.ask()?;
                    self.tail = input.split_off(at);
                    return Ok(Verdict::Again);
                }
            }
        }
    }

    /// Whether the proxy has asked who we are for the first time: the answer is known now, and if this connection is of no
    /// further use another one may bring it. Only once, so that a proxy that asks for ever is not asked for ever.
    pub(super) fn wants_another(&self) -> bool {
        self.again && !self.answered
    }

    /// The proxy closed the connection.
    pub(super) fn ended(&self) -> Error {
        if self.status != 0 {
            return self.refused();
        }
        Error::new(ErrorKind::Receive, "the proxy closed the connection before it answered CONNECT")
    }

    fn refused(&self) -> Error {
        Error::new(ErrorKind::Receive, format!("CONNECT tunnel failed, response {}", self.status))
    }

    fn broken(&self, error: h1::Error) -> Error {
        Error::with_source(ErrorKind::Receive, "the proxy's answer to CONNECT is broken", error)
    }
}
