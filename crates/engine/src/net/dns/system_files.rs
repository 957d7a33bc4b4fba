//! The system's configuration of name lookups: `/etc/resolv.conf`, `/etc/hosts` and
//! `/etc/nsswitch.conf`. Files that have changed are read again. The environment variables
//! `LOCALDOMAIN` and `RES_OPTIONS` apply as in glibc.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_policy::dns::hosts::HostsFile;
use haul_policy::dns::nsswitch::{HostLookupSources, parse_host_sources};
use haul_policy::dns::resolv_conf::ResolvConf;

use crate::system::file_metadata_and_flags::MetadataExt;

/// The minimum time between two checks whether a resolver file has changed: `/etc/resolv.conf`, the
/// hosts file, or `/etc/nsswitch.conf`.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The maximum size in bytes of a hosts file that is kept in memory. If the file is larger, the
/// system's resolver looks up the names.
const MAX_HOSTS_SIZE: u64 = 4 << 20;

/// The paths of the system's resolver configuration files: `/etc/resolv.conf`, the hosts file, and
/// `/etc/nsswitch.conf`.
#[derive(Clone, Debug)]
pub(super) struct ResolverFilePaths {
    pub(super) resolv_conf: PathBuf,
    pub(super) hosts: PathBuf,
    pub(super) nsswitch: PathBuf,
}

impl Default for ResolverFilePaths {
    fn default() -> Self {
        Self {
            resolv_conf: "/etc/resolv.conf".into(),
            hosts: "/etc/hosts".into(),
            nsswitch: "/etc/nsswitch.conf".into(),
        }
    }
}

/// The parsed content of the system's resolver configuration files.
#[derive(Clone, Debug)]
pub(super) struct ParsedResolverFiles {
    pub(super) resolv_conf: Arc<ResolvConf>,
    pub(super) hosts: Arc<HostsFile>,
    pub(super) sources: HostLookupSources,
}

/// The device, inode, modification time (seconds and nanoseconds) and size of a file; `None` if the
/// file does not exist. A different value means that the file has changed.
type ResolverFileStamp = Option<(u64, u64, i64, i64, u64)>;

/// The system's resolver configuration files: their content at the last read, and the time of the
/// last check for changes.
pub(super) struct ResolverFiles {
    paths: ResolverFilePaths,
    checked: Instant,
    versions: [ResolverFileStamp; 3],
    config: ParsedResolverFiles,
}

impl ResolverFiles {
    /// Reads the system's resolver configuration files.
    pub(super) fn read(paths: ResolverFilePaths, now: Instant) -> Self {
        let versions = versions(&paths);
        let config = read(&paths, versions[1]);
        Self { paths, checked: now, versions, config }
    }

    /// Returns the system's resolver configuration. Reads the files again if they have changed,
    /// which is checked at most once in [`CHECK_INTERVAL`].
    pub(super) fn config(&mut self, now: Instant) -> &ParsedResolverFiles {
        if now.saturating_duration_since(self.checked) >= CHECK_INTERVAL {
            self.checked = now;
            let versions = versions(&self.paths);
            if versions != self.versions {
                self.config = read(&self.paths, versions[1]);
                self.versions = versions;
            }
        }
        &self.config
    }
}

fn versions(paths: &ResolverFilePaths) -> [ResolverFileStamp; 3] {
    [&paths.resolv_conf, &paths.hosts, &paths.nsswitch].map(|path| {
        let data = fs::metadata(path).ok()?;
        Some((data.dev(), data.ino(), data.mtime(), data.mtime_nsec(), data.size()))
    })
}

fn environment_text(name: &str) -> Option<String> {
    crate::trusted_environment_variables::variable(name)?.into_string().ok()
}

fn read(paths: &ResolverFilePaths, hosts_version: ResolverFileStamp) -> ParsedResolverFiles {
    // On Windows, every user can create the directory \etc.
    let text = if cfg!(windows) { String::new() } else { read_text_or_empty(&paths.resolv_conf) };
    let mut resolv_conf = ResolvConf::parse(&text);
    if resolv_conf.search.is_empty() {
        resolv_conf.set_search(&domain_of_this_host());
    }
    if let Some(domains) = environment_text("LOCALDOMAIN") {
        resolv_conf.set_search(&domains);
    }
    if let Some(options) = environment_text("RES_OPTIONS") {
        resolv_conf.apply_options(options.split_ascii_whitespace());
    }
    let is_large = hosts_version.is_some_and(|(.., size)| size > MAX_HOSTS_SIZE);
    let (hosts, sources) = if is_large || cfg!(windows) {
        (HostsFile::default(), HostLookupSources::SystemOnly)
    } else {
        (HostsFile::parse(&read_text_or_empty(&paths.hosts)), parse_host_sources(&read_text_or_empty(&paths.nsswitch)))
    };
    ParsedResolverFiles { resolv_conf: Arc::new(resolv_conf), hosts: Arc::new(hosts), sources }
}

/// Returns the domain in the name of this host. Returns an empty text if the name has no domain.
#[cfg(unix)]
fn domain_of_this_host() -> String {
    let node = rustix::system::uname();
    let domain = node.nodename().to_str().ok().and_then(|node| node.split_once('.')).map(|(_, domain)| domain);
    domain.unwrap_or_default().to_owned()
}

/// Returns an empty text: the system's resolver looks up all names on Windows.
#[cfg(windows)]
fn domain_of_this_host() -> String {
    String::new()
}

/// Returns the text of a file. Returns an empty text if the file cannot be read: the system's
/// resolver ignores such files, too.
fn read_text_or_empty(path: &Path) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_hosts_file_is_reread_after_a_second() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("resolv.conf"), "nameserver 192.0.2.1\nsearch a\n").unwrap();
        let paths =
            ResolverFilePaths { resolv_conf: at("resolv.conf"), hosts: at("hosts"), nsswitch: at("nsswitch.conf") };
        let now = Instant::now();
        let mut files = ResolverFiles::read(paths, now);
        assert_eq!(files.config(now).sources, HostLookupSources::FilesThenDns);
        fs::write(at("hosts"), "192.0.2.9 web\n").unwrap();
        fs::write(at("nsswitch.conf"), "hosts: files ldap\n").unwrap();
        assert!(files.config(now).hosts.addresses("web").is_empty());
        let later = files.config(now + CHECK_INTERVAL);
        assert_eq!(later.hosts.addresses("web").len(), 1);
        assert_eq!(later.sources, HostLookupSources::SystemOnly);
        assert_eq!(later.resolv_conf.servers[0].to_string(), "192.0.2.1:53");
    }
}
