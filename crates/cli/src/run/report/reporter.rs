//! Reports the transfers of a URL group: prints error lines and the output of `-w`, and sets up the
//! observers of `-D` and `-v`.

mod fleet_reporter;

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haul::exchange_record::ExchangeRecorder;
use haul::fleet::{FinishedTransferContent, HostStartRate, StartRate, WholeOrPiecewiseText};
use haul::interrupt_callback::InterruptCallback;
use haul::net::local_address::UnixSocketAddress;
use haul::request::{RetryObserver, RetryPause, TotalRateLimit};
use haul::sink::descriptor_writer::DescriptorWriter;
use haul::system::file_metadata_and_flags::NULL_DEVICE;
use haul::trace::{TraceEvent, TransferObserver};
use haul::transfer::TransferOutcome;
use haul::{Error, ErrorKind, RequestOptions, Result, Target};
use haul_policy::target::Origin;

use crate::job::JobRun;
use crate::plan::{self, GlobalArgs, RecordOutputFormat, UrlGroup, WriteOut};
use crate::program_persona::ProgramPersona;
use crate::run::engine_options::output_options::{record_options, shows_content};
use crate::run::report::events::EventLog;
use crate::run::report::progress::ProgressReporter;
use crate::run::report::records::{RecordedTransfer, RowBuffering, StoredFile};
use crate::run::report::transfer_report::TransferReport;
use crate::run::report::verbose_and_trace_output::Tracer;
use crate::run::report::{error_message, file_metadata};
use crate::run::transfers::reserved_output_names::ReservedOutputNames;
use crate::write_out::WriteOutValues;

pub(crate) use fleet_reporter::FleetReporter;

/// The longest pause before a retry that haul does not announce. For a longer pause, haul prints a
/// message, so that the user knows why nothing happens.
const LONG_PAUSE: Duration = Duration::from_secs(5);

/// The reporter of one URL group (`--next` separates groups). It prints the result of each
/// transfer of the group.
pub(crate) struct UrlGroupReporter {
    persona: ProgramPersona,
    shows_errors: bool,
    /// The tracer of each stage (`--then` begins a further stage); `None` for a stage that is not
    /// traced. The list is empty if no stage is traced.
    traces: Vec<Option<Arc<Tracer>>>,
    progress: Arc<ProgressReporter>,
    group: Arc<UrlGroup>,
    is_silent: bool,
    with_url: bool,
    /// The maximum size, in bytes, of the CSV rows of one page that are kept in memory to be sorted
    /// or compared (`--sort`, `--unique`).
    max_csv_rows_size: u64,
    before: Arc<SharedByUrlGroups>,
    /// True if a file other than the response body could not be written, such as the file of
    /// `--etag-save`.
    has_unwritten_output: Arc<AtomicBool>,
}

/// The state of a run that each URL group takes over from the previous one. `--next` separates the
/// groups.
#[derive(Clone, Default)]
pub(crate) struct SharedByUrlGroups {
    pub(crate) urls: u64,
    pub(crate) transfers: Arc<AtomicU64>,
    /// The number of extracted values that a stage after `--then '{}'` could not fetch because they
    /// are not URLs.
    pub(crate) skipped_values: Arc<AtomicU64>,
    /// `--rate`: the limit on how often transfers begin; `None` if the option is not given.
    pub(crate) pace: Option<StartRate>,
    /// `--rate-host`: the minimum time between the beginnings of two transfers from the same host.
    /// `None` without the option.
    pub(crate) host_pace: Option<HostStartRate>,
    /// `--limit-rate-total`: the limit on the transfer rate of the whole run. `None` without the
    /// option.
    pub(crate) limit_rate_total: Option<TotalRateLimit>,
    /// The names of output files that URLs of this run have reserved.
    pub(crate) names: ReservedOutputNames,
    /// The output of `--events`; `None` without the option.
    pub(crate) events: Option<Arc<EventLog>>,
    /// The archive of `--warc`; `None` without the option.
    pub(crate) archive: Option<Arc<dyn ExchangeRecorder>>,
    /// The function that tells the engine to end its waits after a signal; `None` if signals are
    /// not caught.
    pub(crate) interrupt: Option<InterruptCallback>,
    /// The job that keeps the state of the run; `None` without `--job`.
    pub(crate) job: Option<Arc<JobRun>>,
    /// The text of `-w` for the URLs that `--skip-existing` has skipped. curl prints it at the end
    /// of a run in parallel. `None` if the text is printed immediately.
    pub(crate) deferred_write_outs: Option<Arc<Mutex<Vec<u8>>>>,
}

impl SharedByUrlGroups {
    /// Prints the text of `-w` for the URLs that `--skip-existing` has skipped.
    pub(crate) fn print_deferred_write_outs(&self) {
        let Some(deferred) = &self.deferred_write_outs else { return };
        let text = std::mem::take(&mut *deferred.lock().unwrap_or_else(PoisonError::into_inner));
        let mut output = DescriptorWriter::stdout();
        // As in curl, an error of this text is none of the run.
        let _ = output.write(&text).and_then(|_| output.drain(None));
    }
}

impl UrlGroupReporter {
    /// Adds to the number of extracted values that `--then '{}'` could not fetch because they are
    /// not URLs.
    pub(crate) fn count_skipped_values(&self, count: u64) {
        self.before.skipped_values.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn new(
        global: &GlobalArgs,
        group: &Arc<UrlGroup>,
        progress: Arc<ProgressReporter>,
        before: SharedByUrlGroups,
    ) -> Result<Self> {
        Self::with_state(global, group, progress, Arc::new(before), Arc::default())
    }

    fn with_state(
        global: &GlobalArgs,
        group: &Arc<UrlGroup>,
        progress: Arc<ProgressReporter>,
        before: Arc<SharedByUrlGroups>,
        has_unwritten_output: Arc<AtomicBool>,
    ) -> Result<Self> {
        let mut traces = Vec::new();
        for (index, stage) in group.stages.iter().enumerate() {
            if let Some(tracer) = Tracer::open(global, group, stage)? {
                traces.resize(index, None);
                traces.push(Some(tracer));
            }
        }
        Ok(Self {
            persona: global.persona,
            shows_errors: global.shows_errors(),
            traces,
            progress,
            is_silent: global.silent,
            with_url: global.with_url,
            max_csv_rows_size: record_options(global, group).map_or(u64::MAX, |records| records.max_content),
            group: Arc::clone(group),
            before,
            has_unwritten_output,
        })
    }

    /// Returns the reporter of another URL group, `group`, whose transfers run in parallel with
    /// those of this reporter's group. If an output file of either group cannot be written, the
    /// exit codes of both groups report it.
    pub(crate) fn for_joined_group(&self, global: &GlobalArgs, group: &Arc<UrlGroup>) -> Result<Self> {
        let (before, unwritten) = (Arc::clone(&self.before), Arc::clone(&self.has_unwritten_output));
        Self::with_state(global, group, Arc::clone(&self.progress), before, unwritten)
    }

    /// Returns true if the run has curl's messages and exit codes.
    pub(crate) fn is_curl(&self) -> bool {
        self.persona.is_curl()
    }

    pub(crate) fn trace(&self, stage: usize) -> Option<Arc<dyn TransferObserver>> {
        self.traces.get(stage)?.clone().map(|tracer| tracer as Arc<dyn TransferObserver>)
    }

    /// Returns an observer of retries, which announces long pauses and writes the retry events of
    /// `--events`. Returns `None` if the observer would do neither: `--events` is not given, and
    /// pauses are not announced, because of `-s` or because haul acts as curl.
    pub(crate) fn retry_observer(reporter: &Arc<Self>) -> Option<Arc<dyn RetryObserver>> {
        let is_said = !reporter.is_silent && !reporter.persona.is_curl() || reporter.before.events.is_some();
        is_said.then(|| Arc::clone(reporter) as Arc<dyn RetryObserver>)
    }

    /// Waits until `--rate` allows another transfer to begin. Counts this transfer as begun.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`] if a signal has arrived, even without `--rate`.
    pub(crate) fn wait_for_start_rate(&self) -> Result<()> {
        match self.start_rate() {
            Some(pace) => pace.wait(self.interrupt()),
            None => self.interrupt().map_or(Ok(()), InterruptCallback::check),
        }
    }

    /// Waits until `--rate-host` and `--limit-rate-total` allow another transfer from a host to
    /// begin. Counts this transfer as begun.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`] if a signal has arrived.
    pub(crate) fn wait_for_host_start_rate(&self, host: &Origin) -> Result<()> {
        if let Some(total) = self.limit_rate_total() {
            total.wait(self.interrupt())?;
        }
        self.host_start_rate().map_or(Ok(()), |pace| pace.wait(host, self.interrupt()))
    }

    /// Counts the retries of a transfer as transfers that have begun, so that `--rate` and
    /// `--rate-host` also limit retries.
    pub(crate) fn count_retries(&self, host: &Origin, retries: u32) {
        let now = Instant::now();
        for _ in 0..retries {
            self.start_rate().inspect(|pace| pace.record_start(now));
            self.host_start_rate().inspect(|pace| {
                pace.record_start(host, now);
            });
        }
    }

    /// Returns the limit of `--rate-host`, which all URL groups of the run share; `None` without
    /// the option.
    pub(crate) fn host_start_rate(&self) -> Option<&HostStartRate> {
        self.before.host_pace.as_ref()
    }

    /// Returns the limit of `--limit-rate-total`, which all URL groups of the run share; `None`
    /// without the option.
    pub(crate) fn limit_rate_total(&self) -> Option<&TotalRateLimit> {
        self.before.limit_rate_total.as_ref()
    }

    /// Returns the limit of `--rate`, which all URL groups of the run share; `None` without the
    /// option.
    pub(crate) fn start_rate(&self) -> Option<&StartRate> {
        self.before.pace.as_ref()
    }

    /// Returns the function that tells the engine to end its waits after a signal; `None` if
    /// signals are not caught.
    pub(crate) fn interrupt(&self) -> Option<&InterruptCallback> {
        self.before.interrupt.as_ref()
    }

    /// Returns the job that keeps the state of the run; `None` without `--job`.
    pub(crate) fn job(&self) -> Option<&Arc<JobRun>> {
        self.before.job.as_ref()
    }

    /// Sets the request options so that requests and responses are recorded in the archive of
    /// `--warc`, if there is one. Turns off split downloads, because the archive would otherwise
    /// contain parts of bodies.
    pub(crate) fn set_recorder(&self, request: &mut RequestOptions) {
        if let Some(archive) = &self.before.archive {
            request.recorder = Some(Arc::clone(archive));
            request.split.connections = 1;
        }
    }

    /// Returns the names of output files that URLs of the run have reserved.
    pub(crate) fn output_names(&self) -> &ReservedOutputNames {
        &self.before.names
    }

    /// Writes header fields to the file of `-D`. This is called for a local file (`file:` URL), for
    /// which curl makes header fields without a status line.
    pub(crate) fn dump_head(&self, fields: &[u8]) {
        if let Some(Some(tracer)) = self.traces.first() {
            tracer.dump_head(fields);
        }
    }

    pub(crate) fn progress(&self) -> &Arc<ProgressReporter> {
        &self.progress
    }

    /// Reports the end of a transfer: prints its error, and updates the progress. Returns the text
    /// of `-w` for standard output, which is printed after the body. `None` if `-w` prints nothing
    /// there.
    pub(crate) fn report(&self, report: &TransferReport<'_>) -> Option<Vec<u8>> {
        self.report_numbered(report, self.before.transfers.fetch_add(1, Ordering::Relaxed))
    }

    /// Reports the end of a transfer, and returns the text to print, as
    /// [`UrlGroupReporter::report`] does. `transfer` is the value of `%{xfer_id}` if haul acts as
    /// curl, and otherwise unused. Returns `None` if there is nothing to print.
    fn report_numbered(&self, report: &TransferReport<'_>, transfer: u64) -> Option<Vec<u8>> {
        let error = report.error();
        let was_reached = report.is_local(self.persona) || report.outcome.facts.requests > 0;
        let is_shown = self.progress.transfer_over(report, was_reached);
        if let Some(events) = &self.before.events {
            events.write_ended(report, self.persona, self.file(report));
        }
        if let (Some(error), Some(Some(tracer))) = (error, self.traces.get(report.stage)) {
            // Also where -s keeps the line below from being said.
            tracer.event(&TraceEvent::Info(error_message::text_for(self.persona, error, Some(report.outcome)).into()));
        }
        if let Some(error) = error.filter(|error| is_shown && self.shows_errors && !error.is_interrupted()) {
            self.progress.print_error(error, Some(report));
        }
        self.progress.end_bar();
        self.write_side_files(report);
        if let Some(Some(tracer)) = self.traces.get(report.stage)
            && let Some(error) = tracer.write_failure().filter(|_| self.shows_errors)
        {
            self.progress.print_line(&error_message::side_output_error(ProgramPersona::Curl, &error));
        }
        self.write_out_text(report, transfer)
    }

    /// Returns the JSON line of a transfer, and the checksum of the transfer's file if it is known.
    /// Returns `None` if the group prints no such lines.
    fn json_line(
        &self,
        report: &TransferReport<'_>,
        id: Option<&str>,
        content: FinishedTransferContent,
    ) -> Option<(WholeOrPiecewiseText, Option<String>)> {
        let checksum = content.file_checksum.as_deref();
        let transfer = RecordedTransfer { id, ..self.recorded(report, checksum)? };
        let text = transfer.json_line(content);
        Some((text, transfer.file.and_then(|file| file.sha256)))
    }

    /// Returns the CSV rows of the values that a transfer has extracted; `None` if the group does
    /// not print CSV.
    ///
    /// # Errors
    /// The values cannot be arranged in rows.
    fn csv_rows(
        &self,
        report: &TransferReport<'_>,
        content: &mut FinishedTransferContent,
    ) -> Option<Result<WholeOrPiecewiseText>> {
        let is_csv = self.group.record_output().is_some_and(|records| records.format == RecordOutputFormat::Csv);
        let transfer = is_csv.then(|| self.recorded(report, None))??;
        let stage = self.group.stages.get(report.stage)?;
        let order = if stage.sort || stage.unique {
            RowBuffering::Compared(self.max_csv_rows_size)
        } else {
            RowBuffering::AsFound
        };
        Some(transfer.rows(std::mem::take(content), self.with_url, order))
    }

    /// Returns the facts for the record of a transfer; `None` if the group prints no records.
    /// `checksum` is the checksum of the transfer's file; `None` if it is unknown.
    fn recorded<'t>(&'t self, report: &'t TransferReport<'t>, checksum: Option<&[u8]>) -> Option<RecordedTransfer<'t>> {
        let records = self.group.record_output()?;
        let stage = self.group.stages.get(report.stage)?;
        let facts = &report.outcome.facts;
        let delivered = facts.decoded_bytes.unwrap_or(facts.body_bytes);
        let is_stored = report.outcome.result.is_ok() && records.format != RecordOutputFormat::Csv;
        let file = self.file(report).filter(|_| is_stored).map(|path| StoredFile::read(path, delivered, checksum));
        let (extracts, names) = (stage.takes_values(), &*stage.value_names);
        let is_shown = records.format == RecordOutputFormat::Csv && shows_content(&self.group);
        Some(RecordedTransfer { report, persona: self.persona, records, file, id: None, extracts, names, is_shown })
    }

    /// Prints the record, such as a `--jsonl` line, of a transfer that does not run in parallel
    /// with others. Does nothing if the group prints no records.
    pub(crate) fn print_record(&self, report: &TransferReport<'_>, content: FinishedTransferContent) -> Result<()> {
        match self.json_line(report, None, content).map(|(text, _)| text) {
            Some(WholeOrPiecewiseText::Whole(text)) => self.print(Some(text)),
            Some(WholeOrPiecewiseText::Pieces(text)) => {
                text.pieces.into_iter().try_for_each(|piece| self.print(Some(piece)))
            }
            Some(WholeOrPiecewiseText::Lines(lines)) => self.print(Some(lines.to_lines())),
            None => Ok(()),
        }
    }

    /// Reports a URL whose transfer could not begin: prints the URL's record, such as a `--jsonl`
    /// line, and writes the event of the transfer's end to the file of `--events`.
    pub(crate) fn report_unbegun(&self, url: &str, error: &Error) -> Result<()> {
        let is_transfer = matches!(
            error.kind(),
            ErrorKind::Url | ErrorKind::UnsupportedScheme | ErrorKind::Write | ErrorKind::Read | ErrorKind::Login
        );
        if !is_transfer || self.group.record_output().is_none() && self.before.events.is_none() {
            return Ok(());
        }
        let target = Target::parse("http://invalid/").expect("a URL");
        let outcome = TransferOutcome::unsent(target, error.duplicate(), Instant::now());
        let method = &self.group.stages[0].request.method;
        let settings = self.group.stages.first();
        let report = TransferReport { url, number: 0, stage: 0, method, file: None, outcome: &outcome, settings };
        if let Some(events) = &self.before.events {
            self.progress.counts().add(0, true);
            events.write_ended(&report, self.persona, None);
        }
        self.print_record(&report, FinishedTransferContent::default())
    }

    /// Formats `-w` for a transfer, and prints the parts for standard error and files. Returns the
    /// part for standard output; `None` without `-w`.
    fn write_out_text(&self, report: &TransferReport<'_>, transfer: u64) -> Option<Vec<u8>> {
        let stage = self.group.stages.get(report.stage)?;
        let write_out = stage.report.write_out.as_ref()?;
        let text = report.error().map(|error| error_message::text_for(self.persona, error, Some(report.outcome)));
        let (scheme, url_effective) = report.effective_scheme_and_url(self.persona);
        let url = report.shown_url(self.persona);
        let redirect_url = report.redirect_url(stage.transfer.options.redirects.follow);
        let referer = stage.request.referer.as_deref().and_then(|referer| std::str::from_utf8(referer).ok());
        let is_curl = self.persona.is_curl();
        let facts = WriteOutValues {
            url_number: report.number + if is_curl { self.before.urls } else { 0 },
            transfer_number: Some(if is_curl { transfer } else { report.number }),
            redirect_url: redirect_url.as_deref(),
            referer: report.outcome.facts.referer.as_deref().or(referer),
            scheme,
            remote_socket: self.socket(report),
            filename: self.file(report).and_then(Path::to_str),
            ..report.write_out_values(&url, &url_effective, text.as_deref())
        };
        Some(self.render_write_out(write_out, &facts))
    }

    /// Formats `-w` for a URL whose transfer could not begin, and prints the parts for standard
    /// error and files. `effective` is the value of `%{url_effective}`. Returns the part for
    /// standard output; `None` without `-w`.
    pub(crate) fn report_unusable_url(
        &self,
        url: &str,
        effective: &str,
        number: u64,
        error: &Error,
    ) -> Option<Vec<u8>> {
        let transfer = self.before.transfers.fetch_add(1, Ordering::Relaxed);
        let write_out = self.group.stages.first()?.report.write_out.as_ref()?;
        let outcome = TransferOutcome::unsent(Target::parse("localhost").ok()?, error.duplicate(), Instant::now());
        let method = &self.group.stages.first()?.request.method;
        let settings = self.group.stages.first();
        let report = TransferReport { url, number, stage: 0, method, file: None, outcome: &outcome, settings };
        let text = error_message::text_for(self.persona, error, None);
        let facts = WriteOutValues {
            url_number: number + self.before.urls,
            transfer_number: Some(transfer),
            scheme: "",
            ..report.write_out_values(url, effective, Some(&text))
        };
        Some(self.render_write_out(write_out, &facts))
    }

    /// Prints `-w` for a URL whose output file `path` exists, so that `--skip-existing` skips it.
    /// With `-Z`, keeps the text until the end of the run instead, as curl does. Does nothing
    /// unless haul acts as curl. `number` is the index of the URL's source.
    pub(crate) fn write_out_skipped(&self, url: &str, path: &Path, number: u64) -> Result<()> {
        let Some(stage) = self.group.stages.first().filter(|_| self.persona.is_curl()) else { return Ok(()) };
        let Some(write_out) = &stage.report.write_out else { return Ok(()) };
        let target = Target::parse("http://localhost/").expect("a URL");
        let mut outcome =
            TransferOutcome::unsent(target, Error::new(ErrorKind::Write, "the file exists"), Instant::now());
        (outcome.result, outcome.facts.total) = (Ok(()), Duration::ZERO);
        let method = &stage.request.method;
        let report = TransferReport {
            url,
            number,
            stage: 0,
            method,
            file: Some(path),
            outcome: &outcome,
            settings: Some(stage),
        };
        let facts = WriteOutValues {
            url_number: number + self.before.urls,
            transfer_number: None,
            scheme: "",
            ..report.write_out_values(url, url, None)
        };
        let text = self.render_write_out(write_out, &facts);
        match &self.before.deferred_write_outs {
            Some(deferred) => deferred.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&text),
            None => self.print(Some(text))?,
        }
        Ok(())
    }

    /// Formats `-w` with the values of a transfer, and prints the parts for standard error and
    /// files. Returns the part for standard output.
    fn render_write_out(&self, write_out: &WriteOut, facts: &WriteOutValues<'_>) -> Vec<u8> {
        let printed = write_out.render(facts, self.persona);
        if !printed.stderr.is_empty() {
            self.progress.clear();
            let _ = std::io::stderr().write_all(&printed.stderr);
        }
        for (path, adds, text) in printed.files {
            let file = File::options().create(true).write(true).append(adds).truncate(!adds).open(&path);
            if let Err(error) = file.and_then(|mut file| file.write_all(&text)) {
                self.report_unwritten(&path, error);
            }
        }
        printed.stdout
    }

    /// Prints a text of `-w` on standard output after a body. If haul acts as curl, an error is
    /// only a warning, because the exit code depends only on the body.
    pub(crate) fn print(&self, text: Option<Vec<u8>>) -> Result<()> {
        let Some(text) = text else { return Ok(()) };
        let mut output = DescriptorWriter::stdout();
        match output.write(&text).and_then(|_| output.drain(None)) {
            Err(error) if self.persona.is_curl() => {
                let closed = error.io_source().is_some_and(|source| source.kind() == std::io::ErrorKind::BrokenPipe);
                if self.shows_errors && !closed {
                    self.progress.print_line(&error_message::side_output_error(self.persona, &error));
                }
                Ok(())
            }
            printed => printed,
        }
    }

    /// Returns the path of the Unix socket that the transfer used; `None` for any other connection.
    fn socket(&self, report: &TransferReport<'_>) -> Option<&str> {
        match &self.group.stages.get(report.stage)?.transfer.options.connect.unix_socket {
            Some(UnixSocketAddress::Path(path)) if report.outcome.facts.requests > 0 => path.to_str(),
            _ => None,
        }
    }

    /// Returns the file to which the response body was written. Returns `None` for `--out-null`,
    /// and if the condition of `-z` was not met, so that nothing was written.
    fn file<'t>(&self, report: &TransferReport<'t>) -> Option<&'t Path> {
        let is_dropped =
            report.outcome.facts.status == 304 && report.outcome.head.as_ref().is_some_and(|head| head.status() != 304);
        report.file.filter(|path| !is_dropped && (path.as_os_str() != NULL_DEVICE || !self.discards_body(report.stage)))
    }

    /// Returns true if the response bodies of a stage are discarded (`--out-null`).
    fn discards_body(&self, stage: usize) -> bool {
        match stage {
            0 => self.group.outputs.contains(&plan::OutputArg::Null),
            _ => self.group.stages.get(stage).is_some_and(|stage| stage.output == plan::OutputArg::Null),
        }
    }

    /// Sets the metadata of the downloaded file (`-R`, `--xattr`) after a successful transfer, and
    /// writes the file of `--etag-save`.
    fn write_side_files(&self, report: &TransferReport<'_>) {
        if report.error().is_some() {
            return;
        }
        if let Some(path) = self.file(report).filter(|_| self.group.remote_time || self.group.xattr) {
            for failure in file_metadata::set_file_metadata(&self.group, path, report.url, report.outcome) {
                self.warn(&failure);
            }
        }
        let saved = self.group.stages.get(report.stage).and_then(|stage| stage.request.etag_save.as_ref());
        let tracer = self.traces.get(report.stage).and_then(Option::as_ref);
        let lost_tag = tracer.and_then(|tracer| tracer.entity_tag_failure());
        if let Some(path) = saved
            && let Err(error) =
                lost_tag.map_or_else(|| file_metadata::save_entity_tag(path, report.outcome, self.group.in_place), Err)
        {
            self.report_unwritten(path, error);
        }
    }

    /// Prints an error for the file `path`, which could not be written. It is a file other than the
    /// response body, such as the file of `--etag-save`.
    fn report_unwritten(&self, path: &Path, error: std::io::Error) {
        let error = Error::with_source(ErrorKind::Write, format!("failed to write {}", path.display()), error);
        self.has_unwritten_output.store(true, Ordering::Relaxed);
        if self.shows_errors {
            self.progress.print_line(&error_message::side_output_error(self.persona, &error));
        }
    }

    /// Returns the exit code of the URL group. `transfers` is the exit code of its transfers.
    /// Unless haul acts as curl, the group also fails if a file other than the response body could
    /// not be written.
    pub(crate) fn exit_code(&self, transfers: u8) -> u8 {
        let fails = transfers == 0 && !self.persona.is_curl() && self.has_unwritten_output.load(Ordering::Relaxed);
        if fails { ErrorKind::Write.exit_code() } else { transfers }
    }

    fn warn(&self, text: &str) {
        if !self.is_silent {
            self.progress.print_warning(&crate::usage_error::remove_control_characters(text));
        }
    }
}

impl RetryObserver for UrlGroupReporter {
    fn begins(&self, pause: &RetryPause<'_>) {
        let RetryPause { url, wait, cause, .. } = *pause;
        if let Some(events) = &self.before.events {
            events.write_retried(url, wait, cause);
        }
        self.progress.pause_begins(pause);
        if wait > LONG_PAUSE && !self.persona.is_curl() && !self.progress.is_drawn() {
            let seconds = wait.as_secs_f64().ceil();
            self.warn(&format!("{url}: {cause}; the next try is in {seconds} s"));
        }
    }
}
