//! The least program over libcurl: what a transfer costs without the curl command around it.
//!
//! ```text
//! easyget URL >body
//! easyget --discard --say URL               prints the length
//! easyget --multi --to body. URL URL URL    body.1 body.2 body.3, side by side in this one thread
//! ```
//!
//! Left out: everything that a benchmark does not ask for.

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Duration;

use curl::easy::{Easy2, Handler, HttpVersion, WriteError};
use curl::multi::Multi;
use lexopt::ValueExt;
use lexopt::prelude::{Long, Short, Value};

const USAGE: &str = "\
easyget [options] URL...: GET by libcurl

  --cacert FILE   trust the CA certificates in FILE
  --discard       throw the bodies away (default: standard output)
  --to PREFIX     body N goes to the file PREFIXN
  --output FILE   the body of the only URL goes to FILE
  --multi         all URLs side by side in one thread (default: one after the other)
  --http2         HTTP/2 over TLS; with --multi all URLs share a connection
  --say           print the length of all bodies
  --version       print the version of libcurl
";

/// What the curl command sets (CURLOPT_BUFFERSIZE); the library's default is 16 KiB.
const RECEIVE: usize = 100 << 10;
/// The longest wait for a socket, should libcurl name no earlier timer.
const WAIT: Duration = Duration::from_secs(1);

struct Asked {
    ca: Option<String>,
    sink: Sink,
    multi: bool,
    http2: bool,
    say: bool,
    urls: Vec<String>,
}

enum Sink {
    Discard,
    Stdout,
    File(String),
    Prefix(String),
}

/// Where the body of one transfer goes.
struct Body {
    out: Option<File>,
    len: u64,
}

impl Handler for Body {
    fn write(&mut self, data: &[u8]) -> Result<usize, WriteError> {
        // Fewer bytes taken than offered is libcurl's sign for "stop".
        if self.out.as_mut().is_some_and(|out| out.write_all(data).is_err()) {
            return Ok(0);
        }
        self.len += data.len() as u64;
        Ok(data.len())
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("easyget: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let Some(asked) = parse()? else { return Ok(()) };
    let mut transfers = Vec::new();
    for (index, url) in asked.urls.iter().enumerate() {
        transfers.push(transfer(&asked, index + 1, url)?);
    }
    let len = if asked.multi { together(transfers, asked.http2)? } else { in_turn(transfers)? };
    if asked.say {
        println!("{len}");
    }
    Ok(())
}

fn transfer(asked: &Asked, number: usize, url: &str) -> Result<Easy2<Body>, Box<dyn Error>> {
    let out = match &asked.sink {
        Sink::Discard => None,
        // Unbuffered: libcurl hands over pieces that are large enough.
        Sink::Stdout => Some(File::from(std::io::stdout().as_fd().try_clone_to_owned()?)),
        Sink::File(path) => Some(File::create(path)?),
        Sink::Prefix(prefix) => Some(File::create(format!("{prefix}{number}"))?),
    };
    let mut easy = Easy2::new(Body { out, len: 0 });
    easy.url(url)?;
    easy.fail_on_error(true)?;
    easy.buffer_size(RECEIVE)?;
    if let Some(ca) = &asked.ca {
        easy.cainfo(ca)?;
    }
    easy.http_version(if asked.http2 { HttpVersion::V2TLS } else { HttpVersion::V11 })?;
    // Rather wait for the first connection's ALPN than open one a URL.
    easy.pipewait(asked.http2)?;
    Ok(easy)
}

/// One after the other; gives the length of all bodies.
fn in_turn(transfers: Vec<Easy2<Body>>) -> Result<u64, Box<dyn Error>> {
    let mut len = 0;
    for easy in transfers {
        easy.perform()?;
        len += easy.get_ref().len;
    }
    Ok(len)
}

/// All at once, in this thread.
fn together(transfers: Vec<Easy2<Body>>, http2: bool) -> Result<u64, Box<dyn Error>> {
    let mut multi = Multi::new();
    multi.pipelining(false, http2)?;
    let mut handles = Vec::new();
    for easy in transfers {
        handles.push(multi.add2(easy)?);
    }
    while multi.perform()? > 0 {
        multi.wait(&mut [], WAIT)?;
    }
    let mut failed = None;
    multi.messages(|message| {
        for handle in &handles {
            if let Some(Err(error)) = message.result_for2(handle) {
                failed = Some(error);
            }
        }
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    let mut len = 0;
    for handle in handles {
        len += multi.remove2(handle)?.get_ref().len;
    }
    Ok(len)
}

fn parse() -> Result<Option<Asked>, Box<dyn Error>> {
    let mut asked = Asked { ca: None, sink: Sink::Stdout, multi: false, http2: false, say: false, urls: Vec::new() };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("cacert") => asked.ca = Some(parser.value()?.string()?),
            Long("discard") => asked.sink = Sink::Discard,
            Long("to") => asked.sink = Sink::Prefix(parser.value()?.string()?),
            Long("output") => asked.sink = Sink::File(parser.value()?.string()?),
            Long("multi") => asked.multi = true,
            Long("http2") => asked.http2 = true,
            Long("say") => asked.say = true,
            Long("version") => {
                println!("libcurl {}", curl::Version::get().version());
                return Ok(None);
            }
            Long("help") | Short('h') => {
                print!("{USAGE}");
                return Ok(None);
            }
            Value(url) => asked.urls.push(url.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    if asked.urls.is_empty() {
        return Err("no URL; see --help".into());
    }
    Ok(Some(asked))
}
