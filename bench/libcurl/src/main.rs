//! A minimal program that uses libcurl. It shows what a transfer costs without the curl command.
//!
//! ```text
//! easyget URL >body
//! easyget --discard --say URL               prints the length
//! easyget --multi --to body. URL URL URL    body.1 body.2 body.3, at the same time in this one thread
//! easyget --parallel 50 --list FILE         50 at a time, until all URLs of the list are fetched
//! ```
//!
//! Everything that a benchmark does not need is left out.

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
  --parallel N    the same, with N at a time
  --list FILE     the URLs in FILE as well, one a line
  --http2         HTTP/2 over TLS; with --multi all URLs share a connection
  --say           print the length of all bodies
  --version       print the version of libcurl
";

/// The size of the receive buffer in bytes, as the curl command sets it (CURLOPT_BUFFERSIZE). The
/// library's default is 16 KiB.
const RECEIVE: usize = 100 << 10;
/// The longest time to wait for socket events in one call, if libcurl sets no earlier timer.
const WAIT: Duration = Duration::from_secs(1);

struct TransferArguments {
    ca: Option<String>,
    sink: OutputSink,
    /// The number of concurrent transfers; `None` runs them one after another.
    parallel: Option<usize>,
    http2: bool,
    say: bool,
    urls: Vec<String>,
}

enum OutputSink {
    Discard,
    Stdout,
    File(String),
    Prefix(String),
}

/// The destination of one transfer's body, and the number of bytes that a handle has received.
struct CountingOutput {
    out: Option<File>,
    len: u64,
}

impl Handler for CountingOutput {
    fn write(&mut self, data: &[u8]) -> Result<usize, WriteError> {
        // A return value below the number of offered bytes tells libcurl to abort the transfer.
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
    let len = match asked.parallel {
        Some(parallel) => together(&asked, parallel)?,
        None => in_turn(&asked)?,
    };
    if asked.say {
        println!("{len}");
    }
    Ok(())
}

/// Creates a curl handle with the options that all transfers share.
fn handle(asked: &TransferArguments) -> Result<Easy2<CountingOutput>, Box<dyn Error>> {
    let mut easy = Easy2::new(CountingOutput { out: None, len: 0 });
    easy.fail_on_error(true)?;
    easy.buffer_size(RECEIVE)?;
    if let Some(ca) = &asked.ca {
        easy.cainfo(ca)?;
    }
    easy.http_version(if asked.http2 { HttpVersion::V2TLS } else { HttpVersion::V11 })?;
    // Waits for the ALPN result of the first connection instead of opening a connection for each
    // URL.
    easy.pipewait(asked.http2)?;
    Ok(easy)
}

/// Sets the URL of the handle to the URL with this index, and its output to that URL's output.
fn aim(easy: &mut Easy2<CountingOutput>, asked: &TransferArguments, index: usize) -> Result<(), Box<dyn Error>> {
    easy.url(&asked.urls[index])?;
    easy.get_mut().out = match &asked.sink {
        OutputSink::Discard => None,
        // Unbuffered: libcurl hands over pieces that are large enough.
        OutputSink::Stdout => Some(File::from(std::io::stdout().as_fd().try_clone_to_owned()?)),
        OutputSink::File(path) => Some(File::create(path)?),
        OutputSink::Prefix(prefix) => Some(File::create(format!("{prefix}{}", index + 1))?),
    };
    Ok(())
}

/// Runs the transfers one after another. Returns the total length of all bodies.
fn in_turn(asked: &TransferArguments) -> Result<u64, Box<dyn Error>> {
    let mut easy = handle(asked)?;
    for index in 0..asked.urls.len() {
        aim(&mut easy, asked, index)?;
        easy.perform()?;
    }
    Ok(easy.get_ref().len)
}

/// Runs up to `parallel` transfers at a time in this thread. A handle whose transfer has finished
/// is used for the next URL.
fn together(asked: &TransferArguments, parallel: usize) -> Result<u64, Box<dyn Error>> {
    let mut multi = Multi::new();
    multi.pipelining(false, asked.http2)?;
    let mut next = parallel.clamp(1, asked.urls.len());
    let mut handles = Vec::new();
    for index in 0..next {
        let mut easy = handle(asked)?;
        aim(&mut easy, asked, index)?;
        let mut added = multi.add2(easy)?;
        added.set_token(index)?;
        handles.push(Some(added));
    }
    let (mut left, mut len) = (handles.len(), 0);
    while left > 0 {
        multi.perform()?;
        let mut done = Vec::new();
        multi.messages(|message| {
            if let (Ok(slot), Some(result)) = (message.token(), message.result()) {
                done.push((slot, result));
            }
        });
        for (slot, result) in done {
            result?;
            let added = handles[slot].take().ok_or("a transfer is over twice")?;
            let mut easy = multi.remove2(added)?;
            if next < asked.urls.len() {
                aim(&mut easy, asked, next)?;
                next += 1;
                let mut added = multi.add2(easy)?;
                added.set_token(slot)?;
                handles[slot] = Some(added);
            } else {
                len += easy.get_ref().len;
                left -= 1;
            }
        }
        if left > 0 {
            multi.wait(&mut [], WAIT)?;
        }
    }
    Ok(len)
}

fn parse() -> Result<Option<TransferArguments>, Box<dyn Error>> {
    let mut asked = TransferArguments {
        ca: None,
        sink: OutputSink::Stdout,
        parallel: None,
        http2: false,
        say: false,
        urls: Vec::new(),
    };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("cacert") => asked.ca = Some(parser.value()?.string()?),
            Long("discard") => asked.sink = OutputSink::Discard,
            Long("to") => asked.sink = OutputSink::Prefix(parser.value()?.string()?),
            Long("output") => asked.sink = OutputSink::File(parser.value()?.string()?),
            Long("multi") => asked.parallel = Some(usize::MAX),
            Long("parallel") => asked.parallel = Some(parser.value()?.parse()?),
            Long("list") => {
                let list = std::fs::read_to_string(parser.value()?)?;
                asked.urls.extend(list.lines().map(str::to_owned));
            }
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
