//! The cookie store: storing (RFC 6265bis §5.7) and retrieval (§5.8.3).

use core::cmp::Reverse;
use std::collections::BTreeMap;

use super::scope::{self, MaxCookieScope};
use super::set_cookie::{self, SetCookie};
use super::{
    Cookie, CookieChanges, CookieKey, CookieParts, CookieRefusal, MAX_AGE, MAX_COOKIE_FIELD, MAX_COOKIES,
    MAX_COOKIES_PER_REQUEST, MAX_PER_SITE,
};
use crate::target::Target;

/// A cookie jar: a store for at most [`MAX_COOKIES`] cookies of any number of hosts.
///
/// Reading takes `&self`, so that many threads can read a shared jar at the same time. Eviction
/// therefore depends on the time at which a cookie was last *set*, not on the time at which it was
/// last sent.
#[derive(Clone, Debug, Default)]
pub struct CookieStore {
    /// Cookies by registrable domain, the part of a domain that one owner registers. The map is
    /// sorted: with a hash map, the cookie to evict and the order of cookies in the jar's file
    /// would vary from run to run.
    sites: BTreeMap<Box<str>, Vec<StoredCookie>>,
    len: usize,
    /// The change counter of the jar: the number of changes so far.
    change_counter: u64,
    saved: u64,
    /// The keys of removed cookies that are still in the jar's file, each with the value of the
    /// change counter at the removal.
    removed: BTreeMap<CookieKey, u64>,
    style: CookieFileConventions,
}

/// The conventions for cookie files and for the order of cookies. They apply to the files of
/// [`CookieStore`], [`HstsStore`](crate::hsts::HstsStore) and
/// [`AltSvcStore`](crate::alt_svc::AltSvcStore).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CookieFileConventions {
    /// The conventions of RFC 6265bis §5.8.3: cookies with the longest paths are sent first, then
    /// the oldest. Files list the oldest cookies first.
    #[default]
    Standard,
    /// The conventions of curl: cookies with the longest paths, domains and names are sent first,
    /// then the newest. Files list the newest cookies first, under curl's heading. Paths have no
    /// trailing slash.
    Curl,
}

/// A cookie in a [`CookieStore`], with three further facts: the number of the cookie in the order
/// of creation, the value of the jar's change counter when the cookie was last set, and whether the
/// jar's file contains the cookie.
#[derive(Clone, Debug)]
struct StoredCookie {
    cookie: Cookie,
    /// The number of the cookie in the order of creation. Replacing the cookie's value keeps this
    /// number (RFC 6265bis §5.7, step 23).
    born: u64,
    /// The value of the jar's change counter when this cookie was last set.
    changed: u64,
    in_file: bool,
}

/// The effect that setting a cookie had on the cookie jar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetCookieOutcome {
    /// The cookie was added; no cookie had the same key.
    Added,
    /// The cookie replaced a stored cookie that had another value or other attributes.
    Replaced,
    /// The cookie had already expired, so the stored cookie with its key was removed.
    Removed,
    /// The cookie had already expired, and the jar had no cookie with the same [key](CookieKey) to
    /// remove.
    Nothing,
}

impl CookieStore {
    /// Creates an empty cookie jar. Its order of cookies and its file follow RFC 6265bis
    /// ([`CookieFileConventions::Standard`]), not curl.
    pub fn new() -> CookieStore {
        CookieStore::default()
    }

    /// Creates an empty jar with these conventions for the order of cookies and for files.
    pub fn with_style(style: CookieFileConventions) -> CookieStore {
        CookieStore { style, ..CookieStore::default() }
    }

    /// Returns the conventions that the jar follows for the order of cookies and for files.
    pub fn style(&self) -> CookieFileConventions {
        self.style
    }

    /// Returns the number of cookies, expired ones included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if the jar holds no cookies.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Processes the Set-Cookie field of a response to a request to `target`. `now` is in seconds
    /// since 1970.
    pub fn set(&mut self, target: &Target, set_cookie: &[u8], now: u64) -> Result<SetCookieOutcome, CookieRefusal> {
        let SetCookie { name, value, expires, domain, path, secure, http_only, same_site } =
            set_cookie::parse(set_cookie, now, self.style)?;
        let host = scope::host_of(target);
        let own_domain = scope::parse_domain_attribute(domain, &host)?;
        let is_secure = scope::is_secure(target);
        if secure && !is_secure {
            return Err(CookieRefusal::Insecure);
        }
        let written_path = path.filter(|path| path.first() == Some(&b'/'));
        // A Domain equal to a host-only host is dropped, but __Host- forbids any Domain attribute.
        let is_host_prefixed = name.get(..7).is_some_and(|start| start.eq_ignore_ascii_case(b"__Host-"));
        if is_host_prefixed && (written_path.is_none() || !domain.is_empty()) {
            return Err(CookieRefusal::HostPrefix);
        }
        let expires = match self.style {
            CookieFileConventions::Standard => expires,
            // The latest possible end is rounded to the nearest minute.
            CookieFileConventions::Curl => {
                expires.map(|at| if at == now.saturating_add(MAX_AGE) { at.saturating_add(30) / 60 * 60 } else { at })
            }
        };
        let cookie = self.in_style(Cookie::new(CookieParts {
            name: name.to_vec(),
            value: value.to_vec(),
            host_only: own_domain.is_none(),
            domain: own_domain.unwrap_or_else(|| host.into_owned()),
            path: written_path.unwrap_or(scope::default_path(target.path()).as_bytes()).to_vec(),
            secure,
            http_only,
            same_site,
            expires,
        })?);
        if !is_secure && self.shadows_secure_cookie(&cookie) {
            return Err(CookieRefusal::HidesSecure);
        }
        if cookie.is_expired(now) {
            return Ok(if self.remove(&cookie.key()) { SetCookieOutcome::Removed } else { SetCookieOutcome::Nothing });
        }
        Ok(self.store_or_reject(cookie, Some(now), false))
    }

    /// Adds a cookie that a program created. The next save writes it to the file. The expiry time
    /// is not checked.
    pub fn insert(&mut self, cookie: Cookie) -> SetCookieOutcome {
        self.store_or_reject(self.in_style(cookie), None, false)
    }

    /// Adds cookies that were read from the jar's own file. They count as saved. For the cookies of
    /// another file, use [`insert`](CookieStore::insert).
    pub fn load(&mut self, cookies: impl IntoIterator<Item = Cookie>) {
        for cookie in cookies {
            self.store_or_reject(self.in_style(cookie), None, true);
        }
    }

    /// Returns the value of the Cookie field for a request to `target`; `None` if no cookie
    /// matches. The cookies with the longest paths are first ([`CookieFileConventions`] gives the
    /// full order). The field has at most [`MAX_COOKIES_PER_REQUEST`] cookies and
    /// [`MAX_COOKIE_FIELD`] bytes. `now` is in seconds since 1970.
    pub fn cookie_for(&self, target: &Target, now: u64) -> Option<Vec<u8>> {
        if self.len == 0 {
            return None;
        }
        let mut field = Vec::new();
        for cookie in self.cookies_to_send(target, now).into_iter().take(MAX_COOKIES_PER_REQUEST) {
            let separator = if field.is_empty() { 0 } else { 2 };
            if field.len() + separator + cookie.name().len() + 1 + cookie.value().len() > MAX_COOKIE_FIELD {
                break;
            }
            if separator > 0 {
                field.extend_from_slice(b"; ");
            }
            field.extend_from_slice(cookie.name());
            field.push(b'=');
            field.extend_from_slice(cookie.value());
        }
        Some(field).filter(|field| !field.is_empty())
    }

    /// Returns all cookies for a request to `target` at `now` (in seconds since 1970), in the order
    /// in which they are sent.
    pub fn cookies_to_send(&self, target: &Target, now: u64) -> Vec<&Cookie> {
        let host = scope::host_of(target);
        let Some(entries) = self.sites.get(scope::registrable_domain(&host)) else { return Vec::new() };
        let (is_secure, path) = (scope::is_secure(target), target.path().as_bytes());
        let fits = |entry: &&StoredCookie| {
            let cookie = entry.cookie.parts();
            let of_host = cookie.domain == *host || !cookie.host_only && scope::domain_match(&host, &cookie.domain);
            of_host
                && (is_secure || !cookie.secure)
                && !entry.cookie.is_expired(now)
                && scope::path_match(path, &cookie.path)
        };
        let mut found: Vec<&StoredCookie> = entries.iter().filter(fits).collect();
        match self.style {
            CookieFileConventions::Standard => {
                found.sort_by_key(|entry| (Reverse(entry.cookie.parts().path.len()), entry.born))
            }
            CookieFileConventions::Curl => {
                // curl first collects this many and then sorts them.
                found.truncate(MAX_COOKIES_PER_REQUEST);
                found.sort_by_key(|entry| {
                    let parts = entry.cookie.parts();
                    Reverse((parts.path.len(), parts.domain.len(), parts.name.len(), entry.born))
                });
            }
        }
        found.into_iter().map(|entry| &entry.cookie).collect()
    }

    /// Iterates over all cookies, oldest first, expired ones included.
    pub fn iter(&self) -> impl Iterator<Item = &Cookie> {
        let mut all: Vec<&StoredCookie> = self.sites.values().flatten().collect();
        all.sort_by_key(|entry| entry.born);
        all.into_iter().map(|entry| &entry.cookie)
    }

    /// Removes the session cookies (`-j`): the cookies without an expiry time.
    pub fn clear_session(&mut self) {
        self.retain(|cookie| !cookie.is_session());
    }

    /// Removes the cookies that have expired at `now`, in seconds since 1970.
    pub fn clear_expired(&mut self, now: u64) {
        self.retain(|cookie| !cookie.is_expired(now));
    }

    /// Removes a cookie; returns `true` if it was in the jar.
    pub fn remove(&mut self, key: &CookieKey) -> bool {
        let before = self.len;
        self.retain_in(Some(key), |cookie| cookie.key() != *key);
        self.len < before
    }

    /// Keeps only the cookies for which `keep` returns `true`. The next save removes all other
    /// cookies from the file, too.
    pub fn retain(&mut self, keep: impl FnMut(&Cookie) -> bool) {
        self.retain_in(None, keep);
    }

    fn retain_in(&mut self, only: Option<&CookieKey>, mut keep: impl FnMut(&Cookie) -> bool) {
        self.change_counter += 1;
        let (change, removed) = (self.change_counter, &mut self.removed);
        let mut sweep = |entries: &mut Vec<StoredCookie>| {
            entries.retain(|entry| {
                let stays = keep(&entry.cookie);
                if !stays && entry.in_file {
                    removed.insert(entry.cookie.key(), change);
                }
                stays
            });
        };
        match only {
            Some(key) => {
                if let Some(entries) = self.sites.get_mut(scope::registrable_domain(&key.domain)) {
                    sweep(entries);
                }
            }
            None => self.sites.values_mut().for_each(&mut sweep),
        }
        self.sites.retain(|_, entries| !entries.is_empty());
        self.len = self.sites.values().map(Vec::len).sum();
    }

    /// Returns the changes that are not saved yet: all changes since the file was read, except
    /// those already passed to [`mark_saved`](CookieStore::mark_saved).
    pub fn changes(&self) -> CookieChanges {
        let mut set: Vec<&StoredCookie> =
            self.sites.values().flatten().filter(|entry| entry.changed > self.saved).collect();
        set.sort_by_key(|entry| entry.born);
        CookieChanges {
            upto: self.change_counter,
            set: set.into_iter().map(|entry| entry.cookie.clone()).collect(),
            removed: self.removed.keys().cloned().collect(),
        }
    }

    /// Records that `changes` were written to the file. Later changes of the jar remain unsaved.
    pub fn mark_saved(&mut self, changes: &CookieChanges) {
        self.saved = self.saved.max(changes.upto);
        self.removed.retain(|_, when| *when > changes.upto);
        for key in changes.set.iter().map(Cookie::key) {
            let entry =
                self.sites.get_mut(scope::registrable_domain(&key.domain)).and_then(|entries| position(entries, &key));
            match entry {
                Some(entry) => entry.in_file = true,
                // It was removed while it was being written.
                None => {
                    self.change_counter += 1;
                    self.removed.insert(key, self.change_counter);
                }
            }
        }
    }

    /// Returns the cookie with its path in the style of the jar. In curl's style, `/a/` becomes
    /// `/a`, so that cookies for both paths replace each other.
    fn in_style(&self, mut cookie: Cookie) -> Cookie {
        let path = &mut cookie.0.path;
        if self.style == CookieFileConventions::Curl && path.len() > 1 && path.ends_with(b"/") {
            path.pop();
        }
        cookie
    }

    fn store_or_reject(&mut self, cookie: Cookie, now: Option<u64>, from_file: bool) -> SetCookieOutcome {
        self.change_counter += 1;
        let (key, change) = (cookie.key(), self.change_counter);
        let changed = if from_file { 0 } else { change };
        // A cookie that is set again must not be deleted from the file.
        let was_in_file = self.removed.remove(&key).is_some();
        let site = Box::from(scope::registrable_domain(&key.domain));
        let entries = self.sites.entry(site).or_default();
        if let Some(entry) = position(entries, &key) {
            entry.cookie = cookie;
            entry.changed = changed.max(if from_file { entry.changed } else { 0 });
            entry.in_file |= from_file;
            return SetCookieOutcome::Replaced;
        }
        entries.push(StoredCookie { cookie, born: change, changed, in_file: from_file || was_in_file });
        self.len += 1;
        if entries.len() > MAX_PER_SITE {
            remove_least_important(entries, now);
            self.len -= 1;
        }
        if self.len > MAX_COOKIES
            && let Some(entries) = self.sites.values_mut().max_by_key(|entries| entries.len())
        {
            // From the site that has most: many cookies of one site go before one of a quiet site
            // does.
            remove_least_important(entries, now);
            self.len -= 1;
        }
        SetCookieOutcome::Added
    }

    /// Returns `true` if a cookie from an insecure peer would shadow a Secure cookie of the same
    /// name for the same hosts and paths (RFC 6265bis §5.7, step 18).
    fn shadows_secure_cookie(&self, new: &Cookie) -> bool {
        let new = new.parts();
        self.sites.get(scope::registrable_domain(&new.domain)).into_iter().flatten().any(|entry| {
            let old = entry.cookie.parts();
            old.secure
                && old.name == new.name
                && (scope::domain_match(&old.domain, &new.domain) || scope::domain_match(&new.domain, &old.domain))
                && scope::path_match(&new.path, old.path.strip_suffix(b"/").unwrap_or(&old.path))
        })
    }
}

fn position<'e>(entries: &'e mut [StoredCookie], key: &CookieKey) -> Option<&'e mut StoredCookie> {
    entries.iter_mut().find(|entry| {
        let parts = entry.cookie.parts();
        parts.name == key.name
            && parts.domain == key.domain
            && parts.path == key.path
            && parts.host_only == key.host_only
    })
}

/// Removes one cookie, as defined at the end of RFC 6265bis §5.7. Cookies that have expired at
/// `now` go first, then cookies without Secure, then any others. If `now` is `None`, no cookie
/// counts as expired. Of several candidates, removes the one that was set longest ago.
fn remove_least_important(entries: &mut Vec<StoredCookie>, now: Option<u64>) {
    let rank = |entry: &StoredCookie| {
        let ended = now.is_some_and(|now| entry.cookie.is_expired(now));
        (!ended, entry.cookie.parts().secure, entry.changed, entry.born)
    };
    let victim = (0..entries.len()).min_by_key(|at| rank(&entries[*at]));
    if let Some(at) = victim {
        entries.remove(at);
    }
}

/// Parses a `Set-Cookie:` line of a cookie file, which curl accepts. A cookie without Domain
/// belongs to `host`, because a file does not tell which host sent the cookie. If `host` is `None`,
/// such a cookie is refused. `now` is in seconds since 1970.
pub(super) fn from_header_line(field: &[u8], now: u64, host: Option<&str>) -> Result<Cookie, CookieRefusal> {
    let SetCookie { name, value, expires, domain, path, secure, http_only, same_site } =
        set_cookie::parse(field, now, CookieFileConventions::Curl)?;
    let text = core::str::from_utf8(domain).map_err(|_| CookieRefusal::Domain)?;
    let is_told = host.filter(|_| text.is_empty());
    let (domain, widest) = scope::canonical_domain(is_told.unwrap_or(text), false)?;
    let host_only = widest == MaxCookieScope::Host || is_told.is_some();
    let (name, value, path) = (name.to_vec(), value.to_vec(), path.unwrap_or(b"/").to_vec());
    Cookie::new(CookieParts { name, value, domain, host_only, path, secure, http_only, same_site, expires })
}
