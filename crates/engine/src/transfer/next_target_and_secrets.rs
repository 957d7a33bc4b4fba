//! The target of the next exchange (the caller's target or the target of a redirect), and the
//! secrets that may be sent to it.

use std::borrow::Cow;
use std::collections::VecDeque;

use haul_policy::redirect::{RedirectedRequest, SecretHandling};
use haul_policy::secret_fields::referer_for;
use haul_policy::target::{Origin, Target};

use crate::request::method;

/// The target of a transfer's next exchange (a request and its response), and the state of the
/// redirects that led to this target.
#[derive(Clone)]
pub(super) struct TargetState {
    pub(super) target: Target,
    pub(super) method: Cow<'static, str>,
    /// True if the next request has the caller's content. A redirect may drop the content.
    pub(super) with_body: bool,
    /// The handling of the caller's secrets: which of them may be sent to the current target.
    pub(super) secrets: SecretHandling,
    /// True if the current target has the same origin as the caller's target.
    pub(super) same_origin: bool,
    /// True if a redirect led from https to http.
    pub(super) is_downgraded: bool,
    pub(super) referer: Option<Vec<u8>>,
    /// True if the current target's server has responded with HTTP/1.0, so that it may not support
    /// chunked content.
    pub(super) is_http10: bool,
    /// True if a request after a failure goes directly to the target of the last redirect.
    /// Otherwise, it goes to the caller's target, and follows the redirects again.
    pub(super) skips_redirects: bool,
    /// The number of redirects followed so far.
    pub(super) hops: u32,
    /// The origin of the caller's target.
    pub(super) first_origin: Origin,
    /// The redirects that were followed; `None` if there were none.
    redirects: Option<Box<FollowedRedirects>>,
}

/// The redirects that a transfer has followed.
#[derive(Clone)]
struct FollowedRedirects {
    /// The caller's target.
    first_target: Target,
    /// The caller's method.
    first_method: Cow<'static, str>,
    /// The last few targets before the current target, in the order of the redirects.
    last_targets: VecDeque<Target>,
}

/// The maximum number of earlier targets that an error message shows.
const MAX_SHOWN_TARGETS: usize = 3;

impl TargetState {
    /// Makes the state of a transfer to the caller's `target`, before any redirect. `with_body` is
    /// true if the request has content. `referer` is the value of its Referer field, if any.
    pub(super) fn new(target: Target, method: Cow<'static, str>, with_body: bool, referer: Option<Vec<u8>>) -> Self {
        Self {
            first_origin: target.origin(),
            target,
            method,
            with_body,
            secrets: SecretHandling::Keep,
            same_origin: true,
            is_downgraded: false,
            referer,
            is_http10: false,
            skips_redirects: false,
            hops: 0,
            redirects: None,
        }
    }

    /// Returns a copy of this state for a part of a split download. The part is requested directly
    /// from the current target, without following the redirects again.
    pub(super) fn for_part(&self) -> Self {
        Self { is_http10: false, skips_redirects: false, hops: 0, redirects: None, ..self.clone() }
    }

    /// Returns the caller's target, i.e. the target before all redirects.
    pub(super) fn first_target(&self) -> &Target {
        self.redirects.as_deref().map_or(&self.target, |redirects| &redirects.first_target)
    }

    /// Changes the current target to the target of the redirect `hop`. If `send_referer` is true,
    /// the redirecting URL becomes the next request's Referer.
    pub(super) fn follow_redirect(&mut self, hop: RedirectedRequest, send_referer: bool) {
        self.hops += 1;
        if send_referer {
            self.referer = referer_for(&self.target, &hop.target).map(String::into_bytes);
        }
        self.is_http10 &= hop.target.origin() == self.target.origin();
        let target = std::mem::replace(&mut self.target, hop.target);
        let method = std::mem::replace(&mut self.method, method(&hop.method));
        let redirects = self.redirects.get_or_insert_with(|| {
            let last_targets = VecDeque::with_capacity(MAX_SHOWN_TARGETS);
            Box::new(FollowedRedirects { first_target: target.clone(), first_method: method, last_targets })
        });
        if redirects.last_targets.len() == MAX_SHOWN_TARGETS {
            redirects.last_targets.pop_front();
        }
        redirects.last_targets.push_back(target);
        self.with_body &= hop.keep_body;
        self.secrets = hop.secrets;
        self.same_origin = hop.same_origin;
        self.is_downgraded = hop.downgraded;
    }

    /// Returns the last few URLs of the redirects as text for an error message, such as `http://a/
    /// -> http://b/`, without credentials.
    pub(super) fn redirect_chain(&self) -> String {
        let last = self.redirects.iter().flat_map(|redirects| &redirects.last_targets);
        let urls: Vec<String> = last.chain([&self.target]).map(Target::to_url).collect();
        let is_whole = self.hops as usize <= MAX_SHOWN_TARGETS;
        format!("{}{}", if is_whole { "" } else { "... -> " }, urls.join(" -> "))
    }

    /// Returns true if a redirect was followed.
    pub(super) fn is_redirected(&self) -> bool {
        self.redirects.is_some()
    }

    /// Returns true if no redirect has changed the caller's method.
    pub(super) fn has_original_method(&self) -> bool {
        self.redirects.as_deref().is_none_or(|redirects| redirects.first_method == self.method)
    }

    /// Makes the caller's target the current target again, and drops the state of the redirects.
    /// `with_body` and `referer` are the caller's settings for the first request.
    pub(super) fn start_over(&mut self, with_body: bool, referer: Option<Vec<u8>>) {
        let (target, method) = match self.redirects.take() {
            Some(redirects) => (redirects.first_target, redirects.first_method),
            None => (self.target.clone(), self.method.clone()),
        };
        *self = Self::new(target, method, with_body, referer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(url: &str, method: &str, keep_body: bool) -> RedirectedRequest {
        RedirectedRequest {
            target: Target::parse(url).unwrap(),
            method: method.to_owned(),
            keep_body,
            secrets: SecretHandling::Keep,
            downgraded: false,
            same_origin: true,
        }
    }

    fn first() -> TargetState {
        TargetState::new(Target::parse("http://a.example/0").unwrap(), "POST".into(), true, Some(b"before".to_vec()))
    }

    #[test]
    fn redirect_chain_shows_the_last_targets() {
        let mut state = first();
        assert!(!state.is_redirected());
        assert_eq!(state.redirect_chain(), "http://a.example/0");
        for number in 1..=3 {
            state.follow_redirect(hop(&format!("http://a.example/{number}"), "POST", true), false);
        }
        let chain = "http://a.example/0 -> http://a.example/1 -> http://a.example/2 -> http://a.example/3";
        assert_eq!(state.redirect_chain(), chain);
        state.follow_redirect(hop("http://a.example/4", "POST", true), false);
        let chain = "... -> http://a.example/1 -> http://a.example/2 -> http://a.example/3 -> http://a.example/4";
        assert_eq!(state.redirect_chain(), chain);
        assert_eq!((state.hops, state.first_target().to_url()), (4, "http://a.example/0".to_owned()));
        assert!(state.is_redirected() && state.has_original_method());
    }

    #[test]
    fn part_begins_at_the_redirected_target() {
        let mut state = first();
        state.follow_redirect(hop("http://b.example/", "GET", false), true);
        (state.is_http10, state.skips_redirects) = (true, true);
        let part = state.for_part();
        assert_eq!((part.hops, part.is_http10, part.skips_redirects, part.is_redirected()), (0, false, false, false));
        assert_eq!((part.target.to_url(), &*part.method), ("http://b.example/".to_owned(), "GET"));
    }

    #[test]
    fn content_and_method_of_a_redirect_last_until_the_next_start() {
        let mut state = first();
        state.follow_redirect(hop("http://a.example/1", "GET", false), true);
        assert!(!state.with_body && !state.has_original_method());
        assert_eq!(state.referer.as_deref(), Some(&b"http://a.example/0"[..]));
        state.follow_redirect(hop("http://a.example/2", "GET", true), false);
        assert!(!state.with_body, "what one redirect dropped stays dropped");
        assert_eq!(state.referer.as_deref(), Some(&b"http://a.example/0"[..]));
        state.start_over(true, None);
        assert_eq!((state.target.to_url(), &*state.method), ("http://a.example/0".to_owned(), "POST"));
        assert!(state.with_body && state.referer.is_none() && !state.is_redirected() && state.hops == 0);
    }

    #[test]
    fn http10_is_remembered_for_the_same_origin_only() {
        for (url, expected) in [("http://a.example/1", true), ("http://b.example/", false)] {
            let mut state = first();
            state.is_http10 = true;
            state.follow_redirect(hop(url, "POST", true), false);
            assert_eq!(state.is_http10, expected, "{url}");
        }
    }
}
