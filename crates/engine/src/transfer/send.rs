//! The request of the next exchange: which fields it has, and which secrets may go along.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_policy::redirect::Secrets;
use haul_policy::secrets::may_go;
use haul_proto::{h1, h2};

use haul_policy::range::validator::Validator;

use super::{Disposition, Transfer};
use crate::clock;
use crate::drive::link::Machine;
use crate::net::proxy::Via;
use crate::trace;
use crate::{Error, ErrorKind, Result};

type Field = (String, Vec<u8>);

/// The caller's fields: those that many requests share, but for names that this one has some of its own of; then these.
fn given<'a>(shared: &'a [Field], own: &'a [Field]) -> impl Iterator<Item = &'a Field> {
    let is_replaced = move |name: &str| own.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    shared.iter().filter(move |(name, _)| !is_replaced(name)).chain(own)
}

/// Why a machine does not take a request. It knows its fields by number, and who gave one knows it by name.
fn cannot_be_sent(error: Box<dyn std::error::Error + Send + Sync>, fields: &[(&str, &[u8])]) -> Error {
    let of_h1 = error.downcast_ref().and_then(h1::RequestError::field);
    let of_h2 = error.downcast_ref().and_then(h2::RequestError::field);
    let message = match of_h1.or(of_h2).and_then(|index| fields.get(index)) {
        Some((name, _)) => format!("the request cannot be sent for its header {name:?}"),
        None => "the request cannot be sent".to_owned(),
    };
    Error::with_source(ErrorKind::Setup, message, error)
}

impl Transfer {
    /// Puts the request into the connection's machine.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`] if a field or the method cannot be sent; [`ErrorKind::Read`] if the netrc file is none;
    /// [`ErrorKind::Rewind`] if the content is gone.
    pub fn enqueue(&mut self, conn: &mut impl Machine, now: Instant) -> Result<h1::RequestId> {
        let own = std::mem::take(&mut self.own.fields);
        let outcome = self.put(&own, conn, now);
        self.own.fields = own;
        outcome
    }

    fn put(&mut self, own: &[Field], conn: &mut impl Machine, now: Instant) -> Result<h1::RequestId> {
        self.disposition = Disposition::Unknown;
        self.asked_pause = None;
        self.wants_fresh = false;
        self.look_for_partial();
        if let Some(error) = self.cannot_send_again() {
            return Err(error);
        }
        let options = Arc::clone(&self.options);
        let (secrets, same_origin) = (self.secrets, self.same_origin);
        // A Host of the caller's own belongs to the first origin only.
        let is_host = |name: &str| name.eq_ignore_ascii_case("host");
        let allowed = || {
            let fields = given(&options.fields, own);
            fields.filter(|(name, _)| may_go(name, secrets) && (same_origin || !is_host(name)))
        };
        let is_left_out = |name: &str| options.without.iter().any(|field| field.eq_ignore_ascii_case(name));
        // Most requests have none, and are asked this of each field that the engine makes.
        let has_given = allowed().next().is_some();
        let is_given = |name: &str| has_given && allowed().any(|(field, _)| field.eq_ignore_ascii_case(name));
        // What a user leaves out of a request to one host, another may need: that it is another, the user cannot know.
        let is_made = |name: &str| !is_given(name) && (!is_left_out(name) || is_host(name) && !same_origin);

        let authorization = self.authorize(!is_made("Authorization"))?;
        // The same answer as the connection's key has: what is for a proxy goes to no one else.
        let via = Via::of(&self.target, &options);
        let forwarded = via.forwards().map(|hop| hop.forwarded(&self.method, &self.target)).transpose()?;
        let for_proxy = forwarded.as_ref().map_or(&[][..], |(_, fields)| fields);
        let to_proxy = |wanted: &str| {
            let found = for_proxy.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            found.map(|(_, value)| value.as_slice())
        };
        let answer = to_proxy("Proxy-Authorization");
        if answer.is_none() && via.forwards().is_some_and(|hop| hop.is_to_ask()) {
            self.waits_to_be_asked();
        }
        let authority = self.target.authority();
        let range = match &options.range {
            Some(range) => Some(format!("bytes={range}")),
            None => self.extent.range(),
        };
        let if_range = self.extent.validator.as_ref().filter(|_| self.may_range && self.extent.is_ranged());
        let asks_coded = self.asks_coded();
        let cookie = self.cookie(is_made("Cookie"));
        // Content that cannot be in chunks has its length said, where that is known.
        let is_said = |name: &str| conn.has_chunks() || !name.eq_ignore_ascii_case("transfer-encoding");
        let given: Vec<(&str, &[u8])> = allowed()
            .filter(|(name, _)| !self.is_orphan(name) && is_said(name))
            .map(|(name, value)| (name.as_str(), value.as_slice()))
            .collect();
        let framing = self.framing(&given);
        self.asked_first = self.asks_first(framing, &given, conn.asks_first());
        let frames =
            |name: &str| ["content-length", "transfer-encoding"].iter().any(|own| name.eq_ignore_ascii_case(own));
        let is_framed = given.iter().any(|(name, _)| frames(name));
        let length = match framing {
            h1::BodyLength::Known(length) if !is_framed => Some(length.to_string()),
            _ => None,
        };
        let is_chunked = framing == h1::BodyLength::Chunked && !is_framed;
        let part = options.content_range.as_deref().filter(|_| self.with_body).map(|part| format!("bytes {part}"));
        // As by curl: who is only to be challenged is told of a form's fields, but not of its parts, which are not there.
        let says_type = |kind: &&str| !(self.login.is_probe && kind.starts_with("multipart/"));
        let content_type = options.content_type.as_deref().filter(|_| self.with_body && is_made("Content-Type"));
        let content_type = content_type.filter(says_type);
        // The order is curl's: servers and tests exist that look at it.
        let alt_used = self.alt_used();
        let asks_transfer_coding = options.liberties.codings && is_made("TE");
        let made: [(&str, Option<&[u8]>); 12] = [
            ("Authorization", authorization.as_deref()),
            ("Range", range.as_deref().map(str::as_bytes)),
            ("Content-Range", part.as_deref().map(str::as_bytes)),
            ("If-Range", if_range.map(Validator::if_range)),
            ("User-Agent", options.user_agent.as_deref().map(str::as_bytes)),
            ("Accept", Some(b"*/*")),
            ("TE", asks_transfer_coding.then_some(b"gzip")),
            ("Accept-Encoding", asks_coded.then(|| crate::body::accept_encoding().as_bytes())),
            ("Referer", self.referer.as_deref().map(str::as_bytes)),
            ("Proxy-Connection", to_proxy("Proxy-Connection")),
            ("Alt-Used", alt_used.as_deref().map(str::as_bytes)),
            ("Transfer-Encoding", is_chunked.then_some(b"chunked")),
        ];
        let describing: [(&str, Option<&[u8]>); 3] = [
            ("Content-Length", length.as_deref().map(str::as_bytes)),
            ("Content-Type", content_type.map(str::as_bytes)),
            ("Expect", (self.asked_first && !is_given("Expect")).then_some(b"100-continue")),
        ];
        // An empty Connection names nothing, and any other stands last. TE is named in the first (RFC 9110 section 10.1.4).
        let is_connection = |name: &str| name.eq_ignore_ascii_case("Connection");
        let mut connections = given.iter().filter(|(name, value)| is_connection(name) && !value.is_empty()).copied();
        let named = asks_transfer_coding
            .then(|| connections.next().map_or_else(|| b"TE".to_vec(), |(_, first)| [first, b", TE"].concat()));
        self.proxy_answered = answer.is_some();
        let mut fields: Vec<(&str, &[u8])> = Vec::with_capacity(given.len() + for_proxy.len() + 16);
        // A Host of the user's stands where the engine's own does.
        let own_host = given.iter().find(|(name, _)| is_host(name)).map(|&(_, value)| ("Host", value));
        fields.extend(own_host.or_else(|| is_made("Host").then_some(("Host", authority.as_bytes()))));
        fields.extend(answer.map(|value| ("Proxy-Authorization", value)));
        // Most have no value, and need not be looked for among those that are given.
        let valued = made.iter().filter_map(|&(name, value)| Some((name, value?)));
        fields.extend(valued.filter(|(name, _)| is_made(name)));
        fields.extend(cookie.as_deref().map(|value| ("Cookie", value)));
        fields.extend(given.iter().filter(|(name, _)| !is_host(name) && !is_connection(name)));
        let more = for_proxy.iter().filter(|(name, _)| {
            !["proxy-authorization", "proxy-connection"].iter().any(|known| name.eq_ignore_ascii_case(known))
        });
        fields.extend(more.map(|(name, value)| (name.as_str(), value.as_slice())));
        fields.extend(describing.iter().filter_map(|&(name, value)| Some((name, value?))));
        fields.extend(named.as_deref().map(|value| ("Connection", value)));
        fields.extend(connections);
        let own_target = options.request_target.as_deref().unwrap_or(self.target.path_and_query());
        let request = h1::Request {
            method: &self.method,
            target: match (&options.request_target, &forwarded) {
                (None, Some((uri, _))) => uri,
                _ => own_target,
            },
            fields: &fields,
            body: framing,
            expect_continue: self.asked_first,
        };
        if !self.has_begun {
            self.facts.body_bytes = 0;
        }
        self.facts.exchange_began(now);
        let lines: usize = fields.iter().map(|(name, value)| name.len() + value.len() + ": \r\n".len()).sum();
        self.facts.request_bytes +=
            (request.method.len() + request.target.len() + lines + "  HTTP/1.1\r\n\r\n".len()) as u64;
        self.pace.watch(&options, now);
        if let Some(trace) = &options.trace {
            trace.event(&trace::request(&request, conn.version(options.liberties.http10)));
        }
        let taken = conn.take(clock::time(now), self.target.scheme().as_str(), &request);
        self.has_sent |= taken.is_ok();
        taken.map_err(|error| cannot_be_sent(error, &fields))
    }

    /// The cookies of the jar, then those of the user's word (as by curl). A field of the user's takes the place of both; in
    /// curl's ways the jar's have a field beside it.
    fn cookie(&self, is_made: bool) -> Option<Vec<u8>> {
        let jar = self.options.jar.as_ref().filter(|_| is_made || self.options.cookies_by_host);
        let kept = jar.and_then(|jar| jar.cookie_for(&self.cookie_target()));
        let given = self.options.cookie.as_deref().filter(|_| is_made && self.secrets == Secrets::Keep);
        match (kept, given) {
            (Some(kept), Some(given)) => Some([&kept, &b"; "[..], given].concat()),
            (Some(kept), None) => Some(kept),
            (None, given) => given.map(<[u8]>::to_vec),
        }
    }

    /// Whether a field of the caller's describes content that is not sent: it goes where that goes (RFC 9110 section 15.4).
    fn is_orphan(&self, name: &str) -> bool {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        let describes = name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("content-"));
        let frames = is("content-length") || is("transfer-encoding") || is("expect");
        let has_given = self.own.body.is_some() || self.options.body.is_some();
        has_given && (!self.with_body && (describes || frames) || self.login.is_probe && frames)
    }

    /// How long the server is waited for that was asked whether it wants the content.
    #[must_use]
    pub fn asks_for(&self) -> Option<Duration> {
        self.asked_first.then_some(self.options.expect_timeout)
    }

    /// Before the first exchange: what an earlier run left of this very content need not be fetched again.
    fn look_for_partial(&mut self) {
        if std::mem::replace(&mut self.has_looked, true) || !self.may_range || self.options.decode {
            return;
        }
        if let Some(partial) = self.body.partial(&self.target) {
            self.is_fixed = partial.known.is_none();
            if self.is_fixed {
                self.from = partial.gap.start;
            }
            self.extent.resumes(partial);
        }
    }
}
