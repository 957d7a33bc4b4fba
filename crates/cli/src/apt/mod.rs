//! A method of apt: `http` and `https` for its `Dir::Bin::Methods`, or `haul apt-method`.
//!
//! ```text
//!  method ─▶ 100 Capabilities          apt ─▶ 601 Configuration, then 600 URI Acquire, ..
//!  method ─▶ 200 URI Start, 201 URI Done (with digests), or 400 URI Failure
//! ```
//!
//! apt starts it once, and it lives as long as apt does: its own client keeps connections warm, so it needs no agent. Files
//! are fetched one after the other in the order asked for; digests are made of what lies on the disk, for apt checks by them.
//!
//! ```
//! use haul_cli::apt::is_called;
//!
//! assert!(is_called(&["/usr/lib/apt/methods/https".into()]) && is_called(&["haul".into(), "apt-method".into()]));
//! assert!(!is_called(&["haul".into(), "https".into()]));
//! ```
//!
//! Left out: `Acquire::http::Dl-Limit`, pipelining, and mirror lists, which are a method of their own.

pub mod message;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use haul::net::proxy::ProxyOptions;
use haul::request::{RequestOptions, Split};
use haul::sink::checksum::{Algorithm, Checksum};
use haul::sink::file::FileOptions;
use haul::transfer::Outcome;
use haul::{Client, Error, ErrorKind, Head};
use haul_policy::proxy::{Environment, Proxy};
use haul_policy::redirect::RedirectRules;
use haul_policy::retry::RetryRules;

use crate::run::carrier::Carrier;
use crate::run::stamps;
use message::Message;

/// Whether the program was called as a method.
#[must_use]
pub fn is_called(words: &[OsString]) -> bool {
    let name = words.first().and_then(|word| Path::new(word).file_name());
    name.is_some_and(|name| name == "http" || name == "https") || words.get(1).is_some_and(|word| word == "apt-method")
}

/// Serves apt on standard input and output to the end of the first. The answer is the exit code.
#[must_use]
pub fn run() -> u8 {
    match serve(&mut BufReader::new(io::stdin()), &mut io::stdout()) {
        Ok(()) => 0,
        Err(_) => 100,
    }
}

/// Serves one side of apt's protocol.
///
/// # Errors
/// Those of the streams, and what is no message: apt is gone or is not apt.
pub fn serve(from: &mut impl BufRead, to: &mut impl Write) -> io::Result<()> {
    let mut say = |message: &Message| to.write_all(message.to_text().as_bytes()).and_then(|()| to.flush());
    let hello = Message::new(100, "Capabilities").with("Version", "1.2").with("Send-Config", "true");
    say(&hello.with("Pipeline", "true").with("Single-Instance", "true"))?;
    let client = Client::new();
    let mut config = Config::default();
    while let Some(message) = Message::read(from)? {
        match message.number {
            601 => config = Config::of(&message),
            600 => acquire(&client, &config, &message, &mut say)?,
            _ => {}
        }
    }
    Ok(())
}

/// What of apt's configuration counts here.
#[derive(Default)]
struct Config {
    items: Vec<(String, String)>,
}

impl Config {
    fn of(message: &Message) -> Self {
        let pair = |item: &str| {
            let (name, value) = item.split_once('=')?;
            Some((name.to_ascii_lowercase(), unquoted(value)))
        };
        Self { items: message.all("Config-Item").filter_map(pair).collect() }
    }

    /// The value of an item of a method, host by host before the method's own.
    fn get(&self, scheme: &str, name: &str, host: &str) -> Option<&str> {
        let find =
            |wanted: String| self.items.iter().rev().find(|(name, _)| *name == wanted).map(|(_, value)| value.as_str());
        find(format!("acquire::{scheme}::{name}::{host}"))
            .or_else(|| find(format!("acquire::{scheme}::{host}::{name}")))
            .or_else(|| find(format!("acquire::{scheme}::{name}")))
            .filter(|value| !value.is_empty())
    }

    fn options(&self, url: &haul::Target) -> Result<RequestOptions, String> {
        let (scheme, host) = (url.scheme().as_str(), url.host_text());
        let mut options = RequestOptions {
            fail: true,
            redirects: RedirectRules { max: 10, ..RedirectRules::default() },
            retry: RetryRules { max: 0, ..RetryRules::default() },
            split: Split { connections: 1, ..Split::default() },
            ..RequestOptions::default()
        };
        options.tls.alpn = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        if let Some(agent) = self.get(scheme, "user-agent", host) {
            options.user_agent = Some(agent.to_owned());
        }
        let seconds = self.get(scheme, "timeout", host).and_then(|text| text.parse().ok()).unwrap_or(30);
        let patience = std::time::Duration::from_secs(seconds);
        options.connect.timeout = patience;
        options.speed_limit = Some(haul::request::SpeedLimit { bytes_per_second: 1, time: patience });
        options.tls.ca_file = self.get(scheme, "cainfo", host).map(Into::into);
        let is_off = |name| self.get(scheme, name, host).is_some_and(|value| matches!(value, "false" | "no" | "0"));
        options.tls.verify = !is_off("verify-peer");
        if is_off("allowredirect") {
            options.redirects.follow = false;
        }
        let mut proxy = ProxyOptions::default();
        match self.get(scheme, "proxy", host) {
            Some("DIRECT" | "false") => {}
            Some(text) => proxy.proxy = Some(Proxy::parse(text).map_err(|error| error.to_string())?),
            None => proxy.environment = Environment::read(|name| std::env::var(name).ok()),
        }
        options.proxy = Some(proxy);
        Ok(options)
    }
}

/// apt writes what could end a line or an item percent-encoded.
fn unquoted(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let code = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        plain.push(code.unwrap_or(bytes[at]));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&plain).into_owned()
}

fn acquire(
    client: &Client,
    config: &Config,
    asked: &Message,
    say: &mut impl FnMut(&Message) -> io::Result<()>,
) -> io::Result<()> {
    let (Some(uri), Some(file)) = (asked.get("URI"), asked.get("Filename")) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let failed = |message: &str| Message::new(400, "URI Failure").with("URI", uri).with("Message", message);
    let options =
        haul::Target::parse(uri).map_err(|error| error.to_string()).and_then(|target| config.options(&target));
    let mut options = match options {
        Ok(options) => options,
        Err(message) => return say(&failed(&message)),
    };
    options.max_size = asked.get("Maximum-Size").and_then(|size| size.parse().ok());
    if let Some(time) = asked.get("Last-Modified") {
        options.fields.push(("If-Modified-Since".to_owned(), time.as_bytes().to_vec()));
    }
    // Caches on the way must not give an index of yesterday.
    if asked.get("Index-File") == Some("true") {
        options.fields.push(("Cache-Control".to_owned(), b"max-age=0".to_vec()));
    }
    say(&Message::new(200, "URI Start").with("URI", uri))?;
    let path = Path::new(file);
    let outcome = Carrier::alone(client).fetch_to_file(uri, &options, path, &FileOptions::default());
    let modified = outcome.head.as_ref().and_then(|head| head.get("last-modified"));
    let modified = modified.and_then(|value| std::str::from_utf8(value).ok());
    let done = Message::new(201, "URI Done").with("URI", uri).with("Filename", file);
    let answer = match &outcome.result {
        Ok(()) if outcome.facts.status == 304 => {
            done.with("IMS-Hit", "true").with("Last-Modified", asked.get("Last-Modified").unwrap_or_default())
        }
        Ok(()) => match finished(path, outcome.head.as_ref()) {
            Ok((size, found)) => {
                let done = done.with("Size", size.to_string());
                let done = modified.map_or(done.clone(), |time| done.with("Last-Modified", time));
                found.iter().fold(done, |done, (name, value)| done.with(&format!("{name}-Hash"), value))
            }
            Err(error) => failed(&format!("{file}: {error}")),
        },
        Err(error) => failure(failed(&crate::usage::one_line(&error.cause())), &outcome, error),
    };
    say(&answer)
}

/// The size of a file and its digests, and its time set to the server's: apt asks by that the next time.
fn finished(path: &Path, head: Option<&Head>) -> io::Result<(u64, Vec<(&'static str, String)>)> {
    let file = File::open(path)?;
    head.map_or(Ok(()), |head| stamps::date(path, head))?;
    let size = fs::metadata(path)?.len();
    let mut found = vec![("Checksum-FileSize", size.to_string())];
    for (name, algorithm, bytes) in [("SHA256", Algorithm::Sha256, 32), ("SHA512", Algorithm::Sha512, 64)] {
        // What it ought to be is apt's to know.
        let Some(checksum) = Checksum::new(algorithm, vec![0; bytes]) else { continue };
        found.push((name, checksum.of(&file)?.iter().map(|byte| format!("{byte:02x}")).collect()));
    }
    Ok((size, found))
}

/// Says whether it may go better at another time, or by another mirror.
fn failure(answer: Message, outcome: &Outcome, error: &Error) -> Message {
    let reason = match error.kind() {
        ErrorKind::Status => format!("HttpError{}", outcome.facts.status),
        ErrorKind::Timeout => "Timeout".to_owned(),
        ErrorKind::Connect => "ConnectionRefused".to_owned(),
        ErrorKind::Resolve | ErrorKind::ProxyResolve => "ResolveFailure".to_owned(),
        ErrorKind::TooLarge => "MaximumSizeExceeded".to_owned(),
        _ => return answer,
    };
    let is_unreached = error.is_dns() || error.kind() == ErrorKind::Connect;
    let is_transient = error.is_timeout() || is_unreached || outcome.facts.status >= 500;
    let answer = answer.with("FailReason", reason);
    if is_transient { answer.with("Transient-Failure", "true") } else { answer }
}
