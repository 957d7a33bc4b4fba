//! The common parts of the jobs with large bodies: a server, and each client's command line.

use std::net::SocketAddr;

use testkit::site::Site;

use super::{Bench, plain};
use crate::Result;
use crate::bodies::Bodies;
use crate::card::{Check, Contestant};
use crate::digest::Print;
use crate::identity;
use crate::server::Server;

/// The names of contestants in goals.
pub(super) const HAUL: &str = "haul";
pub(super) const HAUL_ONE: &str = "haul --split 1";
pub(super) const CURL: &str = "curl";
/// The name of libcurl, whose version is in the raw figures.
pub(super) const LIBCURL: &str = "libcurl";
pub(super) const HTCAT: &str = "htcat";
pub(super) const ARIA2: &str = "aria2c -x5";

/// haul's limit for peak resident memory, however large the body.
pub(super) const MEMORY_MB: f64 = 32.0;

/// The name of the file that a client writes.
const FILE: &str = "out";
/// The option with which curl and haul print the size of a transfer.
const SAY: &str = "%{size_download}";

/// The server of large bodies.
pub(super) struct Store {
    bodies: Bodies,
    pub(super) server: Server,
}

impl Store {
    pub(super) fn open(bench: &Bench) -> Result<Store> {
        let work = super::home().join("work");
        let bodies = Bodies::new(&work, bench.options.seed)?;
        let site = Site::scaled(bench.options.seed, 1);
        let server = Server::start(&site, bodies.root(), &bench.work, bench.options.embedded)?;
        Ok(Store { bodies, server })
    }

    /// A body of `len` bytes over plain HTTP from `addr`, the server's own or that of a relay
    /// before it.
    pub(super) fn plain(&self, addr: SocketAddr, len: u64) -> Result<Body> {
        Ok(Body { url: format!("http://{addr}{}", Bodies::path(len)), tls: false, print: self.bodies.prepare(len)? })
    }

    /// The same over TLS.
    pub(super) fn tls(&self, addr: SocketAddr, len: u64) -> Result<Body> {
        Ok(Body { url: format!("https://{addr}{}", Bodies::path(len)), tls: true, print: self.bodies.prepare(len)? })
    }

    /// The digest of several concatenated bodies of a length.
    pub(super) fn repeated(&self, len: u64, times: usize) -> Result<Print> {
        self.bodies.repeated(len, times)
    }
}

/// The length to use if the job's own is `len`: the requested one, if that is less.
pub(super) fn at_most(bench: &Bench, len: u64) -> u64 {
    bench.options.size.map_or(len, |size| size.min(len))
}

/// A body to fetch.
pub(super) struct Body {
    pub(super) url: String,
    tls: bool,
    print: Print,
}

/// The program that fetches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Client {
    Haul,
    /// One stream, even if more would be faster.
    HaulOne,
    Curl,
    /// The easy interface of the libcurl version in bench/libcurl/Cargo.lock.
    Libcurl,
    Htcat,
    /// Five connections; to files only.
    Aria2,
}

/// The destination of the body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sink {
    Null,
    Pipe,
    File,
    /// A pipe to a reader that digests it and times the first byte.
    Watched,
}

impl Body {
    /// Returns these clients, with the same sink.
    pub(super) fn to(&self, sink: Sink, clients: &[Client]) -> Vec<Contestant> {
        clients.iter().map(|client| self.contestant(*client, sink)).collect()
    }

    fn contestant(&self, client: Client, sink: Sink) -> Contestant {
        let print = self.print.clone();
        let check = match (sink, client) {
            // It writes to standard output alone.
            (Sink::File, Client::Htcat) => Check::Output(print),
            (Sink::File, _) => Check::File(FILE, print),
            (Sink::Watched, _) => Check::Watched(print),
            (Sink::Null, Client::Htcat) | (Sink::Pipe, _) => Check::Proof(self.proof(client), print),
            (Sink::Null, _) => Check::Told(Some(self.proof(client)), print),
        };
        let words = self.words(client, sink);
        Contestant { name: client.name(), argv: words, piped: sink == Sink::Pipe, times: 1, check }
    }

    /// The shell command that prints what the client gets.
    fn proof(&self, client: Client) -> String {
        let words = self.words(client, Sink::Pipe).join(" ");
        words.replacen("haul ", "$HAUL ", 1).replacen("curl ", "$CURL ", 1)
    }

    fn words(&self, client: Client, sink: Sink) -> Vec<String> {
        let trust = |option: &str| if self.tls { format!("{option}{}", identity::CA) } else { String::new() };
        let file = format!("-o {FILE}");
        let say = format!("-o /dev/null -w {SAY}");
        let output = match sink {
            Sink::Null => say.as_str(),
            Sink::Pipe | Sink::Watched => "",
            Sink::File => &file,
        };
        let line = match client {
            Client::Haul => format!("haul -s {} {output}", trust("--cacert ")),
            Client::HaulOne => format!("haul -s --split 1 {} {output}", trust("--cacert ")),
            Client::Curl => format!("curl -s {} {output}", trust("--cacert ")),
            Client::Libcurl => {
                let output = match sink {
                    Sink::Null => "--discard --say",
                    Sink::Pipe | Sink::Watched => "",
                    Sink::File => &format!("--output {FILE}"),
                };
                format!("easyget {} {output}", trust("--cacert "))
            }
            Client::Htcat if self.tls => format!("env {} htcat", trust("SSL_CERT_FILE=")),
            Client::Htcat => "htcat".to_owned(),
            // It is fastest here without allocating files, and does not write more then.
            Client::Aria2 => {
                format!("aria2c --no-conf -q -x5 --file-allocation=none {} -d . -o {FILE}", trust("--ca-certificate="))
            }
        };
        line.split_whitespace().chain([self.url.as_str()]).map(str::to_owned).collect()
    }
}

impl Client {
    fn name(self) -> &'static str {
        match self {
            Client::Haul => HAUL,
            Client::HaulOne => HAUL_ONE,
            Client::Curl => CURL,
            Client::Libcurl => LIBCURL,
            Client::Htcat => HTCAT,
            Client::Aria2 => ARIA2,
        }
    }
}

/// The rows that show what the machine can do; see [`crate::limit`].
pub(super) mod limits {
    use super::*;

    pub(in super::super) const RECV: &str = "limit: recv";
    pub(in super::super) const SPLICE: &str = "limit: splice";
    pub(in super::super) const SPLICE_PIPE: &str = "limit: splice to the pipe";
    pub(in super::super) const SPLICE_FILE: &str = "limit: splice to a file";
    pub(in super::super) const AES: &str = "limit: AES-128-GCM alone";

    pub(in super::super) fn recv(body: &Body) -> Contestant {
        plain(RECV, &format!("bench limit recv {}", body.url), Check::Told(None, body.print.clone()))
    }

    pub(in super::super) fn splice(body: &Body) -> Contestant {
        plain(SPLICE, &format!("bench limit splice {}", body.url), Check::Told(None, body.print.clone()))
    }

    pub(in super::super) fn splice_pipe(body: &Body) -> Contestant {
        let words = format!("limit splice-pipe {}", body.url);
        let check = Check::Proof(format!("$BENCH {words}"), body.print.clone());
        Contestant { piped: true, ..plain(SPLICE_PIPE, &format!("bench {words}"), check) }
    }

    pub(in super::super) fn splice_file(body: &Body) -> Contestant {
        let words = format!("bench limit splice-file {} {FILE}", body.url);
        plain(SPLICE_FILE, &words, Check::File(FILE, body.print.clone()))
    }

    pub(in super::super) fn aes(body: &Body) -> Contestant {
        plain(AES, &format!("bench limit aes {}", body.print.len), Check::Told(None, body.print.clone()))
    }
}
