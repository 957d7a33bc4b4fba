//! A fleet fetches many URLs concurrently and in bounded memory. It delivers bodies in order, and
//! can extract values and feed them to further stages.
//!
//! ```text
//!  items ─▶ dispatcher ─▶ workers ─▶ window 0 ─▶ filter ─▶ feed ─┐   (a stage with a next one)
//!               ▲                                                │
//!               └──────────── transfers of stage 1 ◀─────────────┘
//!               └▶ workers ─▶ window 1 ─▶ [filter] ─▶ print          (the last stage)
//! ```
//!
//! No list of all URLs, all bodies or all matches is ever in memory.
//!
//! ```no_run
//! use haul::fleet::{BodyDestination, Fleet, FleetOptions, FleetItem, NoReport, FleetStage};
//! use haul::sink::output::DescriptorWriter;
//! use haul::Client;
//!
//! let item = |i| FleetItem { url: format!("http://127.0.0.1/{i}"), destination: BodyDestination::Output };
//! let pages = (1..=3).map(move |i| Ok(item(i)));
//! let fleet = Fleet::new(vec![FleetStage::default()], FleetOptions::default());
//! let summary = fleet.run(&Client::new(), Box::new(pages), DescriptorWriter::stdout(), NoReport)?;
//! assert_eq!(summary.failed, 0);
//! # Ok::<(), haul::Error>(())
//! ```

mod dispatch;
mod item_source;
mod progress;
mod run;
mod stage_sink;
mod start_rate;
mod value_mapper;
mod window;
mod window_sink;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::available_parallelism;

use haul_policy::queue::QueueCaps;
use haul_policy::template::UrlTemplate;

pub use dispatch::{BodyDestination, FleetJob};
pub use item_source::{FleetItem, FleetItems};
pub use start_rate::StartRate;
pub use value_mapper::ValueMapper;

use crate::body::delivery::SearchInput;
use crate::drive::worker::{self, WorkerOptions};
use crate::interrupt::Interrupt;
use crate::pipeline::ExtractPattern;
use crate::request::RequestOptions;
use crate::sink::output::DescriptorWriter;
use crate::transfer::TransferOutcome;
use crate::{Client, Error, Result};

/// A stage of a fleet: how it requests pages, and which values it extracts from them.
#[derive(Clone, Default)]
pub struct FleetStage {
    /// The options for requesting pages.
    pub options: Arc<RequestOptions>,
    /// The pattern to extract from pages; without it, a stage outputs the pages themselves.
    /// Required for a stage that feeds another.
    pub extract: Option<ExtractPattern>,
    /// The form of pages in which values are searched for. Default: text.
    pub search_in: SearchInput,
    /// The template that makes a URL of this stage from a value of the previous one. Required for
    /// every stage but the first.
    pub template: Option<Arc<UrlTemplate>>,
    /// The mapping from a value to its request and the destination of its page. Default: none.
    pub value_mapper: Option<Arc<dyn ValueMapper>>,
    /// Print each value once. A value that feeds a stage does so once in any case.
    pub unique: bool,
    /// Print values sorted by bytes.
    pub sort: bool,
}

/// The limits on a fleet's use of the machine and the network.
#[derive(Debug, Clone)]
pub struct FleetOptions {
    /// Maximum number of concurrent transfers. Default 64.
    pub parallel: usize,
    /// Maximum number of concurrent transfers to one host. Default 6. The host of the given URL
    /// counts. A redirect keeps its slot, so a host that many others redirect to may see up to
    /// `parallel` connections. One more transfer may run if the fleet could not continue otherwise.
    pub per_host: usize,
    /// Maximum number of outstanding requests on an HTTP/1.1 connection (RFC 9112 section 9.3.2).
    /// Default 1: no pipelining.
    pub pipeline: usize,
    /// Maximum number of threads. Default: the number of cores. Each is started only when it is
    /// needed.
    pub threads: Option<usize>,
    /// Memory in bytes for bodies that wait for their turn, values to be sorted, and windows of
    /// decoders. Default 64 MiB.
    pub max_memory: u64,
    /// Deliver each body when it is complete, instead of in the order of the input.
    pub unordered: bool,
    /// Stop at the first failure.
    pub fail_early: bool,
    /// The limit on how often a transfer may start, over all stages. A retry counts as part of its
    /// transfer. Default: none.
    pub start_rate: Option<StartRate>,
    /// A callback that is called some 20 times a second, and returns true to stop. The run then
    /// outputs the values sorted so far, and fails with
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted). Default: none.
    pub interrupt: Option<Interrupt>,
    /// Read the input in a separate thread, because it may block.
    pub slow_input: bool,
    /// The directory for values that do not fit into memory. Default: the system's directory for
    /// temporary files.
    pub temporary: PathBuf,
}

impl Default for FleetOptions {
    fn default() -> Self {
        Self {
            parallel: 64,
            per_host: 6,
            pipeline: 1,
            threads: None,
            max_memory: 64 << 20,
            unordered: false,
            fail_early: false,
            start_rate: None,
            interrupt: None,
            slow_input: false,
            temporary: std::env::temp_dir(),
        }
    }
}

/// The receiver of reports on finished transfers. Called from any worker's thread, in any order.
pub trait TransferReporter: Send + Sync {
    /// Reports a finished transfer. The returned bytes are written after its body.
    fn finished(&self, job: &FleetJob, outcome: &TransferOutcome) -> Option<Vec<u8>>;
}

/// A reporter that does nothing.
#[derive(Debug, Clone, Copy)]
pub struct NoReport;

impl TransferReporter for NoReport {
    fn finished(&self, _job: &FleetJob, _outcome: &TransferOutcome) -> Option<Vec<u8>> {
        None
    }
}

/// The result of a fleet.
#[derive(Debug, Default, Clone)]
pub struct FleetSummary {
    /// Transfers that succeeded.
    pub succeeded: u64,
    /// Transfers that failed.
    pub failed: u64,
    /// The exit code of the first failure in the order of the input; 0 without one.
    pub exit_code: u8,
    /// The number of failures for each exit code, by code.
    pub causes: Vec<(u8, u64)>,
}

/// A fleet that is ready to start.
pub struct Fleet {
    stages: Vec<FleetStage>,
    options: FleetOptions,
}

impl Fleet {
    /// Makes a fleet of these stages.
    ///
    /// # Panics
    /// Without a stage.
    #[must_use]
    pub fn new(stages: Vec<FleetStage>, options: FleetOptions) -> Self {
        assert!(!stages.is_empty(), "a run has a stage");
        Self { stages, options }
    }

    /// Runs the fleet to its end. The calling thread is the first worker.
    ///
    /// # Errors
    /// The fleet as a whole cannot continue: the output is gone, or the disk for temporary values
    /// is full. A failed transfer is not an error here; it is counted and reported.
    pub fn run(
        self,
        client: &Client,
        items: FleetItems,
        output: DescriptorWriter,
        report: impl TransferReporter + 'static,
    ) -> Result<FleetSummary, Error> {
        let Self { stages, options } = self;
        let cores = available_parallelism().map_or(1, usize::from);
        // Pipelining is for long round trips. More threads would only divide its few connections.
        let threads = if options.pipeline > 1 { 1 } else { options.threads.unwrap_or(cores) };
        let workers = WorkerOptions {
            threads: threads.max(1),
            depth: options.pipeline.max(1),
            per_host: options.per_host.max(1),
        };
        let caps = QueueCaps { total: options.parallel.max(1), per_host: options.per_host.max(1) };
        let run = run::FleetRun::new(stages, &options, caps, items, output, Box::new(report))?;
        let supply: Arc<dyn worker::Scheduler> = run.clone();
        worker::run(client, &supply, workers)?;
        run.finish()
    }
}
