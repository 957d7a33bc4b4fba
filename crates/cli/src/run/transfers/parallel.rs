//! Runs many URLs in parallel: passes the stages and the URLs of the plan to the engine's fleet.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haul::body::delivery::RegexInputKind;
use haul::fleet::{
    ExtractedValueMapper, Fleet, FleetOptions, FleetStage, FleetSummary, OutputObserver, StageValueStore,
};
use haul::sink::Sink;
use haul::sink::descriptor_writer::DescriptorWriter as Descriptor;
use haul::sink::file::FileSink;
use haul::system::file_metadata_and_flags::NULL_DEVICE;
use haul::{Client, RequestOptions, Result};

use crate::file_and_environment_access::print_error_line;
use crate::job::{JobRun, JobRunOutput};
use crate::plan::{GlobalArgs, OutputArg, RecordOutputFormat, RunPlan, RunSize, StageArgs, UrlGroup, UrlSource};
use crate::run::archive_memory;
use crate::run::engine_options;
use crate::run::engine_options::later_stage_requests::LaterStage;
use crate::run::engine_options::output_options::{
    in_output_dir, is_named_by_response, names_stdout, options_for, record_options, reserve_first_stage_output_name,
    shown_output, shows_content, standard_output,
};
use crate::run::report::records::page_values_csv;
use crate::run::report::reporter::{FleetReporter, UrlGroupReporter};
use crate::run::report::urlnum_variable::UrlNumbers;
use crate::run::transfers::first_origin::FirstOrigin;
use crate::run::transfers::shard_filter::ShardFilter;
use crate::run::transfers::state_stores::StateStores;
use crate::run::transfers::url_count;
use crate::run::transfers::url_items::{ProgressCountsForList, UrlGroupRequestSettings, UrlItems};
use crate::run::transfers::urls_of_parallel_groups::UrlsOfGroups;
use crate::system::process_liveness_and_limits::raise_open_file_limit;

/// Fetches all URLs of a URL group (`--next` separates groups). Returns the exit code.
pub(crate) fn run(
    client: &Client,
    plan: &RunPlan,
    group: &Arc<UrlGroup>,
    reporter: &Arc<UrlGroupReporter>,
    stores: &mut StateStores,
) -> Result<u8> {
    let mut stages = Vec::new();
    for (number, stage) in group.stages.iter().enumerate() {
        engine_options::set_resolver_options(client, stage)?;
        let before = stages.last().and_then(|stage: &FleetStage| stage.extract.as_ref());
        let value_mapper: Option<Arc<dyn ExtractedValueMapper>> = match number {
            0 => None,
            _ => Some(Arc::new(LaterStage::new(group, number, before, reporter.output_names())?)),
        };
        stages.push(FleetStage {
            options: Arc::new(request_of_many(plan, group, number, reporter, stores)?),
            extract: engine_options::extraction_options::query_of_stage(stage)?,
            search_in: if stage.extract_bytes { RegexInputKind::Bytes } else { RegexInputKind::Text },
            template: stage.template.clone().map(Arc::new),
            value_mapper,
            pagination: stage.pagination.clone().map(Arc::new),
            unique: stage.unique,
            sort: stage.sort,
            depth: stage.depth,
            with_url: stage.with_url,
            records: stage.records.and_then(|_| record_options(&plan.global, group)),
        });
    }
    let requests = UrlGroupRequestSettings {
        options: Arc::clone(&stages[0].options),
        body: None,
        runs_with_other_groups: false,
        context: None,
    };
    let mut options = fleet_options(plan, reporter);
    options.start_rate = options.start_rate.filter(|_| !is_curls_parallel(plan, group));
    options.slow_input = group.urls.iter().any(may_wait);
    if let Some(job) = reporter.job() {
        options.output_observer = Some(Arc::clone(job) as Arc<dyn OutputObserver>);
        options.stage_memory = Some(Arc::clone(job) as Arc<dyn StageValueStore>);
        // What is done is not fetched again, but its names are taken.
        job.finished_files(are_named_by_responses(group), |file, url| {
            reporter.output_names().reserve_for_url(file, url)
        })?;
        reporter.output_names().set_overwritable_since(job.created());
    }
    // The lines of a list may be a stranger's, and their origins are not the user's.
    let has_own_urls = group.stages.len() > 1 && group.records.is_none();
    let first_origin =
        has_own_urls.then(|| FirstOrigin::new(group, Arc::clone(options.first_origin.get_or_insert_default())));
    if let (Some(first), Some(job)) = (&first_origin, reporter.job()) {
        first.set_for_job(group, job);
    }
    raise_open_file_limit();
    let fleet = Fleet::new(stages, options);
    let numbers = UrlNumbers::default();
    let has_file = group.shared_output().is_some_and(|output| !output.is_stdout());
    let report = FleetReporter::new(reporter, numbers.clone(), has_file);
    let list = match &group.checksum {
        Some(_) => {
            let request = engine_options::request_options(&plan.global, &group.stages[0], None, stores)?;
            stores.checksums.list_for_many(client, &request, group)?
        }
        None => None,
    };
    let shard = ShardFilter::new(plan.global.shard, group.stages[0].transfer.redirect.default_scheme);
    let counts = Some(Arc::clone(reporter.progress().counts()));
    let counts = ProgressCountsForList { counts, are_all_urls: url_count::is_known_after_lists(plan) };
    let items = UrlItems::new(group, requests, list, numbers, reporter.output_names().clone(), shard)
        .with_counts(counts)
        .with_skip_reporter(reporter)
        .with_first_origin(first_origin);
    let items = Box::new(match reporter.job() {
        Some(job) => items.with_job(job)?,
        None => items,
    });
    let output = group.shared_output().filter(|output| !output.is_stdout());
    let file = output.and_then(|output| match output {
        OutputArg::File(name) => Some((in_output_dir(group, name.clone()), output)),
        OutputArg::Null => Some((PathBuf::from(NULL_DEVICE), output)),
        OutputArg::Stdout | OutputArg::RemoteName | OutputArg::MirroredPath => None,
    });
    let header = csv_header(&plan.global, group);
    let summary = match file {
        file if reporter.job().is_some() => {
            let path = file.as_ref().map(|(path, _)| path.as_path());
            if let Some(path) = path {
                reporter.output_names().reserve_new(path, first_url(group))?;
            }
            let output = job_output(reporter, &plan.global, group, path, &header)?;
            fleet.run(client, items, output, report)?
        }
        None => {
            let mut output = standard_output(group);
            output.write(&header)?;
            fleet.run(client, items, output, report)?
        }
        Some((path, output)) => {
            if !reserve_first_stage_output_name(group, reporter.output_names(), output, &path, first_url(group))? {
                return Ok(0);
            }
            let mut sink = FileSink::with_options(path, options_for(group, output, None, None));
            let mut output = Descriptor::new(sink.open_descriptor()?);
            output.write(&header)?;
            let summary = fleet.run(client, items, output, report)?;
            sink.finish()?;
            summary
        }
    };
    reporter.count_skipped_values(summary.skipped_values);
    Ok(exit_code(plan, &summary))
}

/// Returns true if the responses choose the names of all output files for the URLs that the user
/// gave (the first stage).
fn are_named_by_responses(group: &UrlGroup) -> bool {
    (0..group.urls.len()).all(|source| is_named_by_response(group, group.output_of_source(source)))
}

/// Returns the first URL argument of a group, for messages. If a file of URLs comes first, returns
/// the name of that file.
fn first_url(group: &UrlGroup) -> &str {
    let (UrlSource::Argument(first) | UrlSource::InputFile(first)) =
        group.urls.get(0).unwrap_or(UrlSource::Argument(""));
    first
}

/// Opens the output of a job: the file `path` that all transfers share, or standard output. The
/// output continues after the last complete record of an earlier run. `header` is written before
/// the first record.
fn job_output(
    reporter: &UrlGroupReporter,
    global: &GlobalArgs,
    group: &UrlGroup,
    path: Option<&Path>,
    header: &[u8],
) -> Result<Descriptor> {
    let job = reporter.job().filter(|_| path.is_some() || prints_to_stdout(group));
    let Some(job) = job else { return Ok(standard_output(group)) };
    let opened: JobRunOutput = JobRun::open_output(job, path.map(|path| (path, group.create_file_mode)))?;
    if let Some(note) = opened.note.as_ref().filter(|_| !global.silent) {
        print_error_line(&format!("Note: {note}"));
    }
    let header = if opened.is_new { header } else { &[] };
    job.output_begins(&opened, header.len());
    let output = Descriptor::new(opened.descriptor);
    let mut output = if path.is_some() { output } else { shown_output(group, output) };
    output.write(header)?;
    output.drain(None)?;
    Ok(output)
}

/// Returns true if a transfer of the URL group (`--next` separates groups) may write to
/// standard output.
fn prints_to_stdout(group: &UrlGroup) -> bool {
    let has_text = |stage: &StageArgs| stage.report.write_out.is_some() || stage.output.is_stdout();
    group.record_output().is_some()
        || (0..group.urls.len()).any(|source| group.output_of_source(source).is_stdout())
        || group.stages.len() > 1 && group.stages.iter().any(has_text)
        || group.stages[0].report.write_out.is_some()
}

/// Fetches the URLs of several URL groups (`--next` separates groups) in parallel,
/// as if they were one group. `indexes` are the indexes of the groups, which follow one another;
/// `reporter` belongs to the first of them. Returns the exit code.
pub(crate) fn run_joined(
    client: &Client,
    plan: &Arc<RunPlan>,
    indexes: Range<usize>,
    reporter: &Arc<UrlGroupReporter>,
    stores: &mut StateStores,
) -> Result<u8> {
    let first = &plan.groups[indexes.start];
    engine_options::set_resolver_options(client, &first.stages[0])?;
    // Registers the stores of the first group, which all groups use.
    let options = Arc::new(request_of_many(plan, first, 0, reporter, stores)?);
    let records = record_options(&plan.global, first);
    let is_plain = records.is_some() || plan.groups[indexes.clone()].iter().any(|group| names_stdout(group));
    let output = if is_plain { Descriptor::stdout() } else { Descriptor::stdout().refusing_binary_on_terminal() };
    let numbers = UrlNumbers::default();
    let items = Box::new(UrlsOfGroups::new(plan, indexes.clone(), reporter, stores, numbers.clone()));
    let report = FleetReporter::new(reporter, numbers, false);
    let mut settings = fleet_options(plan, reporter);
    settings.start_rate = settings.start_rate.filter(|_| !is_curls_parallel(plan, first));
    settings.slow_input = plan.groups[indexes].iter().any(|group| group.urls.iter().any(may_wait));
    raise_open_file_limit();
    let fleet = Fleet::new(vec![FleetStage { options, records, ..FleetStage::default() }], settings);
    Ok(exit_code(plan, &fleet.run(client, items, output, report)?))
}

/// Returns the exit code of a run in parallel: that of the failed transfer whose URL comes first in
/// the input. If haul acts as curl with `-Z`, it is that of the transfer that failed earliest.
fn exit_code(plan: &RunPlan, summary: &FleetSummary) -> u8 {
    let is_curls = plan.global.persona.is_curl() && plan.global.parallel;
    if is_curls { summary.earliest_exit_code } else { summary.exit_code }
}

/// Returns the engine's options for the requests of a stage (`--then` begins a further stage) in a
/// run of many URLs.
pub(crate) fn request_of_many(
    plan: &RunPlan,
    group: &UrlGroup,
    number: usize,
    reporter: &Arc<UrlGroupReporter>,
    stores: &mut StateStores,
) -> Result<RequestOptions> {
    let stage = &group.stages[number];
    let mut request = engine_options::request_options(&plan.global, stage, reporter.trace(number), stores)?;
    request.pauses = UrlGroupReporter::retry_observer(reporter);
    reporter.set_recorder(&mut request);
    request.connect.timeout = stage.transfer.connect_limit(plan.global.persona, RunSize::ManyUrls);
    request.stall = stage.transfer.stall_limit(plan.global.persona, RunSize::ManyUrls);
    request.escape_head = request.include_head && shows_content(group);
    Ok(request)
}

/// Returns the settings of the engine's fleet (its parallel run of transfers) that apply to the
/// whole run of haul.
fn fleet_options(plan: &RunPlan, reporter: &UrlGroupReporter) -> FleetOptions {
    let global = &plan.global;
    FleetOptions {
        parallel: if global.parallel { global.parallel_max } else { 1 },
        per_host: global.parallel_max_host,
        connects_at_once: global.parallel_immediate,
        pipeline: global.pipeline,
        threads: global.threads,
        max_memory: global.max_memory - archive_memory(global),
        unordered: global.unordered,
        fail_early: global.fail_early,
        start_rate: reporter.start_rate().cloned(),
        host_start_rate: reporter.host_start_rate().cloned(),
        limit_rate_total: reporter.limit_rate_total().cloned(),
        interrupt: reporter.interrupt().cloned(),
        running: Some(Arc::clone(&reporter.progress().counts().running)),
        ..FleetOptions::default()
    }
}

/// Returns the header line that `--csv` prints; empty without this option.
fn csv_header(global: &GlobalArgs, group: &UrlGroup) -> Vec<u8> {
    let stage = group.stages.last().filter(|_| global.record_output == Some(RecordOutputFormat::Csv));
    stage.map(|stage| page_values_csv::header_line(stage, global.with_url)).unwrap_or_default()
}

/// Returns true if curl would run this URL group in parallel (`-Z`). curl ignores `--rate` in this
/// case.
fn is_curls_parallel(plan: &RunPlan, group: &UrlGroup) -> bool {
    let is_argument = |source| matches!(source, UrlSource::Argument(_));
    let [first, later @ ..] = group.stages.as_slice() else { return false };
    let is_plain = later.is_empty() && !first.takes_values() && first.pagination.is_none();
    plan.global.persona.is_curl() && plan.global.parallel && is_plain && group.urls.iter().all(is_argument)
}

/// Returns true if reading URLs from this source may block: from standard input, or from a FIFO.
fn may_wait(source: UrlSource<'_>) -> bool {
    match source {
        UrlSource::Argument(_) => false,
        UrlSource::InputFile("-") => true,
        UrlSource::InputFile(path) => !std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file()),
    }
}
