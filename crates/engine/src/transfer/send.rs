//! The request of the next exchange: which fields it has, and which secrets may go along.

use std::sync::Arc;
use std::time::Instant;

use haul_policy::redirect::Secrets;
use haul_policy::secrets::fields_for;
use haul_proto::h1::{self, BodyLength};

use haul_policy::range::validator::Validator;

use super::{Disposition, Transfer};
use crate::clock;
use crate::net::proxy::Via;
use crate::trace;
use crate::{Error, ErrorKind, Result};

impl Transfer {
    /// Puts the request into the connection's machine.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`] if a field or the method cannot be sent.
    pub fn enqueue(&mut self, conn: &mut h1::Conn, now: Instant) -> Result<h1::RequestId> {
        self.disposition = Disposition::Unknown;
        self.asked_pause = None;
        self.wants_fresh = false;
        self.look_for_partial();
        let options = &*self.options;
        let authority = self.target.authority();
        let keep_secrets = matches!(self.secrets, Secrets::Keep);
        let range = match &options.range {
            Some(range) => Some(format!("bytes={range}")),
            None => self.extent.range(),
        };
        let if_range = self.extent.validator.as_ref().filter(|_| self.may_range && self.extent.is_ranged());
        // Bytes that continue others must be of their coding.
        let decodes = options.decode && !self.extent.is_plain_part();
        let own = |name: &str| {
            !options.fields.iter().any(|(field, _)| field.eq_ignore_ascii_case(name))
                && !options.without.iter().any(|field| field.eq_ignore_ascii_case(name))
        };
        let made: [(&str, Option<&[u8]>); 9] = [
            ("Host", Some(authority.as_bytes())),
            ("Authorization", self.authorization.as_deref().filter(|_| keep_secrets)),
            ("Range", range.as_deref().map(str::as_bytes)),
            ("If-Range", if_range.map(Validator::if_range)),
            ("User-Agent", options.user_agent.as_deref().map(str::as_bytes)),
            ("Accept", Some(b"*/*")),
            ("Accept-Encoding", decodes.then(|| crate::body::accept_encoding().as_bytes())),
            ("Referer", self.referer.as_deref().map(str::as_bytes)),
            ("Cookie", options.cookie.as_deref().filter(|_| keep_secrets)),
        ];
        let mut fields: Vec<(&str, &[u8])> = Vec::with_capacity(made.len() + options.fields.len());
        fields.extend(made.iter().filter(|(name, _)| own(name)).filter_map(|&(name, value)| Some((name, value?))));
        // A Host of the caller's own belongs to the first origin only.
        let is_host = |name: &str| name.eq_ignore_ascii_case("host");
        // What describes content goes where the content goes (RFC 9110 section 15.4).
        let orphan = |name: &str| {
            options.body.is_some()
                && !self.with_body
                && name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("content-"))
        };
        let given = fields_for(&options.fields, self.secrets)
            .filter(|(name, _)| (self.same_origin || !is_host(name)) && !orphan(name));
        fields.extend(given.map(|(name, value)| (name.as_str(), value.as_slice())));
        if !self.same_origin && !own("Host") {
            fields.insert(0, ("Host", authority.as_bytes()));
        }
        let content = options.body.as_deref().filter(|_| self.with_body);
        // The same answer as the connection's key has: what is for a proxy goes to no one else.
        let via = Via::of(&self.target, options);
        let forwarded = via.forwards().map(|hop| hop.forwarded(&self.method, &self.target)).transpose()?;
        self.proxy_answered = false;
        if let Some((_, for_proxy)) = &forwarded {
            self.proxy_answered = for_proxy.iter().any(|(name, _)| name.eq_ignore_ascii_case("proxy-authorization"));
            fields.retain(|(name, _)| !for_proxy.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)));
            fields.extend(for_proxy.iter().map(|(name, value)| (name.as_str(), value.as_slice())));
        }
        let request = h1::Request {
            method: &self.method,
            target: forwarded.as_ref().map_or(self.target.path_and_query(), |(uri, _)| uri),
            fields: &fields,
            body: content.map_or(BodyLength::None, |content| BodyLength::Known(content.len() as u64)),
            expect_continue: false,
        };
        if !self.has_begun {
            self.facts.body_bytes = 0;
        }
        self.facts.exchange_began(now);
        self.pace.watch(options, now);
        if let Some(trace) = &options.trace {
            trace.event(&trace::request(&request));
        }
        conn.enqueue(clock::time(now), &request).map_err(|error| {
            Error::with_source(ErrorKind::Setup, "the request cannot be sent", error).with_url(self.target.to_url())
        })
    }

    /// The content that goes with the request.
    #[must_use]
    pub fn content(&self) -> Option<&Arc<[u8]>> {
        self.options.body.as_ref().filter(|_| self.with_body)
    }

    /// Before the first exchange: what an earlier run left of this very content need not be fetched again.
    fn look_for_partial(&mut self) {
        if std::mem::replace(&mut self.has_looked, true) || !self.may_range || self.options.decode {
            return;
        }
        if let Some(partial) = self.body.partial(&self.target) {
            self.is_fixed = partial.known.is_none();
            self.extent.resumes(partial);
        }
    }
}
