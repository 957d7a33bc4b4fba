//! The installed programs that haul is compared with, and their versions.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;

/// Returns the directory of the programs that scripts/bench-peers.sh builds, and of the copy of
/// haul that [`install_haul`] makes.
fn built_programs_directory() -> PathBuf {
    crate::jobs::home().join("work").join("bin")
}

/// Returns the value of PATH with which the compared programs run. The directory of the programs
/// that were built for the bench comes first.
pub(crate) fn search_path() -> Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::join_paths(std::iter::once(built_programs_directory()).chain(std::env::split_paths(&path)))?)
}

/// Returns the path of the haul that was built together with the bench program. `None` if that file
/// does not exist.
pub(crate) fn built_haul_path() -> Option<PathBuf> {
    std::env::current_exe().ok().map(|bench| bench.with_file_name("haul")).filter(|haul| haul.is_file())
}

/// Copies the haul program to the directory of the compared programs. The copy starts a tenth of a
/// millisecond faster than the file that the linker wrote: the linker leaves its file in the page
/// cache in single pages, so each page fault maps less of it.
pub(crate) fn install_haul() -> Result<()> {
    let installed = built_programs_directory().join("haul");
    let _ = fs::remove_file(&installed);
    if let Some(haul) = built_haul_path() {
        fs::create_dir_all(built_programs_directory())?;
        fs::copy(haul, installed)?;
    }
    Ok(())
}

/// Returns the path of the program with this name in the directories of [`search_path`]; `None` if
/// it is not installed.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = search_path().ok()?;
    // On some systems, daemons are in directories that are not in a user's PATH.
    let daemons = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(daemons).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// Returns the path of the installed program with this name, ignoring programs that were built for
/// the bench; `None` if it is not installed.
pub(crate) fn find_installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// Returns the first line that `program FLAG` prints to standard output or standard error. `flag`
/// is usually `--version`.
pub(crate) fn version(program: &Path, flag: &str) -> String {
    let output = Command::new(program).arg(flag).stdin(Stdio::null()).output();
    let text = output.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().find(|line| !line.is_empty()).unwrap_or("unknown").to_owned()
}

/// Returns the standard output of a command without leading and trailing blanks; empty if the
/// command cannot run.
pub(crate) fn output_of_command(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}
