//! Agents for tests. Each listens in a directory that belongs to one test, and is stopped when the
//! test ends.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{CommandOutput, eventually, haul, run};

/// The directory in which an agent listens. Dropping it stops the agent, if one was started.
pub struct TestAgentDirectory {
    dir: tempfile::TempDir,
}

impl TestAgentDirectory {
    pub fn new() -> TestAgentDirectory {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        TestAgentDirectory { dir }
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("agent")
    }

    pub fn option(&self) -> String {
        format!("--agent={}", self.socket().display())
    }

    /// Returns the command `haul` with these arguments and with the option `--agent` that selects
    /// this agent.
    pub fn haul(&self, args: &[&str]) -> Command {
        haul([&[self.option().as_str()], args].concat())
    }

    pub fn run(&self, args: &[&str]) -> CommandOutput {
        run(&mut self.haul(args))
    }

    /// Returns the value of a line in the output of `--agent-status`, such as `running`. Returns
    /// `None` if no agent runs.
    pub fn status(&self, name: &str) -> Option<u64> {
        let ran = self.run(&["--agent-status"]);
        let text = String::from_utf8(ran.stdout).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))?;
        Some(line.parse().unwrap())
    }

    /// Returns the process ID of this agent; `None` if it does not run.
    pub fn pid(&self) -> Option<rustix::process::Pid> {
        rustix::process::Pid::from_raw(i32::try_from(self.status("pid")?).unwrap())
    }
}

impl Drop for TestAgentDirectory {
    fn drop(&mut self) {
        if let Some(pid) = self.pid() {
            self.run(&["--agent-stop"]);
            let is_gone = || !Path::new(&format!("/proc/{}/stat", pid.as_raw_nonzero())).exists() || is_zombie(pid);
            if !std::thread::panicking() {
                eventually("the agent ends", is_gone);
            }
        }
    }
}

/// Returns `true` if the process has ended but its parent has not waited for it. In a container
/// without an init process, an orphan stays in this state for ever.
pub fn is_zombie(pid: rustix::process::Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z'))
}
