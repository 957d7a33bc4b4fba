//! What is told of transfers: a line for each failure, `-w` behind each body, heads for `-D` and `-v`.

use std::borrow::Cow;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use haul::fleet::{Destination, Job, Report};
use haul::sink::output::Output;
use haul::trace::{Event, Trace};
use haul::transfer::Outcome;
use haul::{Error, ErrorKind, Result, Target};
use haul_policy::file_url;
use haul_policy::redirect::location_text;
use haul_policy::secrets::without_userinfo;
use rustix::fs::OFlags;

use super::many::Numbers;
use super::progress::Progress;
use super::single::NULL;
use super::trace::{Place, Tracer};
use super::{say, stamps, words};
use crate::persona::Persona;
use crate::plan::{self, Global, Operation, StageArgs, TraceForm, UnixSocket, WriteOut};
use crate::write_out::{TransferFacts, written};

/// Reports the transfers of one operation.
pub(super) struct Reporter {
    persona: Persona,
    shows_errors: bool,
    write_out: Vec<Option<WriteOut>>,
    traces: Vec<Option<Arc<Tracer>>>,
    progress: Arc<Progress>,
    operation: Operation,
    is_silent: bool,
    before: Before,
    /// Something that was asked for besides the content could not be written.
    is_lacking: AtomicBool,
}

/// What the operations before this one came to: curl counts on.
#[derive(Clone, Default)]
pub(super) struct Before {
    pub(super) urls: u64,
    pub(super) transfers: Arc<AtomicU64>,
    /// When the last of those one after the other began.
    began: Arc<Mutex<Option<Instant>>>,
}

/// One transfer as the report needs it.
pub(super) struct Told<'a> {
    /// With the query that is added to each.
    pub(super) url: &'a str,
    pub(super) number: u64,
    pub(super) stage: usize,
    pub(super) method: &'a str,
    pub(super) file: Option<&'a Path>,
    pub(super) outcome: &'a Outcome,
}

impl Reporter {
    pub(super) fn new(global: &Global, operation: &Operation, progress: Arc<Progress>, before: Before) -> Result<Self> {
        Ok(Self {
            persona: global.persona,
            shows_errors: global.shows_errors(),
            write_out: operation.stages.iter().map(|stage| stage.report.write_out.clone()).collect(),
            traces: operation.stages.iter().map(|stage| trace(global, operation, stage)).collect::<Result<_>>()?,
            progress,
            operation: operation.clone(),
            is_silent: global.silent,
            before,
            is_lacking: AtomicBool::new(false),
        })
    }

    pub(super) fn trace(&self, stage: usize) -> Option<Arc<dyn Trace>> {
        self.traces.get(stage)?.clone().map(|tracer| tracer as Arc<dyn Trace>)
    }

    /// `--rate`: waits until another transfer may begin, and notes that it does.
    pub(super) fn pace(&self, pace: Option<Duration>) {
        let Some(pace) = pace else { return };
        let mut began = self.before.began.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(left) = began.and_then(|began| pace.checked_sub(began.elapsed())) {
            std::thread::sleep(left);
        }
        *began = Some(Instant::now());
    }

    /// `-D` of what has no status line: a local file.
    pub(super) fn dump_head(&self, fields: &[u8]) {
        if let Some(Some(tracer)) = self.traces.first() {
            tracer.dump_head(fields);
        }
    }

    pub(super) fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// Tells of a transfer that is over; what belongs on standard output behind its body is returned.
    pub(super) fn tell(&self, told: &Told<'_>) -> Option<Vec<u8>> {
        let error = told.outcome.result.as_ref().err();
        let transfer = self.before.transfers.fetch_add(1, Ordering::Relaxed);
        let is_local = self.persona.is_curl() && file_url::is_one(told.url);
        let was_reached = is_local || told.outcome.facts.requests > 0;
        self.progress.transfer_over(&told.outcome.facts, was_reached, error.is_some());
        if let (Some(error), Some(Some(tracer))) = (error, self.traces.get(told.stage)) {
            // Also where -s keeps the line below from being said.
            tracer.event(&Event::Info(words::of(self.persona, error, Some(told.outcome)).into()));
        }
        if let Some(error) = error.filter(|_| self.shows_errors) {
            self.progress.clear();
            say(&words::line(self.persona, error, Some(told.outcome)));
        }
        self.leave_behind(told);
        if let Some(Some(tracer)) = self.traces.get(told.stage)
            && let Some(error) = tracer.lost().filter(|_| self.shows_errors)
        {
            self.progress.clear();
            say(&words::beside(Persona::Curl, &error));
        }
        let write_out = self.write_out.get(told.stage)?.as_ref()?;
        let text = error.map(|error| words::of(self.persona, error, Some(told.outcome)));
        let fragment = match told.outcome.facts.redirects {
            0 => told.url.split_once('#').map(|(_, fragment)| fragment),
            _ => told.outcome.target.fragment(),
        };
        let (scheme, url_effective) = match is_local {
            true => ("file", told.url.to_owned()),
            false => {
                let target = &told.outcome.target;
                let mut url = with_fragment(with_port(target), fragment);
                let host = written::host(told.url, target.host_text()).filter(|_| told.outcome.facts.redirects == 0);
                if let Some(host) = host {
                    let from = target.scheme().as_str().len() + "://".len();
                    url.replace_range(from..from + target.host_text().len(), host);
                }
                (target.scheme().as_str(), url)
            }
        };
        let url = match self.persona {
            Persona::Curl => Cow::Borrowed(told.url),
            _ if error.is_some_and(|error| error.kind() == ErrorKind::Url && error.is_setup()) => {
                without_userinfo(told.url)
            }
            _ => without_user(told.url),
        };
        let request = &self.operation.stages.get(told.stage)?.request;
        let follows = self.operation.stages.get(told.stage)?.transfer.redirect.follow;
        let is_refused =
            |error: &Error| matches!(error.kind(), ErrorKind::TooManyRedirects | ErrorKind::UnsupportedScheme);
        // What followed a redirect and failed has no other.
        let is_left = !follows || error.is_none_or(is_refused);
        let redirect_url = redirect_url(told.outcome).filter(|_| is_left);
        let referer = request.referer.as_deref().and_then(|referer| std::str::from_utf8(referer).ok());
        let referer = told.outcome.facts.referer.as_deref().or(referer);
        let is_curl = self.persona.is_curl();
        let facts = TransferFacts {
            url_number: told.number + if is_curl { self.before.urls } else { 0 },
            transfer_number: if is_curl { transfer } else { told.number },
            redirect_url: redirect_url.as_deref(),
            referer,
            scheme,
            remote_socket: self.socket(told),
            filename: self.file(told).and_then(Path::to_str),
            ..facts(told, &url, &url_effective, text.as_deref())
        };
        Some(self.printed(write_out, &facts))
    }

    /// Tells by `-w` of a URL that nothing could be asked for by; what belongs on standard output is returned.
    pub(super) fn tell_unusable(&self, url: &str, number: u64, error: &Error) -> Option<Vec<u8>> {
        let transfer = self.before.transfers.fetch_add(1, Ordering::Relaxed);
        let write_out = self.write_out.first()?.as_ref()?;
        let outcome = Outcome::unsent(Target::parse("localhost").ok()?, error.again(), Instant::now());
        let method = &self.operation.stages.first()?.request.method;
        let told = Told { url, number, stage: 0, method, file: None, outcome: &outcome };
        let text = words::of(self.persona, error, None);
        let facts = TransferFacts {
            url_number: number + self.before.urls,
            transfer_number: transfer,
            scheme: "",
            ..facts(&told, url, url, Some(&text))
        };
        Some(self.printed(write_out, &facts))
    }

    /// Prints what goes to standard error and to files; the rest is returned.
    fn printed(&self, write_out: &WriteOut, facts: &TransferFacts<'_>) -> Vec<u8> {
        let printed = write_out.render(facts, self.persona);
        if !printed.stderr.is_empty() {
            self.progress.clear();
            let _ = std::io::stderr().write_all(&printed.stderr);
        }
        for (path, adds, text) in printed.files {
            let file = File::options().create(true).write(true).append(adds).truncate(!adds).open(&path);
            if let Err(error) = file.and_then(|mut file| file.write_all(&text)) {
                self.lacks(&path, error);
            }
        }
        printed.stdout
    }

    /// Prints what is told behind a body. That it cannot be printed is no failure in curl's place: the content is elsewhere,
    /// whole, and its exit code is all that is left to tell of it.
    pub(super) fn print(&self, text: Option<Vec<u8>>) -> Result<()> {
        let Some(text) = text else { return Ok(()) };
        let mut output = Output::stdout();
        match output.write(&text).and_then(|_| output.drain(None)) {
            Err(error) if self.persona.is_curl() => {
                let closed = error.io_source().is_some_and(|source| source.kind() == std::io::ErrorKind::BrokenPipe);
                if self.shows_errors && !closed {
                    self.progress.clear();
                    say(&words::beside(self.persona, &error));
                }
                Ok(())
            }
            printed => printed,
        }
    }

    /// The file of the local socket that was spoken to.
    fn socket(&self, told: &Told<'_>) -> Option<&str> {
        match &self.operation.stages.get(told.stage)?.transfer.connection.unix_socket {
            Some(UnixSocket::Path(path)) if told.outcome.facts.requests > 0 => path.to_str(),
            _ => None,
        }
    }

    /// The file that content went to; `--out-null` leaves none, nor does what `-z` did not want.
    fn file<'t>(&self, told: &Told<'t>) -> Option<&'t Path> {
        let is_dropped =
            told.outcome.facts.status == 304 && told.outcome.head.as_ref().is_some_and(|head| head.status() != 304);
        told.file
            .filter(|_| !is_dropped)
            .filter(|path| *path != Path::new(NULL) || !self.operation.outputs.contains(&plan::Output::Null))
    }

    /// What a transfer that was a success leaves besides its body.
    fn leave_behind(&self, told: &Told<'_>) {
        if told.outcome.result.is_err() {
            return;
        }
        if let Some(path) = self.file(told).filter(|_| self.operation.remote_time || self.operation.xattr) {
            for failure in stamps::file(&self.operation, path, told.url, told.outcome) {
                self.warn(&failure);
            }
        }
        let saved = self.operation.stages.get(told.stage).and_then(|stage| stage.request.etag_save.as_ref());
        if let Some(path) = saved
            && let Err(error) = stamps::entity_tag(path, told.outcome)
        {
            self.lacks(path, error);
        }
    }

    /// A file that was asked for besides the content could not be written.
    fn lacks(&self, path: &Path, error: std::io::Error) {
        let error = Error::with_source(ErrorKind::Write, format!("failed to write {}", path.display()), error);
        self.is_lacking.store(true, Ordering::Relaxed);
        if self.shows_errors {
            self.progress.clear();
            say(&words::beside(self.persona, &error));
        }
    }

    /// The exit code of an operation whose transfers ended with this one: in haul's own name, what is lacking makes it a failure.
    pub(super) fn exit_code(&self, transfers: u8) -> u8 {
        let fails = transfers == 0 && !self.persona.is_curl() && self.is_lacking.load(Ordering::Relaxed);
        if fails { ErrorKind::Write.exit_code() } else { transfers }
    }

    fn warn(&self, text: &str) {
        if !self.is_silent {
            self.progress.clear();
            say(&format!("Warning: {}", crate::usage::tamed(text)));
        }
    }
}

impl Report for ReporterRef {
    fn finished(&self, job: &Job, outcome: &Outcome) -> Option<Vec<u8>> {
        let file = match &job.destination {
            Destination::File { path, .. } => Some(path.as_path()),
            Destination::Output => None,
        };
        let method = self.methods.get(job.stage).map_or("GET", String::as_str);
        let number = match job.stage {
            0 if self.reporter.persona.is_curl() => self.numbers.of(job.number),
            _ => job.number,
        };
        let told = Told { url: &job.url, number, stage: job.stage, method, file, outcome };
        self.reporter.tell(&told)
    }
}

/// A reporter as the fleet holds it.
pub(super) struct ReporterRef {
    pub(super) reporter: Arc<Reporter>,
    pub(super) methods: Vec<String>,
    pub(super) numbers: Numbers,
}

/// A URL as it was given, but for its user and password: what is printed ends up in logs.
fn without_user(url: &str) -> Cow<'_, str> {
    let from = url.find("://").map_or(0, |colon| colon + 3);
    let authority = url[from..].find(['/', '\\', '?', '#']).map_or(&url[from..], |length| &url[from..from + length]);
    match authority.rfind('@') {
        Some(at) => Cow::Owned(format!("{}{}", &url[..from], &url[from + at + 1..])),
        None => Cow::Borrowed(url),
    }
}

fn facts<'a>(told: &'a Told<'_>, url: &'a str, url_effective: &'a str, error: Option<&'a str>) -> TransferFacts<'a> {
    let (outcome, facts) = (told.outcome, &told.outcome.facts);
    let content_type = outcome.head.as_ref().and_then(|head| head.get_all("content-type").last());
    TransferFacts {
        response_code: facts.status,
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
        method: facts.method.as_deref().unwrap_or(told.method),
        filename: told.file.and_then(Path::to_str),
        scheme: outcome.target.scheme().as_str(),
        http_version: match facts.version {
            Some(haul::Version::Http10) => "1",
            Some(haul::Version::Http11) => "1.1",
            Some(haul::Version::Http2) => "2",
            _ => "",
        },
        connection: facts.connection,
        remote_ip: facts.peer.map(|peer| peer.ip()),
        remote_socket: None,
        remote_port: facts.peer.map(|peer| peer.port()),
        local_ip: facts.local.map(|local| local.ip()),
        local_port: facts.local.map(|local| local.port()),
        url_number: told.number,
        transfer_number: told.number,
        connect_code: facts.connect_status,
        num_retries: facts.retries.into(),
        proxy_used: facts.proxy_used,
        proxy_verify_result: words::verify_result(outcome, true),
        verify_result: words::verify_result(outcome, false),
        redirect_url: None,
        referer: None,
        size_header: facts.head_bytes,
        size_request: facts.request_bytes,
        size_upload: facts.upload_bytes,
        time_pretransfer: facts.sent,
        time_redirect: facts.redirected,
        head: outcome.head.as_ref(),
        history: &outcome.history,
        now: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
    }
}

/// A URL with the port that was written though it is its scheme's own, as curl tells it.
fn with_port(target: &Target) -> String {
    let port = target.explicit_port().filter(|port| *port == target.scheme().default_port());
    match port {
        Some(port) => {
            format!("{}://{}:{port}{}", target.scheme().as_str(), target.authority(), target.path_and_query())
        }
        None => target.to_url(),
    }
}

/// A fragment is no part of a request, but of what the user wrote, or the server.
fn with_fragment(url: String, fragment: Option<&str>) -> String {
    match fragment {
        Some(fragment) => format!("{url}#{fragment}"),
        None => url,
    }
}

/// Where a redirect that was not followed leads.
fn redirect_url(outcome: &Outcome) -> Option<String> {
    let head = outcome.head.as_ref().filter(|head| (300..400).contains(&head.status()))?;
    let location = location_text(head.get_all("location").find(|location| !location.is_empty())?);
    match outcome.target.join(&location) {
        Ok(target) => Some(with_fragment(with_port(&target), target.fragment())),
        // One that haul cannot go to is told as it is.
        Err(error) => (error.exit_code() == 1).then(|| crate::usage::shown_url(&location)),
    }
}

/// What `-v`, `--trace` and `-D` want to see.
fn trace(global: &Global, operation: &Operation, stage: &StageArgs) -> Result<Option<Arc<Tracer>>> {
    let args = &global.trace;
    let heads = match &stage.report.dump_header {
        Some(path) => {
            // What is wrong with it is told when the file is opened.
            let _ = stamps::make_directories(operation, path);
            Some(opened(path)?)
        }
        None => None,
    };
    let retries_as_curl = global.persona.is_curl() && stage.transfer.retry.count > 0;
    let tells_retries = retries_as_curl && !global.silent;
    let tells_failures = retries_as_curl && global.shows_errors();
    if heads.is_none() && args.form == TraceForm::Off && !tells_retries && !tells_failures {
        return Ok(None);
    }
    let out = match &args.file {
        Some(path) => opened(path)?,
        None => Place::new("standard error", Box::new(std::io::stderr())),
    };
    let connect_heads = !stage.proxy.suppress_connect_headers;
    Ok(Some(Arc::new(Tracer {
        args: args.clone(),
        out,
        heads,
        connect_heads,
        tells_retries,
        tells_failures,
        is_told: AtomicBool::new(false),
    })))
}

/// A file that is written anew; `-` is standard output, `%` standard error.
fn opened(path: &Path) -> Result<Place> {
    Ok(match path.as_os_str().as_encoded_bytes() {
        b"-" => Place::new("standard output", Box::new(std::io::stdout())),
        b"%" => Place::new("standard error", Box::new(std::io::stderr())),
        _ => {
            let name = path.display();
            let cannot = |error| Error::with_source(ErrorKind::Write, format!("failed to open {name}"), error);
            // Content may go to the same file (-D FILE -o FILE): what is written here comes behind whatever is there.
            let mut options = File::options();
            options.write(true).create(true).truncate(true).custom_flags(OFlags::APPEND.bits() as i32);
            Place::new(name.to_string(), Box::new(options.open(path).map_err(cannot)?))
        }
    })
}
