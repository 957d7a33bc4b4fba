//! The TLS session that carried a reply: its parameters, and the server's certificates.
//!
//! ```
//! use haul_c::response::haul_response_new;
//! use haul_c::response_tls_details::haul_response_certificate;
//! let response = haul_response_new().unwrap();
//! // SAFETY: the response lives.
//! assert!(unsafe { haul_response_certificate(&*response, 0) }.data.is_null());
//! ```

use crate::c_arguments::{self, haul_slice};
use crate::client::haul_client;
use crate::client_settings::change_options;
use crate::error::{CallFailure, catch_panic, haul_status};
use crate::response::{haul_response, with_response};

/// The TLS session that carried a reply. All slices are valid until the haul_response is used for
/// another call or freed.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct haul_tls {
    /// The protocol version, such as "TLSv1.3".
    pub version: haul_slice,
    /// The cipher suite by its name in the IANA registry, such as "TLS_AES_128_GCM_SHA256".
    pub cipher: haul_slice,
    /// The protocol that ALPN selected; `data` is NULL if it selected none.
    pub alpn: haul_slice,
    /// True if the handshake resumed an earlier session.
    pub resumed: bool,
    /// The number of certificates that the server sent.
    pub certificate_count: usize,
}

/// Sets whether haul keeps the parameters of each reply's TLS session, for haul_response_tls and
/// haul_response_certificate. Default off.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_client_set_tls_facts(client: *mut haul_client, on: bool) -> haul_status {
    // SAFETY: the header's contract.
    unsafe {
        change_options(client, |options| {
            // Redirects need the history, too, so this never switches it off.
            options.keep_history |= on;
            options.tls.keep_certificates = on;
            Ok(())
        })
    }
}

/// Copies the parameters of the TLS session that carried the last reply into `tls`. Returns
/// HAUL_STATUS_SETUP if there was no session, or if haul_client_set_tls_facts was not set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_response_tls(response: *const haul_response, tls: *mut haul_tls) -> haul_status {
    catch_panic(|| {
        // SAFETY: the header's contract.
        let (response, place) = unsafe { (c_arguments::required_object(response, "response")?, tls.as_mut()) };
        let facts = response.facts().ok_or_else(|| CallFailure::setup("there is no TLS session"))?;
        let session = facts.tls.as_ref().ok_or_else(|| CallFailure::setup("there is no TLS session"))?;
        *place.ok_or_else(|| CallFailure::setup("tls is NULL"))? = haul_tls {
            version: haul_slice::from_bytes(session.version.as_bytes()),
            cipher: haul_slice::from_bytes(session.cipher.as_bytes()),
            alpn: session.alpn.as_ref().map_or(haul_slice::NONE, |alpn| haul_slice::from_bytes(alpn.as_bytes())),
            resumed: session.resumed,
            certificate_count: facts.certificates.as_ref().map_or(0, |chain| chain.len()),
        };
        Ok(())
    })
}

/// Returns a certificate of the server's chain in DER; index 0 is the server's own. `data` is NULL
/// if there is no certificate with this index.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haul_response_certificate(response: *const haul_response, index: usize) -> haul_slice {
    let certificate = |response: &haul_response| {
        let chain = response.facts()?.certificates.as_ref()?;
        chain.get(index).map(|certificate| haul_slice::from_bytes(certificate))
    };
    // SAFETY: the header's contract.
    unsafe { with_response(response, haul_slice::NONE, |response| certificate(response).unwrap_or(haul_slice::NONE)) }
}
