//! `curl_share_*`: state that several easy handles share.
//!
//! | `CURL_LOCK_DATA_` | shared here |
//! |---|---|
//! | `COOKIE` | the cookie jar |
//! | `DNS` | the resolver with its cache |
//! | `SSL_SESSION`, `CONNECT` | the engine's client: connections, TLS sessions, certificates |
//! | `HSTS` | the hosts that must be reached over TLS |
//! | `PSL` | always, since the list is part of the library |
//!
//! The engine locks its own state, so the lock callbacks of the program are stored and never
//! called.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use haul::Client;
use haul::net::dns::Resolver;
use haul::state::cookie_jar::{CookieFileConventions, SharedCookieJar};
use haul::state::hsts::HstsCache;

use crate::codes::{CURLSHE_BAD_OPTION, CURLSHE_IN_USE, CURLSHE_INVALID, CURLSHE_OK, CURLSHcode};
use crate::handle_table::{HandleTable, OpaqueHandle, catch_panic, lock};

/// The table of live share handles.
pub(crate) static SHARES: HandleTable<Share> = HandleTable::new();

const DATA_COOKIE: i64 = 2;
const DATA_DNS: i64 = 3;
const DATA_SSL_SESSION: i64 = 4;
const DATA_CONNECT: i64 = 5;
const DATA_PSL: i64 = 6;
const DATA_HSTS: i64 = 7;

const OPTION_SHARE: c_int = 1;
const OPTION_UNSHARE: c_int = 2;
const OPTION_LOCKFUNC: c_int = 3;
const OPTION_USERDATA: c_int = 5;

/// A share: the state, such as cookies, that several easy handles share.
#[derive(Default)]
pub(crate) struct Share {
    state: Mutex<SharedState>,
    /// The number of easy handles that currently use the share.
    users: AtomicUsize,
}

/// The shared objects. `None` for objects that are not shared.
#[derive(Default)]
struct SharedState {
    cookies: Option<SharedCookieJar>,
    resolver: Option<Resolver>,
    hsts: Option<HstsCache>,
    shares_connections: bool,
    /// The client that all users of the share use; `None` before it is first needed.
    client: Option<Client>,
}

/// A reference from an easy handle to a share. While a reference exists, the share cannot be freed.
pub(crate) struct ShareReference(Arc<Share>);

impl ShareReference {
    pub(crate) fn new(share: Arc<Share>) -> Self {
        share.users.fetch_add(1, Ordering::SeqCst);
        Self(share)
    }

    /// Returns the shared cookie jar; `None` if cookies are not shared.
    pub(crate) fn cookies(&self) -> Option<SharedCookieJar> {
        lock(&self.0.state).cookies.clone()
    }

    /// Returns the shared resolver; `None` if resolved host names are not shared.
    pub(crate) fn resolver(&self) -> Option<Resolver> {
        lock(&self.0.state).resolver.clone()
    }

    /// Returns the shared cache of hosts that must be reached over TLS (HSTS); `None` if HSTS is
    /// not shared.
    pub(crate) fn hsts(&self) -> Option<HstsCache> {
        lock(&self.0.state).hsts.clone()
    }

    /// Returns the shared client. `make` creates it at the first call. Returns `None` if
    /// connections are not shared.
    pub(crate) fn client(&self, make: impl FnOnce() -> Client) -> Option<Client> {
        let mut state = lock(&self.0.state);
        state.shares_connections.then(|| state.client.get_or_insert_with(make).clone())
    }
}

impl Drop for ShareReference {
    fn drop(&mut self) {
        self.0.users.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Creates a share handle. Nothing is shared yet.
#[unsafe(no_mangle)]
pub extern "C" fn curl_share_init() -> OpaqueHandle {
    catch_panic(std::ptr::null_mut(), || SHARES.insert(|_| Share::default()))
}

/// Frees a share. Returns an error if an easy handle uses it.
#[unsafe(no_mangle)]
pub extern "C" fn curl_share_cleanup(share: OpaqueHandle) -> CURLSHcode {
    catch_panic(CURLSHE_INVALID, || match SHARES.get(share) {
        None => CURLSHE_INVALID,
        Some(object) if object.users.load(Ordering::SeqCst) > 0 => CURLSHE_IN_USE,
        Some(_) => {
            SHARES.remove(share);
            CURLSHE_OK
        }
    })
}

/// Starts or stops sharing a kind of data (`CURLSHOPT_SHARE`, `CURLSHOPT_UNSHARE`).
#[unsafe(no_mangle)]
pub extern "C" fn haul_curl_share_setopt_number(share: OpaqueHandle, option: c_int, data: i64) -> CURLSHcode {
    catch_panic(CURLSHE_INVALID, || {
        let Some(share) = SHARES.get(share) else { return CURLSHE_INVALID };
        if share.users.load(Ordering::SeqCst) > 0 {
            return CURLSHE_IN_USE;
        }
        let on = match option {
            OPTION_SHARE => true,
            OPTION_UNSHARE => false,
            _ => return CURLSHE_BAD_OPTION,
        };
        let mut state = lock(&share.state);
        match data {
            DATA_COOKIE if on => {
                state.cookies.get_or_insert_with(|| SharedCookieJar::with_style(CookieFileConventions::Curl));
            }
            DATA_COOKIE => state.cookies = None,
            DATA_DNS if on => {
                state.resolver.get_or_insert_with(Resolver::default);
            }
            DATA_DNS => state.resolver = None,
            DATA_HSTS if on => {
                state.hsts.get_or_insert_with(HstsCache::new);
            }
            DATA_HSTS => state.hsts = None,
            DATA_SSL_SESSION | DATA_CONNECT => {
                state.shares_connections = on;
                state.client = None;
            }
            DATA_PSL => {}
            _ => return CURLSHE_BAD_OPTION,
        }
        CURLSHE_OK
    })
}

/// Accepts the lock callbacks and the pointer for them. They are not needed and never called.
#[unsafe(no_mangle)]
pub extern "C" fn haul_curl_share_setopt_pointer(
    share: OpaqueHandle,
    option: c_int,
    _value: *mut c_void,
) -> CURLSHcode {
    catch_panic(CURLSHE_INVALID, || {
        let Some(share) = SHARES.get(share) else { return CURLSHE_INVALID };
        if share.users.load(Ordering::SeqCst) > 0 {
            return CURLSHE_IN_USE;
        }
        if (OPTION_LOCKFUNC..=OPTION_USERDATA).contains(&option) { CURLSHE_OK } else { CURLSHE_BAD_OPTION }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_share_is_neither_changed_nor_freed() {
        let share = curl_share_init();
        assert_eq!(haul_curl_share_setopt_number(share, OPTION_SHARE, DATA_COOKIE), CURLSHE_OK);
        assert_eq!(haul_curl_share_setopt_number(share, OPTION_SHARE, 99), CURLSHE_BAD_OPTION);
        let user = ShareReference::new(SHARES.get(share).unwrap());
        assert!(user.cookies().is_some() && user.resolver().is_none());
        assert_eq!(haul_curl_share_setopt_number(share, OPTION_UNSHARE, DATA_COOKIE), CURLSHE_IN_USE);
        assert_eq!(curl_share_cleanup(share), CURLSHE_IN_USE);
        drop(user);
        assert_eq!(curl_share_cleanup(share), CURLSHE_OK);
        assert_eq!(curl_share_cleanup(share), CURLSHE_INVALID);
    }
}
