//! Code that the jobs with a list of small items share: a distant server that echoes each item, and
//! the check that the server has received all items.

use std::time::Duration;

use testkit::origin::Origin;
use testkit::relay::Relay;

use super::{JobEnvironment, shell_program};
use crate::Result;
use crate::compared_programs_and_goals::{BenchProgram, OutputCheck};
use crate::output_digest::OutputDigest;

const RTT: Duration = Duration::from_millis(50);

/// The last commands of a shell pipeline: they read the server's replies, and print the items in
/// the replies, sorted.
const EXTRACT_ITEMS: &str = "| grep -oE 'item=[0-9]+' | sort";

/// Returns the item with this number: the text `item=NUMBER`, which a client sends as the content
/// of one request.
pub(super) fn item(number: usize) -> String {
    format!("item={number}")
}

/// A running server that replies to each request with the content of the request, and the digest of
/// the sorted list of all items that clients send. The server runs until the job is finished.
pub(super) struct ItemEchoServer {
    /// The URL that echoes the content of requests.
    pub(super) url: String,
    /// The description of the server, for the report.
    pub(super) server: String,
    digest: OutputDigest,
}

impl ItemEchoServer {
    /// Starts the server. Clients have to send the items with the numbers from 0 to `items` - 1.
    pub(super) fn start(bench: &mut JobEnvironment, items: usize) -> Result<ItemEchoServer> {
        let origin = Origin::builder().record(false).start()?;
        let relay = Relay::to(origin.http_addr()).rtt(RTT).handshake(true).start()?;
        let url = format!("http://{}/echo", relay.addr());
        bench.keep_running(origin);
        bench.keep_running(relay);
        let mut lines: Vec<String> = (0..items).map(|number| item(number) + "\n").collect();
        lines.sort();
        let digest = OutputDigest::from_bytes(lines.concat().as_bytes());
        Ok(ItemEchoServer { url, server: format!("embedded origin, behind a relay of {} ms", RTT.as_millis()), digest })
    }

    /// Creates the benchmark program that runs the shell command `measured` in each round.
    /// `measured` sends the items and discards the server's replies. The shell command `checked`
    /// sends the same items once, before the rounds, and prints the replies, which are compared
    /// with the expected items.
    pub(super) fn bench_program(&self, name: &'static str, measured: &str, checked: &str) -> BenchProgram {
        shell_program(
            name,
            format!("exec {measured}"),
            OutputCheck::CheckedOnce(format!("{checked} {EXTRACT_ITEMS}"), self.digest.clone()),
        )
    }
}
