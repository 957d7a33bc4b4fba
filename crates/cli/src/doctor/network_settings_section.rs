//! The section about this computer in the report of `haul doctor`: proxies, certificates, name
//! servers.

use serde_json::{Value, json};

use super::diagnosis_report::DiagnosisSection;
use crate::plan::{ProxyChoice, StageArgs};
use crate::program_persona::VERSION;

/// The environment variables whose values the report shows. Their values are only file names.
const FILE_VARIABLES: [&str; 4] = ["CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR", "NETRC"];

/// Returns the section of the report about haul's version, the proxy, the environment variables and
/// the name servers. `target` is the URL to fetch.
pub(super) fn section(stage: &StageArgs, target: &haul::Target) -> DiagnosisSection {
    let mut section = DiagnosisSection::new("environment", "Environment");
    section.add_fact("haul", format!("{VERSION} ({} {})", std::env::consts::OS, std::env::consts::ARCH));
    let proxy = proxy(stage, target);
    section.add_fact_with_value("proxy", proxy.clone().unwrap_or_else(|| "none".to_owned()), json!(proxy));
    for (name, value) in variables(stage) {
        section.add_row("variables", name, value.clone(), json!({"name": name, "value": value}));
    }
    let servers = name_servers();
    section.add_fact_with_value(
        "name_servers",
        if servers.is_empty() { "unknown".to_owned() } else { servers.join(", ") },
        servers,
    );
    section
}

/// Returns the proxy for a URL, without user and password; `None` if no proxy is used.
pub(super) fn proxy(stage: &StageArgs, target: &haul::Target) -> Option<String> {
    let given = stage.proxy.no_proxy.as_ref();
    match &stage.proxy.choice {
        ProxyChoice::Direct => None,
        ProxyChoice::Given { proxy, environment } => {
            let is_direct = given.unwrap_or(environment.no_proxy()).matches(target);
            (!is_direct).then(|| format!("{}://{}:{}", proxy.kind().as_str(), proxy.host_text(), proxy.port()))
        }
        ProxyChoice::Environment(environment) => {
            let url = match given {
                Some(no_proxy) => environment.proxy_unless(target, no_proxy),
                None => environment.proxy_for(target),
            };
            url.map(without_login)
        }
    }
}

/// Returns the environment variables that affect haul, as names and values. User names and
/// passwords are removed from the URLs of proxies. The values of `HAUL_AGENT` and `SSLKEYLOGFILE`
/// are replaced by the word `set`.
fn variables(stage: &StageArgs) -> Vec<(&'static str, String)> {
    let mut variables = Vec::new();
    if let ProxyChoice::Environment(environment) | ProxyChoice::Given { environment, .. } = &stage.proxy.choice {
        variables.extend(environment.variables().into_iter().map(|(name, value)| (name, without_login(&value))));
    }
    let files = FILE_VARIABLES.iter().filter_map(|name| Some((*name, std::env::var(name).ok()?)));
    variables.extend(files);
    for name in ["HAUL_AGENT", "SSLKEYLOGFILE"] {
        if std::env::var_os(name).is_some() {
            variables.push((name, "set".to_owned()));
        }
    }
    variables
}

/// Returns a proxy's URL without its user name and password.
fn without_login(url: &str) -> String {
    match url.rsplit_once('@') {
        Some((before, host)) => match before.split_once("://") {
            Some((scheme, _)) => format!("{scheme}://{host}"),
            None => host.to_owned(),
        },
        None => url.to_owned(),
    }
}

/// Returns the name servers in `/etc/resolv.conf`.
fn name_servers() -> Vec<String> {
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let servers = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    servers.filter_map(|rest| rest.split_whitespace().next()).map(str::to_owned).collect()
}

/// Returns a duration in seconds, as text and as a JSON number.
pub(super) fn seconds(time: std::time::Duration) -> (String, Value) {
    let seconds = (time.as_secs_f64() * 1000.0).round() / 1000.0;
    (format!("{seconds:.3} s"), json!(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_urls_are_shown_without_user_and_password() {
        assert_eq!(without_login("http://me:p@ss@proxy:3128/"), "http://proxy:3128/");
        assert_eq!(without_login("me:pw@proxy:3128"), "proxy:3128");
        assert_eq!(without_login("socks5h://proxy"), "socks5h://proxy");
    }
}
