//! The installed peers and their versions.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;

/// Returns the directory for the peers that scripts/bench-peers.sh builds, and for the haul that
/// [`install_haul`] copies.
fn built() -> PathBuf {
    crate::jobs::home().join("work").join("bin")
}

/// Returns PATH, with the directory of the programs that were built for the bench at the front.
pub(crate) fn path() -> Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::join_paths(std::iter::once(built()).chain(std::env::split_paths(&path)))?)
}

/// Returns the haul that was built together with this program, if there is one.
pub(crate) fn haul_beside() -> Option<PathBuf> {
    std::env::current_exe().ok().map(|bench| bench.with_file_name("haul")).filter(|haul| haul.is_file())
}

/// Copies haul to the directory of the peers. They were copied, too, as installed programs are: the
/// linker's output is in the page cache in single pages, which makes each start a tenth of a
/// millisecond slower.
pub(crate) fn install_haul() -> Result<()> {
    let installed = built().join("haul");
    let _ = fs::remove_file(&installed);
    if let Some(haul) = haul_beside() {
        fs::create_dir_all(built())?;
        fs::copy(haul, installed)?;
    }
    Ok(())
}

/// Returns the program of this name in [`path`].
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = path().ok()?;
    // Daemons live outside a user's PATH on some systems.
    let daemons = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(daemons).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// Returns the program of this name that was not built for the bench.
pub(crate) fn find_installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// Returns the first line that `program --version` (or another flag) prints, to standard output or
/// standard error.
pub(crate) fn version(program: &Path, flag: &str) -> String {
    let output = Command::new(program).arg(flag).stdin(Stdio::null()).output();
    let text = output.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().find(|line| !line.is_empty()).unwrap_or("unknown").to_owned()
}

/// Returns the trimmed standard output of a command; empty if it cannot run.
pub(crate) fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}
