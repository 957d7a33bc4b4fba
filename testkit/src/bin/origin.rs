//! The test server [`testkit::origin`] as a program.
//!
//! ```text
//! origin --port 8080 --cache --ca ca.pem --write-answer answer.txt
//! ```

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;

use lexopt::ValueExt;
use lexopt::prelude::{Long, Short};
use testkit::http3::Http3Settings;
use testkit::origin::Origin;
use testkit::site::{self, GeneratedSite};

const USAGE: &str = "\
origin [options]: serves the site of the first job, and test routes, on 127.0.0.1

  --port N            plain HTTP port (default 0: any)
  --tls-port N        TLS port (default 0: any)
  --seed N            which site (default 1)
  --pages N           how many AS pages (default 5703, about 276 MiB)
  --cache             keep pages in memory once made
  --threads N         worker threads (default 1)
  --http2             over TLS, HTTP/2 with those who want it
  --http3             HTTP/3 on the UDP port of the TLS port
  --ca FILE           write the certificate authority's certificate there (PEM)
  --write-site DIR    lay the site out as files there before serving
  --write-answer FILE write the sorted unique CIDR blocks of all pages there before serving
  --no-serve          stop after what was to be written
  --until-eof         stop when standard input ends

When it is ready it prints one line: listening http=ADDRESS https=ADDRESS
";

struct OriginOptions {
    port: u16,
    tls_port: u16,
    seed: u64,
    pages: usize,
    cache: bool,
    threads: usize,
    http2: bool,
    http3: bool,
    ca: Option<PathBuf>,
    write_site: Option<PathBuf>,
    write_answer: Option<PathBuf>,
    serve: bool,
    until_eof: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let Some(options) = parse()? else {
        print!("{USAGE}");
        return Ok(());
    };
    let mut site = GeneratedSite::scaled(options.seed, options.pages);
    if options.cache {
        site = site.cached();
    }
    if let Some(dir) = &options.write_site {
        site.write_to(dir)?;
    }
    if let Some(file) = &options.write_answer {
        std::fs::write(file, site.known_answer().text)?;
    }
    if !options.serve {
        return Ok(());
    }
    let mut builder = Origin::builder()
        .site(site)
        .http_port(options.port)
        .https_port(options.tls_port)
        .threads(options.threads)
        .record(false);
    if options.http2 {
        builder = builder.http2(100);
    }
    if options.http3 {
        builder = builder.http3(Http3Settings::new());
    }
    let origin = builder.start()?;
    if let Some(file) = &options.ca {
        std::fs::write(file, origin.ca_pem())?;
    }
    println!("listening http={} https={}", origin.http_addr(), origin.https_addr());
    std::io::stdout().flush()?;
    if options.until_eof {
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
        return Ok(());
    }
    loop {
        std::thread::park();
    }
}

/// Parses the command line of `origin`; returns `None` if `--help` was given.
fn parse() -> Result<Option<OriginOptions>, lexopt::Error> {
    let mut options = OriginOptions {
        port: 0,
        tls_port: 0,
        seed: 1,
        pages: site::PAGES,
        cache: false,
        threads: 1,
        http2: false,
        http3: false,
        ca: None,
        write_site: None,
        write_answer: None,
        serve: true,
        until_eof: false,
    };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("port") => options.port = parser.value()?.parse()?,
            Long("tls-port") => options.tls_port = parser.value()?.parse()?,
            Long("seed") => options.seed = parser.value()?.parse()?,
            Long("pages") => options.pages = parser.value()?.parse()?,
            Long("cache") => options.cache = true,
            Long("threads") => options.threads = parser.value()?.parse()?,
            Long("http2") => options.http2 = true,
            Long("http3") => options.http3 = true,
            Long("ca") => options.ca = Some(parser.value()?.into()),
            Long("write-site") => options.write_site = Some(parser.value()?.into()),
            Long("write-answer") => options.write_answer = Some(parser.value()?.into()),
            Long("no-serve") => options.serve = false,
            Long("until-eof") => options.until_eof = true,
            Long("help") | Short('h') => return Ok(None),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Some(options))
}
