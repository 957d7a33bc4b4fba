//! Many URLs: the plan's stages and sources for the fleet.

use std::path::PathBuf;
use std::sync::Arc;

use haul::fleet::{Fleet, FleetOptions, Stage};
use haul::pipeline::Pattern;
use haul::sink::Sink;
use haul::sink::file::FileSink;
use haul::sink::output::Output as Descriptor;
use haul::{Client, Result};

use super::checksum;
use super::numbers::Numbers;
use super::options;
use super::report::{Reporter, ReporterRef};
use super::single::{NULL, file_options, standard_output};
use super::sources::Sources;
use super::stores::Stores;
use crate::plan::{Checksum, Operation, Output, Plan, UrlSource};

/// Fetches all of them; the answer is the exit code.
pub(super) fn run(
    client: &Client,
    plan: &Plan,
    operation: &Operation,
    reporter: &Arc<Reporter>,
    stores: &mut Stores,
) -> Result<u8> {
    let mut stages = Vec::new();
    for (number, stage) in operation.stages.iter().enumerate() {
        options::resolve(client, stage)?;
        let mut request = options::request(&plan.global, stage, reporter.trace(number), stores)?;
        request.pauses = Reporter::pauses(reporter);
        stages.push(Stage {
            options: Arc::new(request),
            extract: stage.extract.as_deref().map(Pattern::new).transpose()?,
            template: stage.template.clone().map(Arc::new),
            unique: stage.unique,
            sort: stage.sort,
        });
    }
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
            slow_input: operation.urls.iter().any(may_wait),
            ..FleetOptions::default()
        },
    );
    let methods = operation.stages.iter().map(|stage| stage.request.method.clone()).collect();
    let numbers = Numbers::default();
    let report = ReporterRef { reporter: Arc::clone(reporter), methods, numbers: numbers.clone() };
    let list = match &operation.checksum {
        Some(Checksum::From(place)) => {
            let request = options::request(global, &operation.stages[0], None, stores)?;
            Some((checksum::read(client, &request, None, place)?, place.clone()))
        }
        _ => None,
    };
    let items = Box::new(Sources::new(operation, list, numbers));
    // With stages there is one output for all.
    let file = match operation.output_of(0) {
        Output::File(name) if operation.stages.len() > 1 && name != "-" => Some(match &operation.output_dir {
            Some(dir) => dir.join(name),
            None => PathBuf::from(name),
        }),
        Output::Null if operation.stages.len() > 1 => Some(PathBuf::from(NULL)),
        _ => None,
    };
    let summary = match file {
        None => fleet.run(client, items, standard_output(operation), report)?,
        Some(path) => {
            let mut sink = FileSink::with(path, file_options(operation, 0, None));
            let output = Descriptor::new(sink.open_descriptor()?);
            let summary = fleet.run(client, items, output, report)?;
            sink.finish()?;
            summary
        }
    };
    Ok(summary.exit_code)
}

/// Whether reading a source can take a while: standard input, a FIFO.
fn may_wait(source: UrlSource<'_>) -> bool {
    match source {
        UrlSource::Argument(_) => false,
        UrlSource::InputFile("-") => true,
        UrlSource::InputFile(path) => !std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file()),
    }
}
