//! A method of apt: `http` and `https` for its `Dir::Bin::Methods`, or `haul apt-method`.
//!
//! ```text
//!  method ─▶ 100 Capabilities          apt ─▶ 601 Configuration, then 600 URI Acquire, ..
//!  method ─▶ 200 URI Start, 201 URI Done (with digests), 103 Redirect, or 400 URI Failure
//! ```
//!
//! apt starts one for each host, and it lives as long as apt does: its own client keeps connections warm, so it needs no agent.
//! Files are fetched one after the other in the order asked for. Where redirects lead is apt's to ask: the other host has a
//! configuration and a login of its own.
//!
//! ```
//! use haul_cli::apt::is_called;
//!
//! assert!(is_called(&["/usr/lib/apt/methods/https".into()]) && is_called(&["/usr/lib/apt/methods/tor+https".into()]));
//! assert!(is_called(&["haul".into(), "apt-method".into()]));
//! assert!(!is_called(&["haul".into(), "https".into()]));
//! ```
//!
//! Left out: pipelining, and mirror lists, which are a method of their own.

mod acquire;
pub mod config;
pub mod credentials;
mod file;
pub mod message;
pub mod sandbox;

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use acquire::Acquirer;
use config::Config;
use message::Message;

/// Whether the program was called as a method.
#[must_use]
pub fn is_called(words: &[OsString]) -> bool {
    let name = words.first().and_then(|word| Path::new(word).file_name()?.to_str()).unwrap_or_default();
    // Such as `tor+https`.
    let scheme = name.rsplit('+').next().unwrap_or(name);
    ["http", "https"].contains(&scheme) || words.get(1).is_some_and(|word| word == "apt-method")
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
    say(&hello.with("Pipeline", "true").with("Send-URI-Encoded", "true"))?;
    let mut acquirer = None;
    while let Some(message) = Message::read(from)? {
        match message.number {
            601 if acquirer.is_none() => {
                let made = Acquirer::new(Config::of(&message));
                acquirer = match made {
                    Ok(made) => Some(made),
                    Err(why) => {
                        say(&Message::new(401, "General Failure").with("Message", &why))?;
                        return Err(io::Error::other(why));
                    }
                };
            }
            600 => match &acquirer {
                Some(acquirer) => acquirer.acquire(&message, &mut say)?,
                None => return Err(io::ErrorKind::InvalidData.into()),
            },
            _ => {}
        }
    }
    Ok(())
}
