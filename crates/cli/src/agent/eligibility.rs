//! Decides which requests go through the agent (`--agent`), and warns when it cannot be used.

use std::fs::File;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::path::Path;

use haul::sink::file::FileOptions;
use haul::transfer::TransferOutcome;
use haul::{Client, Error, ErrorKind, RequestOptions, Result, Target};
use haul_policy::retry::is_idempotent;

use super::fetch_via_agent_or_directly::{AgentFetcher, is_null};
use super::relay_output::RelayObserver;
use super::socket::AgentUnavailable;
use crate::file_and_environment_access::print_error_line;
use crate::plan::{ContinueAt, GlobalArgs, UrlGroup, append_query};
use crate::run::report::progress::ProgressReporter;

/// Fetches `url` through the agent. `group` is the URL group (`--next` separates groups)
/// that contains the URL. Returns `None` if `--agent` is not given, or if the agent cannot be used
/// for this request.
///
/// # Errors
/// `--agent` names no socket, and there is no default path because `XDG_RUNTIME_DIR` is not set.
pub(crate) fn fetch(
    client: &Client,
    global: &GlobalArgs,
    group: &UrlGroup,
    url: &str,
    request: &RequestOptions,
    file: Option<(&Path, FileOptions)>,
    progress: &ProgressReporter,
) -> Result<Option<TransferOutcome>> {
    let Some(args) = &global.agent else { return Ok(None) };
    let stage = &group.stages[0];
    let transfer = &stage.transfer;
    // Fixed addresses belong to a client, not to a request, and statistics cover only this process.
    let is_ours = !transfer.resolve.is_empty()
        || transfer.dns.is_set()
        || transfer.doh_url.is_some()
        || global.stats.is_some()
        || group.checksum.is_some()
        // The agent reports neither failed attempts nor redirects nor the TLS session.
        || group.record_output().is_some()
        // The archive is this process's.
        || request.recorder.is_some();
    // Only -C - with a file may begin at the first byte.
    let goes_on = match stage.request.continue_at {
        None => false,
        Some(ContinueAt::OutputSize) => file.is_none(),
        Some(ContinueAt::Offset(_)) => true,
    };
    // If the agent dies, this process sends the request again (RFC 9110 section 9.2.2).
    let may_repeat = match global.persona.is_curl() {
        true => is_idempotent(&request.method),
        false => request.retry.may_repeat(&request.method),
    };
    // Whether -z wants the body is decided by the head, before anything is written.
    let is_conditional = stage.request.time_cond.is_some();
    let watched = is_conditional || request.trace.is_some() || request.include_head || request.body.is_some();
    // Output to a terminal is checked for binary content.
    let to_terminal = file.is_none() && std::io::stdout().is_terminal();
    if is_ours || goes_on || !may_repeat || watched || to_terminal {
        return Ok(None);
    }
    let mut fetcher = match AgentFetcher::with_agent(client, args) {
        Ok(fetcher) => fetcher,
        Err(refusal @ AgentUnavailable::NoDefaultPath) => {
            return Err(Error::new(ErrorKind::Setup, refusal.to_string()));
        }
        Err(refusal) => {
            if !global.silent {
                print_error_line(&format!(
                    "Warning: the agent is not used: {}",
                    crate::usage_error::one_line(&refusal.to_string())
                ));
            }
            return Ok(None);
        }
    };
    // Connections for parts would be this process's own.
    let mut request = request.clone();
    request.split.connections = 1;
    let url = absolute(group, url);
    if global.persona.is_curl() {
        return Ok(fetch_in_curl_place(&mut fetcher, &url, &request, file, progress));
    }
    Ok(Some(match file {
        Some((path, options)) => fetcher.fetch_to_file(&url, &request, path, &options),
        None => fetcher.fetch_to_descriptor(&url, &request, std::io::stdout().as_fd()),
    }))
}

/// Fetches `url` through the agent as curl would fetch it: with one request, with a progress meter,
/// and into a file that is opened for the first byte. Returns `None` if the agent cannot be used
/// for this request.
fn fetch_in_curl_place(
    fetcher: &mut AgentFetcher<'_>,
    url: &str,
    request: &RequestOptions,
    file: Option<(&Path, FileOptions)>,
    progress: &ProgressReporter,
) -> Option<TransferOutcome> {
    progress.transfer_begins(file.is_none());
    // A device is opened at once, which changes nothing.
    let null = file.as_ref().filter(|(path, _)| is_null(path));
    let null = null.and_then(|(path, _)| File::options().write(true).open(path).ok());
    let outcome = match (file, &null) {
        (Some(_), Some(null)) => fetcher.relay_to_descriptor(url, request, null.as_fd(), Some(progress)),
        (Some((path, options)), None) => fetcher.relay_to_file(url, request, path, &options, Some(progress)),
        (None, _) => fetcher.relay_to_descriptor(url, request, std::io::stdout().as_fd(), Some(progress)),
    };
    progress.transfer_ends();
    outcome
}

impl RelayObserver for ProgressReporter {
    fn body_begins(&self, length: Option<u64>) {
        self.body_begins(length, 0);
    }

    fn body_bytes(&self, bytes: usize) {
        self.body_bytes(bytes);
    }
}

/// Returns the complete URL of the request, with its scheme and the query of `-G` or `--url-query`.
fn absolute(group: &UrlGroup, url: &str) -> String {
    let stage = &group.stages[0];
    let text = stage.request.query.as_ref().map_or_else(|| url.to_owned(), |query| append_query(url, query));
    let scheme = stage.transfer.redirect.default_scheme;
    let as_default = Target::parse_with(&text, scheme, true).map(|target| target.scheme());
    let as_http = Target::parse(&text).map(|target| target.scheme());
    match (as_default, as_http) {
        (Ok(meant), Ok(read)) if meant != read => format!("{}://{text}", meant.as_str()),
        _ => text,
    }
}
