//! Stores the state that a response sets for later requests (cookies, HSTS, Alt-Svc), and
//! determines the request to which a redirect leads.

use std::borrow::Cow;

use haul_policy::redirect::{self, RedirectError, RedirectRules, RedirectedRequest};
use haul_policy::target::{Scheme, Target};
use haul_proto::list_elements;
use haul_proto::response_head::ResponseHead;

use super::Transfer;
use crate::state::alt_svc::source_protocol;
use crate::time_conversions;

impl Transfer {
    /// Stores what a response sets for later requests: its cookies, and its HSTS and Alt-Svc
    /// fields.
    pub(super) fn store_response_state(&self, head: &ResponseHead) {
        let (options, target) = (&self.options, &self.current.target);
        if let Some(jar) = &options.jar {
            jar.store_fields(&self.cookie_target(), head.get_all("set-cookie"));
        }
        // HSTS and Alt-Svc are ignored unless the server has proved its identity (RFC 6797 section
        // 8.1, RFC 7838 section 2.1).
        if target.scheme() != Scheme::Https || !options.tls.verify {
            return;
        }
        if let (Some(hsts), Some(field)) = (&options.hsts, head.get("strict-transport-security")) {
            hsts.store_field(target, field);
        }
        if options.alt_svc.is_none() && !self.stores_http3_offers() {
            return;
        }
        // Several field lines are one list (RFC 9110 section 5.3).
        let offers = head.get_all("alt-svc").collect::<Vec<_>>().join(&b", "[..]);
        if offers.is_empty() {
            return;
        }
        // A cache may have stored the response for a while.
        let generated = time_conversions::unix_now().saturating_sub(age_in_seconds(head));
        match &options.alt_svc {
            Some(known) => known.store_field_generated_at(target, head.version(), &offers, generated),
            None => options.http3_cache.store_alt_svc(target, source_protocol(head.version()), &offers, generated),
        }
    }

    /// Returns the target for which cookies are sent and stored: the current target. With
    /// `curl_compat.cookies_by_host`, a Host field of the caller replaces the target's host.
    pub(super) fn cookie_target(&self) -> Cow<'_, Target> {
        let is_host = |(name, _): &&(String, Vec<u8>)| name.eq_ignore_ascii_case("host");
        let named = self
            .options
            .fields
            .iter()
            .find(is_host)
            .filter(|_| self.options.curl_compat.cookies_by_host && self.current.same_origin);
        let named = named.and_then(|(_, host)| {
            let (scheme, host) = (self.current.target.scheme().as_str(), std::str::from_utf8(host).ok()?.trim());
            Target::parse(&format!("{scheme}://{host}{}", self.current.target.path_and_query())).ok()
        });
        named.map_or(Cow::Borrowed(&self.current.target), Cow::Owned)
    }

    /// Returns the request that follows the redirect in this response; `None` if the response is
    /// not a redirect to follow. If HSTS requires TLS for the target, the target counts as https,
    /// so that the redirect is no downgrade.
    pub(super) fn redirect_hop(
        &self,
        status: u16,
        location: Option<&[u8]>,
    ) -> Result<Option<RedirectedRequest>, RedirectError> {
        let rules = &self.options.redirects;
        let decide = |rules: &RedirectRules, location: Option<&[u8]>| {
            redirect::redirected_request(
                rules,
                self.current.hops,
                status,
                location,
                &self.current.method,
                &self.current.target,
                &self.current.first_origin,
            )
        };
        if let Some(hsts) = &self.options.hsts {
            let any = RedirectRules { allow_http: true, allow_https: true, ..rules.clone() };
            if let Some(upgraded) = decide(&any, location)?.and_then(|hop| hsts.upgrade(&hop.target)) {
                return decide(rules, Some(upgraded.to_url().as_bytes()));
            }
        }
        decide(rules, location)
    }
}

/// Returns the age of a response in seconds: the value of its Age field, or 0 without a valid one.
/// Only the first value of a list counts (RFC 9111 section 5.1).
fn age_in_seconds(head: &ResponseHead) -> u64 {
    let first = head.get("age").and_then(|value| list_elements(value).next());
    let Some(digits) = first.filter(|value| value.iter().all(u8::is_ascii_digit)) else { return 0 };
    std::str::from_utf8(digits).map_or(0, |digits| digits.parse().unwrap_or(u64::MAX))
}
