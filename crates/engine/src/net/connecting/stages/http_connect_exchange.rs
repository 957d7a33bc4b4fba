//! A CONNECT request and its response (RFC 9110 §9.3.6). The exchange uses the protocol machines of
//! ordinary requests, so their limits and framing rules apply. If the connection to the proxy uses
//! TLS, ALPN selects HTTP/1.1 or HTTP/2; otherwise, HTTP/1.1 is used.

use haul_proto::ResponseError;
use std::sync::Arc;
use std::time::Instant;

use haul_policy::auth::{AllowedAuthSchemes, ChosenAuthScheme, choose_scheme, parse_challenges};
use haul_policy::proxy::{connect_authority, connect_fields};
use haul_policy::target::Target;
use haul_proto::h1::{self, H1Event};
use haul_proto::h2::{self, ErrorCode, RequestId};
use haul_proto::request::{BodyLength, RequestHead};
use haul_proto::response_head::{ProtocolVersion, ResponseHead};
use haul_proto::time::MonotonicTimestamp;

use crate::net::connecting::ConnectRequestOrReplyHead;
use crate::net::http2_tunnel::{self, Http2Tunnel};
use crate::net::proxy::{ProxyAuthScheme, ProxyHop};
use crate::state::auth::{NegotiateError, Negotiation, missing_token_error};
use crate::time_conversions;
use crate::trace::request_event;
use crate::transfer_facts::auth_scheme_of;
use crate::{Error, ErrorKind, Result};

/// The maximum number of challenges that a proxy may send on one connection. Without a limit, a
/// proxy could reject each nonce as stale.
const MAX_AUTH_ROUNDS: u32 = 4;

/// A CONNECT request with its response. The request is repeated after each challenge (407) to which
/// credentials can be sent.
pub(super) struct HttpConnectExchange {
    speaks: ProxyHttpMachine,
    hop: Arc<ProxyHop>,
    target: Target,
    rounds: u32,
    answered: bool,
    /// The state of Negotiate authentication (SPNEGO) with the proxy, if it is used.
    negotiation: Negotiation,
    /// True if the next CONNECT request contains a Negotiate token.
    negotiates: bool,
    /// The reason why the last request lacks the Negotiate token that it needed; `None` if no token
    /// was missing.
    missing_token_reason: Option<NegotiateError>,
    /// True if the proxy has sent nothing since the last CONNECT request.
    is_unanswered: bool,
    /// The status of the proxy's last response to CONNECT. 0 before a response.
    pub(super) status: u16,
    /// The scheme of the last credentials in a CONNECT request; `None` without credentials.
    pub(super) auth_scheme: Option<&'static str>,
    /// The heads of the requests and of the proxy's responses. They are reported to the trace. With
    /// `-i`, the heads of responses are printed.
    pub(super) heads: Vec<ConnectRequestOrReplyHead>,
    /// True while the body of a 407 response is being read. The CONNECT request is sent again after
    /// the end of that body.
    again: bool,
}

/// The HTTP protocol machine for the connection to the proxy, which encodes requests and decodes
/// responses.
enum ProxyHttpMachine {
    /// A machine for HTTP/1.1. `tail` contains the received bytes that the machine has not consumed
    /// yet.
    Http1 { conn: Box<h1::H1Machine>, tail: Vec<u8> },
    /// A machine for HTTP/2. `id` is the ID of the stream of the last CONNECT request.
    Http2 { conn: Box<h2::H2Machine>, id: RequestId },
}

/// The result of [`HttpConnectExchange::receive`]: how the exchange continues.
pub(super) enum HttpConnectExchangeStep {
    /// The caller must receive more bytes.
    More,
    /// The caller must send the bytes of [`HttpConnectExchange::take_output`], and then receive
    /// more bytes.
    Again,
    /// The tunnel is open. The bytes arrived after the proxy's response. With HTTP/1.1, they are
    /// data from the tunnel; with HTTP/2, they are input for the [`Http2Tunnel`].
    Open(Vec<u8>, Option<Http2Tunnel>),
}

impl HttpConnectExchange {
    /// Makes an exchange with the proxy of `hop` that opens a tunnel to `host` and `port`. The
    /// exchange begins with [`HttpConnectExchange::begin_on_connection`].
    pub(super) fn new(hop: Arc<ProxyHop>, host: &str, port: u16) -> Result<Self> {
        let host = host.trim_matches(['[', ']']);
        let text =
            if host.contains(':') { format!("http://[{host}]:{port}/") } else { format!("http://{host}:{port}/") };
        let target = Target::parse(&text)
            .map_err(|error| Error::with_source(ErrorKind::Setup, "a proxy cannot be asked for this host", error))?;
        let deviations = h1::H1Deviations { http10: hop.http10, ..h1::H1Deviations::default() };
        let conn = h1::H1Machine::new(h1::H1Config { is_proxy: true, deviations, ..h1::H1Config::default() });
        let speaks = ProxyHttpMachine::Http1 { conn: Box::new(conn), tail: Vec::new() };
        let negotiates = hop.auth == ProxyAuthScheme::Negotiate;
        Ok(Self {
            speaks,
            hop,
            target,
            rounds: 0,
            answered: false,
            negotiation: Negotiation::default(),
            negotiates,
            missing_token_reason: None,
            is_unanswered: true,
            status: 0,
            auth_scheme: None,
            heads: Vec::new(),
            again: false,
        })
    }

    /// Makes the request for a new connection. `protocol` is the protocol that ALPN selected in the
    /// TLS handshake with the proxy, if any. Returns the bytes to send.
    ///
    /// # Errors
    /// The request cannot be made, for example because a field cannot be sent.
    pub(super) fn begin_on_connection(&mut self, protocol: Option<&[u8]>) -> Result<Vec<u8>> {
        if protocol == Some(b"h2") {
            self.speaks = ProxyHttpMachine::Http2 {
                conn: Box::new(h2::H2Machine::new(http2_tunnel::config())),
                id: RequestId(0),
            };
        }
        self.enqueue_request()?;
        Ok(self.take_output())
    }

    fn enqueue_request(&mut self) -> Result<()> {
        let (hop, authority) = (&self.hop, connect_authority(&self.target));
        let authorization = match hop.negotiate.as_ref().filter(|_| self.negotiates) {
            None => hop.memory.authorization(&hop.proxy, hop.auth, "CONNECT", &authority)?,
            Some(options) => match self.negotiation.authorization(options, hop.proxy.host_text(), true) {
                Ok(value) => Some(value),
                Err(error @ NegotiateError::Library(_)) if hop.auth == ProxyAuthScheme::Negotiate => {
                    return Err(missing_token_error(error, "cannot authenticate to the proxy"));
                }
                // As in curl, the proxy may take the request without a token.
                Err(error) => {
                    self.missing_token_reason = Some(error);
                    None
                }
            },
        };
        self.answered = authorization.is_some();
        self.auth_scheme = authorization.as_deref().and_then(auth_scheme_of).or(self.auth_scheme);
        self.rounds += 1;
        self.is_unanswered = true;
        let mut fields = connect_fields(&self.target, authorization.as_deref(), hop.user_agent.as_deref(), &hop.fields);
        hop.remove_unwanted(&mut fields);
        let fields: Vec<(&str, &[u8])> = fields.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect();
        self.again = false;
        let request = RequestHead {
            method: "CONNECT",
            authority: &authority,
            target: &authority,
            fields: &fields,
            ..RequestHead::default()
        };
        let version = match &self.speaks {
            ProxyHttpMachine::Http1 { .. } if hop.http10 => ProtocolVersion::Http10,
            ProxyHttpMachine::Http1 { .. } => ProtocolVersion::Http11,
            ProxyHttpMachine::Http2 { .. } => ProtocolVersion::Http2,
        };
        self.heads.push(ConnectRequestOrReplyHead::Request(request_event(&request, version)));
        let taken = match &mut self.speaks {
            ProxyHttpMachine::Http1 { conn, .. } => conn.enqueue(MonotonicTimestamp(0), &request).map(drop),
            ProxyHttpMachine::Http2 { conn, id } => {
                // The body of the request is the bytes sent into the tunnel.
                let request = RequestHead { body: BodyLength::Chunked, ..request };
                conn.enqueue(time_conversions::to_monotonic_timestamp(Instant::now()), &request)
                    .map(|asked| *id = asked)
            }
        };
        taken.map_err(|error| Error::with_source(ErrorKind::Setup, "the proxy cannot be asked", error))
    }

    /// Removes and returns the bytes to send to the proxy.
    pub(super) fn take_output(&mut self) -> Vec<u8> {
        match &mut self.speaks {
            ProxyHttpMachine::Http1 { conn, .. } => {
                let output = conn.output().to_vec();
                conn.advance_output(output.len());
                output
            }
            ProxyHttpMachine::Http2 { conn, .. } => {
                let output = conn.output().to_vec();
                conn.advance_output(output.len());
                output
            }
        }
    }

    /// Processes bytes received from the proxy, and returns how the exchange continues.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Result<HttpConnectExchangeStep> {
        self.is_unanswered &= bytes.is_empty();
        match self.speaks {
            ProxyHttpMachine::Http1 { .. } => self.receive_http1(bytes),
            ProxyHttpMachine::Http2 { .. } => self.receive_http2(bytes),
        }
    }

    fn receive_http1(&mut self, bytes: &[u8]) -> Result<HttpConnectExchangeStep> {
        let ProxyHttpMachine::Http1 { tail, .. } = &mut self.speaks else { return Ok(HttpConnectExchangeStep::More) };
        tail.extend_from_slice(bytes);
        let mut input = std::mem::take(tail);
        let mut at = 0;
        loop {
            let ProxyHttpMachine::Http1 { conn, tail } = &mut self.speaks else {
                return Ok(HttpConnectExchangeStep::More);
            };
            let step = conn
                .step(MonotonicTimestamp(0), &mut input[at..])
                .map_err(|error| protocol_error(error_kind(error), error))?;
            at += step.consumed;
            match step.event {
                H1Event::NeedInput => {
                    *tail = input.split_off(at);
                    return Ok(HttpConnectExchangeStep::More);
                }
                H1Event::Interim { .. } | H1Event::Body { .. } => {}
                H1Event::Tunnel { head, .. } => {
                    self.status = head.status();
                    if self.status < 300 {
                        self.check_proof(&head)?;
                    }
                    self.heads.push(ConnectRequestOrReplyHead::Response(head));
                    return match self.status {
                        200..300 => Ok(HttpConnectExchangeStep::Open(input.split_off(at), None)),
                        // A 101 switches to a protocol that was not requested.
                        _ => Err(self.refusal_error()),
                    };
                }
                H1Event::Head { head, .. } => self.on_refusal(head)?,
                H1Event::Complete { reuse, .. } => {
                    if !self.again || reuse.is_err() {
                        return Err(self.refusal_error());
                    }
                    *tail = input.split_off(at);
                    self.enqueue_request()?;
                    return Ok(HttpConnectExchangeStep::Again);
                }
            }
        }
    }

    fn receive_http2(&mut self, bytes: &[u8]) -> Result<HttpConnectExchangeStep> {
        let now = time_conversions::to_monotonic_timestamp(Instant::now());
        let (mut input, mut at) = (bytes.to_vec(), 0);
        loop {
            let ProxyHttpMachine::Http2 { conn, id } = &mut self.speaks else {
                return Ok(HttpConnectExchangeStep::More);
            };
            let step = conn.step(now, &mut input[at..]).map_err(|error| protocol_error(ErrorKind::Receive, error))?;
            at += step.consumed;
            match step.event {
                // There is output to send, such as an acknowledgement of the peer's SETTINGS.
                h2::H2Event::NeedInput if !conn.output().is_empty() => return Ok(HttpConnectExchangeStep::Again),
                h2::H2Event::NeedInput => return Ok(HttpConnectExchangeStep::More),
                h2::H2Event::Head { head, id: of, .. } if of == *id => {
                    if matches!(head.status(), 200..300) {
                        self.status = head.status();
                        self.check_proof(&head)?;
                        self.heads.push(ConnectRequestOrReplyHead::Response(head));
                        return Ok(self.open_tunnel(input.split_off(at)));
                    }
                    // The rest of this stream's response is not needed.
                    conn.reset(of, ErrorCode::CANCEL);
                    self.on_refusal(head)?;
                    self.enqueue_request()?;
                }
                h2::H2Event::Reset { reason, id: of, .. } if of == *id => {
                    let message = format!("the proxy did not open a tunnel: {reason}");
                    return Err(Error::new(ErrorKind::Receive, message));
                }
                h2::H2Event::Body { id: of, range } => conn.release(now, of, range.len() as u64),
                _ => {}
            }
        }
    }

    /// Ends the exchange after the proxy has opened the tunnel, and returns its result for the
    /// caller ([`HttpConnectExchangeStep::Open`]). `ahead` contains the bytes that were received
    /// after the proxy's response.
    fn open_tunnel(&mut self, ahead: Vec<u8>) -> HttpConnectExchangeStep {
        let none =
            ProxyHttpMachine::Http1 { conn: Box::new(h1::H1Machine::new(h1::H1Config::default())), tail: Vec::new() };
        match std::mem::replace(&mut self.speaks, none) {
            ProxyHttpMachine::Http2 { conn, id } => {
                HttpConnectExchangeStep::Open(ahead, Some(Http2Tunnel::new(conn, id)))
            }
            ProxyHttpMachine::Http1 { .. } => HttpConnectExchangeStep::Open(ahead, None),
        }
    }

    /// Handles a final response with an error status.
    ///
    /// # Errors
    /// The refusal by the proxy. There is no error if the response is a challenge that can be
    /// answered: the request must then be sent again.
    fn on_refusal(&mut self, head: ResponseHead) -> Result<()> {
        self.status = head.status();
        // RFC 9112 section 6.3: such a message ought to be handled as an error.
        let is_ambiguous = head.get("transfer-encoding").is_some() && head.get("content-length").is_some();
        self.again = self.status == 407 && self.rounds < MAX_AUTH_ROUNDS && self.answers_challenge(&head)?;
        self.heads.push(ConnectRequestOrReplyHead::Response(head));
        match self.again {
            true => Ok(()),
            false if is_ambiguous => {
                let message = "the proxy's answer to CONNECT has both Content-Length and Transfer-Encoding";
                Err(Error::new(ErrorKind::Receive, message).with_status(self.status))
            }
            false => Err(self.refusal_error()),
        }
    }

    /// Handles a challenge of the proxy (407). Returns true if the request should be sent again
    /// with other credentials.
    fn answers_challenge(&mut self, head: &ResponseHead) -> Result<bool> {
        let hop = &self.hop;
        let has_token = self.answered && self.negotiates;
        if hop.negotiate.is_some() && !self.negotiation.sends_no_more_tokens() {
            let challenges = parse_challenges(head.get_all("proxy-authenticate"));
            if let Ok(ChosenAuthScheme::Negotiate(token)) = choose_scheme(&challenges, AllowedAuthSchemes::NEGOTIATE) {
                let answers = self.negotiation.on_challenge(&token, has_token);
                self.negotiates =
                    answers.map_err(|error| missing_token_error(error, "cannot authenticate to the proxy"))?;
                if self.negotiates || hop.auth == ProxyAuthScheme::Negotiate {
                    return Ok(self.negotiates);
                }
            }
        }
        self.negotiates = false;
        hop.memory.on_challenge(&hop.proxy, hop.auth, head, self.answered && !has_token)
    }

    /// Checks the Negotiate token in the response that opens the tunnel. With this token, the proxy
    /// proves its identity.
    fn check_proof(&mut self, head: &ResponseHead) -> Result<()> {
        let message = "the proxy does not prove its identity by Negotiate";
        let checked = self.negotiation.check_proof(head.get_all("proxy-authenticate"));
        checked.map_err(|error| missing_token_error(error, message))
    }

    /// Returns true if the proxy has sent a challenge on a connection that cannot be used any more.
    /// The challenge is stored, so the request may succeed on another connection.
    pub(super) fn needs_new_connection(&self) -> bool {
        self.again || (self.is_unanswered && self.rounds > 1)
    }

    /// Returns the error for a connection that the proxy closed before the tunnel was open.
    pub(super) fn early_end_error(&self) -> Error {
        if !self.is_unanswered && self.status != 0 {
            return self.refusal_error();
        }
        Error::new(ErrorKind::Receive, "the proxy closed the connection before it answered CONNECT")
    }

    fn refusal_error(&self) -> Error {
        let message = format!("CONNECT tunnel failed, response {}", self.status);
        let error = match &self.missing_token_reason {
            Some(reason) if self.status == 407 => Error::with_source(ErrorKind::Connect, message, reason.clone()),
            _ => Error::new(ErrorKind::Connect, message),
        };
        error.with_status(self.status)
    }
}

/// Returns the error kind for an error of the protocol machine. A malformed head from a proxy has
/// the same kind as a malformed head from an origin.
fn error_kind(error: h1::H1Error) -> ErrorKind {
    match error {
        h1::H1Error::Field(_) | h1::H1Error::Response(ResponseError::ContentLength(_)) => ErrorKind::Protocol,
        _ => ErrorKind::Receive,
    }
}

fn protocol_error(kind: ErrorKind, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::with_source(kind, "the proxy's answer to CONNECT is broken", error)
}
