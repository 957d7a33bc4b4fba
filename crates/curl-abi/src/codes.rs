//! The result codes of all functions, and their error texts.

use std::ffi::{CStr, c_char, c_int};

use haul::ErrorKind;

/// The result code of a function of libcurl's easy interface; 0 is success.
pub type CURLcode = c_int;
/// The result code of a function of libcurl's multi interface; 0 is success.
pub type CURLMcode = c_int;
/// The result code of a function of libcurl's share interface; 0 is success.
pub type CURLSHcode = c_int;
/// The result code of a function of libcurl's URL interface; 0 is success.
pub type CURLUcode = c_int;
/// The result code of a function of libcurl's header interface; 0 is success.
pub type CURLHcode = c_int;
/// The result code of `curl_formadd`; 0 is success.
pub type CURLFORMcode = c_int;

macro_rules! codes {
    ($type:ty, $texts:ident, $unknown:expr; $($name:ident = $value:expr, $text:expr;)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`: ", $text, ".")]
            pub const $name: $type = $value;
        )*
        /// Returns libcurl's error text for a code of this type. An unknown code has the text
        /// `$unknown`.
        fn $texts(code: c_int) -> &'static CStr {
            match code {
                $($value => c_text(concat!($text, "\0")),)*
                _ => $unknown,
            }
        }
    };
}

/// Converts a text that ends with NUL, and has no other NUL, to a C string.
fn c_text(text: &'static str) -> &'static CStr {
    CStr::from_bytes_with_nul(text.as_bytes()).unwrap_or_default()
}

codes! { CURLcode, easy_text, c"Unknown error";
    CURLE_OK = 0, "No error";
    CURLE_UNSUPPORTED_PROTOCOL = 1, "Unsupported protocol";
    CURLE_FAILED_INIT = 2, "Failed initialization";
    CURLE_URL_MALFORMAT = 3, "The URL is malformed or missing";
    CURLE_NOT_BUILT_IN = 4, "The feature is not part of this library";
    CURLE_COULDNT_RESOLVE_PROXY = 5, "Could not resolve proxy name";
    CURLE_COULDNT_RESOLVE_HOST = 6, "Could not resolve hostname";
    CURLE_COULDNT_CONNECT = 7, "Could not connect to server";
    CURLE_WEIRD_SERVER_REPLY = 8, "Weird server reply";
    CURLE_REMOTE_ACCESS_DENIED = 9, "Access to the remote resource was denied";
    CURLE_HTTP2 = 16, "Error in the HTTP/2 framing layer";
    CURLE_PARTIAL_FILE = 18, "The body ended before its announced length";
    CURLE_HTTP_RETURNED_ERROR = 22, "HTTP response code said error";
    CURLE_WRITE_ERROR = 23, "Failed writing received data to the program or to disk";
    CURLE_UPLOAD_FAILED = 25, "The upload could not start";
    CURLE_READ_ERROR = 26, "Failed to open/read local data from file/application";
    CURLE_OUT_OF_MEMORY = 27, "Out of memory";
    CURLE_OPERATION_TIMEDOUT = 28, "Timeout was reached";
    CURLE_RANGE_ERROR = 33, "The server did not deliver the requested range";
    CURLE_HTTP_POST_ERROR = 34, "Internal problem setting up the POST";
    CURLE_SSL_CONNECT_ERROR = 35, "SSL connect error";
    CURLE_BAD_DOWNLOAD_RESUME = 36, "Could not resume download";
    CURLE_FILE_COULDNT_READ_FILE = 37, "Could not read a file:// file";
    CURLE_FUNCTION_NOT_FOUND = 41, "A required function was not found";
    CURLE_ABORTED_BY_CALLBACK = 42, "Operation was aborted by an application callback";
    CURLE_BAD_FUNCTION_ARGUMENT = 43, "A function was given a bad argument";
    CURLE_INTERFACE_FAILED = 45, "The local interface or address cannot be used";
    CURLE_TOO_MANY_REDIRECTS = 47, "Too many redirects";
    CURLE_UNKNOWN_OPTION = 48, "The option is not known to this library";
    CURLE_SETOPT_OPTION_SYNTAX = 49, "The value of an option is malformed";
    CURLE_GOT_NOTHING = 52, "The server closed the connection without a response";
    CURLE_SSL_ENGINE_NOTFOUND = 53, "SSL crypto engine not found";
    CURLE_SSL_ENGINE_SETFAILED = 54, "Cannot set SSL crypto engine as default";
    CURLE_SEND_ERROR = 55, "Failed sending data to the peer";
    CURLE_RECV_ERROR = 56, "Failure when receiving data from the peer";
    CURLE_SSL_CERTPROBLEM = 58, "Problem with the local SSL certificate";
    CURLE_SSL_CIPHER = 59, "Could not use the specified SSL cipher";
    CURLE_PEER_FAILED_VERIFICATION = 60, "The peer's certificate was not accepted";
    CURLE_BAD_CONTENT_ENCODING = 61, "The content coding is broken or unknown";
    CURLE_FILESIZE_EXCEEDED = 63, "Maximum file size exceeded";
    CURLE_SEND_FAIL_REWIND = 65, "The content must be sent again, but cannot be rewound";
    CURLE_LOGIN_DENIED = 67, "Login denied";
    CURLE_SSL_CACERT_BADFILE = 77, "The file of CA certificates cannot be used";
    CURLE_AGAIN = 81, "The socket is not ready for send or receive";
    CURLE_SSL_CRL_BADFILE = 82, "The file of revocation lists cannot be used";
    CURLE_SSL_ISSUER_ERROR = 83, "Issuer check against peer certificate failed";
    CURLE_CHUNK_FAILED = 88, "A chunk callback failed";
    CURLE_NO_CONNECTION_AVAILABLE = 89, "The maximum number of connections is reached";
    CURLE_SSL_PINNEDPUBKEYNOTMATCH = 90, "SSL public key does not match pinned public key";
    CURLE_SSL_INVALIDCERTSTATUS = 91, "SSL server certificate status verification failed";
    CURLE_HTTP2_STREAM = 92, "An HTTP/2 stream was reset";
    CURLE_RECURSIVE_API_CALL = 93, "The function was called from within a callback";
    CURLE_AUTH_ERROR = 94, "An authentication function returned an error";
    CURLE_HTTP3 = 95, "HTTP/3 error";
    CURLE_QUIC_CONNECT_ERROR = 96, "QUIC connection error";
    CURLE_PROXY = 97, "Proxy handshake error";
    CURLE_SSL_CLIENTCERT = 98, "SSL Client Certificate required";
    CURLE_UNRECOVERABLE_POLL = 99, "The wait for sockets failed";
    CURLE_TOO_LARGE = 100, "A value or data field grew larger than allowed";
    CURLE_ECH_REQUIRED = 101, "The server has not the key of the Encrypted Client Hello";
}

codes! { CURLMcode, multi_text, c"Unknown error";
    CURLM_CALL_MULTI_PERFORM = -1, "Call curl_multi_perform again";
    CURLM_OK = 0, "No error";
    CURLM_BAD_HANDLE = 1, "Invalid multi handle";
    CURLM_BAD_EASY_HANDLE = 2, "Invalid easy handle";
    CURLM_OUT_OF_MEMORY = 3, "Out of memory";
    CURLM_INTERNAL_ERROR = 4, "Internal error";
    CURLM_BAD_SOCKET = 5, "Invalid socket argument";
    CURLM_UNKNOWN_OPTION = 6, "Unknown option";
    CURLM_ADDED_ALREADY = 7, "The easy handle is already added to a multi handle";
    CURLM_RECURSIVE_API_CALL = 8, "The function was called from within a callback";
    CURLM_WAKEUP_FAILURE = 9, "Wakeup is unavailable or failed";
    CURLM_BAD_FUNCTION_ARGUMENT = 10, "A function was given a bad argument";
    CURLM_ABORTED_BY_CALLBACK = 11, "Operation was aborted by an application callback";
    CURLM_UNRECOVERABLE_POLL = 12, "The wait for sockets failed";
}

codes! { CURLSHcode, share_text, c"CURLSHcode unknown";
    CURLSHE_OK = 0, "No error";
    CURLSHE_BAD_OPTION = 1, "Unknown share option";
    CURLSHE_IN_USE = 2, "Share currently in use";
    CURLSHE_INVALID = 3, "Invalid share handle";
    CURLSHE_NOMEM = 4, "Out of memory";
    CURLSHE_NOT_BUILT_IN = 5, "Feature not enabled in this library";
}

codes! { CURLUcode, url_text, c"CURLUcode unknown";
    CURLUE_OK = 0, "No error";
    CURLUE_BAD_HANDLE = 1, "The URL handle is not live";
    CURLUE_BAD_PARTPOINTER = 2, "The pointer to the part is NULL";
    CURLUE_MALFORMED_INPUT = 3, "Malformed input to a URL function";
    CURLUE_BAD_PORT_NUMBER = 4, "The port is no number up to 65535";
    CURLUE_UNSUPPORTED_SCHEME = 5, "Unsupported URL scheme";
    CURLUE_URLDECODE = 6, "The input is not percent-encoded correctly";
    CURLUE_OUT_OF_MEMORY = 7, "A memory function failed";
    CURLUE_USER_NOT_ALLOWED = 8, "The URL has credentials, which are not allowed";
    CURLUE_UNKNOWN_PART = 9, "Unknown part of a URL";
    CURLUE_NO_SCHEME = 10, "No scheme part in the URL";
    CURLUE_NO_USER = 11, "No user part in the URL";
    CURLUE_NO_PASSWORD = 12, "No password part in the URL";
    CURLUE_NO_OPTIONS = 13, "No options part in the URL";
    CURLUE_NO_HOST = 14, "No host part in the URL";
    CURLUE_NO_PORT = 15, "No port part in the URL";
    CURLUE_NO_QUERY = 16, "No query part in the URL";
    CURLUE_NO_FRAGMENT = 17, "No fragment part in the URL";
    CURLUE_NO_ZONEID = 18, "No zoneid part in the URL";
    CURLUE_BAD_FILE_URL = 19, "Bad file:// URL";
    CURLUE_BAD_FRAGMENT = 20, "Bad fragment";
    CURLUE_BAD_HOSTNAME = 21, "Bad hostname";
    CURLUE_BAD_IPV6 = 22, "Bad IPv6 address";
    CURLUE_BAD_LOGIN = 23, "Bad login part";
    CURLUE_BAD_PASSWORD = 24, "Bad password";
    CURLUE_BAD_PATH = 25, "Bad path";
    CURLUE_BAD_QUERY = 26, "Bad query";
    CURLUE_BAD_SCHEME = 27, "Bad scheme";
    CURLUE_BAD_SLASHES = 28, "Wrong number of slashes after the scheme";
    CURLUE_BAD_USER = 29, "Bad user";
    CURLUE_LACKS_IDN = 30, "This library lacks IDN support";
    CURLUE_TOO_LARGE = 31, "A value or data field is larger than allowed";
}

/// `CURLHE_OK` and the other results of the header interface. They have no error texts.
pub mod header_codes {
    use super::CURLHcode;

    /// The call has succeeded.
    pub const CURLHE_OK: CURLHcode = 0;
    /// The field exists, but not with this index.
    pub const CURLHE_BADINDEX: CURLHcode = 1;
    /// The response has no field of this name.
    pub const CURLHE_MISSING: CURLHcode = 2;
    /// The transfer has no header fields yet.
    pub const CURLHE_NOHEADERS: CURLHcode = 3;
    /// The transfer had no request with this index.
    pub const CURLHE_NOREQUEST: CURLHcode = 4;
    /// An argument of the call is not valid.
    pub const CURLHE_BAD_ARGUMENT: CURLHcode = 6;
}

/// Returns the error text of a `CURLcode`.
#[unsafe(no_mangle)]
pub extern "C" fn curl_easy_strerror(code: CURLcode) -> *const c_char {
    easy_text(code).as_ptr()
}

/// Returns the error text of a `CURLMcode`.
#[unsafe(no_mangle)]
pub extern "C" fn curl_multi_strerror(code: CURLMcode) -> *const c_char {
    multi_text(code).as_ptr()
}

/// Returns the error text of a `CURLSHcode`.
#[unsafe(no_mangle)]
pub extern "C" fn curl_share_strerror(code: CURLSHcode) -> *const c_char {
    share_text(code).as_ptr()
}

/// Returns the error text of a `CURLUcode`.
#[unsafe(no_mangle)]
pub extern "C" fn curl_url_strerror(code: CURLUcode) -> *const c_char {
    url_text(code).as_ptr()
}

/// Returns the error text of a `CURLcode` as a Rust string.
pub(crate) fn easy_message(code: CURLcode) -> String {
    easy_text(code).to_string_lossy().into_owned()
}

/// Returns the `CURLcode` for an error kind of the engine. Most kinds have the same number as in
/// libcurl.
pub(crate) fn code_of(kind: ErrorKind) -> CURLcode {
    match kind {
        ErrorKind::Interrupted => CURLE_ABORTED_BY_CALLBACK,
        ErrorKind::Setup => CURLE_BAD_FUNCTION_ARGUMENT,
        ErrorKind::Panicked => CURLE_FAILED_INIT,
        other => other.exit_code().into(),
    }
}
