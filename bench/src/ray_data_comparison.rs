//! `bench engines`: fetches tables of URLs in Ray Data, with haul and its competitors in turn and
//! from the same rows. The program `bench/python/engines.py` runs all of them in one Ray cluster on
//! this machine, since starting a cluster takes longer than the fetches. It measures them and
//! prints a table.
//!
//! testkit's page server runs in this process, with a port that answers immediately and one that
//! answers after 20 ms.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use testkit::page_server::{PageServer, PageTiming, PortBehavior};

use crate::Result;
use crate::jobs::home;

/// The delay of each reply from the second of the page server's two ports. The first port replies
/// at once.
const DELAY: Duration = Duration::from_millis(20);

/// Runs `bench engines [--python FILE] [ARGUMENT...]`: starts a page server, and the program
/// `engines.py` with the port numbers of the server and these arguments.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (python, arguments) = match arguments {
        [option, file, rest @ ..] if option == "--python" => (PathBuf::from(file), rest),
        _ => (built_python()?, arguments),
    };
    let services = vec![PortBehavior::Pages(PageTiming::AT_ONCE), PortBehavior::Pages(PageTiming::after(DELAY))];
    let server = PageServer::start(services, None)?;
    let ports = [0, 1].map(|index| server.port(index).to_string());
    let script = home().join("python/engines.py");
    let status = Command::new(&python).arg(script).args(ports).args(arguments).status();
    let status = status.map_err(|error| format!("{}: {error}; make engines-test installs it", python.display()))?;
    if status.success() { Ok(()) } else { Err(format!("engines.py: {status}").into()) }
}

/// Returns the path of the Python interpreter that `make python` installs, next to the build
/// directory of this program.
fn built_python() -> Result<PathBuf> {
    let target = std::env::current_exe()?;
    let target = target.parent().and_then(|directory| directory.parent()).ok_or("bench has no target directory")?;
    Ok(target.join("py/bin/python"))
}
