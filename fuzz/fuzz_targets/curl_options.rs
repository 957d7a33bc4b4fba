//! Fuzzes sequences of calls of libcurl's interface against a server on loopback: options of any
//! number, transfers by the easy and the multi interface, callbacks that pause or fail, copies,
//! resets, and handles that were freed. No sequence may panic, crash or hang.
#![no_main]

use std::cell::Cell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::OnceLock;

use haul_curl::easy::{
    curl_easy_cleanup, curl_easy_duphandle, curl_easy_init, curl_easy_pause, curl_easy_perform, curl_easy_reset,
};
use haul_curl::handle_table::OpaqueHandle;
use haul_curl::info::haul_curl_easy_getinfo;
use haul_curl::multi::wait::{curl_multi_poll, curl_multi_wakeup};
use haul_curl::multi::{
    curl_multi_add_handle, curl_multi_cleanup, curl_multi_info_read, curl_multi_init, curl_multi_perform,
    curl_multi_remove_handle, curl_multi_socket_action, haul_curl_multi_setopt_number, haul_curl_multi_setopt_pointer,
};
use haul_curl::options::{
    OptionKind, curl_easy_option_next, curl_easyoption, haul_curl_easy_setopt_number, haul_curl_easy_setopt_pointer,
};
use haul_curl::share::{
    curl_share_cleanup, curl_share_init, haul_curl_share_setopt_number, haul_curl_share_setopt_pointer,
};
use haul_curl::slist::{curl_slist_append, curl_slist_free_all};
use libfuzzer_sys::fuzz_target;

const OPTION_URL: c_int = 10_002;
const OPTION_WRITEFUNCTION: c_int = 20_011;
const OPTION_READFUNCTION: c_int = 20_012;
const OPTION_HEADERFUNCTION: c_int = 20_079;
const OPTION_XFERINFOFUNCTION: c_int = 20_219;
const OPTION_TIMEOUT_MS: c_int = 155;
const OPTION_SHARE: c_int = 10_100;

/// Options whose values would reach other hosts, or name files to write.
const LEFT_OUT: [u32; 8] = [10_279, 10_211, 10_243, 10_203, 10_082, 10_300, 10_287, 10_062];
/// Options whose values are URLs: `CURLOPT_URL`, `CURLOPT_PROXY`, `CURLOPT_PRE_PROXY`.
const URLS: [c_int; 3] = [OPTION_URL, 10_004, 10_262];

/// The replies of the server, by the first letter of the path.
const REPLIES: [&[u8]; 6] = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 302 Found\r\nLocation: /a\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Trailer: 1\r\n\r\n",
    b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\"\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\nConnection: close\r\n\r\nshort",
    b"HTTP/1.0 404 Not Found\r\n\r\nuntil the end",
];

/// Starts the server. Returns its URL without the final slash.
fn server() -> &'static str {
    static URL: OnceLock<String> = OnceLock::new();
    URL.get_or_init(|| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of loopback");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                std::thread::spawn(move || {
                    let mut buffer = [0; 4096];
                    while let Ok(1..) = stream.read(&mut buffer) {
                        let letter = buffer.iter().skip_while(|b| **b != b'/').nth(1).copied().unwrap_or(b'a');
                        let reply = REPLIES[usize::from(letter) % REPLIES.len()];
                        let closes = !reply.starts_with(b"HTTP/1.1") || reply.windows(5).any(|word| word == b"close");
                        if stream.write_all(reply).is_err() || closes {
                            return;
                        }
                    }
                });
            }
        });
        url
    })
}

thread_local! {
    /// Decides the results of the callbacks.
    static TURN: Cell<u8> = const { Cell::new(0) };
    /// The handle that is performing.
    static CURRENT: Cell<OpaqueHandle> = const { Cell::new(std::ptr::null_mut()) };
}

/// Returns the next decision of a callback, and ends a pause now and then.
fn next_turn() -> u8 {
    let turn = TURN.get().wrapping_mul(5).wrapping_add(3);
    TURN.set(turn);
    turn
}

unsafe extern "C" fn on_write(_: *mut c_char, size: usize, count: usize, _: *mut c_void) -> usize {
    match next_turn() {
        0..20 => 0x1000_0001,
        20..30 => 0,
        30..40 => {
            curl_easy_pause(CURRENT.get(), 5);
            size * count
        }
        40..50 => {
            curl_easy_reset(CURRENT.get());
            size * count
        }
        _ => size * count,
    }
}

unsafe extern "C" fn on_read(buffer: *mut c_char, size: usize, count: usize, _: *mut c_void) -> usize {
    let length = (size * count).min(9);
    // SAFETY: the buffer has that many bytes.
    unsafe { buffer.cast::<u8>().write_bytes(b'r', length) };
    match next_turn() {
        0..20 => 0x1000_0001,
        20..30 => 0x1000_0000,
        30..120 => 0,
        _ => length,
    }
}

unsafe extern "C" fn on_progress(_: *mut c_void, _: i64, _: i64, _: i64, _: i64) -> c_int {
    curl_easy_pause(CURRENT.get(), 0);
    c_int::from(next_turn() < 4)
}

unsafe extern "C" fn on_socket(_: *mut c_void, _: c_int, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
    -c_int::from(next_turn() < 10)
}

unsafe extern "C" fn on_timer(_: *mut c_void, _: i64, _: *mut c_void) -> c_int {
    -c_int::from(next_turn() < 10)
}

/// Returns all options.
fn options() -> &'static [(u32, c_int)] {
    static ALL: OnceLock<Vec<(u32, c_int)>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all = Vec::new();
        let mut row: *const curl_easyoption = std::ptr::null();
        loop {
            row = curl_easy_option_next(row);
            // SAFETY: a row of the table, or NULL.
            let Some(option) = (unsafe { row.as_ref() }) else { return all };
            if !LEFT_OUT.contains(&option.id) {
                all.push((option.id, option.kind));
            }
        }
    })
}

struct CallSequence<'a> {
    input: &'a [u8],
    easy: [OpaqueHandle; 4],
    multi: [OpaqueHandle; 2],
    share: OpaqueHandle,
    /// Strings that options may point to until the end.
    kept: Vec<CString>,
}

impl CallSequence<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.input.split_first()?;
        self.input = rest;
        Some(first)
    }

    fn easy(&mut self) -> Option<OpaqueHandle> {
        Some(self.easy[usize::from(self.byte()?) % 4])
    }

    fn multi(&mut self) -> Option<OpaqueHandle> {
        Some(self.multi[usize::from(self.byte()?) % 2])
    }

    fn text(&mut self) -> Option<*mut c_void> {
        let text = match self.byte()? {
            0..16 => return Some(std::ptr::null_mut()),
            16..32 => String::new(),
            32..128 => format!("{}/{}", server(), char::from(b'a' + self.byte()? % 26)),
            128..160 => "127.0.0.1".to_owned(),
            _ => {
                let length = usize::from(self.byte()? % 16).min(self.input.len());
                let (text, rest) = self.input.split_at(length);
                self.input = rest;
                // No dot and no letter after it: not the name of a host or a file elsewhere.
                text.iter().filter(|b| !b"./\0".contains(b)).map(|b| char::from(b & 0x7f)).collect()
            }
        };
        self.kept.push(CString::new(text.replace('\0', "")).ok()?);
        Some(self.kept.last()?.as_ptr().cast_mut().cast())
    }

    /// Sets an option of an easy handle.
    fn set(&mut self) -> Option<()> {
        let easy = self.easy()?;
        let (option, kind) = options()[usize::from(self.byte()?) * 2 % options().len()];
        let option = c_int::try_from(option).ok()?;
        // SAFETY: strings that are kept, lists that are copied, functions of the right type.
        unsafe {
            if kind == OptionKind::Long as c_int
                || kind == OptionKind::Values as c_int
                || kind == OptionKind::OffT as c_int
            {
                let value = i64::from(self.byte()?) - 3;
                // Short limits, so that no sequence takes long.
                if option != OPTION_TIMEOUT_MS {
                    haul_curl_easy_setopt_number(easy, option, value);
                }
            } else if kind == OptionKind::Text as c_int {
                let text = if URLS.contains(&option) { self.url()? } else { self.text()? };
                haul_curl_easy_setopt_pointer(easy, option, text);
            } else if kind == OptionKind::List as c_int {
                let text = self.text()?;
                let list = curl_slist_append(std::ptr::null_mut(), text.cast());
                haul_curl_easy_setopt_pointer(easy, option, list.cast());
                curl_slist_free_all(list);
            }
        }
        Some(())
    }

    fn url(&mut self) -> Option<*mut c_void> {
        let url = format!("{}/{}", server(), char::from(b'a' + self.byte()? % 26));
        self.kept.push(CString::new(url).ok()?);
        Some(self.kept.last()?.as_ptr().cast_mut().cast())
    }

    /// Sets what every transfer needs: a URL of the server, callbacks, a time limit.
    fn prepare(&mut self, easy: OpaqueHandle) -> Option<()> {
        let url = self.url()?;
        // SAFETY: as in `set`.
        unsafe {
            haul_curl_easy_setopt_pointer(easy, OPTION_URL, url);
            for (option, function) in [
                (OPTION_WRITEFUNCTION, on_write as *mut c_void),
                (OPTION_HEADERFUNCTION, on_write as *mut c_void),
                (OPTION_READFUNCTION, on_read as *mut c_void),
                (OPTION_XFERINFOFUNCTION, on_progress as *mut c_void),
            ] {
                haul_curl_easy_setopt_pointer(easy, option, function);
            }
        }
        haul_curl_easy_setopt_number(easy, OPTION_TIMEOUT_MS, 60);
        Some(())
    }

    fn call(&mut self) -> Option<()> {
        match self.byte()? % 16 {
            0..=5 => self.set()?,
            6 | 7 => {
                let easy = self.easy()?;
                self.prepare(easy)?;
                CURRENT.set(easy);
                curl_easy_perform(easy);
            }
            8 => {
                let easy = self.easy()?;
                let mut place = [0u64; 4];
                let info = 0x10_0000 * c_int::from(self.byte()? % 7) + c_int::from(self.byte()? % 80);
                // SAFETY: the place has room for each type. Lists are the program's, and freed.
                unsafe {
                    haul_curl_easy_getinfo(easy, info, place.as_mut_ptr().cast());
                    if info == 0x40_0000 + 28 || info == 0x40_0000 + 27 {
                        curl_slist_free_all(std::ptr::with_exposed_provenance_mut(place[0] as usize));
                    }
                }
            }
            9 => {
                let (at, easy) = (usize::from(self.byte()?) % 4, self.easy()?);
                curl_easy_cleanup(self.easy[at]);
                // The handle that was just freed is refused.
                self.easy[at] = curl_easy_duphandle(easy);
            }
            10 => curl_easy_reset(self.easy()?),
            11 => {
                let (multi, easy) = (self.multi()?, self.easy()?);
                self.prepare(easy)?;
                CURRENT.set(easy);
                curl_multi_add_handle(multi, easy);
            }
            12 => {
                let (multi, easy) = (self.multi()?, self.easy()?);
                curl_multi_remove_handle(multi, easy);
            }
            13 => self.turn_multi()?,
            14 => {
                let (easy, bits) = (self.easy()?, self.byte()?);
                curl_easy_pause(easy, c_int::from(bits));
            }
            _ => self.change_others()?,
        }
        Some(())
    }

    fn turn_multi(&mut self) -> Option<()> {
        let multi = self.multi()?;
        let mut count = 0;
        // SAFETY: places for numbers, or NULL.
        unsafe {
            match self.byte()? % 4 {
                0 => curl_multi_perform(multi, &raw mut count),
                1 => curl_multi_socket_action(multi, -1, 0, &raw mut count),
                2 => curl_multi_wakeup(multi),
                _ => curl_multi_poll(multi, std::ptr::null_mut(), 0, 2, &raw mut count),
            };
            while !curl_multi_info_read(multi, &raw mut count).is_null() {}
        }
        Some(())
    }

    fn change_others(&mut self) -> Option<()> {
        let value = i64::from(self.byte()?);
        match value % 6 {
            0 => {
                let multi = self.multi()?;
                haul_curl_multi_setopt_number(multi, c_int::from(self.byte()? % 20), value);
            }
            1 => {
                let multi = self.multi()?;
                // SAFETY: functions of the right types.
                unsafe {
                    haul_curl_multi_setopt_pointer(multi, 20_001, on_socket as *mut c_void);
                    haul_curl_multi_setopt_pointer(multi, 20_004, on_timer as *mut c_void);
                }
            }
            2 => {
                let at = usize::from(self.byte()?) % 2;
                curl_multi_cleanup(self.multi[at]);
                self.multi[at] = curl_multi_init();
            }
            3 => {
                haul_curl_share_setopt_number(self.share, c_int::from(self.byte()? % 4), value % 9);
                haul_curl_share_setopt_pointer(self.share, 5, std::ptr::null_mut());
            }
            4 => {
                let easy = self.easy()?;
                let share = if value % 2 == 0 { self.share } else { std::ptr::null_mut() };
                // SAFETY: a handle, or NULL.
                unsafe { haul_curl_easy_setopt_pointer(easy, OPTION_SHARE, share) };
            }
            _ => {
                curl_share_cleanup(self.share);
            }
        }
        Some(())
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&first, input)) = data.split_first() else { return };
    TURN.set(first);
    let mut calls = CallSequence {
        input,
        easy: std::array::from_fn(|_| curl_easy_init()),
        multi: std::array::from_fn(|_| curl_multi_init()),
        share: curl_share_init(),
        kept: Vec::new(),
    };
    // A sequence of a few dozen calls finds as much as a long one.
    for _ in 0..64 {
        if calls.call().is_none() {
            break;
        }
    }
    for easy in calls.easy {
        curl_easy_cleanup(easy);
    }
    for multi in calls.multi {
        curl_multi_cleanup(multi);
    }
    curl_share_cleanup(calls.share);
});
