//! Reports the events of a transfer to its trace (the caller's observer), and records them in the
//! facts of the transfer.

use std::borrow::Cow;
use std::time::Duration;

use haul_policy::Scheme;
use haul_policy::retry::AttemptOutcome as Trouble;
use haul_policy::terminal_text::escape_for_terminal;
use haul_proto::response_head::{Fields, ResponseHead};

use super::resettable_state::BodyDisposition;
use super::{MAX_KEPT_HEAD_BYTES, Transfer};
use crate::net::connection_info::ConnectionInfo;
use crate::trace::{Milestone, TraceEvent};
use crate::transfer_outcome::TransferOutcome;
use crate::{Error, Result};

/// The maximum number of bytes that a trace shows of a line from the server that is not valid HTTP.
const MAX_SHOWN_LINE: usize = 1024;

impl Transfer {
    /// Records the connection that the exchange uses, and reports it to the trace. `again` is true
    /// if the connection is reused.
    pub fn on_connection(&mut self, connection: &dyn ConnectionInfo, again: bool) {
        self.facts.connection = Some(connection.number());
        if let Some(local) = connection.local() {
            self.facts.local = Some(local);
        }
        // Plain HTTP through an https proxy has no certificate but the proxy's.
        let is_secure = self.current.target.scheme() == Scheme::Https;
        self.facts.certificate_fault = connection.certificate_fault().filter(|_| is_secure).map(Box::from);
        self.facts.proxy_certificate_fault = connection.proxy_certificate_fault().map(Box::from);
        self.facts.certificates = connection.certificates().cloned();
        if self.options.keep_history || self.options.recorder.is_some() {
            self.facts.tls = connection.tls().map(Box::new);
        }
        let Some(trace) = &self.options.trace else { return };
        let host = self.peer_host();
        let text = match connection.peer() {
            _ if again => format!("Reusing existing connection with host {host}"),
            Some(peer) => format!("Connected to {host} ({}) port {}", peer.ip(), peer.port()),
            None => format!("Connected to {host} by a local socket"),
        };
        trace.event(&TraceEvent::Info(text.into()));
        let mut agreed = if again { Vec::new() } else { connection.lines() };
        let tls = &self.options.tls;
        if !agreed.is_empty() && (tls.verify || tls.examine) {
            agreed.push(match connection.certificate_fault() {
                Some(fault) => format!(" SSL certificate verification failed ({fault}), continuing anyway!"),
                None => " SSL certificate verify ok.".to_owned(),
            });
        }
        for text in agreed {
            trace.event(&TraceEvent::Info(text.into()));
        }
    }

    /// Returns the host to which the connection is made, for messages: the proxy or, without a
    /// proxy, the server.
    fn peer_host(&self) -> &str {
        self.route.proxy.as_ref().map_or_else(|| self.current.target.host_text(), |proxy| &proxy.host)
    }

    /// Reports to the trace that the response is complete, and that the connection may be used for
    /// another request.
    pub fn on_connection_kept(&self) {
        if let Some(trace) = &self.options.trace {
            let number = self.facts.connection.unwrap_or_default();
            let text = format!("Connection #{number} to host {} left intact", self.peer_host());
            trace.event(&TraceEvent::Info(text.into()));
        }
    }

    /// Reports the first line of `input`, which is not valid HTTP, to the trace.
    pub fn trace_not_http(&self, input: &[u8]) {
        if let Some(trace) = &self.options.trace {
            let line = input.trim_ascii_start().split(|&byte| byte == b'\n').next().unwrap_or_default();
            let line = &line[..line.len().min(MAX_SHOWN_LINE)];
            trace.event(&TraceEvent::NotHttp { line: line.trim_ascii_end() });
        }
    }

    /// Reports to the trace that the transfer follows a redirect.
    pub(super) fn trace_redirect(&self) {
        if let Some(trace) = &self.options.trace {
            let text = format!("Issue another request to this URL: '{}'", self.current.target.to_url());
            trace.event(&TraceEvent::Info(text.into()));
        }
        self.trace_milestone(Milestone::Redirected, None);
    }

    /// Reports to the trace that the transfer will be tried again after the delay `wait`. `error`
    /// is the cause, if the last attempt failed with an error.
    pub(super) fn trace_retry(&self, trouble: Trouble, wait: Duration, error: Option<&Error>) {
        if let Some(trace) = &self.options.trace {
            let left = self.options.retry.max.saturating_sub(self.attempt.counted_attempts);
            let mut facts = self.facts.clone();
            facts.total = facts.started.elapsed();
            let failed = error.map(|error| TransferOutcome {
                result: Err(error.duplicate()),
                target: self.current.target.clone(),
                head: self.head.clone(),
                facts,
                tag: 0,
                history: Vec::new(),
                trailers: None,
            });
            trace.event(&TraceEvent::Retry { trouble, wait, left, failed: failed.as_ref() });
        }
        self.trace_milestone(Milestone::Retry(wait), error);
    }

    /// Reports a milestone of the transfer, such as a redirect or a retry, to the trace. `error` is
    /// the failure that led to the milestone, if any.
    pub(super) fn trace_milestone(&self, milestone: Milestone, error: Option<&Error>) {
        if let Some(trace) = self.options.trace.as_ref().filter(|_| !self.is_part()) {
            let at = self.attempt.first_started.elapsed();
            let (target, facts) = (&self.current.target, &*self.facts);
            trace.event(&TraceEvent::Milestone { milestone, at, target, facts, error });
        }
    }

    /// Returns true if the trace or the recorder of the exchanges (such as the WARC archive) needs
    /// the content of the request.
    pub(crate) fn traces_content(&self) -> bool {
        self.options.recorder.is_some() || self.options.trace.as_ref().is_some_and(|trace| trace.wants_content())
    }

    /// Counts `n` bytes of the request's content that the kernel sent directly from a file or pipe.
    pub(crate) fn on_moved_content(&mut self, n: u64) {
        self.facts.on_content(n);
    }

    /// Reports to the trace that bytes of the request's content were sent.
    pub fn on_sent(&mut self, content: &[u8]) {
        self.facts.on_content(content.len() as u64);
        if let Some(trace) = self.options.trace.as_ref().filter(|trace| trace.wants_content()) {
            trace.event(&TraceEvent::Sent(content));
        }
        self.record_sent(content);
    }

    /// Handles an interim response (1xx): reports it to the trace, and stores its head if the
    /// options request heads.
    pub fn on_interim(&mut self, head: &ResponseHead) {
        self.facts.head_bytes += head.raw().len() as u64;
        if let Some(trace) = &self.options.trace {
            trace.event(&TraceEvent::Interim { head });
        }
        if self.options.include_head && !self.progress.has_begun {
            self.store_head(head);
        }
    }

    /// Stores a response head for delivery before the body, if the options request heads.
    pub(super) fn store_head(&mut self, head: &ResponseHead) {
        if self.history.heads.len() <= MAX_KEPT_HEAD_BYTES {
            self.history.heads.extend_from_slice(&self.delivered_head_bytes(head.raw()));
            self.history.last_other_head = Some(Box::new(head.clone()));
        }
    }

    /// Returns the bytes of a response head as they are delivered. If
    /// [`RequestOptions::escape_head`](crate::RequestOptions::escape_head) is set, control
    /// characters are replaced.
    pub(super) fn delivered_head_bytes<'f>(&self, raw: &'f [u8]) -> Cow<'f, [u8]> {
        if self.options.escape_head { escape_for_terminal(raw).into() } else { raw.into() }
    }

    /// Handles the end of the current response, and its trailer fields if the response has any.
    ///
    /// # Errors
    /// The sink fails to take the trailers (with
    /// [`RequestOptions::include_head`](crate::RequestOptions::include_head)), or the trace fails.
    pub fn on_trailers(&mut self, trailers: Option<Fields>) -> Result<()> {
        self.mark_record_complete();
        if !matches!(self.response.disposition, BodyDisposition::Deliver) {
            return Ok(());
        }
        if let (Some(trace), Some(fields)) = (&self.options.trace, &trailers) {
            // The observer may print the trailers on the output of the body, which comes first.
            self.body.keep_unwritten(false);
            self.body.write_kept()?;
            trace.event(&TraceEvent::Trailers { fields });
            if let Some(error) = trace.failure() {
                return Err(error);
            }
        }
        let shown = trailers.as_ref().map(Fields::raw).filter(|raw| self.options.include_head && !raw.is_empty());
        // Trailers are delivered after the body, without the final empty line.
        let outcome = match shown.map(|raw| self.delivered_head_bytes(&crate::trace::trailer_lines(raw)).into_owned()) {
            Some(shown) => self.body.append(&shown),
            None => Ok(()),
        };
        self.trailers = trailers.map(Box::new);
        outcome
    }
}
