//! The server's keys for Encrypted Client Hello (RFC 9849). They come from the options, from the
//! HTTPS record (RFC 9848), or from a server that rejected other keys.
//!
//! HTTPS records are looked up only if this host resolves the origin's name. If a proxy resolves
//! it, a lookup of the HTTPS record would reveal the name to this host's name server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haul_policy::dns::https_record::HttpsRecord;

use super::{ConnectContext, ConnectPhase, Connecting};
use crate::net::proxy::ProxyRoute;
use crate::net::tls::{EchOptions, EchPolicy, TlsOptions, keys_of_rejection};
use crate::trace::TraceEvent;
use crate::{Error, ErrorKind, Result};

impl Connecting {
    /// Returns the TLS options for the connection to the origin, including keys for Encrypted
    /// Client Hello once they are known; `None` without TLS.
    pub(super) fn tls(&self) -> Option<&TlsOptions> {
        self.ech_tls.as_ref().or(self.key.tls.as_ref())
    }

    /// Finds the server's keys for Encrypted Client Hello (ECH), if the options enable ECH. Returns
    /// false while the lookup of the keys is in progress.
    ///
    /// # Errors
    /// The time limit has passed.
    pub(super) fn find_ech_keys(&mut self, context: &mut ConnectContext<'_>) -> Result<bool> {
        let Some(tls) = self.key.tls.as_ref().filter(|tls| tls.ech.policy != EchPolicy::Off) else { return Ok(true) };
        if self.ech_tls.is_some() {
            return Ok(true);
        }
        let mut config_list = tls.ech.config_list.clone();
        if tls.ech.needs_keys() && self.resolves_origin() {
            let Some(records) = (context.https_records)(&self.key.host, self.key.port)? else { return Ok(false) };
            config_list = keys_of(&records, self.key.port);
        }
        let ech = tls.ech.with_keys(&self.key.host, config_list);
        for line in lines(&tls.ech, &ech) {
            self.tell_ech(&line);
        }
        self.ech_tls = Some(TlsOptions { ech, ..tls.clone() });
        Ok(true)
    }

    /// Decides whether to connect again after `error`, because the server rejected the keys for
    /// Encrypted Client Hello and sent current ones. If so, restarts the connection with these keys
    /// and returns true. The sent keys are used only once, and only if the server's certificate is
    /// valid for the public name in the rejected keys.
    pub(super) fn takes_sent_keys(&mut self, error: &Error) -> bool {
        if error.kind() != ErrorKind::EchRequired {
            return false;
        }
        let Some(keys) = keys_of_rejection(error) else {
            self.tell_ech("ECH: no retry_configs");
            return false;
        };
        self.tell_ech(&format!("ECH: retry_configs {}", STANDARD.encode(keys)));
        let Some(tls) = self.tls().filter(|tls| tls.ech.retries && tls.verify && !self.has_sent_keys) else {
            return false;
        };
        let ech = tls.ech.with_keys(&self.key.host, Some(keys.to_vec()));
        self.ech_tls = Some(TlsOptions { ech, ..tls.clone() });
        self.has_sent_keys = true;
        self.phase = ConnectPhase::Resolving;
        true
    }

    /// Returns true if the name of the origin is resolved on this host, and the connection goes
    /// directly to the origin.
    fn resolves_origin(&self) -> bool {
        let key = &self.key;
        let (host, port) = &key.dial;
        key.via == ProxyRoute::Direct && key.connect.unix_socket.is_none() && (host, *port) == (&key.host, key.port)
    }

    fn tell_ech(&self, text: &str) {
        if let Some(trace) = &self.trace {
            trace.event(&TraceEvent::Info(text.to_owned().into()));
        }
    }
}

/// Returns the keys for Encrypted Client Hello in the first record that has such keys and applies
/// to `port`. `records` are in order of preference. Returns `None` if there is no such record.
fn keys_of(records: &[HttpsRecord], port: u16) -> Option<Vec<u8>> {
    let mut at_port = records.iter().filter(|record| record.port.is_none_or(|other| other == port));
    at_port.find_map(|record| record.ech.clone())
}

/// Returns the trace lines that describe, before a handshake, the use of Encrypted Client Hello and
/// the source of the server's keys. `wanted` are the user's options. `found` are the same options
/// with the keys that are used, which may come from the HTTPS record.
fn lines(wanted: &EchOptions, found: &EchOptions) -> Vec<String> {
    let from_options = wanted.config_list.is_some();
    match (wanted.policy, &found.config_list) {
        (EchPolicy::Grease, _) => vec!["ECH: will GREASE ClientHello".to_owned()],
        (_, Some(_)) if from_options => vec!["ECH: ECHConfig from command line".to_owned()],
        (_, Some(list)) => {
            let imported = format!("ECH: imported ECHConfigList of length {}", list.len());
            vec!["ECH: ECHConfig from HTTPS RR".to_owned(), imported]
        }
        (_, None) => vec!["ECH: requested but no ECHConfig available".to_owned()],
    }
}
