//! Overrides: answers for a host and a port that the user fixed (`--resolve`). An override may
//! expire.

use std::{collections::HashMap, net::IpAddr, sync::Arc, time::Instant};

use crate::{Error, ErrorKind, Result};

/// The table of overrides: the addresses that the user chose for hosts and ports (`--resolve`). An
/// override for a host takes precedence over an override for `*`.
#[derive(Default, Clone)]
pub(super) struct DnsOverrides {
    hosts: HashMap<(String, u16), DnsOverride>,
}

/// The addresses that the user chose for one host and port (`--resolve`), instead of a lookup.
#[derive(Clone)]
struct DnsOverride {
    addresses: Arc<[IpAddr]>,
    /// The time at which an override with `+` expires; `None` if the override never expires.
    until: Option<Instant>,
}

impl DnsOverrides {
    pub(super) fn get(&self, now: Instant, name: &str, port: u16) -> Option<Arc<[IpAddr]>> {
        if self.hosts.is_empty() {
            return None;
        }
        [name, "*"].into_iter().find_map(|host| {
            let entry = self.hosts.get(&(host.to_owned(), port))?;
            entry.until.is_none_or(|until| until > now).then(|| Arc::clone(&entry.addresses))
        })
    }

    /// Adds or removes an override. `spec` is the argument of one `--resolve`. An override with `+`
    /// expires at the time `expiry`.
    pub(super) fn add(&mut self, spec: &str, expiry: Instant) -> Result<()> {
        let wrong = |why: &str| Error::new(ErrorKind::Setup, format!("cannot use --resolve '{spec}': {why}"));
        if let Some(rest) = spec.strip_prefix('-') {
            let (host, port) = host_and_port(rest).ok_or_else(|| wrong("expected -HOST:PORT"))?;
            self.hosts.remove(&(normalize_host(host), port));
            return Ok(());
        }
        let (until, rest) = match spec.strip_prefix('+') {
            Some(rest) => (Some(expiry), rest),
            None => (None, spec),
        };
        let (host, rest) = split_host(rest).ok_or_else(|| wrong("expected HOST:PORT:ADDR"))?;
        let (port, list) = rest.split_once(':').ok_or_else(|| wrong("expected HOST:PORT:ADDR"))?;
        let port = port.parse().map_err(|_| wrong("the port is not a number up to 65535"))?;
        // As in curl, a comma may follow the last address.
        let list = list.strip_suffix(',').unwrap_or(list);
        let addresses = list
            .split(',')
            .map(|text| parse_ip_literal(text.trim()).ok_or_else(|| wrong(&format!("'{text}' is not an IP address"))))
            .collect::<Result<Arc<[IpAddr]>>>()?;
        self.hosts.insert((normalize_host(host), port), DnsOverride { addresses, until });
        Ok(())
    }
}

/// Returns a host as the key of its override. An IP address has one form only.
fn normalize_host(host: &str) -> String {
    parse_ip_literal(host).map_or_else(|| host.to_ascii_lowercase(), |address| address.to_string())
}

/// Splits `HOST:rest` into host and rest. HOST may be an IPv6 address in brackets. Returns `None`
/// if there is no host or no colon.
fn split_host(text: &str) -> Option<(&str, &str)> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(inner) => {
            let (host, rest) = inner.split_once(']')?;
            (host, rest.strip_prefix(':')?)
        }
        None => text.split_once(':')?,
    };
    (!host.is_empty()).then_some((host, rest))
}

fn host_and_port(text: &str) -> Option<(&str, u16)> {
    let (host, port) = split_host(text)?;
    Some((host, port.parse().ok()?))
}

fn parse_ip_literal(text: &str) -> Option<IpAddr> {
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    inner.unwrap_or(text).parse().ok()
}
