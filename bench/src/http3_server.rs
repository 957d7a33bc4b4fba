//! The server of HTTP/3 that the programs use: quic-go (bench/go-http3) if it is built, else
//! testkit's embedded server.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use testkit::http3::Http3Settings;
use testkit::ip_relay::{FAR_ADDR, NetworkNamespace};
use testkit::origin::Origin;
use testkit::site::GeneratedSite;

use crate::body_files::LargeBodyFiles;
use crate::{Result, installed_programs, tls_files};

/// The longest time to wait until the server listens.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// The name of the quic-go server that is built for the bench.
const PROGRAM: &str = "quicgo-server";
/// The TCP congestion control of the server's HTTP/2 connections, when HTTP/3 is compared with
/// HTTP/2 over a lossy link. Most servers use cubic. With the default of the machine on which the
/// bench runs, the comparison would depend on the machine.
const CONGESTION_CONTROL: &str = "cubic";

/// A running server of large bodies. Dropping it stops it. Clients must trust the certificate in
/// the file [`tls_files::CA`] of the working directory.
pub(crate) struct Http3Server {
    /// The address and port, over UDP for HTTP/3 and over TCP for HTTP/2.
    pub(crate) addr: String,
    /// The server's name and version, for the report.
    pub(crate) name: String,
    _running: Http3ServerBackend,
}

#[expect(dead_code, reason = "held for their Drop")]
enum Http3ServerBackend {
    QuicGo(QuicGoProcess),
    Embedded(Origin),
}

struct QuicGoProcess(Child);

impl Http3Server {
    /// Starts a server of the large bodies `bodies` on loopback. The server is quic-go, or
    /// testkit's server in this process if `embedded` is true or quic-go is not built. Temporary
    /// files go to `work`.
    pub(crate) fn start(bodies: &LargeBodyFiles, seed: u64, work: &Path, embedded: bool) -> Result<Http3Server> {
        match installed_programs::find(PROGRAM).filter(|_| !embedded) {
            Some(program) => Http3Server::quic_go(Command::new(&program), "127.0.0.1", bodies, work, &program),
            None => {
                let site = GeneratedSite::scaled(seed, 1);
                let origin = Origin::builder().site(site).record(false).http2(100).http3(Http3Settings::new());
                let origin = origin.start()?;
                fs::write(work.join(tls_files::CA), origin.ca_pem())?;
                Ok(Http3Server {
                    addr: origin.https_addr().to_string(),
                    name: "embedded origin".to_owned(),
                    _running: Http3ServerBackend::Embedded(origin),
                })
            }
        }
    }

    /// Starts a server in another network namespace. Fails if the quic-go server is not built.
    pub(crate) fn start_in(namespace: &NetworkNamespace, bodies: &LargeBodyFiles, work: &Path) -> Result<Http3Server> {
        let program = installed_programs::find(PROGRAM)
            .ok_or_else(|| format!("{PROGRAM} is not built: sh scripts/http3-peers.sh"))?;
        let mut command = Command::new("nsenter");
        command.arg(namespace.nsenter_option()).arg(&program).args(["-tcp-congestion", CONGESTION_CONTROL]);
        Http3Server::quic_go(command, &FAR_ADDR.to_string(), bodies, work, &program)
    }

    fn quic_go(
        mut command: Command,
        ip: &str,
        bodies: &LargeBodyFiles,
        work: &Path,
        program: &Path,
    ) -> Result<Http3Server> {
        tls_files::write_to(work)?;
        let address = work.join("address");
        let _ = fs::remove_file(&address);
        command.args(["-listen", &format!("{ip}:0"), "-cert", tls_files::LEAF, "-key", tls_files::KEY]);
        command.arg("-address-file").arg(&address).arg("-root").arg(bodies.root());
        let child = command.current_dir(work).stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let mut running = QuicGoProcess(child);
        let end = Instant::now() + START_TIMEOUT;
        let addr = loop {
            if let Ok(addr) = fs::read_to_string(&address) {
                break addr;
            }
            if running.0.try_wait()?.is_some() || Instant::now() > end {
                return Err(format!("{PROGRAM} does not serve").into());
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let name = installed_programs::version(program, "-version");
        Ok(Http3Server { addr, name, _running: Http3ServerBackend::QuicGo(running) })
    }
}

impl Drop for QuicGoProcess {
    fn drop(&mut self) {
        // Fails only if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
