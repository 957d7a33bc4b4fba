//! haul as an apt method, the program that apt runs to fetch files. haul is called as `http` or
//! `https` in apt's `Dir::Bin::Methods`, or as `haul apt-method`.
//!
//! ```text
//!  method ─▶ 100 Capabilities          apt ─▶ 601 Configuration, then 600 URI Acquire, ..
//!  method ─▶ 200 URI Start, 201 URI Done (with digests), 103 Redirect, or 400 URI Failure
//! ```
//!
//! apt starts one process for each host, which lives as long as apt does. The process keeps its
//! connections open, so that it needs no agent. Several files are fetched in parallel, each on its
//! own connection, but their messages to apt are sent in the order of apt's requests. apt itself
//! follows redirects, because its configuration and credentials differ for each host.
//!
//! ```
//! use haul_cli::apt::is_apt_method_call;
//!
//! assert!(is_apt_method_call(&["/usr/lib/apt/methods/https".into()]) && is_apt_method_call(&["/usr/lib/apt/methods/tor+https".into()]));
//! assert!(is_apt_method_call(&["haul".into(), "apt-method".into()]));
//! assert!(!is_apt_method_call(&["haul".into(), "https".into()]));
//! ```
//!
//! Not supported: HTTP pipelining, and mirror lists, for which apt has another method.

pub mod auth_conf;
pub mod config;
mod download_file;
pub mod drop_privileges;
mod fetch_file_for_apt;
pub mod message;
pub mod ordered_output;

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use config::AptConfig;
use fetch_file_for_apt::AptAcquirer;
use message::AptMessage;
use ordered_output::OrderedWriter;

use crate::file_and_environment_access::{BlockingStdIn, Stdout};

/// Returns true if the command line calls haul as an apt method. The first of `words` is the
/// program's name.
#[must_use]
pub fn is_apt_method_call(words: &[OsString]) -> bool {
    let name = words.first().and_then(|word| Path::new(word).file_name()?.to_str()).unwrap_or_default();
    // Such as `tor+https`.
    let scheme = name.rsplit('+').next().unwrap_or(name);
    ["http", "https"].contains(&scheme) || words.get(1).is_some_and(|word| word == "apt-method")
}

/// Serves apt on standard input and output until apt closes the input. Returns the exit code of the
/// process: 0, or 100 after an error.
#[must_use]
pub fn run() -> u8 {
    match serve(&mut BufReader::new(BlockingStdIn::new()), Stdout) {
        Ok(()) => 0,
        Err(_) => 100,
    }
}

/// Reads apt's requests from `from` and writes the answers to `to`, until `from` ends.
///
/// # Errors
/// The errors of the streams, and malformed messages. In both cases apt has ended, or the other
/// program is not apt.
pub fn serve(from: &mut impl BufRead, to: impl Write + Send) -> io::Result<()> {
    let turns = OrderedWriter::new(to);
    let hello = AptMessage::new(100, "Capabilities").with_field("Version", "1.2").with_field("Send-Config", "true");
    turns.write_text(0, &hello.with_field("Pipeline", "true").with_field("Send-URI-Encoded", "true").to_text())?;
    let Some(config) = configuration(from)? else { return Ok(()) };
    let acquirer = AptAcquirer::new(config).or_else(|why| {
        turns.write_text(0, &AptMessage::new(401, "General Failure").with_field("Message", &why).to_text())?;
        Err(io::Error::other(why))
    })?;
    turns.end_request(0)?;
    let (queue, waiting) = mpsc::channel::<(u64, AptMessage)>();
    // One waits for the queue, and the others for that one.
    let waiting = Mutex::new(waiting);
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
    let unfinished = AtomicUsize::new(0);
    let carry_out = |number: u64, asked: &AptMessage| -> io::Result<()> {
        acquirer.acquire(asked, &mut |message| turns.write_text(number, &message.to_text()))?;
        turns.end_request(number)?;
        unfinished.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    };
    let work = || {
        while let Some((number, asked)) = next() {
            carry_out(number, &asked)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        // It ends with this function, and so do they.
        let queue = queue;
        let mut workers = Vec::new();
        for number in 1.. {
            let Some(asked) = next_acquire(from)? else { break };
            let at_once = acquirer.max_parallel(&asked).min(unfinished.fetch_add(1, Ordering::Relaxed) + 1);
            if workers.len() < at_once {
                // If the system has no more threads, the existing ones take the work, or this one
                // does.
                match thread::Builder::new().spawn_scoped(scope, work) {
                    Ok(worker) => workers.push(worker),
                    Err(_) if workers.is_empty() => {
                        carry_out(number, &asked)?;
                        continue;
                    }
                    Err(_) => {}
                }
            }
            queue.send((number, asked)).map_err(io::Error::other)?;
        }
        drop(queue);
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// Reads messages until the `601 Configuration` that apt sends first. Returns `None` at the end of
/// the input.
fn configuration(from: &mut impl BufRead) -> io::Result<Option<AptConfig>> {
    while let Some(message) = AptMessage::read(from)? {
        match message.number {
            601 => return Ok(Some(AptConfig::from_message(&message))),
            600 => return Err(io::ErrorKind::InvalidData.into()),
            _ => {}
        }
    }
    Ok(None)
}

/// Returns the next `600 URI Acquire` message, and skips other messages. Returns `None` at the end
/// of the input.
fn next_acquire(from: &mut impl BufRead) -> io::Result<Option<AptMessage>> {
    while let Some(message) = AptMessage::read(from)? {
        if message.number == 600 {
            return Ok(Some(message));
        }
    }
    Ok(None)
}
