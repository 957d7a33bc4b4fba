//! Looks up a fact about a transfer by its `CURLINFO_` number.

use std::ffi::{CStr, CString, c_char, c_double, c_int, c_long, c_void};
use std::time::Duration;

use super::{SocketAddressText, TransferInfo};
use crate::c_strings;
use crate::codes::{CURLE_BAD_FUNCTION_ARGUMENT, CURLE_FAILED_INIT, CURLE_OK, CURLE_UNKNOWN_OPTION, CURLcode};
use crate::easy::{EASY, EasyState};
use crate::handle_table::{OpaqueHandle, catch_panic, lock};
use crate::options::{RequestKind, curlopt_numbers as opt};
use crate::slist;

const TYPE_MASK: c_int = 0xf0_0000;
const STRING: c_int = 0x10_0000;
const LONG: c_int = 0x20_0000;
const DOUBLE: c_int = 0x30_0000;
const POINTER: c_int = 0x40_0000;
const SOCKET: c_int = 0x50_0000;
const OFF_T: c_int = 0x60_0000;

/// The number of `CURLINFO_XFER_ID`, the only 64-bit item that the handle keeps.
const XFER_ID: c_int = 63;

/// The TLS library, as `curl/curl.h` describes it.
#[repr(C)]
struct curl_tlssessioninfo {
    backend: c_int,
    internals: *mut c_void,
}

// SAFETY: a constant.
unsafe impl Sync for curl_tlssessioninfo {}

/// The value of `CURLINFO_TLS_SSL_PTR`. Backend 14 is rustls, which has no objects that programs
/// can access.
static TLS_SESSION: curl_tlssessioninfo = curl_tlssessioninfo { backend: 14, internals: std::ptr::null_mut() };

fn saturated(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns the average transfer rate in bytes per second.
fn speed(bytes: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { bytes as f64 / time.as_secs_f64() }
}

impl TransferInfo {
    /// Returns the value of a 64-bit `CURLINFO_` item; `None` if the item with this number has
    /// another type.
    fn off_t(&self, number: c_int) -> Option<i64> {
        let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        Some(match number {
            7 => saturated(self.uploaded),
            8 => saturated(self.downloaded),
            9 => speed(self.downloaded, self.times.total) as i64,
            10 => speed(self.uploaded, self.times.total) as i64,
            14 => self.file_time.unwrap_or(-1),
            15 => self.announced.map_or(-1, saturated),
            16 => self.upload_length.map_or(-1, saturated),
            50 => micros(self.times.total),
            51 => micros(self.times.name_lookup),
            52 => micros(self.times.connect),
            53 | 67 => micros(self.times.pre_transfer),
            54 => micros(self.times.start_transfer),
            55 => micros(self.times.redirect),
            56 => micros(self.times.app_connect),
            57 => self.retry_after,
            65 | 68 => 0,
            64 => self.connection.map_or(-1, saturated),
            71 => saturated(self.delivered),
            _ => return None,
        })
    }

    /// Returns the value of a floating-point `CURLINFO_` item; `None` if the item with this number
    /// has another type.
    fn double(&self, number: c_int) -> Option<f64> {
        let unknown = |length: Option<u64>| length.map_or(-1.0, |length| length as f64);
        Some(match number {
            3 => self.times.total.as_secs_f64(),
            4 => self.times.name_lookup.as_secs_f64(),
            5 => self.times.connect.as_secs_f64(),
            6 => self.times.pre_transfer.as_secs_f64(),
            7 => self.uploaded as f64,
            8 => self.downloaded as f64,
            9 => speed(self.downloaded, self.times.total),
            10 => speed(self.uploaded, self.times.total),
            15 => unknown(self.announced),
            16 => unknown(self.upload_length),
            17 => self.times.start_transfer.as_secs_f64(),
            19 => self.times.redirect.as_secs_f64(),
            33 => self.times.app_connect.as_secs_f64(),
            _ => return None,
        })
    }

    /// Returns the value of a `CURLINFO_` item of type `long`; `None` if the item with this number
    /// has another type.
    fn long(&self, number: c_int) -> Option<i64> {
        Some(match number {
            2 => self.status,
            11 => saturated(self.header_size),
            12 => saturated(self.request_size),
            13 => self.verify_result,
            14 => self.file_time.unwrap_or(-1),
            20 => self.redirects,
            22 => self.connect_status,
            23 => self.auth_available,
            24 => self.proxy_auth_available,
            25 => self.os_error,
            26 => self.connects,
            // Programs never get a socket.
            29 => -1,
            35 => self.condition_unmet.into(),
            40 => self.peer.as_ref().map_or(0, SocketAddressText::port),
            42 => self.local.as_ref().map_or(0, SocketAddressText::port),
            46 => self.http_version,
            // Items of RTSP, FTP and other protocols.
            37 | 38 | 39 | 47 | 59 => 0,
            69 => self.auth_used,
            70 => self.proxy_auth_used,
            48 => match self.scheme.as_deref().map(CStr::to_bytes) {
                Some(b"http") => 1,
                Some(b"https") => 2,
                _ => 0,
            },
            66 => self.used_proxy.into(),
            _ => return None,
        })
    }

    /// Returns the value of a string `CURLINFO_` item, or NULL; `None` if the item with this number
    /// has another type.
    fn string(&self, number: c_int) -> Option<*const c_char> {
        let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
        Some(match number {
            1 => pointer(Some(self.effective_url.as_c_str())),
            18 => pointer(self.content_type.as_deref()),
            30 | 36 => std::ptr::null(),
            31 => pointer(self.redirect_url.as_deref()),
            32 => pointer(Some(self.peer.as_ref().map_or(c"", SocketAddressText::ip))),
            41 => pointer(Some(self.local.as_ref().map_or(c"", SocketAddressText::ip))),
            49 => pointer(self.scheme.as_deref()),
            60 => pointer(self.referer.as_deref()),
            _ => return None,
        })
    }
}

impl TransferInfo {
    /// Returns `name`, a method that the C program has set, as a string that lives until the method
    /// changes.
    fn custom_method(&mut self, name: &[u8]) -> *const c_char {
        let known = self.custom_method.take().filter(|known| known.as_bytes() == name);
        let name = known.or_else(|| CString::new(name).ok()).unwrap_or_default();
        self.custom_method.insert(name).as_ptr()
    }
}

impl EasyState {
    /// Returns the value of the `CURLINFO_` item with this number, if the value is a string. Some
    /// of these values depend on the options of the handle. Returns `None` for an item of another
    /// type.
    fn string_info(&mut self, number: c_int) -> Option<*const c_char> {
        match number {
            21 => Some(self.options.pointer(opt::PRIVATE).cast_const().cast()),
            58 if self.options.has(opt::CUSTOMREQUEST) => {
                Some(self.infos.custom_method(self.options.bytes(opt::CUSTOMREQUEST)?))
            }
            58 => Some(match (&self.infos.method, self.options.request_kind()) {
                (Some(method), _) => method.as_ptr(),
                (None, RequestKind::Get) => c"GET".as_ptr(),
                (None, RequestKind::Head) => c"HEAD".as_ptr(),
                (None, RequestKind::Put) => c"PUT".as_ptr(),
                (None, _) => c"POST".as_ptr(),
            }),
            61 => Some(default_bundle()),
            62 => Some(std::ptr::null()),
            _ => self.infos.string(number),
        }
    }
}

/// Returns the path of the system's file of CA certificates, or NULL.
fn default_bundle() -> *const c_char {
    use std::os::unix::ffi::OsStringExt;
    use std::sync::OnceLock;
    static BUNDLE: OnceLock<Option<CString>> = OnceLock::new();
    let path = || CString::new(haul::net::tls::system_bundle()?.into_os_string().into_vec()).ok();
    BUNDLE.get_or_init(path).as_deref().map_or(std::ptr::null(), CStr::as_ptr)
}

/// Stores the value of the `CURLINFO_` item `info` in `place`, whose type depends on the item.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_curl_easy_getinfo(easy: OpaqueHandle, info: c_int, place: *mut c_void) -> CURLcode {
    catch_panic(CURLE_FAILED_INIT, || {
        let Some(easy) = EASY.get(easy) else { return CURLE_BAD_FUNCTION_ARGUMENT };
        if place.is_null() {
            return CURLE_BAD_FUNCTION_ARGUMENT;
        }
        let running = easy.running();
        let mut state = lock(&easy.state);
        if let Some(running) = running {
            state.infos.set_progress(running.progress(), running.elapsed());
        }
        let number = info & !TYPE_MASK;
        let stored = match info & TYPE_MASK {
            // SAFETY: libcurl's contract: the place has the type of the fact, here and below.
            STRING => state.string_info(number).map(|text| unsafe { c_strings::write_unless_null(place.cast(), text) }),
            LONG => state.infos.long(number).map(|value| {
                let value = c_long::try_from(value).unwrap_or(c_long::MAX);
                // SAFETY: as above.
                unsafe { c_strings::write_unless_null(place.cast(), value) }
            }),
            // SAFETY: as above.
            DOUBLE => state
                .infos
                .double(number)
                .map(|value: c_double| unsafe { c_strings::write_unless_null(place.cast(), value) }),
            OFF_T => {
                let value = if number == XFER_ID { state.transfer_id.or(Some(-1)) } else { state.infos.off_t(number) };
                // SAFETY: as above.
                value.map(|value| unsafe { c_strings::write_unless_null(place.cast(), value) })
            }
            SOCKET if number == 44 => {
                const CURL_SOCKET_BAD: c_int = -1;
                // SAFETY: as above.
                Some(unsafe { c_strings::write_unless_null(place.cast(), CURL_SOCKET_BAD) })
            }
            POINTER => {
                let pointer: Option<*mut c_void> = match number {
                    27 => Some(std::ptr::null_mut()),
                    28 => {
                        let lines = state.cookie_lines();
                        Some(slist::new_list(lines.iter().map(Vec::as_slice)).cast())
                    }
                    34 => Some(state.infos.certificates.public_struct().cast()),
                    43 | 45 => Some((&raw const TLS_SESSION).cast_mut().cast()),
                    _ => None,
                };
                // SAFETY: as above.
                pointer.map(|pointer| unsafe { c_strings::write_unless_null(place.cast(), pointer) })
            }
            _ => None,
        };
        if stored.is_some() { CURLE_OK } else { CURLE_UNKNOWN_OPTION }
    })
}
