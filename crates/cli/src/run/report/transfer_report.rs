//! The result of a finished transfer, from which its error message and the values of `-w` are made.

use std::borrow::Cow;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use haul::transfer::TransferOutcome;
use haul::{Error, ErrorKind, ProtocolVersion, Target};
use haul_policy::Scheme;
use haul_policy::file_url;
use haul_policy::redirect::location_text;
use haul_policy::secret_fields::{drop_userinfo, without_userinfo};

use crate::plan::StageArgs;
use crate::program_persona::ProgramPersona;
use crate::run::report::error_message;
use crate::write_out::{WriteOutValues, url_parts_as_written};

/// A finished transfer: its URL, its output file and its outcome.
pub(crate) struct TransferReport<'a> {
    /// The URL of the transfer, including the query that `-G` and `--url-query` add.
    pub(crate) url: &'a str,
    pub(crate) number: u64,
    pub(crate) stage: usize,
    pub(crate) method: &'a str,
    pub(crate) file: Option<&'a Path>,
    pub(crate) outcome: &'a TransferOutcome,
    /// The settings of the transfer's stage (`--then` separates stages); `None` if they are
    /// unknown.
    pub(crate) settings: Option<&'a StageArgs>,
}

impl TransferReport<'_> {
    /// Returns the error of the transfer; `None` if it succeeded.
    pub(crate) fn error(&self) -> Option<&Error> {
        self.outcome.result.as_ref().err()
    }

    /// Returns true if the URL is a `file:` URL and haul acts as curl. Only then does haul read
    /// local files.
    pub(crate) fn is_local(&self, persona: ProgramPersona) -> bool {
        persona.is_curl() && file_url::is_file_url(self.url)
    }

    /// Returns the scheme and the URL of the last request, after redirects, for `%{scheme}` and
    /// `%{url_effective}`.
    pub(crate) fn effective_scheme_and_url(&self, persona: ProgramPersona) -> (&str, String) {
        if self.is_local(persona) {
            return ("file", self.effective_file_url().unwrap_or_else(|| self.url.to_owned()));
        }
        let target = &self.outcome.target;
        let is_redirected = self.outcome.facts.redirects > 0;
        let own_fragment = self.url.split_once('#').map(|(_, fragment)| fragment);
        let fragment = match is_redirected {
            false => own_fragment,
            // curl shows no fragment that the redirect itself does not have.
            true => target.fragment().filter(|fragment| !persona.is_curl() || Some(*fragment) != own_fragment),
        };
        let mut url = with_port(target);
        let spelled = url_parts_as_written::path(self.url, target.path_and_query());
        if let Some(spelled) = spelled.filter(|_| persona.is_curl() && !is_redirected) {
            url.truncate(url.len() - target.path_and_query().len());
            url.push_str(&spelled);
        }
        let mut url = with_fragment(url, fragment);
        let host = match is_redirected {
            false => url_parts_as_written::host(self.url, target.host_text()),
            true => target.written_host().filter(|_| persona.is_curl()),
        };
        if let Some(host) = host {
            let from = target.scheme().as_str().len() + "://".len();
            url.replace_range(from..from + target.host_text().len(), host);
        }
        (target.scheme().as_str(), url)
    }

    /// Returns a `file:` URL as curl normalizes it: without host and dot segments. Returns `None` if
    /// the URL names no local file.
    fn effective_file_url(&self) -> Option<String> {
        let rest = file_url::path_query_fragment(self.url).ok()?;
        let path_as_is = self.settings.is_some_and(|stage| stage.transfer.options.path_as_is);
        let placed = format!("http://localhost{rest}");
        let target = Target::parse_with(&placed, Scheme::Http, path_as_is).ok()?;
        let path = url_parts_as_written::path(&placed, target.path_and_query());
        let path = path.as_deref().unwrap_or(target.path_and_query());
        Some(with_fragment(format!("file://{path}"), target.fragment()))
    }

    /// Returns the URL as the user gave it, for `%{url}`. Unless haul acts as curl, user and
    /// password are removed, because printed URLs appear in logs.
    pub(crate) fn shown_url(&self, persona: ProgramPersona) -> Cow<'_, str> {
        match persona {
            ProgramPersona::Curl => Cow::Borrowed(self.url),
            _ if self.error().is_some_and(|error| error.kind() == ErrorKind::Url && error.is_setup()) => {
                without_userinfo(self.url)
            }
            _ => drop_userinfo(self.url),
        }
    }

    /// Returns the URL to which Location in the last response leads, for `%{redirect_url}`. Like
    /// curl, uses the Location of any status, such as 201. `follows` is true if redirects are
    /// followed. With `follows`, returns `None` if the transfer failed, except by a refused
    /// redirect (too many redirects, or an unsupported scheme). Also returns `None` without a valid
    /// Location.
    pub(crate) fn redirect_url(&self, follows: bool) -> Option<String> {
        let is_refused =
            |error: &Error| matches!(error.kind(), ErrorKind::TooManyRedirects | ErrorKind::UnsupportedScheme);
        if follows && !self.error().is_none_or(is_refused) {
            return None;
        }
        let head = self.outcome.head.as_ref()?;
        let location = location_text(head.get_all("location").find(|location| !location.is_empty())?);
        match self.outcome.target.join(&location) {
            Ok(target) => Some(with_fragment(with_port(&target), target.fragment())),
            // A target that haul cannot fetch is shown as written.
            Err(error) => (error.exit_code() == 1).then(|| crate::usage_error::shown_url(&location)),
        }
    }

    /// Returns true if the response is an HTTP/0.9 response, which has no head.
    fn is_http09(&self) -> bool {
        self.outcome.result.is_ok()
            && self
                .outcome
                .head
                .as_ref()
                .is_some_and(|head| head.version() == ProtocolVersion::Http10 && head.raw().is_empty())
    }

    /// Returns the values for `-w` that can be derived from the outcome of the transfer. The caller
    /// adds the other values.
    pub(crate) fn write_out_values<'a>(
        &'a self,
        url: &'a str,
        url_effective: &'a str,
        error: Option<&'a str>,
    ) -> WriteOutValues<'a> {
        let (outcome, facts) = (self.outcome, &self.outcome.facts);
        let content_type = outcome.head.as_ref().and_then(|head| head.get_all("content-type").last());
        WriteOutValues {
            response_code: if self.is_http09() { 0 } else { facts.status },
            url,
            url_effective,
            size_download: facts.body_bytes,
            size_delivered: facts.decoded_bytes.unwrap_or(facts.body_bytes),
            time_namelookup: facts.resolved,
            time_connect: facts.connected,
            time_appconnect: facts.secured,
            time_starttransfer: facts.first_byte,
            time_total: facts.total,
            num_connects: facts.connects.into(),
            num_redirects: facts.redirects.into(),
            content_type: content_type.and_then(|value| std::str::from_utf8(value).ok()),
            exit_code: outcome.result.as_ref().err().map_or(0, Error::exit_code),
            error,
            method: facts.method.as_deref().unwrap_or(self.method),
            filename: self.file.and_then(Path::to_str),
            scheme: outcome.target.scheme().as_str(),
            http_version: match facts.version {
                _ if self.is_http09() => "0",
                Some(ProtocolVersion::Http10) => "1",
                Some(ProtocolVersion::Http11) => "1.1",
                Some(ProtocolVersion::Http2) => "2",
                Some(ProtocolVersion::Http3) => "3",
                _ => "",
            },
            connection: facts.connection,
            remote_ip: facts.peer.map(|peer| peer.ip()),
            remote_socket: None,
            certificates: facts.certificates.as_deref().unwrap_or_default(),
            remote_port: facts.peer.map(|peer| peer.port()),
            local_ip: facts.local.map(|local| local.ip()),
            local_port: facts.local.map(|local| local.port()),
            url_number: self.number,
            transfer_number: Some(self.number),
            connect_code: facts.connect_status,
            num_retries: facts.retries.into(),
            proxy_used: facts.proxy_used,
            proxy_verify_result: error_message::verify_result(outcome, true),
            verify_result: error_message::verify_result(outcome, false),
            redirect_url: None,
            referer: None,
            size_header: facts.head_bytes,
            size_request: facts.request_bytes,
            size_upload: facts.upload_bytes,
            time_pretransfer: facts.sent,
            time_posttransfer: facts.sent.max(facts.content_sent),
            time_redirect: facts.redirected,
            head: outcome.head.as_ref(),
            history: &outcome.history,
            now: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
        }
    }
}

/// Returns the URL of a target. As in curl, a port that the user gave explicitly is kept, even if
/// it is the default port of the scheme.
fn with_port(target: &Target) -> String {
    let port = target.explicit_port().filter(|port| *port == target.scheme().default_port());
    match port {
        Some(port) => {
            format!("{}://{}:{port}{}", target.scheme().as_str(), target.authority(), target.path_and_query())
        }
        None => target.to_url(),
    }
}

/// Appends a fragment to a URL, if `fragment` is not `None`.
fn with_fragment(url: String, fragment: Option<&str>) -> String {
    match fragment {
        Some(fragment) => format!("{url}#{fragment}"),
        None => url,
    }
}
