//! `curl_easy_setopt`. The functions with variable arguments (`variadic.c`) call the functions of
//! this module, which check the value and store it.

use std::ffi::{c_char, c_int, c_uint, c_void};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haul::net::tls::EchPolicy;
use haul_policy::protocols::ProtocolSet;

use super::curlauth_constants::{AUTH_AWS, AUTH_BASIC, AUTH_BEARER, AUTH_DIGEST, AUTH_NEGOTIATE};
use super::curlopt_numbers as opt;
use super::lookup::option_use;
use super::{EasyOptions, OptionKind, OptionSupport, OptionValue, RequestKind};
use crate::c_strings;
use crate::codes::{
    CURLE_BAD_FUNCTION_ARGUMENT, CURLE_FAILED_INIT, CURLE_NOT_BUILT_IN, CURLE_OK, CURLE_UNKNOWN_OPTION,
    CURLE_UNSUPPORTED_PROTOCOL, CURLE_URL_MALFORMAT, CURLcode,
};
use crate::easy::{EASY, Easy, EasyState};
use crate::form::FORMS;
use crate::handle_table::{OpaqueHandle, UserPointer, catch_panic, lock};
use crate::mime::MIMES;
use crate::share::SHARES;
use crate::slist::{self, curl_slist};
use crate::transfer::callbacks::Callbacks;
use crate::url::URLS;

/// The maximum length of a string option in bytes, as in libcurl.
const MAX_TEXT: usize = 8_000_000;

/// A block of binary data, as `curl/curl.h` describes it (`curl_blob`).
#[repr(C)]
struct curl_blob {
    data: *const c_char,
    len: usize,
    flags: c_uint,
}

impl EasyOptions {
    /// Sets an option that is a number.
    ///
    /// # Errors
    /// The option is unknown, or the number is not valid for it.
    pub fn set_number(&mut self, option: u32, value: i64) -> Result<(), CURLcode> {
        match option_use(option) {
            Some(OptionSupport::Applied) => {}
            Some(OptionSupport::Ignored) => return Ok(()),
            // Turned off, there is nothing that this library lacks.
            Some(OptionSupport::Unknown) if value == 0 => return Ok(()),
            _ => return Err(CURLE_UNKNOWN_OPTION),
        }
        check_number(option, value)?;
        let (option, value) = match option {
            opt::TIMEOUT => (opt::TIMEOUT_MS, value.saturating_mul(1000)),
            opt::CONNECTTIMEOUT => (opt::CONNECTTIMEOUT_MS, value.saturating_mul(1000)),
            opt::INFILESIZE => (opt::INFILESIZE_LARGE, value),
            opt::RESUME_FROM => (opt::RESUME_FROM_LARGE, value),
            opt::MAXFILESIZE => (opt::MAXFILESIZE_LARGE, value),
            opt::POSTFIELDSIZE => (opt::POSTFIELDSIZE_LARGE, value),
            opt::TIMEVALUE => (opt::TIMEVALUE_LARGE, value),
            opt::PUT => (opt::UPLOAD, value),
            other => (other, value),
        };
        self.set_kind(option, value != 0);
        match option {
            // The copy is shorter than the new size of the content.
            opt::POSTFIELDSIZE_LARGE
                if self.bytes(opt::COPYPOSTFIELDS).is_some_and(|copy| (copy.len() as i64) < value) =>
            {
                self.store(opt::COPYPOSTFIELDS, None);
            }
            // 1 was meant for debugging, and counts as 2.
            opt::SSL_VERIFYHOST | opt::PROXY_SSL_VERIFYHOST if value == 1 => {
                self.store(option, Some(OptionValue::Number(2)));
                return Ok(());
            }
            _ => {}
        }
        self.store(option, Some(OptionValue::Number(value)));
        Ok(())
    }

    /// Sets the kind of the request (GET, HEAD, POST or PUT) if `option` selects one. `on` is the
    /// value of the option.
    fn set_kind(&mut self, option: u32, on: bool) {
        match (option, on) {
            (opt::NOBODY, true) => self.kind = RequestKind::Head,
            (opt::NOBODY, false) if self.kind == RequestKind::Head => self.kind = RequestKind::Get,
            (opt::HTTPGET, true) => {
                self.kind = RequestKind::Get;
                self.store(opt::NOBODY, None);
                self.store(opt::UPLOAD, None);
            }
            (opt::POST, true) => {
                self.kind = RequestKind::Post;
                self.store(opt::NOBODY, None);
            }
            (opt::UPLOAD, true) => {
                self.kind = RequestKind::Put;
                self.store(opt::NOBODY, None);
            }
            // CURLOPT_NOBODY stays on, and then still decides.
            (opt::POST | opt::UPLOAD, false) => self.kind = RequestKind::Get,
            _ => {}
        }
    }

    /// Sets an option that is a string; `None` removes it.
    fn set_text(&mut self, option: u32, text: Option<&[u8]>) -> Result<(), CURLcode> {
        match option {
            opt::USERPWD | opt::PROXYUSERPWD => {
                let (user_option, password_option) = match option {
                    opt::USERPWD => (opt::USERNAME, opt::PASSWORD),
                    _ => (opt::PROXYUSERNAME, opt::PROXYPASSWORD),
                };
                let (user, password) = match text.map(haul_policy::auth::Credentials::split_user_and_password) {
                    Some((user, password)) => (Some(user), Some(password.unwrap_or_default())),
                    None => (None, None),
                };
                let (user, password) = match option {
                    opt::PROXYUSERPWD => (decoded(user)?, decoded(password)?),
                    _ => (user.map(bytes_value), password.map(bytes_value)),
                };
                self.store(user_option, user);
                self.store(password_option, password);
                return Ok(());
            }
            opt::COOKIEFILE => {
                match text {
                    Some(path) => self.cookie_files.push(path.into()),
                    None => self.cookie_files.clear(),
                }
                self.has_cookies |= text.is_some();
                return Ok(());
            }
            opt::ECH => return self.set_ech(text),
            // An older name of another option.
            opt::SOCKS5_GSSAPI_SERVICE => {
                self.store(opt::PROXY_SERVICE_NAME, text.map(bytes_value));
                return Ok(());
            }
            opt::COOKIEJAR => self.has_cookies |= text.is_some(),
            opt::PROTOCOLS_STR | opt::REDIR_PROTOCOLS_STR => {
                let list = text.map(String::from_utf8_lossy);
                if let Some(list) = list {
                    check_protocols(&list)?;
                }
                let number = if option == opt::PROTOCOLS_STR { opt::PROTOCOLS } else { opt::REDIR_PROTOCOLS };
                self.store(number, None);
            }
            _ => {}
        }
        self.store(option, text.map(bytes_value));
        Ok(())
    }

    /// Sets Encrypted Client Hello (`CURLOPT_ECH`). One call may set the policy, and another the
    /// keys; both apply.
    fn set_ech(&mut self, text: Option<&[u8]>) -> Result<(), CURLcode> {
        self.ech.policy = match text.unwrap_or(b"false") {
            b"false" => EchPolicy::Off,
            b"grease" => EchPolicy::Grease,
            b"true" => EchPolicy::Try,
            b"hard" => EchPolicy::Require,
            // The public name of the keys is the only one that rustls sends.
            text if text.starts_with(b"pn:") => return Err(CURLE_NOT_BUILT_IN),
            text => {
                let list = text.strip_prefix(b"ecl:").filter(|list| !list.is_empty());
                let list = list.ok_or(CURLE_BAD_FUNCTION_ARGUMENT)?;
                self.ech.config_list = Some(STANDARD.decode(list).map_err(|_| CURLE_BAD_FUNCTION_ARGUMENT)?);
                if self.ech.policy == EchPolicy::Off { EchPolicy::Require } else { self.ech.policy }
            }
        };
        Ok(())
    }

    /// Sets the content of a POST (`CURLOPT_COPYPOSTFIELDS`) to a copy of the bytes at `start`.
    ///
    /// # Safety
    /// `start` is NULL or points to `CURLOPT_POSTFIELDSIZE` bytes, or to bytes that end with NUL if
    /// that option is not set.
    unsafe fn copy_post_fields(&mut self, start: *const c_char) {
        let length = self.number(opt::POSTFIELDSIZE_LARGE).and_then(|size| usize::try_from(size).ok());
        // SAFETY: the caller guarantees it.
        let copy = unsafe { c_strings::bytes_with_length(start, length) }.map(bytes_value);
        self.store(opt::COPYPOSTFIELDS, copy);
        self.store(opt::POSTFIELDS, None);
        self.kind = RequestKind::Post;
    }
}

/// Returns the percent-decoded bytes of a text as the value of an option.
///
/// # Errors
/// The text has an encoded NUL.
fn decoded(text: Option<&[u8]>) -> Result<Option<OptionValue>, CURLcode> {
    let bytes = text.map(haul_policy::urlencode::percent_decode);
    if bytes.as_ref().is_some_and(|bytes| bytes.contains(&0)) {
        return Err(CURLE_URL_MALFORMAT);
    }
    Ok(bytes.map(|bytes| bytes_value(&bytes)))
}

fn bytes_value(bytes: &[u8]) -> OptionValue {
    OptionValue::Bytes(bytes.into())
}

/// Checks a list of URL schemes, separated by commas. Unlike in the options of the curl command, a
/// prefix of a scheme such as `-` or `=` is an error.
fn check_protocols(list: &str) -> Result<(), CURLcode> {
    let mut names = list.split(',').filter(|name| !name.is_empty()).peekable();
    if names.peek().is_none() {
        return Err(CURLE_BAD_FUNCTION_ARGUMENT);
    }
    let is_known = |name: &str| {
        name.bytes().all(|b| b.is_ascii_alphanumeric())
            && (ProtocolSet { http: false, https: false, file: false }.with_list(name).is_ok()
                || name.eq_ignore_ascii_case("all"))
    };
    if names.all(is_known) { Ok(()) } else { Err(CURLE_UNSUPPORTED_PROTOCOL) }
}

/// Returns the authentication schemes that this library supports, as bits of `CURLOPT_HTTPAUTH`.
fn known_schemes() -> i64 {
    let always = AUTH_BASIC | AUTH_DIGEST | AUTH_BEARER | AUTH_AWS;
    if haul::HAS_NEGOTIATE { always | AUTH_NEGOTIATE } else { always }
}

/// Returns an error if the number is out of range, or requires a feature that this library does not
/// have.
fn check_number(option: u32, value: i64) -> Result<(), CURLcode> {
    let is_valid = match option {
        opt::TIMEOUT
        | opt::TIMEOUT_MS
        | opt::CONNECTTIMEOUT
        | opt::CONNECTTIMEOUT_MS
        | opt::LOW_SPEED_LIMIT
        | opt::LOW_SPEED_TIME
        | opt::MAXFILESIZE
        | opt::MAXFILESIZE_LARGE
        | opt::MAXCONNECTS
        | opt::MAXAGE_CONN
        | opt::MAX_SEND_SPEED_LARGE
        | opt::MAX_RECV_SPEED_LARGE
        | opt::EXPECT_100_TIMEOUT_MS
        | opt::HAPPY_EYEBALLS_TIMEOUT_MS
        | opt::TCP_KEEPIDLE
        | opt::TCP_KEEPINTVL
        | opt::TCP_KEEPCNT => value >= 0,
        opt::POSTFIELDSIZE
        | opt::POSTFIELDSIZE_LARGE
        | opt::INFILESIZE
        | opt::INFILESIZE_LARGE
        | opt::RESUME_FROM
        | opt::RESUME_FROM_LARGE
        | opt::MAXREDIRS
        | opt::DNS_CACHE_TIMEOUT => value >= -1,
        opt::PORT | opt::LOCALPORT | opt::LOCALPORTRANGE | opt::PROXYPORT => (0..=65535).contains(&value),
        opt::NETRC | opt::IPRESOLVE => (0..=2).contains(&value),
        opt::TIMECONDITION => (0..=3).contains(&value),
        opt::PROXYTYPE => matches!(value, 0..=7),
        opt::SSLVERSION | opt::PROXY_SSLVERSION => (0..=7).contains(&(value & 0xffff)),
        opt::POSTREDIR => (0..=7).contains(&value),
        _ => true,
    };
    if !is_valid {
        return Err(CURLE_BAD_FUNCTION_ARGUMENT);
    }
    match option {
        opt::HTTP_VERSION if !(0..=5).contains(&value) && !matches!(value, 30 | 31) => Err(CURLE_BAD_FUNCTION_ARGUMENT),
        opt::HTTP_VERSION if value >= 30 && !haul::HAS_HTTP3 => Err(CURLE_UNSUPPORTED_PROTOCOL),
        // SSLv2 and SSLv3 are not supported any more.
        opt::SSLVERSION | opt::PROXY_SSLVERSION if matches!(value & 0xffff, 2 | 3) => Err(CURLE_BAD_FUNCTION_ARGUMENT),
        opt::HTTPAUTH | opt::PROXYAUTH if value != 0 && value & known_schemes() == 0 => Err(CURLE_NOT_BUILT_IN),
        opt::SOCKS5_AUTH if value & !(AUTH_BASIC | AUTH_NEGOTIATE & known_schemes()) != 0 => Err(CURLE_NOT_BUILT_IN),
        _ => Ok(()),
    }
}

impl EasyState {
    /// Sets an option whose value is a pointer.
    ///
    /// # Safety
    /// The pointer is valid as libcurl's documentation of the option demands.
    unsafe fn set_pointer(&mut self, option: u32, value: *mut c_void) -> Result<(), CURLcode> {
        let Some((_, _, kind, usage)) = super::lookup::option_row(option) else { return Err(CURLE_UNKNOWN_OPTION) };
        if *kind == OptionKind::Text && *usage != OptionSupport::Unknown {
            // SAFETY: the caller guarantees it.
            let text = unsafe { c_strings::c_string_bytes(value.cast()) };
            if text.is_some_and(|text| text.len() > MAX_TEXT) {
                return Err(CURLE_BAD_FUNCTION_ARGUMENT);
            }
        }
        match usage {
            OptionSupport::Applied => {}
            OptionSupport::Ignored => return Ok(()),
            // Without a value, there is nothing that this library lacks.
            OptionSupport::Unknown if value.is_null() => return Ok(()),
            _ => return Err(CURLE_UNKNOWN_OPTION),
        }
        match kind {
            OptionKind::Text => {
                // SAFETY: the caller guarantees it.
                let text = unsafe { c_strings::c_string_bytes(value.cast()) };
                match (option, text) {
                    (opt::COOKIELIST, text) => return self.change_cookies(text),
                    (opt::COOKIEFILE, None) => self.forget_cookies(),
                    _ => {}
                }
                self.options.set_text(option, text)?;
                if option == opt::URL {
                    self.infos.set_url(text);
                }
                Ok(())
            }
            OptionKind::List => {
                // SAFETY: the caller guarantees it.
                let list = unsafe { slist::copy_strings(value.cast::<curl_slist>()) };
                self.options.store(option, (!list.is_empty()).then(|| OptionValue::List(list.into())));
                Ok(())
            }
            OptionKind::Blob => {
                // SAFETY: a `curl_blob` or NULL.
                let blob = unsafe { value.cast::<curl_blob>().as_ref() };
                // SAFETY: the blob has that many bytes.
                let bytes = blob.and_then(|blob| unsafe { c_strings::bytes_with_length(blob.data, Some(blob.len)) });
                let needs_bytes = matches!(option, opt::CAINFO_BLOB | opt::PROXY_CAINFO_BLOB);
                if blob.is_some_and(|blob| needs_bytes && blob.len == 0) || blob.is_some() && bytes.is_none() {
                    return Err(CURLE_BAD_FUNCTION_ARGUMENT);
                }
                self.options.store(option, bytes.map(bytes_value));
                Ok(())
            }
            // SAFETY: the caller guarantees it.
            OptionKind::Object => unsafe { self.set_object(option, value) },
            OptionKind::Data | OptionKind::Function => {
                // A function of the program may want NULL instead of the standard stream.
                let keeps_null = matches!(option, opt::WRITEDATA | opt::READDATA);
                let pointer = (keeps_null || !value.is_null()).then_some(OptionValue::Pointer(UserPointer(value)));
                self.options.store(option, pointer);
                Ok(())
            }
            OptionKind::Long | OptionKind::Values | OptionKind::OffT => Err(CURLE_UNKNOWN_OPTION),
        }
    }

    /// Sets an option whose value points to an object of another kind than a string, list or blob,
    /// such as a form, a share handle or the content of a POST request.
    ///
    /// # Safety
    /// The pointer is valid as libcurl's documentation of the option demands.
    unsafe fn set_object(&mut self, option: u32, value: *mut c_void) -> Result<(), CURLcode> {
        let pointer = (!value.is_null()).then_some(OptionValue::Pointer(UserPointer(value)));
        let options = &mut self.options;
        match option {
            opt::POSTFIELDS => {
                options.store(opt::COPYPOSTFIELDS, None);
                options.store(opt::POSTFIELDS, pointer);
                options.kind = RequestKind::Post;
            }
            // SAFETY: the caller guarantees it.
            opt::COPYPOSTFIELDS => unsafe { options.copy_post_fields(value.cast()) },
            opt::MIMEPOST => {
                if !value.is_null() && MIMES.get(value).is_none() {
                    return Err(CURLE_BAD_FUNCTION_ARGUMENT);
                }
                options.store(option, pointer);
                self.replaced_form = options.form.take();
                options.store(opt::NOBODY, None);
                options.kind = RequestKind::Mime;
            }
            opt::HTTPPOST => {
                if !value.is_null() && FORMS.get(value).is_none() {
                    return Err(CURLE_BAD_FUNCTION_ARGUMENT);
                }
                options.store(option, pointer);
                self.replaced_form = options.form.take();
                options.store(opt::NOBODY, None);
                options.kind = RequestKind::Form;
            }
            opt::CURLU => {
                if !value.is_null() && URLS.get(value).is_none() {
                    return Err(CURLE_BAD_FUNCTION_ARGUMENT);
                }
                options.store(option, pointer);
            }
            opt::SHARE => {
                let share = if value.is_null() { None } else { SHARES.get(value) };
                if share.is_none() && !value.is_null() {
                    return Err(CURLE_BAD_FUNCTION_ARGUMENT);
                }
                self.set_share(share);
            }
            _ => options.store(option, pointer),
        }
        Ok(())
    }
}

/// Applies `option`, which was just set, to the transfer in progress, if any. Does nothing for an
/// option that takes effect only in the next transfer. For example, the header callback may choose
/// the output file (`CURLOPT_WRITEDATA`).
fn change_running_callbacks(easy: &Easy, state: &EasyState, option: u32) {
    let is_used_at_once = matches!(
        option,
        opt::WRITEFUNCTION
            | opt::WRITEDATA
            | opt::HEADERFUNCTION
            | opt::HEADERDATA
            | opt::XFERINFOFUNCTION
            | opt::XFERINFODATA
            | opt::PROGRESSFUNCTION
            | opt::NOPROGRESS
            | opt::DEBUGFUNCTION
            | opt::DEBUGDATA
            | opt::STDERR
            | opt::VERBOSE
            | opt::TRAILERFUNCTION
            | opt::TRAILERDATA
    );
    if let Some(running) = is_used_at_once.then(|| easy.running()).flatten() {
        running.set_callbacks(Callbacks::from_options(&state.options));
    }
}

/// Sets an option of an easy handle whose value is a number.
#[unsafe(no_mangle)]
pub extern "C" fn haul_curl_easy_setopt_number(easy: OpaqueHandle, option: c_int, value: i64) -> CURLcode {
    catch_panic(CURLE_FAILED_INIT, || {
        let Some(easy) = EASY.get(easy) else { return CURLE_BAD_FUNCTION_ARGUMENT };
        let option = u32::try_from(option).unwrap_or(u32::MAX);
        let mut state = lock(&easy.state);
        state.reusable_request.forget_dependents(option);
        let code = state.options.set_number(option, value).err().unwrap_or(CURLE_OK);
        change_running_callbacks(&easy, &state, option);
        code
    })
}

/// Sets an option of an easy handle whose value is a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_curl_easy_setopt_pointer(
    easy: OpaqueHandle,
    option: c_int,
    value: *mut c_void,
) -> CURLcode {
    catch_panic(CURLE_FAILED_INIT, || {
        let Some(easy) = EASY.get(easy) else { return CURLE_BAD_FUNCTION_ARGUMENT };
        let option = u32::try_from(option).unwrap_or(u32::MAX);
        let mut state = lock(&easy.state);
        state.reusable_request.forget_dependents(option);
        // SAFETY: libcurl's contract.
        let code = unsafe { state.set_pointer(option, value) }.err().unwrap_or(CURLE_OK);
        change_running_callbacks(&easy, &state, option);
        // Dropped without the lock, since this may call a callback of the program.
        let replaced = state.replaced_form.take();
        drop(state);
        drop(replaced);
        code
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_refused() {
        let mut options = EasyOptions::default();
        for (option, value, expected) in [
            (opt::TIMEOUT, -1, Err(CURLE_BAD_FUNCTION_ARGUMENT)),
            (opt::PORT, 65536, Err(CURLE_BAD_FUNCTION_ARGUMENT)),
            (opt::PORT, 65535, Ok(())),
            (opt::MAXREDIRS, -1, Ok(())),
            (opt::MAXREDIRS, -2, Err(CURLE_BAD_FUNCTION_ARGUMENT)),
            (opt::HTTPAUTH, 8, Err(CURLE_NOT_BUILT_IN)),
            (opt::PROXYAUTH, 4, if haul::HAS_NEGOTIATE { Ok(()) } else { Err(CURLE_NOT_BUILT_IN) }),
            (opt::HTTPAUTH, !16, Ok(())),
            (opt::HTTP_VERSION, 77, Err(CURLE_BAD_FUNCTION_ARGUMENT)),
            (99, 1, Ok(())),
            (48, 1, Err(CURLE_UNKNOWN_OPTION)),
            (48, 0, Ok(())),
            (9999, 1, Err(CURLE_UNKNOWN_OPTION)),
        ] {
            assert_eq!(options.set_number(option, value), expected, "{option} {value}");
        }
    }

    #[test]
    fn ech_policy_and_keys_are_combined() {
        let mut options = EasyOptions::default();
        for (text, result, policy) in [
            (Some(&b"ecl:AAAA"[..]), Ok(()), EchPolicy::Require),
            (Some(b"true"), Ok(()), EchPolicy::Try),
            (Some(b"ecl:AQID"), Ok(()), EchPolicy::Try),
            (Some(b"ecl:"), Err(CURLE_BAD_FUNCTION_ARGUMENT), EchPolicy::Try),
            (Some(b"ecl:?"), Err(CURLE_BAD_FUNCTION_ARGUMENT), EchPolicy::Try),
            (Some(b"pn:public.example"), Err(CURLE_NOT_BUILT_IN), EchPolicy::Try),
            (Some(b"TRUE"), Err(CURLE_BAD_FUNCTION_ARGUMENT), EchPolicy::Try),
            (Some(b"grease"), Ok(()), EchPolicy::Grease),
            (None, Ok(()), EchPolicy::Off),
        ] {
            assert_eq!(options.set_text(opt::ECH, text), result, "{text:?}");
            assert_eq!(options.ech.policy, policy, "{text:?}");
        }
        assert_eq!(options.ech.config_list.as_deref(), Some(&[1, 2, 3][..]));
    }

    #[test]
    fn last_set_option_decides_the_request_kind() {
        let mut options = EasyOptions::default();
        for (option, value, kind) in [
            (opt::NOBODY, 1, RequestKind::Head),
            (opt::POST, 1, RequestKind::Post),
            (opt::NOBODY, 0, RequestKind::Post),
            (opt::UPLOAD, 1, RequestKind::Put),
            (opt::UPLOAD, 0, RequestKind::Get),
            (opt::NOBODY, 1, RequestKind::Head),
            (opt::NOBODY, 0, RequestKind::Get),
            (opt::PUT, 1, RequestKind::Put),
            (opt::HTTPGET, 1, RequestKind::Get),
        ] {
            options.set_number(option, value).unwrap();
            assert_eq!(options.kind, kind, "{option} {value}");
        }
    }

    #[test]
    fn nobody_decides_until_another_method_turns_it_off() {
        let mut options = EasyOptions::default();
        for (option, value, kind) in [
            (opt::NOBODY, 1, RequestKind::Head),
            (opt::POST, 0, RequestKind::Head),
            (opt::UPLOAD, 0, RequestKind::Head),
            (opt::PUT, 0, RequestKind::Head),
            (opt::HTTPGET, 0, RequestKind::Head),
            (opt::POST, 1, RequestKind::Post),
            (opt::NOBODY, 1, RequestKind::Head),
            (opt::UPLOAD, 1, RequestKind::Put),
            (opt::NOBODY, 1, RequestKind::Head),
            (opt::HTTPGET, 1, RequestKind::Get),
        ] {
            options.set_number(option, value).unwrap();
            assert_eq!(options.request_kind(), kind, "{option} {value}");
        }
    }

    #[test]
    fn proxy_userpwd_is_percent_decoded_after_it_is_split() {
        let mut options = EasyOptions::default();
        options.set_text(opt::PROXYUSERPWD, Some(b"a%3Ab:c%40d")).unwrap();
        let stored = (options.bytes(opt::PROXYUSERNAME), options.bytes(opt::PROXYPASSWORD));
        assert_eq!(stored, (Some(&b"a:b"[..]), Some(&b"c@d"[..])));
        assert_eq!(options.set_text(opt::PROXYUSERPWD, Some(b"a:%00")), Err(CURLE_URL_MALFORMAT));
        options.set_text(opt::USERPWD, Some(b"a:c%40d")).unwrap();
        assert_eq!(options.bytes(opt::PASSWORD), Some(&b"c%40d"[..]));
    }

    #[test]
    fn credentials_are_split_at_the_first_colon() {
        let mut options = EasyOptions::default();
        options.set_text(opt::USERPWD, Some(b"me:a:b")).unwrap();
        assert_eq!((options.bytes(opt::USERNAME), options.bytes(opt::PASSWORD)), (Some(&b"me"[..]), Some(&b"a:b"[..])));
        options.set_text(opt::USERPWD, None).unwrap();
        assert!(options.bytes(opt::USERNAME).is_none() && options.bytes(opt::PASSWORD).is_none());
    }
}
