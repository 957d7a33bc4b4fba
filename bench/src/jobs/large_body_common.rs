//! Code that the jobs with large bodies share: a server, and each client's command line.

use std::net::SocketAddr;

use testkit::site::GeneratedSite;

use super::{JobEnvironment, command_program};
use crate::Result;
use crate::body_files::LargeBodyFiles;
use crate::compared_programs_and_goals::{BenchProgram, OutputCheck};
use crate::output_digest::OutputDigest;
use crate::server::SiteServer;
use crate::tls_files;

/// The name of the haul command in the list of compared programs and in the goals of a job (upper
/// bounds on results).
pub(super) const HAUL: &str = "haul";
pub(super) const HAUL_ONE: &str = "haul --split 1";
pub(super) const CURL: &str = "curl";
/// The name of the libcurl program in the list of compared programs and in the goals of a job
/// (upper bounds on results). The version of libcurl is in the results file.
pub(super) const LIBCURL: &str = "libcurl";
pub(super) const HTCAT: &str = "htcat";
pub(super) const ARIA2: &str = "aria2c -x5";

/// The maximum for haul's peak memory in MB, for bodies of any length.
pub(super) const MEMORY_MB: f64 = 32.0;

/// The name of the output file of a client.
const FILE: &str = "out";
/// The option with which curl and haul print the size of a transfer.
const WRITE_OUT_SIZE: &str = "%{size_download}";

/// A running server whose site contains large bodies.
pub(super) struct LargeBodyServer {
    bodies: LargeBodyFiles,
    pub(super) server: SiteServer,
}

impl LargeBodyServer {
    pub(super) fn open(bench: &JobEnvironment) -> Result<LargeBodyServer> {
        let work = super::home().join("work");
        let bodies = LargeBodyFiles::new(&work, bench.options.seed)?;
        let site = GeneratedSite::scaled(bench.options.seed, 1);
        let server = SiteServer::start(&site, bodies.root(), &bench.work, bench.options.embedded)?;
        Ok(LargeBodyServer { bodies, server })
    }

    /// Returns the http URL of the generated body of `len` bytes, with the digest of its content.
    /// `addr` is the address of the server, or of a relay in front of it.
    pub(super) fn plain(&self, addr: SocketAddr, len: u64) -> Result<LargeBodyToFetch> {
        Ok(LargeBodyToFetch {
            url: format!("http://{addr}{}", LargeBodyFiles::path(len)),
            tls: false,
            print: self.bodies.prepare(len)?,
        })
    }

    /// Returns the https URL of the generated body of `len` bytes, with the digest of its content.
    /// `addr` is the address of the server, or of a relay in front of it.
    pub(super) fn tls(&self, addr: SocketAddr, len: u64) -> Result<LargeBodyToFetch> {
        Ok(LargeBodyToFetch {
            url: format!("https://{addr}{}", LargeBodyFiles::path(len)),
            tls: true,
            print: self.bodies.prepare(len)?,
        })
    }

    /// Returns the digest of `times` concatenated bodies of `len` bytes.
    pub(super) fn repeated(&self, len: u64, times: usize) -> Result<OutputDigest> {
        self.bodies.repeated(len, times)
    }
}

/// Returns the length of a body: `len`, or the size given on the command line if that is smaller.
pub(super) fn length_that_fits(bench: &JobEnvironment, len: u64) -> u64 {
    bench.options.size.map_or(len, |size| size.min(len))
}

/// A large body to fetch: its URL, the digest of its content, and whether it is fetched over TLS.
pub(super) struct LargeBodyToFetch {
    pub(super) url: String,
    tls: bool,
    print: OutputDigest,
}

/// The program with which the bench fetches a large body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BulkClient {
    Haul,
    /// The haul command with a single connection, even if it would use more by default.
    HaulOne,
    Curl,
    /// The easy interface of libcurl, in the version from bench/libcurl/Cargo.lock.
    Libcurl,
    Htcat,
    /// aria2 with five connections. It can only write to files.
    Aria2,
}

/// The destination to which a client writes the body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BulkOutput {
    Null,
    Pipe,
    File,
    /// A pipe to a reader that computes the digest and records the time of the first byte.
    PipeWithFirstByteTime,
}

impl LargeBodyToFetch {
    /// Creates the benchmark programs for these clients. All write the body to the same
    /// destination.
    pub(super) fn bench_programs(&self, sink: BulkOutput, clients: &[BulkClient]) -> Vec<BenchProgram> {
        clients.iter().map(|client| self.bench_program(*client, sink)).collect()
    }

    fn bench_program(&self, client: BulkClient, sink: BulkOutput) -> BenchProgram {
        let print = self.print.clone();
        let check = match (sink, client) {
            // htcat can only write to standard output.
            (BulkOutput::File, BulkClient::Htcat) => OutputCheck::Output(print),
            (BulkOutput::File, _) => OutputCheck::File(FILE, print),
            (BulkOutput::PipeWithFirstByteTime, _) => OutputCheck::OutputWithFirstByteTime(print),
            (BulkOutput::Null, BulkClient::Htcat) | (BulkOutput::Pipe, _) => {
                OutputCheck::CheckedOnce(self.proof(client), print)
            }
            (BulkOutput::Null, _) => OutputCheck::PrintedLength(Some(self.proof(client)), print),
        };
        let words = self.command_of_client(client, sink);
        BenchProgram { name: client.name(), argv: words, piped: sink == BulkOutput::Pipe, times: 1, check }
    }

    /// Returns the shell command that fetches the body with this client for the check of the
    /// output.
    fn proof(&self, client: BulkClient) -> String {
        let words = self.command_of_client(client, BulkOutput::Pipe).join(" ");
        words.replacen("haul ", "$HAUL ", 1).replacen("curl ", "$CURL ", 1)
    }

    fn command_of_client(&self, client: BulkClient, sink: BulkOutput) -> Vec<String> {
        let trust = |option: &str| if self.tls { format!("{option}{}", tls_files::CA) } else { String::new() };
        let file = format!("-o {FILE}");
        let say = format!("-o /dev/null -w {WRITE_OUT_SIZE}");
        let output = match sink {
            BulkOutput::Null => say.as_str(),
            BulkOutput::Pipe | BulkOutput::PipeWithFirstByteTime => "",
            BulkOutput::File => &file,
        };
        let line = match client {
            BulkClient::Haul => format!("haul -s {} {output}", trust("--cacert ")),
            BulkClient::HaulOne => format!("haul -s --split 1 {} {output}", trust("--cacert ")),
            BulkClient::Curl => format!("curl -s {} {output}", trust("--cacert ")),
            BulkClient::Libcurl => {
                let output = match sink {
                    BulkOutput::Null => "--discard --say",
                    BulkOutput::Pipe | BulkOutput::PipeWithFirstByteTime => "",
                    BulkOutput::File => &format!("--output {FILE}"),
                };
                format!("easyget {} {output}", trust("--cacert "))
            }
            BulkClient::Htcat if self.tls => format!("env {} htcat", trust("SSL_CERT_FILE=")),
            BulkClient::Htcat => "htcat".to_owned(),
            // aria2 is fastest here without file allocation, and does not write more bytes that
            // way.
            BulkClient::Aria2 => {
                format!("aria2c --no-conf -q -x5 --file-allocation=none {} -d . -o {FILE}", trust("--ca-certificate="))
            }
        };
        line.split_whitespace().chain([self.url.as_str()]).map(str::to_owned).collect()
    }
}

impl BulkClient {
    fn name(self) -> &'static str {
        match self {
            BulkClient::Haul => HAUL,
            BulkClient::HaulOne => HAUL_ONE,
            BulkClient::Curl => CURL,
            BulkClient::Libcurl => LIBCURL,
            BulkClient::Htcat => HTCAT,
            BulkClient::Aria2 => ARIA2,
        }
    }
}

/// Programs that fetch a body with the minimum of work, to show the lowest possible cost on this
/// machine ([`crate::lower_limit_programs`]).
pub(super) mod limits {
    use super::*;

    pub(in super::super) const RECV: &str = "limit: recv";
    pub(in super::super) const SPLICE: &str = "limit: splice";
    pub(in super::super) const SPLICE_PIPE: &str = "limit: splice to the pipe";
    pub(in super::super) const SPLICE_FILE: &str = "limit: splice to a file";
    pub(in super::super) const AES: &str = "limit: AES-128-GCM alone";

    pub(in super::super) fn recv(body: &LargeBodyToFetch) -> BenchProgram {
        command_program(
            RECV,
            &format!("bench limit recv {}", body.url),
            OutputCheck::PrintedLength(None, body.print.clone()),
        )
    }

    pub(in super::super) fn splice(body: &LargeBodyToFetch) -> BenchProgram {
        command_program(
            SPLICE,
            &format!("bench limit splice {}", body.url),
            OutputCheck::PrintedLength(None, body.print.clone()),
        )
    }

    pub(in super::super) fn splice_pipe(body: &LargeBodyToFetch) -> BenchProgram {
        let words = format!("limit splice-pipe {}", body.url);
        let check = OutputCheck::CheckedOnce(format!("$BENCH {words}"), body.print.clone());
        BenchProgram { piped: true, ..command_program(SPLICE_PIPE, &format!("bench {words}"), check) }
    }

    pub(in super::super) fn splice_file(body: &LargeBodyToFetch) -> BenchProgram {
        let words = format!("bench limit splice-file {} {FILE}", body.url);
        command_program(SPLICE_FILE, &words, OutputCheck::File(FILE, body.print.clone()))
    }

    pub(in super::super) fn aes(body: &LargeBodyToFetch) -> BenchProgram {
        command_program(
            AES,
            &format!("bench limit aes {}", body.print.len),
            OutputCheck::PrintedLength(None, body.print.clone()),
        )
    }
}
