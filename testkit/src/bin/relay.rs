//! The relay, [`testkit::relay`], as a program.
//!
//! ```text
//! relay --to 127.0.0.1:8080 --rtt-ms 20
//! ```

use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use lexopt::ValueExt;
use lexopt::prelude::{Long, Short};
use testkit::relay::Relay;

const USAGE: &str = "\
relay --to ADDRESS [options]: a link with a round trip, jitter and a rate, on loopback

  --listen ADDRESS    where to listen (default 127.0.0.1:0, any port)
  --rtt-ms N          round trip in milliseconds, may have a fraction (default 20)
  --jitter-ms N       up to so many milliseconds more for each piece, in order (default 0)
  --seed N            what the jitter is made from (default 1)
  --handshake         charge the TCP handshake a round trip too
  --rate BYTES        bytes a second for each connection, in each direction
  --total-rate BYTES  bytes a second for all connections together, in each direction
  --until-eof         stop when standard input ends

When it is ready it prints one line: listening ADDRESS
";

fn main() -> Result<(), Box<dyn Error>> {
    let mut listen: SocketAddr = "127.0.0.1:0".parse()?;
    let (mut to, mut rtt_ms, mut until_eof) = (None, 20.0, false);
    let (mut jitter_ms, mut seed) = (0.0, 1);
    let (mut handshake, mut rate, mut total_rate) = (false, None, None);
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("listen") => listen = parser.value()?.parse()?,
            Long("to") => to = Some(parser.value()?.parse::<SocketAddr>()?),
            Long("rtt-ms") => rtt_ms = parser.value()?.parse()?,
            Long("jitter-ms") => jitter_ms = parser.value()?.parse()?,
            Long("seed") => seed = parser.value()?.parse()?,
            Long("handshake") => handshake = true,
            Long("rate") => rate = Some(parser.value()?.parse()?),
            Long("total-rate") => total_rate = Some(parser.value()?.parse()?),
            Long("until-eof") => until_eof = true,
            Long("help") | Short('h') => {
                print!("{USAGE}");
                return Ok(());
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let to = to.ok_or("--to ADDRESS is missing")?;
    let rtt = Duration::try_from_secs_f64(rtt_ms / 1000.0)?;
    let jitter = Duration::try_from_secs_f64(jitter_ms / 1000.0)?;
    let mut link = Relay::to(to).listen(listen).rtt(rtt).jitter(jitter).seed(seed).handshake(handshake);
    if let Some(rate) = rate {
        link = link.rate(rate);
    }
    if let Some(rate) = total_rate {
        link = link.total_rate(rate);
    }
    let relay = link.start()?;
    println!("listening {}", relay.addr());
    std::io::stdout().flush()?;
    if until_eof {
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
        return Ok(());
    }
    loop {
        std::thread::park();
    }
}
