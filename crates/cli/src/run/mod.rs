//! Runs a plan with the engine.
//!
//! ```text
//! RunPlan ─▶ engine_options ─┬─▶ single_url   one URL: the blocking driver, no thread
//!                            ├─▶ sequential   one after the other: curl without -Z
//!                            │                (file_url_transfer for file: URLs)
//!                            └─▶ parallel     URLs, globs, lists, uploads, stages: the fleet;
//!                                    │        several groups at once (parallel_group_dependencies)
//!                                    │
//!         report ◀───────────────────┘         errors, -w, traces, progress, statistics
//! ```
//!
//! A single URL that is neither a glob nor followed by `--then` is fetched without an extra thread
//! or an event loop.

pub(crate) mod engine_options;
mod parallel_group_dependencies;
pub(crate) mod report;
pub(crate) mod transfers;

use std::io::IsTerminal;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use haul::exchange_record::ExchangeRecorder;
use haul::fleet::{HostStartRate, StartRate};
use haul::interrupt_callback::InterruptCallback;
use haul::request::TotalRateLimit;
use haul::system::file_metadata_and_flags::{self, is_null_device_name};
use haul::{Client, Error, ErrorKind};
use haul_policy::glob::{GlobValues, UrlGlob};

use crate::file_and_environment_access::print_error_line;
use crate::job::JobRun;
use crate::job_file_names::files_of_job;
use crate::plan::{GlobalArgs, OutputArg, RunPlan, StageArgs, TraceFormat, UrlGroup, UrlSource};
use crate::program_persona::ProgramPersona;
use crate::system::standard_streams;
use crate::wrap_message::{columns, wrapped};
use crate::write_out::UNKNOWN_VARIABLE;
use report::events::EventLog;
use report::progress::{OutputBesideProgress, ProgressReporter};
use report::reporter::{SharedByUrlGroups, UrlGroupReporter};
use report::{error_message, statistics};
use transfers::reserved_output_names::ReservedOutputNames;
use transfers::signals::BlockedSignals;
use transfers::state_stores::StateStores;
use transfers::{curl_first_transfers, parallel, progress_signal, sequential, single_url, url_uploads};

/// Returns the text of a warning or a note. If haul acts as curl, the text is wrapped at the width
/// of the terminal.
fn warning_text(prefix: &str, text: &str, persona: ProgramPersona) -> String {
    if persona.is_curl() { wrapped(prefix, text, columns()) } else { format!("{prefix}{text}") }
}

/// Runs the plan: all URL groups, which `--next` separates. Returns the exit code of the program.
pub fn run(plan: RunPlan) -> u8 {
    if let Some(path) = &plan.global.stderr
        && let Err(error) = redirect_stderr(path)
    {
        print_error_line(&format!("Warning: failed to open {}: {error}", path.display()));
    }
    let warned = if plan.global.silent { plan.always_shown_warnings } else { plan.warnings.len() };
    for (number, warning) in plan.warnings.iter().enumerate() {
        // curl reports an unknown variable as an error, also with -s.
        if plan.global.persona.is_curl() && warning.starts_with(UNKNOWN_VARIABLE) {
            print_error_line(&format!("curl: {warning}"));
        } else if number < warned {
            print_error_line(&warning_text("Warning: ", warning, plan.global.persona));
        }
    }
    for note in plan.notes.iter().filter(|_| plan.global.shows_notes()) {
        print_error_line(&warning_text("Note: ", note, plan.global.persona));
    }
    let plan = Arc::new(plan);
    let progress = Arc::new(ProgressReporter::new(&plan.global));
    // Before other threads start, which would otherwise take the signals.
    let signals = (plan.global.job.is_some() || prints_at_end(&plan) || leaves_files(&plan))
        .then(BlockedSignals::install_handlers)
        .flatten();
    if prints_progress_on_signal(&plan) {
        progress_signal::start_signal_thread(&plan, &progress);
    }
    progress.start(&plan);
    // Before other files are opened, of which one could have the number that the user has given.
    let interrupt = signals.as_ref().map(BlockedSignals::interrupt_callback);
    let events = match EventLog::open(&plan, &progress, interrupt.as_ref()) {
        Ok(events) => events,
        Err(error) => {
            let code = report_setup_error(&plan, &progress, &error);
            if let Some(signals) = signals.filter(|_| error.is_interrupted()) {
                signals.end_process_by_signal();
            }
            return code;
        }
    };
    let mut before = match open_state(&plan, signals.as_ref(), events.clone()) {
        Ok(before) => before,
        Err(error) => return end_events(&plan, &progress, events, report_setup_error(&plan, &progress, &error)),
    };
    let client = Client::new();
    let mut stores = StateStores::default();
    let mut exit_code = 0;
    let mut begin = 0;
    while begin < plan.groups.len() {
        let indexes =
            begin..begin + parallel_group_dependencies::count_parallel_groups(&plan.global, &plan.groups[begin..]);
        begin = indexes.end;
        let group = &plan.groups[indexes.start];
        progress.group_begins(terminal_output(&plan, &plan.groups[indexes.clone()]), group.stages.len());
        let outcome = run_groups(&client, &plan, indexes.clone(), &progress, &mut stores, before.clone());
        before.urls += plan.groups[indexes.clone()].iter().map(|group| group.urls.len() as u64).sum::<u64>();
        let (ControlFlow::Continue(code) | ControlFlow::Break(code)) = outcome;
        // To curl all are one side by side: the first failure counts.
        if exit_code == 0 || plan.global.persona.is_curl() && !plan.global.parallel {
            exit_code = code;
        }
        progress.clear();
        let waits = |error: &Error| {
            if plan.global.shows_errors() {
                print_error_line(&format!("Warning: {error}; haul waits until it is free"));
            }
        };
        let mut lost = stores.save(group, &waits);
        if !sequential::is_sequential(&plan, group) || !plan.global.persona.is_curl() {
            lost.extend(stores.print_jars(group));
        }
        let lost = report_unwritten_files(&plan, &progress, &lost);
        // Under haul's own name a missing requested file is a failure; in curl it is not.
        if exit_code == 0 && !plan.global.persona.is_curl() {
            exit_code = lost;
        }
        let is_interrupted = signals.as_ref().is_some_and(BlockedSignals::has_arrived);
        if outcome.is_break()
            || has_surplus_output(&plan, &plan.groups[indexes])
            || is_interrupted
            || (code != 0 && plan.global.fail_early)
        {
            break;
        }
    }
    before.print_deferred_write_outs();
    progress.finish(|| {
        client.close_idle();
        client.stats().totals()
    });
    if let Some(job) = &before.job {
        exit_code = end_job(&plan, &progress, job, exit_code, signals.as_ref());
    }
    if let Some(format) = plan.global.stats {
        client.close_idle();
        let skipped = before.skipped_values.load(Ordering::Relaxed);
        statistics::print(&client.stats().totals(), skipped, progress.elapsed(), format);
    }
    exit_code = end_events(&plan, &progress, events, exit_code);
    if let Some(signals) = signals {
        signals.end_process_by_signal();
    }
    exit_code
}

/// Returns true if the curl persona must stop after these groups, because one has more outputs than
/// URLs. curl then fetches no URLs of later groups, except with `--parallel`.
fn has_surplus_output(plan: &RunPlan, groups: &[Arc<UrlGroup>]) -> bool {
    let is_serial = plan.global.persona.is_curl() && !plan.global.parallel;
    is_serial && groups.iter().any(|group| group.has_surplus_output)
}

/// Returns the function that the engine calls to learn whether it must end its waits: after a
/// signal, or if the job's file can no longer be written. Returns `None` if the run has neither
/// signals nor a job.
fn interrupt_callback(signals: Option<&BlockedSignals>, job: Option<&Arc<JobRun>>) -> Option<InterruptCallback> {
    let Some(job) = job.map(Arc::clone) else { return signals.map(BlockedSignals::interrupt_callback) };
    let has_failed = move || job.has_failed();
    Some(match signals {
        Some(signals) => signals.interrupt_callback_or(has_failed),
        None => InterruptCallback::new(has_failed),
    })
}

/// Opens the file of the run's job and the run's WARC archive, if there are any.
fn open_state(
    plan: &RunPlan,
    signals: Option<&BlockedSignals>,
    events: Option<Arc<EventLog>>,
) -> haul::Result<SharedByUrlGroups> {
    let global = &plan.global;
    let names = ReservedOutputNames::default();
    let job = global.job.as_ref().map(|args| JobRun::open(args, &plan.groups[0], global.refresh)).transpose()?;
    let archive = open_archive(global, job.as_deref())?;
    reserve_own_files(plan, &names)?;
    Ok(SharedByUrlGroups {
        names,
        interrupt: interrupt_callback(signals, job.as_ref()),
        job,
        pace: global.pace.map(StartRate::new),
        host_pace: global.host_pace.map(HostStartRate::new),
        limit_rate_total: global.limit_rate_total.map(TotalRateLimit::new),
        archive,
        events,
        deferred_write_outs: (global.persona.is_curl() && global.parallel).then(Arc::default),
        ..SharedByUrlGroups::default()
    })
}

/// Ends the run of a job, and prints its result for the user. Returns the exit code.
fn end_job(
    plan: &RunPlan,
    progress: &ProgressReporter,
    job: &JobRun,
    exit_code: u8,
    signals: Option<&BlockedSignals>,
) -> u8 {
    let ended = job.end(exit_code);
    let (code, note) = ended.unwrap_or_else(|error| (report_setup_error(plan, progress, &error), None));
    if let Some(note) = note.filter(|_| !plan.global.silent) {
        print_error_line(&format!("Note: {note}"));
    }
    if !plan.global.silent && signals.is_some_and(BlockedSignals::has_arrived) {
        print_error_line("Note: the job is stopped, and the same command goes on with it");
    }
    code
}

/// Writes the last event, and waits until all events are written. Returns `exit_code`, or the code
/// of the error if events could not be written.
fn end_events(plan: &RunPlan, progress: &ProgressReporter, events: Option<Arc<EventLog>>, exit_code: u8) -> u8 {
    let Some(Err(error)) = events.map(|events| events.finish(exit_code)) else { return exit_code };
    let code = report_setup_error(plan, progress, &error);
    if exit_code == 0 { code } else { exit_code }
}

/// Returns true if SIGUSR1 prints the progress of this run: only for many URLs, and not if haul
/// acts as curl.
fn prints_progress_on_signal(plan: &RunPlan) -> bool {
    let is_long = || match plan.groups.as_slice() {
        [group] => only_url(group).is_none(),
        _ => true,
    };
    !plan.global.persona.is_curl() && (plan.global.job.is_some() || is_long())
}

/// Returns true if the run prints something at its end that must be printed even after Ctrl-C:
/// statistics (`--stats`), sorted values (`--sort`), the end of a record, or the last event.
fn prints_at_end(plan: &RunPlan) -> bool {
    let sorts = |group: &Arc<UrlGroup>| group.stages.last().is_some_and(|stage| stage.sort);
    let global = &plan.global;
    global.stats.is_some() || global.record_output.is_some() || global.events.is_some() || plan.groups.iter().any(sorts)
}

/// Returns true if a signal would leave an unfinished file: the run writes files, and this system
/// has no unnamed temporary files. Returns false if an agent is used, because signals do not
/// interrupt its requests.
fn leaves_files(plan: &RunPlan) -> bool {
    let is_null = |output: &OutputArg| match output {
        OutputArg::File(name) => is_null_device_name(Path::new(name)),
        other => *other == OutputArg::Null,
    };
    let is_file = |output: &OutputArg| !output.is_stdout() && !is_null(output);
    let writes_files = |group: &Arc<UrlGroup>| {
        let of_stages = group.stages.iter().map(|stage| &stage.output);
        group.outputs.iter().chain([&group.output_default]).chain(of_stages).any(is_file)
    };
    cfg!(not(linux_calls)) && plan.global.agent.is_none() && plan.groups.iter().any(writes_files)
}

/// Returns the kind of output that the URL groups print on the terminal besides the progress line:
/// nothing, one body, or texts. The kind decides when the progress line may be drawn.
fn terminal_output(plan: &RunPlan, groups: &[Arc<UrlGroup>]) -> OutputBesideProgress {
    let trace = &plan.global.trace;
    let is_standard = |path: &Path| [Path::new("-"), Path::new("%")].contains(&path);
    if trace.form != TraceFormat::Off && trace.file.as_deref().is_none_or(is_standard) {
        return OutputBesideProgress::Texts;
    }
    let is_terminal = std::io::stdout().is_terminal();
    match groups {
        _ if !is_terminal => OutputBesideProgress::None,
        _ if groups.iter().any(|group| prints_texts(group)) => OutputBesideProgress::Texts,
        _ if !groups.iter().any(|group| prints_content(group)) => OutputBesideProgress::None,
        [group] if only_url(group).is_some() && plan.global.job.is_none() => OutputBesideProgress::Body,
        _ => OutputBesideProgress::Texts,
    }
}

/// Returns true if bodies or values of a URL group go to standard output.
fn prints_content(group: &UrlGroup) -> bool {
    let of_urls = || (0..group.urls.len()).any(|source| group.output_of_source(source).is_stdout());
    match group.shared_output() {
        Some(output) => output.is_stdout(),
        None => group.stages.len() == 1 && of_urls(),
    }
}

/// Returns true if a URL group prints something other than bodies on standard output: records,
/// heads, cookies or the text of `-w`.
fn prints_texts(group: &UrlGroup) -> bool {
    let tells = |stage: &StageArgs| {
        let report = &stage.report;
        let cookies = stage.transfer.cookies.jar.as_deref();
        let feeds_heads = report.include && stage.output == OutputArg::Stdout;
        report.write_out.is_some()
            || feeds_heads
            || [report.dump_header.as_deref(), cookies].contains(&Some(Path::new("-")))
    };
    group.record_output().is_some() || group.stages.iter().any(tells)
}

/// Returns the number of bytes of `--max-memory` that an archive uses: a quarter, or 0 without an
/// archive.
fn archive_memory(global: &GlobalArgs) -> u64 {
    global.warc.path.as_ref().map_or(0, |_| global.max_memory / 4)
}

/// Reserves the names of the files that haul itself reads as lists or writes, so that no output
/// replaces them: the job's file, the archive, the events, the lists, and the files of options such
/// as `-D`.
fn reserve_own_files(plan: &RunPlan, names: &ReservedOutputNames) -> haul::Result<()> {
    let global = &plan.global;
    if let Some(path) = &global.warc.path {
        match global.warc.max_size.and_then(|_| global.warc.archive_name()) {
            Some(archive) => names.reserve_archive(archive),
            None => names.reserve(path, "the archive")?,
        }
    }
    for (path, role) in global.job.iter().flat_map(|job| files_of_job(&job.file)) {
        names.reserve(&path, role)?;
    }
    // curl lets an output replace any file.
    if global.persona.is_curl() {
        return Ok(());
    }
    let of_run = [("--events", &global.events), ("--stderr", &global.stderr), ("--trace", &global.trace.file)];
    let of_run = of_run.into_iter().filter_map(|(option, path)| Some((option, path.as_deref()?)));
    let of_stages = plan.groups.iter().flat_map(|group| &group.stages).flat_map(StageArgs::written_files);
    for (option, path) in of_run.chain(of_stages) {
        if ![Path::new("-"), Path::new("%"), Path::new("")].contains(&path) {
            names.reserve(path, &format!("the file of {option}"))?;
        }
    }
    for url in plan.groups.iter().flat_map(|group| group.urls.iter()) {
        if let UrlSource::InputFile(name) = url
            && name != "-"
        {
            names.reserve(Path::new(name), "the list")?;
        }
    }
    Ok(())
}

/// Creates the archive of `--warc`, or continues the archive of a job. Returns `None` without the
/// option.
#[cfg(feature = "warc")]
fn open_archive(global: &GlobalArgs, job: Option<&JobRun>) -> haul::Result<Option<Arc<dyn ExchangeRecorder>>> {
    use crate::warc::WarcArchive;
    let Some(path) = global.warc.path.clone() else { return Ok(None) };
    let memory = usize::try_from(archive_memory(global)).unwrap_or(usize::MAX);
    let Some(job) = job else { return Ok(Some(Arc::new(WarcArchive::create(path, &global.warc, memory)?))) };
    let position = job.archive_position(|| WarcArchive::refuse_existing(path.clone(), &global.warc))?;
    let archive = Arc::new(WarcArchive::continue_job(path, &global.warc, memory, position)?);
    job.archived_payloads(WarcArchive::max_payloads(memory), |payload| archive.remember_payload(payload))?;
    job.set_archive(Arc::clone(&archive) as _);
    Ok(Some(archive))
}

/// Returns an error if `--warc` is given, because this build has no archives. Returns `None` if
/// not.
#[cfg(not(feature = "warc"))]
fn open_archive(global: &GlobalArgs, _job: Option<&JobRun>) -> haul::Result<Option<Arc<dyn ExchangeRecorder>>> {
    match &global.warc.path {
        Some(_) => Err(Error::new(ErrorKind::Setup, "--warc is not part of this build; leave it out")),
        None => Ok(None),
    }
}

/// Redirects standard error to the file of `--stderr`; `-` is standard output.
pub fn redirect_stderr(path: &Path) -> std::io::Result<()> {
    let file =
        if path == Path::new("-") { standard_streams::stdout_file()? } else { file_metadata_and_flags::create(path)? };
    standard_streams::redirect_stderr(file)
}

/// Runs the URL groups with these `indexes`: one group, or several groups in parallel.
fn run_groups(
    client: &Client,
    plan: &Arc<RunPlan>,
    indexes: Range<usize>,
    progress: &Arc<ProgressReporter>,
    stores: &mut StateStores,
    before: SharedByUrlGroups,
) -> ControlFlow<u8, u8> {
    let group = &plan.groups[indexes.start];
    stores.begin_group(group);
    let group = &heads_before_bodies(plan, group);
    let mut is_unopened = false;
    let groups = &plan.groups[indexes.clone()];
    let warn_of_empty_name = |error: &Error| {
        if error_message::is_empty_output_name(error) && !plan.global.silent {
            progress.print_warning("output glob produces empty string");
        }
    };
    let mut is_warned = false;
    let checked = curl_first_transfers::check(plan, groups).map_err(|fault| {
        warn_of_empty_name(&fault.error);
        is_warned = true;
        fault.report_prepared(plan, groups, progress, &before);
        fault.error
    });
    let opened = checked.and_then(|()| {
        let reporter = UrlGroupReporter::new(&plan.global, group, Arc::clone(progress), before.clone());
        reporter.inspect_err(|error| {
            is_unopened = true;
            write_out_unopened(plan, group, progress, before, error);
        })
    });
    let outcome = opened.and_then(|reporter| {
        let reporter = Arc::new(reporter);
        let code = match only_url(group) {
            _ if plan.global.job.is_some() => parallel::run(client, plan, group, &reporter, stores),
            _ if indexes.len() > 1 => parallel::run_joined(client, plan, indexes, &reporter, stores),
            _ if sequential::is_sequential(plan, group) => sequential::run(client, plan, group, &reporter, stores),
            Some(url) if is_in_other_shard(&plan.global, group, url) => Ok(0),
            Some(url) => {
                let job = single_url::SingleUrlTransfer {
                    url,
                    given: url,
                    index: 0,
                    parts: &GlobValues::default(),
                    upload: None,
                };
                let begun = reporter.wait_for_start_rate();
                let outcome = begun.and_then(|()| single_url::run(client, &plan.global, group, job, &reporter, stores));
                outcome.or_else(|error| reporter.report_unbegun(url, &error).and(Err(error)))
            }
            None => parallel::run(client, plan, group, &reporter, stores),
        };
        code.map(|code| reporter.exit_code(code))
    });
    match outcome {
        Ok(code) => ControlFlow::Continue(code),
        Err(error) => {
            if !is_warned {
                warn_of_empty_name(&error);
            }
            let has_no_name = error_message::is_empty_output_name(&error);
            let code = report_setup_error(plan, progress, &error);
            // With -Z, curl says once more that a URL is none.
            if plan.global.parallel && plan.global.persona.is_curl() && error_message::is_glob_flaw(&error) {
                let again = Error::new(ErrorKind::Url, "URL using bad/illegal format or missing URL");
                progress.print_line(&format!("curl: ({code}) {}", again.cause()));
            }
            // A missing input file ends curl, and so do an unusable URL, an output file without a
            // name and a file of -D that cannot be opened, whatever groups follow.
            let is_final = is_unopened || has_no_name || matches!(error.kind(), ErrorKind::Read | ErrorKind::Url);
            let ends = plan.global.persona.is_curl() && is_final;
            if ends { ControlFlow::Break(code) } else { ControlFlow::Continue(code) }
        }
    }
}

/// As curl does, prints the text of `-w` for the first URL of a group if its `-D` file cannot be
/// opened. This error ends the group before its first request.
fn write_out_unopened(
    plan: &RunPlan,
    group: &UrlGroup,
    progress: &Arc<ProgressReporter>,
    before: SharedByUrlGroups,
    error: &Error,
) {
    let Some(UrlSource::Argument(url)) = group.urls.get(0).filter(|_| plan.global.persona.is_curl()) else {
        return;
    };
    let mut without_files = group.clone();
    without_files.stages.iter_mut().for_each(|stage| stage.report.dump_header = None);
    if let Ok(reporter) = UrlGroupReporter::new(&plan.global, &Arc::new(without_files), Arc::clone(progress), before) {
        // The error of the file is the one to report. No URL was tried, so none is effective.
        let _ = reporter.print(reporter.report_unusable_url(url, "", 0, error));
    }
}

/// Returns true if `--shard` is given and the URL belongs to another shard, which another run
/// fetches.
fn is_in_other_shard(global: &GlobalArgs, group: &UrlGroup, url: &str) -> bool {
    let scheme = group.stages[0].transfer.redirect.default_scheme;
    global.shard.is_some_and(|shard| !shard.contains_url(url, scheme))
}

/// Replaces `-D -` by `-i` if the transfers of a URL group run in parallel and all send their
/// bodies to standard output. Each response head is then written just before its body. With `-D -`,
/// it would be written as it arrives, possibly inside another body.
///
/// If haul acts as curl, `-i` and `-D -` together write each line of a head twice.
fn heads_before_bodies(plan: &RunPlan, group: &Arc<UrlGroup>) -> Arc<UrlGroup> {
    let is_alone = only_url(group).is_some() && plan.global.job.is_none();
    let one_by_one = is_alone || sequential::is_sequential(plan, group);
    let mut in_turn = Arc::clone(group);
    let to_stdout = match group.shared_output() {
        Some(output) => output.is_stdout(),
        None => {
            group.stages.len() == 1 && (0..group.urls.len()).all(|source| group.output_of_source(source).is_stdout())
        }
    };
    let last = group.stages.len() - 1;
    let stage = &group.stages[last];
    let has_heads = stage.report.include || stage.request.head;
    if !to_stdout || stage.report.dump_header.as_deref() != Some(Path::new("-")) {
        return in_turn;
    }
    if one_by_one && has_heads && plan.global.persona.is_curl() {
        Arc::make_mut(&mut in_turn).stages[last].report.doubles_heads = true;
    } else if !one_by_one && !stage.report.include {
        let report = &mut Arc::make_mut(&mut in_turn).stages[last].report;
        (report.include, report.dump_header) = (true, None);
    }
    in_turn
}

/// Prints the error that prevented the start of a transfer. Returns its exit code.
fn report_setup_error(plan: &RunPlan, progress: &ProgressReporter, error: &Error) -> u8 {
    // Whoever closed the pipe has seen enough, and knows. curl reports it nevertheless.
    let closed = error.io_source().is_some_and(|source| source.kind() == std::io::ErrorKind::BrokenPipe);
    let is_silent = !plan.global.persona.is_curl() && error.kind() == ErrorKind::Write && closed;
    let is_known = error.is_interrupted() || is_silent;
    if plan.global.shows_errors() && !is_known {
        progress.print_error(error, None);
    }
    error.exit_code()
}

/// Prints the errors of files other than the response body, such as a cookie jar. Returns the exit
/// code of the first error, or 0 without an error.
fn report_unwritten_files(plan: &RunPlan, progress: &ProgressReporter, lost: &[Error]) -> u8 {
    for error in lost.iter().filter(|_| plan.global.shows_errors()) {
        progress.print_line(&error_message::side_output_error(plan.global.persona, error));
    }
    lost.first().map_or(0, Error::exit_code)
}

/// Returns the URL if the URL group has exactly one, extracts nothing and fetches no paginated
/// listings. Returns `None` for a glob, for a file of URLs, and for several uploads.
fn only_url(group: &UrlGroup) -> Option<&str> {
    let [stage] = group.stages.as_slice() else { return None };
    match group.urls.get(0)? {
        UrlSource::Argument(url)
            if group.urls.len() == 1
                && !stage.takes_values()
                && stage.pagination.is_none()
                && !group.is_glob(0, url)
                && !url_uploads::is_glob(group, 0) =>
        {
            Some(url)
        }
        _ => None,
    }
}

/// Parses a URL that contains glob patterns.
fn parse_glob(url: &str) -> haul::Result<UrlGlob> {
    UrlGlob::parse(url).map_err(|flaw| {
        Error::with_source(ErrorKind::Url, "the URL is not a valid glob", flaw)
            .with_url(crate::usage_error::shown_url(url))
    })
}
