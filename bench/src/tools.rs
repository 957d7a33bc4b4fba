//! The installed peers and their versions.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;

/// The directory in which scripts/bench-peers.sh puts the peers that it builds, and
/// [`install_haul`] puts haul.
fn built() -> PathBuf {
    crate::jobs::home().join("work").join("bin")
}

/// PATH with what was built before all others.
pub(crate) fn path() -> Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::join_paths(std::iter::once(built()).chain(std::env::split_paths(&path)))?)
}

/// The haul that was built along with this program, if it was.
pub(crate) fn haul_beside() -> Option<PathBuf> {
    std::env::current_exe().ok().map(|bench| bench.with_file_name("haul")).filter(|haul| haul.is_file())
}

/// Copies it to where the peers are. They were copied, too, and so is an installed program: a
/// linker's output is in the page cache in single pages, and each start of it takes a tenth of a
/// millisecond more.
pub(crate) fn install_haul() -> Result<()> {
    let installed = built().join("haul");
    let _ = fs::remove_file(&installed);
    if let Some(haul) = haul_beside() {
        fs::create_dir_all(built())?;
        fs::copy(haul, installed)?;
    }
    Ok(())
}

/// The program of this name in [`path`].
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = path().ok()?;
    // Daemons live outside a user's PATH on some systems.
    let daemons = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(daemons).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// The program with this name that was not built for the bench.
pub(crate) fn find_installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// The first line that `program --version` (or another flag) prints, on either stream.
pub(crate) fn version(program: &Path, flag: &str) -> String {
    let output = Command::new(program).arg(flag).stdin(Stdio::null()).output();
    let text = output.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().find(|line| !line.is_empty()).unwrap_or("unknown").to_owned()
}

/// The trimmed standard output of a command, empty if it cannot run.
pub(crate) fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}
