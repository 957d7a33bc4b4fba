//! The fault origin, [`testkit::faulty`], as a program.
//!
//! ```text
//! faulty --port 8080 --ca ca.pem
//! curl -o out 'http://127.0.0.1:8080/f/a?size=5000000000&reset-at=1000000x1&rate=20000000'
//! ```

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;

use lexopt::ValueExt;
use lexopt::prelude::{Long, Short};
use testkit::faulty::FaultyOrigin;
use testkit::http3::Http3Settings;

const USAGE: &str = "\
faulty [options]: one long body at /f/NAME?QUERY on 127.0.0.1, with the faults that the query asks for

  --port N             plain HTTP port (default 0: any)
  --tls-port N         TLS port (default 0: any)
  --connection-limit N connections beyond so many open ones are reset
  --ca FILE            write the certificate authority's certificate there (PEM)
  --http2              over TLS, HTTP/2 with those who want it
  --http3              HTTP/3 on the UDP port of the TLS port
  --until-eof          stop when standard input ends

A NAME keeps the query it was first asked with; /seen/NAME shows what was asked and sent, as JSON.
The query, each part of it optional, joined by &:

  size=BYTES seed=N etag=strong|weak|none rate=BYTES range-rate=BYTES (a second)
  ignore-range ignore-if-range range-start=±K range-end=±K range-total=±K range-unit range-missing
  short=K part-length=±K whole-length=±K unasked-206=OFFSET chunked gzip garbage=K
  reset-at=OFFSET close-at=OFFSET stall-at=OFFSET (or -after=BYTES of a body), xN behind it: the first N times
  rst-at=OFFSET goaway-at=OFFSET goaway-cut-at=OFFSET, the same; over HTTP/1 they close
  stall-ms=N unavailable=N retry-after=SECONDS refuse-416=N connections=N refuse=N
  change-after-bytes=N change-after-requests=N change-after-ms=N new-size=BYTES

When it is ready it prints one line: listening http=ADDRESS https=ADDRESS
";

fn main() -> Result<(), Box<dyn Error>> {
    let mut builder = FaultyOrigin::builder();
    let (mut ca, mut until_eof) = (None::<PathBuf>, false);
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("port") => builder = builder.http_port(parser.value()?.parse()?),
            Long("tls-port") => builder = builder.https_port(parser.value()?.parse()?),
            Long("connection-limit") => builder = builder.connection_limit(parser.value()?.parse()?),
            Long("http2") => builder = builder.http2(),
            Long("http3") => builder = builder.http3(Http3Settings::new()),
            Long("ca") => ca = Some(parser.value()?.into()),
            Long("until-eof") => until_eof = true,
            Long("help") | Short('h') => {
                print!("{USAGE}");
                return Ok(());
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let origin = builder.start()?;
    if let Some(file) = ca {
        std::fs::write(file, origin.ca_pem())?;
    }
    println!("listening http={} https={}", origin.http_addr(), origin.https_addr());
    std::io::stdout().flush()?;
    if until_eof {
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
        return Ok(());
    }
    loop {
        std::thread::park();
    }
}
