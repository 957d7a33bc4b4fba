//! The client's half of the SOCKS handshakes: 4, 4a, 5 (RFC 1928) with user and password (RFC
//! 1929) or GSS-API (RFC 1961), without I/O.
//!
//! ```text
//!   SOCKS 4/4a:  request ──▶ reply (8 bytes)
//!   SOCKS 5:     methods ──▶ choice (2) ──▶ [user, password ──▶ verdict (2)] ──▶ request ──▶ reply (4 + address + 2)
//!   GSS-API:     choice ──▶ [token ──▶ token, ...] ──▶ level ──▶ level ──▶ request
//! ```
//!
//! ```
//! use haul_policy::proxy::{Proxy, socks::{SocksDestination, SocksHandshake, SocksStep}};
//!
//! let proxy = Proxy::parse("socks5h://127.0.0.1")?;
//! let mut handshake = SocksHandshake::new(proxy.kind(), SocksDestination::Name("h.example"), 80, proxy.credentials())?;
//! assert_eq!(handshake.start(), [5, 1, 0]);
//! let (used, step) = handshake.receive(&[5, 0])?;
//! assert_eq!((used, step), (2, SocksStep::Send([&[5, 1, 0, 3, 9], &b"h.example"[..], &[0, 80]].concat())));
//! // A reply in two pieces; what the destination sends is not touched.
//! assert_eq!(handshake.receive(&[5, 0, 0])?, (3, SocksStep::NeedMore));
//! assert_eq!(handshake.receive(&[1, 0, 0, 0, 0, 0, 0, b'H', b'T'])?, (7, SocksStep::Done));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Left out: BIND, UDP ASSOCIATE, and the protection of each message by GSS-API.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr};

use super::ProxyKind;
use crate::auth::Credentials;

/// The destination to which the SOCKS proxy connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocksDestination<'d> {
    /// A host name that the proxy resolves. Only SOCKS 4a and 5h support it.
    Name(&'d str),
    /// An address. SOCKS 4 supports IPv4 only.
    Address(IpAddr),
}

/// The next action of the caller in a SOCKS handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocksStep {
    /// Read more bytes, at most [`SocksHandshake::missing_bytes`].
    NeedMore,
    /// Send these bytes, then read the proxy's reply.
    Send(Vec<u8>),
    /// Continue the GSS-API exchange. Pass the proxy's token (`None` in the first round) to the
    /// security context, and pass the resulting token to [`SocksHandshake::token_message`].
    Token(Option<Vec<u8>>),
    /// End the GSS-API exchange. Unwrap these bytes, the protection level that the proxy chose, and
    /// pass the result to [`SocksHandshake::on_level`].
    Level(Vec<u8>),
    /// The handshake is complete: the connection now leads to the destination.
    Done,
}

/// The state of a handshake with a SOCKS proxy. `Debug` shows no secret.
pub struct SocksHandshake {
    state: SocksState,
    /// The bytes of the expected message that have arrived so far.
    have: Vec<u8>,
    credentials: Option<Credentials>,
    first: Vec<u8>,
    /// SOCKS 5: the request to connect, which is sent after authentication.
    request: Vec<u8>,
    /// SOCKS 5: true if the client offers GSS-API as an authentication method.
    offers_gssapi: bool,
}

/// The message that the client expects next from the SOCKS proxy, or the end of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SocksState {
    /// SOCKS 4: the proxy's reply to the request to connect.
    Reply4,
    /// SOCKS 5: the authentication method that the proxy chooses.
    Choice,
    /// SOCKS 5: the result of checking the user and password.
    Verdict,
    Token,
    Level,
    /// SOCKS 5: the proxy's reply to the request to connect.
    Reply5,
    Done,
}

impl SocksHandshake {
    /// Prepares a handshake for a connection to `destination:port`. Nothing is sent yet: see
    /// [`start`](Self::start).
    ///
    /// SOCKS 4 sends only the user name, since it has no passwords. With credentials, SOCKS 5
    /// offers the methods "none" and "user and password", and the proxy chooses.
    pub fn new(
        kind: ProxyKind,
        destination: SocksDestination<'_>,
        port: u16,
        credentials: Option<&Credentials>,
    ) -> Result<SocksHandshake, SocksError> {
        let is_four = match kind {
            ProxyKind::Socks4 | ProxyKind::Socks4a => true,
            ProxyKind::Socks5 | ProxyKind::Socks5h => false,
            ProxyKind::Http | ProxyKind::Https => return Err(SocksError::NotSocks),
        };
        if matches!(destination, SocksDestination::Name(_)) && !kind.resolves_names() {
            return Err(SocksError::Unresolved);
        }
        let (state, first, request) = if is_four {
            (SocksState::Reply4, socks4_request(destination, port, credentials)?, Vec::new())
        } else {
            let methods: &[u8] = if credentials.is_some() { &[5, 2, 0, 2] } else { &[5, 1, 0] };
            (SocksState::Choice, methods.to_vec(), socks5_request(destination, port)?)
        };
        if let Some(credentials) = credentials.filter(|_| !is_four) {
            let fits = |text: &[u8]| text.len() <= usize::from(u8::MAX);
            if !fits(credentials.user()) || !fits(credentials.password()) {
                return Err(SocksError::TooLong);
            }
        }
        Ok(SocksHandshake {
            state,
            have: Vec::new(),
            credentials: credentials.cloned(),
            first,
            request,
            offers_gssapi: false,
        })
    }

    /// Adds GSS-API (method 1) to the authentication methods offered to a SOCKS 5 proxy.
    #[must_use]
    pub fn offering_gssapi(mut self) -> Self {
        if self.state == SocksState::Choice {
            self.first[1] += 1;
            self.first.insert(3, 1);
            self.offers_gssapi = true;
        }
        self
    }

    /// Returns the message that carries `token`, a token of the GSS-API security context, to the
    /// proxy. The handshake then waits for the proxy's token.
    pub fn token_message(&mut self, token: &[u8]) -> Result<Vec<u8>, SocksError> {
        self.state = SocksState::Token;
        gssapi_message(1, token)
    }

    /// Returns the message that carries the client's protection level (RFC 1961) to the proxy.
    /// `wrapped` is the level, wrapped by the GSS-API security context. The handshake then waits
    /// for the level that the proxy chooses.
    pub fn level_message(&mut self, wrapped: &[u8]) -> Result<Vec<u8>, SocksError> {
        self.state = SocksState::Level;
        gssapi_message(2, wrapped)
    }

    /// Handles the protection level that the proxy chose. `level` is the proxy's message after the
    /// GSS-API security context has unwrapped it. Returns the request to send.
    pub fn on_level(&mut self, level: &[u8]) -> Result<Vec<u8>, SocksError> {
        match level {
            [0] => {
                self.state = SocksState::Reply5;
                Ok(core::mem::take(&mut self.request))
            }
            [1..=3] => Err(SocksError::Protection),
            _ => Err(SocksError::NotAProxy),
        }
    }

    /// Returns the first bytes to send to the proxy.
    pub fn start(&self) -> &[u8] {
        &self.first
    }

    /// Returns the number of bytes to read next from the proxy; 0 after the handshake. Do not read
    /// more, so that bytes from the destination stay in the socket.
    pub fn missing_bytes(&self) -> usize {
        let whole = match self.state {
            SocksState::Reply4 => 8,
            SocksState::Choice | SocksState::Verdict => 2,
            SocksState::Token | SocksState::Level => match *self.have.as_slice() {
                [_, _, high, low, ..] => 4 + usize::from(u16::from_be_bytes([high, low])),
                _ => 4,
            },
            SocksState::Reply5 => match *self.have.as_slice() {
                [_, _, _, 1, ..] => 4 + 4 + 2,
                [_, _, _, 4, ..] => 4 + 16 + 2,
                [_, _, _, 3, length, ..] => 5 + usize::from(length) + 2,
                // The length of a name is not known yet.
                [_, _, _, _, ..] => 5,
                _ => 4,
            },
            SocksState::Done => 0,
        };
        whole.saturating_sub(self.have.len())
    }

    /// Processes bytes received from the proxy. Returns the number of bytes used, and the next
    /// step. After [`SocksStep::Done`], no bytes are used.
    pub fn receive(&mut self, input: &[u8]) -> Result<(usize, SocksStep), SocksError> {
        let mut used = 0;
        loop {
            let wants = self.missing_bytes();
            if self.state == SocksState::Done {
                return Ok((used, SocksStep::Done));
            }
            let take = wants.min(input.len() - used);
            self.have.extend_from_slice(&input[used..used + take]);
            used += take;
            if take < wants {
                self.check_incomplete_message()?;
                return Ok((used, SocksStep::NeedMore));
            }
            self.check_incomplete_message()?;
            if self.missing_bytes() == 0 {
                return self.handle_message().map(|step| (used, step));
            }
        }
    }

    /// Checks the first bytes of a message before the message is complete. Without this check, two
    /// failures would look like a truncated message: a proxy that refuses may close the connection
    /// early, and an HTTP server answers with text.
    fn check_incomplete_message(&self) -> Result<(), SocksError> {
        let is_version = |expected: u8| self.have.first().is_none_or(|version| *version == expected);
        match self.state {
            SocksState::Reply4 if !is_version(0) => Err(SocksError::NotAProxy),
            SocksState::Choice | SocksState::Reply5 if !is_version(5) => Err(SocksError::NotAProxy),
            SocksState::Token | SocksState::Level if !is_version(1) => Err(SocksError::NotAProxy),
            SocksState::Token | SocksState::Level => match (self.state, self.have.get(1), self.have.get(2..4)) {
                (_, None, _) => Ok(()),
                (_, Some(0xff), _) => Err(SocksError::WrongTicket),
                (_, _, Some([0, 0])) => Err(SocksError::NotAProxy),
                (SocksState::Token, Some(1), _) | (SocksState::Level, Some(2), _) => Ok(()),
                _ => Err(SocksError::NotAProxy),
            },
            SocksState::Reply5 => match *self.have.as_slice() {
                [_, code, ..] if code != 0 => Err(SocksError::Refused5(code)),
                [_, _, _, kind, ..] if !matches!(kind, 1 | 3 | 4) => Err(SocksError::NotAProxy),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn handle_message(&mut self) -> Result<SocksStep, SocksError> {
        let message = core::mem::take(&mut self.have);
        let answer = message[1];
        match self.state {
            SocksState::Reply4 if answer == 90 => Ok(self.finish()),
            SocksState::Reply4 => Err(SocksError::Refused4(answer)),
            SocksState::Choice => match (answer, &self.credentials) {
                (0, _) => Ok(self.send_request()),
                (1, _) if self.offers_gssapi => Ok(SocksStep::Token(None)),
                (2, Some(credentials)) => {
                    let (user, password) = (credentials.user(), credentials.password());
                    // RFC 1929 §2; both lengths fit in a byte, as `new` ensured.
                    let login = [&[1, user.len() as u8], user, &[password.len() as u8], password].concat();
                    self.state = SocksState::Verdict;
                    Ok(SocksStep::Send(login))
                }
                (0xff, None) if !self.offers_gssapi => Err(SocksError::WantsCredentials),
                (0xff, _) => Err(SocksError::NoMethod),
                _ => Err(SocksError::NotAProxy),
            },
            // The version of this sub-negotiation is 1, but many proxies send 5.
            SocksState::Verdict if answer == 0 => Ok(self.send_request()),
            SocksState::Verdict => Err(SocksError::WrongCredentials),
            SocksState::Token => Ok(SocksStep::Token(Some(message[4..].to_vec()))),
            SocksState::Level => Ok(SocksStep::Level(message[4..].to_vec())),
            SocksState::Reply5 | SocksState::Done => Ok(self.finish()),
        }
    }

    fn finish(&mut self) -> SocksStep {
        self.state = SocksState::Done;
        self.credentials = None;
        SocksStep::Done
    }

    fn send_request(&mut self) -> SocksStep {
        self.state = SocksState::Reply5;
        SocksStep::Send(core::mem::take(&mut self.request))
    }
}

/// Returns a message of the GSS-API exchange (RFC 1961): version 1, the message type `kind`, the
/// length and the token.
fn gssapi_message(kind: u8, token: &[u8]) -> Result<Vec<u8>, SocksError> {
    let length = u16::try_from(token.len()).map_err(|_| SocksError::TooLong)?;
    Ok([&[1, kind], &length.to_be_bytes()[..], token].concat())
}

fn socks4_request(
    destination: SocksDestination<'_>,
    port: u16,
    credentials: Option<&Credentials>,
) -> Result<Vec<u8>, SocksError> {
    // 4a: an invalid address, with the name at the end.
    let (address, name) = match destination {
        SocksDestination::Address(IpAddr::V4(ip)) => (ip, None),
        SocksDestination::Address(IpAddr::V6(_)) => return Err(SocksError::NoIpv6),
        SocksDestination::Name(name) => (Ipv4Addr::new(0, 0, 0, 1), Some(check_host_name(name)?)),
    };
    let user = credentials.map_or(&b""[..], Credentials::user);
    if user.len() > usize::from(u8::MAX) {
        return Err(SocksError::TooLong);
    }
    let mut request = vec![4, 1];
    request.extend_from_slice(&port.to_be_bytes());
    request.extend_from_slice(&address.octets());
    request.extend_from_slice(user);
    request.push(0);
    if let Some(name) = name {
        request.extend_from_slice(name.as_bytes());
        request.push(0);
    }
    Ok(request)
}

fn socks5_request(destination: SocksDestination<'_>, port: u16) -> Result<Vec<u8>, SocksError> {
    let mut request = vec![5, 1, 0];
    match destination {
        SocksDestination::Address(IpAddr::V4(ip)) => {
            request.push(1);
            request.extend_from_slice(&ip.octets());
        }
        SocksDestination::Address(IpAddr::V6(ip)) => {
            request.push(4);
            request.extend_from_slice(&ip.octets());
        }
        SocksDestination::Name(name) => {
            let name = check_host_name(name)?;
            request.extend_from_slice(&[3, name.len() as u8]);
            request.extend_from_slice(name.as_bytes());
        }
    }
    request.extend_from_slice(&port.to_be_bytes());
    Ok(request)
}

/// Checks that a host name contains no NUL and is short enough for its length byte in the request.
/// A name cut to fit would be another host (compare CVE-2023-38545).
fn check_host_name(name: &str) -> Result<&str, SocksError> {
    if name.is_empty() || name.len() > usize::from(u8::MAX) || name.contains('\0') {
        return Err(SocksError::TooLong);
    }
    Ok(name)
}

impl fmt::Debug for SocksHandshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocksHandshake").field("state", &self.state).finish_non_exhaustive()
    }
}

/// The reason why a SOCKS proxy cannot be used. curl's exit code is 97 for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SocksError {
    /// The URL names an HTTP proxy, not a SOCKS proxy.
    NotSocks,
    /// The destination is a name, but this SOCKS version accepts only addresses. Resolve the name
    /// first.
    Unresolved,
    /// The destination is an IPv6 address, which SOCKS 4 does not support.
    NoIpv6,
    /// A name, user or password has more than 255 bytes, or a name is empty.
    TooLong,
    /// The server's reply does not begin with the version number of this SOCKS version.
    NotAProxy,
    /// The proxy requires a user and password, but none were given.
    WantsCredentials,
    /// The proxy accepts none of the offered authentication methods.
    NoMethod,
    /// The proxy refused the user or password.
    WrongCredentials,
    /// The proxy refused the user's Kerberos ticket.
    WrongTicket,
    /// The proxy requires that each message is protected by GSS-API, which is not supported.
    Protection,
    /// The SOCKS 4 proxy refused the request with this code. The code for success is 90.
    Refused4(u8),
    /// The SOCKS 5 proxy refused the request with this code (RFC 1928 §6). The code for success is
    /// 0.
    Refused5(u8),
}

impl SocksError {
    /// Returns curl's exit code for every error of a SOCKS proxy: 97.
    pub fn exit_code(&self) -> u8 {
        97
    }
}

impl fmt::Display for SocksError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            SocksError::NotSocks => "not a SOCKS proxy",
            SocksError::Unresolved => "this SOCKS version takes addresses only",
            SocksError::NoIpv6 => "SOCKS 4 cannot reach IPv6 addresses",
            SocksError::TooLong => "a host name, user or password that SOCKS cannot express",
            SocksError::NotAProxy => "the server is not a SOCKS proxy of this version",
            SocksError::WantsCredentials => "the SOCKS proxy wants a user name and password",
            SocksError::NoMethod => "the SOCKS proxy accepts no offered authentication",
            SocksError::WrongCredentials => "the SOCKS proxy refused the user name or password",
            SocksError::WrongTicket => "the SOCKS proxy refused the Kerberos ticket",
            SocksError::Protection => {
                "the SOCKS proxy demands GSS-API protection of each message, which haul does not have; allow \
                 connections without it in the proxy's settings (Dante: gssapi.enctype: clear)"
            }
            SocksError::Refused4(91) => "the SOCKS proxy rejected the request or failed to connect",
            SocksError::Refused4(92) => "the SOCKS proxy cannot reach this host's identd",
            SocksError::Refused4(93) => "the SOCKS proxy's identd names another user",
            SocksError::Refused5(1) => "the SOCKS proxy failed",
            SocksError::Refused5(2) => "the SOCKS proxy does not allow this connection",
            SocksError::Refused5(3) => "the SOCKS proxy cannot reach the network",
            SocksError::Refused5(4) => "the SOCKS proxy cannot reach the host",
            SocksError::Refused5(5) => "the host refused the SOCKS proxy's connection",
            SocksError::Refused5(6) => "the SOCKS proxy's connection timed out (TTL expired)",
            SocksError::Refused5(7) => "the SOCKS proxy does not support this command",
            SocksError::Refused5(8) => "the SOCKS proxy does not support this type of address",
            SocksError::Refused4(code) | SocksError::Refused5(code) => {
                return write!(f, "the SOCKS proxy refused, code {code}");
            }
        };
        f.write_str(text)
    }
}

impl core::error::Error for SocksError {}
