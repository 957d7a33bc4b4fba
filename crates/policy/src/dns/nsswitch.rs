//! `/etc/nsswitch.conf`: the sources of host names on a system with glibc (nsswitch.conf(5)).
//!
//! ```
//! use haul_policy::dns::nsswitch::{HostLookupSources, parse_host_sources};
//!
//! assert_eq!(parse_host_sources("hosts: files dns\n"), HostLookupSources::FilesThenDns);
//! assert_eq!(parse_host_sources("hosts: files mdns4_minimal [NOTFOUND=return] dns\n"), HostLookupSources::SystemOnly);
//! ```

/// The order in which host names are looked up in the hosts file and in DNS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostLookupSources {
    /// The hosts file, then DNS for names that the file does not list.
    FilesThenDns,
    /// DNS, then the hosts file for names that DNS does not answer.
    DnsThenFiles,
    /// The hosts file alone.
    FilesOnly,
    /// Other sources, such as mDNS or LDAP. Only the system's own resolver can use them.
    SystemOnly,
}

/// Parses the `hosts:` line in the text of `/etc/nsswitch.conf`. Without such a line, returns
/// glibc's default: the hosts file, then DNS.
#[must_use]
pub fn parse_host_sources(text: &str) -> HostLookupSources {
    let mut sources = HostLookupSources::FilesThenDns;
    for line in text.lines() {
        let line = line.split_once('#').map_or(line, |(line, _)| line).trim();
        let Some((database, services)) = line.split_once(':') else { continue };
        if database.trim_end() == "hosts" {
            sources = sources_from_services(services);
        }
    }
    sources
}

fn sources_from_services(services: &str) -> HostLookupSources {
    // An action such as `[NOTFOUND=return]` changes what follows a source. glibc's defaults have
    // none that matter here.
    if services.contains('[') && !services.trim_end().ends_with("dns [!UNAVAIL=return] files") {
        return HostLookupSources::SystemOnly;
    }
    let names: Vec<&str> =
        services.split_ascii_whitespace().filter(|word| !word.starts_with('[') && *word != "myhostname").collect();
    match names[..] {
        ["files", "dns"] => HostLookupSources::FilesThenDns,
        ["dns", "files"] | ["dns"] => HostLookupSources::DnsThenFiles,
        ["files"] => HostLookupSources::FilesOnly,
        _ => HostLookupSources::SystemOnly,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_files_and_dns_sources_is_kept() {
        assert_eq!(parse_host_sources("passwd: files\nhosts:\tfiles dns # both\n"), HostLookupSources::FilesThenDns);
        assert_eq!(parse_host_sources("hosts: dns [!UNAVAIL=return] files\n"), HostLookupSources::DnsThenFiles);
        assert_eq!(parse_host_sources("hosts: files\n"), HostLookupSources::FilesOnly);
        assert_eq!(parse_host_sources(""), HostLookupSources::FilesThenDns);
    }

    #[test]
    fn other_host_sources_need_the_system_resolver() {
        for services in [
            "files mdns4_minimal [NOTFOUND=return] dns",
            "files resolve [!UNAVAIL=return] dns",
            "files ldap dns",
            "db files",
            "",
        ] {
            assert_eq!(
                parse_host_sources(&format!("hosts: {services}\n")),
                HostLookupSources::SystemOnly,
                "{services}"
            );
        }
    }

    #[test]
    fn myhostname_source_is_ignored() {
        // nss-myhostname answers for the machine's own name and localhost, after files and dns.
        assert_eq!(parse_host_sources("hosts: files dns myhostname\n"), HostLookupSources::FilesThenDns);
    }

    #[test]
    fn nsswitch_lines_without_colon_are_ignored() {
        assert_eq!(parse_host_sources("hosts ldap\nhosts\n# hosts: db\n"), HostLookupSources::FilesThenDns);
        assert_eq!(parse_host_sources("hosts ldap\nhosts : ldap\n"), HostLookupSources::SystemOnly);
    }

    #[test]
    fn lines_without_a_database_are_ignored() {
        assert_eq!(parse_host_sources("hosts files dns\nhosts: files\nhosts\n"), HostLookupSources::FilesOnly);
    }
}
