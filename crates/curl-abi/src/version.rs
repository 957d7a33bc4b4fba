//! `curl_version` and `curl_version_info`. The reported version is that of the implemented
//! interface, libcurl 8.14, since programs compare it with the version for which they were
//! compiled. The reported features are those of this library.

use std::ffi::{CStr, c_char, c_int, c_long, c_uint};

/// The version of libcurl whose interface this library implements.
const VERSION: &CStr = c"8.14.1";
const VERSION_NUM: c_uint = 0x08_0e_01;
/// The version of the struct `curl_version_info_data` (its `age`) that has all current members:
/// `CURLVERSION_TWELFTH`.
const AGE: c_int = 11;

const IPV6: c_int = 1;
const SSL: c_int = 1 << 2;
const LIBZ: c_int = 1 << 3;
const ASYNCHDNS: c_int = 1 << 7;
const SPNEGO: c_int = 1 << 8;
const LARGEFILE: c_int = 1 << 9;
const IDN: c_int = 1 << 10;
const HTTP2: c_int = 1 << 16;
const GSSAPI: c_int = 1 << 17;
const KERBEROS5: c_int = 1 << 18;
const UNIX_SOCKETS: c_int = 1 << 19;
const PSL: c_int = 1 << 20;
const HTTPS_PROXY: c_int = 1 << 21;
const BROTLI: c_int = 1 << 23;
const ALTSVC: c_int = 1 << 24;
const HTTP3: c_int = 1 << 25;
const ZSTD: c_int = 1 << 26;
const HSTS: c_int = 1 << 28;
const THREADSAFE: c_int = 1 << 30;

/// The version and the features, as `curl/curl.h` describes them.
#[repr(C)]
pub struct curl_version_info_data {
    age: c_int,
    version: *const c_char,
    version_num: c_uint,
    host: *const c_char,
    features: c_int,
    ssl_version: *const c_char,
    ssl_version_num: c_long,
    libz_version: *const c_char,
    protocols: *const *const c_char,
    ares: *const c_char,
    ares_num: c_int,
    libidn: *const c_char,
    iconv_ver_num: c_int,
    libssh_version: *const c_char,
    brotli_ver_num: c_uint,
    brotli_version: *const c_char,
    nghttp2_ver_num: c_uint,
    nghttp2_version: *const c_char,
    quic_version: *const c_char,
    cainfo: *const c_char,
    capath: *const c_char,
    zstd_ver_num: c_uint,
    zstd_version: *const c_char,
    hyper_version: *const c_char,
    gsasl_version: *const c_char,
    feature_names: *const *const c_char,
    rtmp_version: *const c_char,
}

// SAFETY: constants.
unsafe impl Sync for curl_version_info_data {}

/// A list of constant strings that ends with NULL.
struct NullTerminatedNames<const N: usize>([*const c_char; N]);

// SAFETY: constants.
unsafe impl<const N: usize> Sync for NullTerminatedNames<N> {}

static PROTOCOLS: NullTerminatedNames<3> = NullTerminatedNames([c"http".as_ptr(), c"https".as_ptr(), std::ptr::null()]);

/// Returns the name of an optional feature. If this build lacks the feature, returns the name of
/// another feature in the list instead, because each entry of the list needs a name.
const fn optional(has: bool, name: &'static CStr) -> *const c_char {
    if has { name.as_ptr() } else { c"IPv6".as_ptr() }
}

static FEATURES: NullTerminatedNames<21> = NullTerminatedNames([
    c"alt-svc".as_ptr(),
    c"AsynchDNS".as_ptr(),
    c"brotli".as_ptr(),
    c"ECH".as_ptr(),
    optional(haul::HAS_NEGOTIATE, c"GSS-API"),
    c"HSTS".as_ptr(),
    c"HTTP2".as_ptr(),
    optional(haul::HAS_HTTP3, c"HTTP3"),
    c"HTTPS-proxy".as_ptr(),
    c"IDN".as_ptr(),
    c"IPv6".as_ptr(),
    optional(haul::HAS_NEGOTIATE, c"Kerberos"),
    c"Largefile".as_ptr(),
    c"libz".as_ptr(),
    c"PSL".as_ptr(),
    optional(haul::HAS_NEGOTIATE, c"SPNEGO"),
    c"SSL".as_ptr(),
    c"threadsafe".as_ptr(),
    c"UnixSockets".as_ptr(),
    c"zstd".as_ptr(),
    std::ptr::null(),
]);

unsafe extern "C" {
    /// The name of the TLS library for `curl_version_info`: a string that begins with `OpenSSL` in
    /// libcurl.so.4, and with `GnuTLS` in libcurl-gnutls.so.4. Defined in C, so that
    /// `scripts/libcurl.sh` can link another name into each of these libraries.
    static haul_curl_tls_name: c_char;
}

const NONE: *const c_char = std::ptr::null();

static INFO: curl_version_info_data = curl_version_info_data {
    age: AGE,
    version: VERSION.as_ptr(),
    version_num: VERSION_NUM,
    host: c"haul".as_ptr(),
    features: IPV6
        | SSL
        | LIBZ
        | ASYNCHDNS
        | LARGEFILE
        | IDN
        | HTTP2
        | UNIX_SOCKETS
        | PSL
        | HTTPS_PROXY
        | BROTLI
        | ALTSVC
        | ZSTD
        | HSTS
        | THREADSAFE
        | if haul::HAS_HTTP3 { HTTP3 } else { 0 }
        | if haul::HAS_NEGOTIATE { SPNEGO | GSSAPI | KERBEROS5 } else { 0 },
    ssl_version: &raw const haul_curl_tls_name,
    ssl_version_num: 0,
    libz_version: c"zlib-rs".as_ptr(),
    protocols: PROTOCOLS.0.as_ptr(),
    ares: NONE,
    ares_num: 0,
    libidn: c"idna".as_ptr(),
    iconv_ver_num: 0,
    libssh_version: NONE,
    brotli_ver_num: 0,
    brotli_version: c"brotli-decompressor".as_ptr(),
    nghttp2_ver_num: 0,
    nghttp2_version: NONE,
    quic_version: if haul::HAS_HTTP3 { c"quinn-proto".as_ptr() } else { NONE },
    cainfo: NONE,
    capath: NONE,
    zstd_ver_num: 0,
    zstd_version: c"zstd".as_ptr(),
    hyper_version: NONE,
    gsasl_version: NONE,
    feature_names: FEATURES.0.as_ptr(),
    rtmp_version: NONE,
};

/// The text that [`curl_version`] returns.
const TEXT: &str = concat!("libcurl/8.14.1 haul/", env!("CARGO_PKG_VERSION"), " rustls zlib-rs\0");

/// Returns a text with the version of the library and the names of its components.
#[unsafe(no_mangle)]
pub extern "C" fn curl_version() -> *const c_char {
    TEXT.as_ptr().cast()
}

/// Returns the version and the features of this library.
#[unsafe(no_mangle)]
pub extern "C" fn curl_version_info(_age: c_int) -> *const curl_version_info_data {
    &raw const INFO
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_text_ends_with_nul() {
        let text = CStr::from_bytes_with_nul(TEXT.as_bytes()).unwrap().to_str().unwrap();
        assert!(text.starts_with("libcurl/8.14.1 haul/"));
        assert_eq!(VERSION.to_str().unwrap(), "8.14.1");
    }
}
