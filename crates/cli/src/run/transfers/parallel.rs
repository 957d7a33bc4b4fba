//! Runs many URLs in parallel: passes the stages and the URLs of the plan to the engine's fleet.

use std::path::PathBuf;
use std::sync::Arc;

use haul::body::delivery::SearchInputKind;
use haul::extraction::ExtractPattern;
use haul::fleet::{ExtractedValueMapper, Fleet, FleetOptions, FleetStage};
use haul::sink::Sink;
use haul::sink::descriptor_writer::DescriptorWriter as Descriptor;
use haul::sink::file::FileSink;
use haul::{Client, Result};

use crate::plan::{OutputArg, RunPlan, RunSize, UrlGroup, UrlSource};
use crate::run::engine_options;
use crate::run::engine_options::later_stage::LaterStage;
use crate::run::engine_options::output_options::{
    NULL, claims_name, in_output_dir, options_for, shows_content, standard_output,
};
use crate::run::report::reporter::{FleetReporter, Reporter};
use crate::run::report::url_number::UrlNumbers;
use crate::run::transfers::descriptor_limit;
use crate::run::transfers::state_stores::StateStores;
use crate::run::transfers::url_items::UrlItems;

/// Fetches all URLs of a URL group (the URLs between two `--next`). Returns the exit code.
pub(crate) fn run(
    client: &Client,
    plan: &RunPlan,
    operation: &UrlGroup,
    reporter: &Arc<Reporter>,
    stores: &mut StateStores,
) -> Result<u8> {
    let mut stages = Vec::new();
    for (number, stage) in operation.stages.iter().enumerate() {
        engine_options::resolve(client, stage)?;
        let before = stages.last().and_then(|stage: &FleetStage| stage.extract.as_ref());
        let value_mapper: Option<Arc<dyn ExtractedValueMapper>> = match number {
            0 => None,
            _ => Some(Arc::new(LaterStage::new(operation, number, before, reporter.names())?)),
        };
        let mut request = engine_options::request(&plan.global, stage, reporter.trace(number), stores)?;
        request.pauses = Reporter::pauses(reporter);
        request.connect.timeout = stage.transfer.connect_limit(plan.global.persona, RunSize::ManyUrls);
        request.stall = stage.transfer.stall(plan.global.persona, RunSize::ManyUrls);
        request.escape_head = request.include_head && shows_content(operation);
        stages.push(FleetStage {
            options: Arc::new(request),
            extract: (!stage.extract.is_empty()).then(|| ExtractPattern::all_of(&stage.extract)).transpose()?,
            search_in: if stage.extract_bytes { SearchInputKind::Bytes } else { SearchInputKind::Text },
            template: stage.template.clone().map(Arc::new),
            value_mapper,
            unique: stage.unique,
            sort: stage.sort,
        });
    }
    descriptor_limit::raise();
    let global = &plan.global;
    let fleet = Fleet::new(
        stages,
        FleetOptions {
            parallel: if global.parallel { global.parallel_max } else { 1 },
            per_host: global.parallel_max_host,
            pipeline: global.pipeline,
            threads: global.threads,
            max_memory: global.max_memory,
            unordered: global.unordered,
            fail_early: global.fail_early,
            start_rate: reporter.pace().filter(|_| !is_curls_parallel(plan, operation)).cloned(),
            host_start_rate: reporter.host_pace().cloned(),
            limit_rate_total: reporter.limit_rate_total().cloned(),
            interrupt: reporter.interrupt().cloned(),
            slow_input: operation.urls.iter().any(may_wait),
            ..FleetOptions::default()
        },
    );
    let methods = operation.stages.iter().map(|stage| stage.request.method.clone()).collect();
    let numbers = UrlNumbers::default();
    let has_file = operation.shared_output().is_some_and(|output| !output.is_stdout());
    let report = FleetReporter { reporter: Arc::clone(reporter), methods, numbers: numbers.clone(), has_file };
    let list = match &operation.checksum {
        Some(_) => {
            let request = engine_options::request(global, &operation.stages[0], None, stores)?;
            stores.checksums.of_many(client, &request, operation)?
        }
        None => None,
    };
    let items = Box::new(UrlItems::new(operation, list, numbers, reporter.names().clone()));
    let output = operation.shared_output().filter(|output| !output.is_stdout());
    let file = output.and_then(|output| match output {
        OutputArg::File(name) => Some((in_output_dir(operation, name.clone()), output)),
        OutputArg::Null => Some((PathBuf::from(NULL), output)),
        OutputArg::Stdout | OutputArg::RemoteName => None,
    });
    let summary = match file {
        None => fleet.run(client, items, standard_output(operation), report)?,
        Some((path, output)) => {
            let (UrlSource::Argument(first) | UrlSource::InputFile(first)) =
                operation.urls.get(0).unwrap_or(UrlSource::Argument(""));
            if !claims_name(operation, reporter.names(), output, &path, first)? {
                return Ok(0);
            }
            let mut sink = FileSink::with(path, options_for(operation, output, None, None));
            let output = Descriptor::new(sink.open_descriptor()?);
            let summary = fleet.run(client, items, output, report)?;
            sink.finish()?;
            summary
        }
    };
    Ok(summary.exit_code)
}

/// Returns true if curl would run this URL group in parallel (`-Z`). curl ignores `--rate` in this
/// case.
fn is_curls_parallel(plan: &RunPlan, operation: &UrlGroup) -> bool {
    let is_argument = |source| matches!(source, UrlSource::Argument(_));
    let is_plain = operation.stages.len() == 1 && operation.stages[0].extract.is_empty();
    plan.global.persona.is_curl() && plan.global.parallel && is_plain && operation.urls.iter().all(is_argument)
}

/// Returns true if reading URLs from this source may block: from standard input, or from a FIFO.
fn may_wait(source: UrlSource<'_>) -> bool {
    match source {
        UrlSource::Argument(_) => false,
        UrlSource::InputFile("-") => true,
        UrlSource::InputFile(path) => !std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file()),
    }
}
