//! A fleet fetches many URLs concurrently and in bounded memory. It outputs bodies in order. It can
//! also extract values from them and make the requests of further stages from the values.
//!
//! ```text
//!  items ─▶ dispatcher ─▶ workers ─▶ window 0 ─▶ filter ─▶ feed ─┐   (a stage with a next one)
//!               ▲                                                │
//!               └──────────── transfers of stage 1 ◀─────────────┘
//!               └▶ workers ─▶ window 1 ─▶ [filter] ─▶ print          (the last stage)
//! ```
//!
//! The complete list of URLs, bodies or matches is never in memory.
//!
//! ```no_run
//! use haul::fleet::{BodyDestination, Fleet, FleetOptions, FleetItem, NoReport, FleetStage};
//! use haul::sink::descriptor_writer::DescriptorWriter;
//! use haul::Client;
//!
//! let item = |i| FleetItem::new(format!("http://127.0.0.1/{i}"), BodyDestination::Output);
//! let pages = (1..=3).map(move |i| Ok(item(i)));
//! let fleet = Fleet::new(vec![FleetStage::default()], FleetOptions::default());
//! let summary = fleet.run(&Client::new(), Box::new(pages), DescriptorWriter::stdout(), NoReport)?;
//! assert_eq!(summary.failed, 0);
//! # Ok::<(), haul::Error>(())
//! ```

mod dispatch;
mod fleet_input_item;
mod fleet_shared_state;
mod item_source;
mod known_urls;
mod listing_page_destination_chooser;
mod next_repetition_urls_sink;
mod ordered_window;
mod ordered_window_sink;
mod progress_rule;
mod record_memory_sink;
mod reported_job_and_destination;
mod sinks_of_stages;
mod stage_value_store_for_resume;
mod start_rate;
mod value_to_request;
mod written_output_observer;

use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;

use haul_policy::concurrency::INITIAL_LIMIT;
use haul_policy::queue::QueueCaps;
use haul_policy::target::{Origin, Target};
use haul_policy::url_template::UrlTemplate;

pub use fleet_input_item::{FleetItem, ItemUserData, PerItemRequestOptions};
pub use item_source::FleetItems;
pub use listing_page_destination_chooser::ListingPageDestinationChooser;
pub use record_memory_sink::{
    FinishedTransferContent, RecordMemorySink, RecordOptions, RecordTextIterator, WholeOrPiecewiseText,
};
pub use reported_job_and_destination::{BodyDestination, FleetJob};
pub use stage_value_store_for_resume::{
    EarlierQueuedTransfer, RecalledValueKind, StageValueStore, UnfinishedTransferIterator,
};
pub(crate) use start_rate::StartLimits;
pub use start_rate::{HostStartRate, StartRate};
pub use value_to_request::ExtractedValueMapper;
pub use written_output_observer::OutputObserver;

use crate::body::delivery::RegexInputKind;
use crate::drive::worker::{self, WorkerOptions};
use crate::extraction::PageQuery;
use crate::interrupt_callback::InterruptCallback;
use crate::pagination::{ListingEnd, Pagination};
use crate::request::{RequestOptions, StallLimit, TotalRateLimit};
use crate::sink::descriptor_writer::DescriptorWriter;
use crate::transfer::TransferOutcome;
use crate::{Client, Error, Result};

/// A stage of a fleet: the settings of its requests, and the query for the values that it extracts
/// from its pages. Each later stage makes its requests from the values of the previous stage.
#[derive(Clone, Default)]
pub struct FleetStage {
    /// The options with which the stage requests its pages.
    pub options: Arc<RequestOptions>,
    /// The query for the values to extract from the pages. Without a query, the stage outputs the
    /// pages themselves. Every stage except the last needs a query.
    pub extract: Option<PageQuery>,
    /// The input in which regular expressions are searched: the page's text, converted to UTF-8, or
    /// its unchanged bytes. Other queries always use the text. Default: text.
    pub search_in: RegexInputKind,
    /// The template that makes a URL of this stage from a value of the previous stage. Every stage
    /// except the first needs a template.
    pub template: Option<Arc<UrlTemplate>>,
    /// The mapper that chooses the request options and the destination of the page that is fetched
    /// for a value. Default: none.
    pub value_mapper: Option<Arc<dyn ExtractedValueMapper>>,
    /// The settings for paginated listings. With them, each URL of the stage is the first page of a
    /// listing, and the other pages are fetched one after the other. These pages receive the
    /// stage's credentials only if they have the same origin as the first page. Default: none.
    pub pagination: Option<Arc<Pagination>>,
    /// True to output each value only once. (Values from which another stage makes requests are
    /// always used only once.) Default: false.
    pub unique: bool,
    /// True to output the values in bytewise order. Default: false.
    pub sort: bool,
    /// The number of times that the stage is repeated on its own values. The values must then be
    /// links. Each new link is output once, and is fetched in the next repetition. Only the last
    /// stage may be repeated. Default 0.
    pub depth: u32,
    /// True to output the URL of the page and a tab before each value. Only the last stage supports
    /// this. Default: false.
    pub with_url: bool,
    /// The settings of records: with them, the stage outputs one record for each transfer
    /// ([`TransferReporter::record`]) instead of the transfer's content. Only the last stage
    /// supports this. Default: none.
    pub records: Option<RecordOptions>,
}

/// Limits and settings of a [`Fleet`], which runs many transfers in parallel.
#[derive(Debug, Clone)]
pub struct FleetOptions {
    /// Maximum number of concurrent transfers. Default 64.
    pub parallel: usize,
    /// Maximum number of concurrent transfers to one host. Transfers that share an HTTP/2
    /// connection do not count. Default: chosen between 6 and 50 by measurement
    /// ([`haul_policy::concurrency`]); 6 if requests are pipelined.
    ///
    /// The host is that of the given URL, even if the transfer is redirected. Therefore, a host to
    /// which many other hosts redirect may get up to `parallel` connections. One more transfer may
    /// run if the fleet could not continue without it.
    pub per_host: Option<usize>,
    /// True to open a new connection for each transfer while no connection to its host is open yet.
    /// By default, the transfers wait for the first connection, since they may be able to share it
    /// over HTTP/2.
    pub connects_at_once: bool,
    /// Maximum number of outstanding requests on an HTTP/1.1 connection (RFC 9112 section 9.3.2).
    /// Default 1: no pipelining.
    pub pipeline: usize,
    /// Maximum number of threads. Default: the number of cores. Each thread is started only when it
    /// is needed.
    pub threads: Option<usize>,
    /// Maximum number of bytes of memory for three purposes together: bodies that wait for their
    /// turn in the output, values to be sorted, and content decoders. Default 64 MiB.
    pub max_memory: u64,
    /// True to output each body as soon as it is complete. False to output bodies in the order of
    /// the input. Default: false.
    pub unordered: bool,
    /// True to stop the fleet at the first failed transfer. Default: false.
    pub fail_early: bool,
    /// The maximum rate at which transfers start, shared by all stages. A retry counts, a redirect
    /// does not. Default: no limit.
    pub start_rate: Option<StartRate>,
    /// The maximum rate at which transfers to each host start. The host is that of the given URL.
    /// Default: no limit.
    pub host_start_rate: Option<HostStartRate>,
    /// The limit on bytes per second for all transfers together. The bytes of a transfer whose
    /// request has its own total limit do not count. Default: no limit.
    pub limit_rate_total: Option<TotalRateLimit>,
    /// The stall timeout: a transfer fails if no byte of it is sent or received for this time. A
    /// stall timeout of the request takes precedence. Default: none.
    pub stall: Option<StallLimit>,
    /// A callback that is called about 20 times a second. If it returns true, the fleet stops. It
    /// then outputs the values sorted so far, and fails with
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted). Default: none.
    pub interrupt: Option<InterruptCallback>,
    /// The observer that learns which output of the fleet has been written. Default: none.
    pub output_observer: Option<Arc<dyn OutputObserver>>,
    /// A store for the values that the stages extract in this run of the program. It returns the
    /// values of earlier runs, so that the fleet can resume. The links of a stage that has a
    /// [`depth`](FleetStage::depth) are not stored. Default: none.
    pub stage_memory: Option<Arc<dyn StageValueStore>>,
    /// The origin of the first URL that the user wrote. Later stages send credentials only to this
    /// origin, and to the origin that their URL template names. The inner value is `None` if the
    /// first URL has no origin. The iterator over the items may set the value when it reads its
    /// first URL, even if it makes no item of that URL. Otherwise, the fleet sets the value to the
    /// origin of the first item with [`is_users_origin`](FleetItem::is_users_origin). Default:
    /// `None`, for a value that only the fleet sets.
    pub first_origin: Option<Arc<OnceLock<Option<Origin>>>>,
    /// A counter that the fleet sets to the number of its running transfers. Default: none.
    pub running: Option<Arc<AtomicUsize>>,
    /// True to read the input in a separate thread, because reads may block. Default: false.
    pub slow_input: bool,
    /// The directory for values that do not fit into memory. Default: the system's directory for
    /// temporary files.
    pub temporary: PathBuf,
}

impl Default for FleetOptions {
    fn default() -> Self {
        Self {
            parallel: 64,
            per_host: None,
            connects_at_once: false,
            pipeline: 1,
            threads: None,
            max_memory: 64 << 20,
            unordered: false,
            fail_early: false,
            start_rate: None,
            host_start_rate: None,
            limit_rate_total: None,
            stall: None,
            interrupt: None,
            output_observer: None,
            stage_memory: None,
            first_origin: None,
            running: None,
            slow_input: false,
            temporary: std::env::temp_dir(),
        }
    }
}

/// The receiver of reports about finished transfers. Any worker thread may call it. Reports may
/// come in any order.
pub trait TransferReporter: Send + Sync {
    /// Reports a finished transfer. Returns bytes to output after the transfer's body, or `None` to
    /// add nothing to the output.
    fn finished(&self, job: &FleetJob, outcome: &TransferOutcome) -> Option<Vec<u8>>;

    /// Reports a finished transfer of a stage that outputs records ([`FleetStage::records`]).
    /// Returns the text of the record. If no record can be made from the content, the method sets
    /// the result in `_outcome` to an error, so that the transfer counts as failed. Default: an
    /// empty text.
    fn record(
        &self,
        _job: &FleetJob,
        _outcome: &mut TransferOutcome,
        _content: FinishedTransferContent,
    ) -> WholeOrPiecewiseText {
        WholeOrPiecewiseText::Whole(Vec::new())
    }
    /// Reports that a paginated listing has ended after the page `_job`. `_url` is the final URL of
    /// the page. Default: does nothing.
    fn listing_ended(&self, _job: &FleetJob, _url: &Target, _end: &ListingEnd) {}
}

/// A [`TransferReporter`] that does nothing.
#[derive(Debug, Clone, Copy)]
pub struct NoReport;

impl TransferReporter for NoReport {
    fn finished(&self, _job: &FleetJob, _outcome: &TransferOutcome) -> Option<Vec<u8>> {
        None
    }
}

/// The summary of a finished fleet: the numbers of successful and failed transfers.
#[derive(Debug, Default, Clone)]
pub struct FleetSummary {
    /// The number of successful transfers.
    pub succeeded: u64,
    /// The number of transfers that failed.
    pub failed: u64,
    /// The exit code for the whole fleet: that of the first failed transfer in the order of the
    /// input; 0 if no transfer failed.
    pub exit_code: u8,
    /// The exit code of the transfer that was the first to fail; 0 if no transfer failed.
    pub earliest_exit_code: u8,
    /// The number of failures for each exit code, as pairs (code, number), in the order of the
    /// codes.
    pub causes: Vec<(u8, u64)>,
    /// The number of extracted values that were left out because they are no http or https URLs,
    /// such as `mailto:`. Only links count: values for a next stage whose template is `{}`, and
    /// values of a repeated stage ([`FleetStage::depth`]).
    pub skipped_values: u64,
}

/// A fleet that is ready to run: stages and options. A fleet runs many transfers in parallel.
pub struct Fleet {
    stages: Vec<FleetStage>,
    options: FleetOptions,
}

impl Fleet {
    /// Makes a fleet with these stages.
    ///
    /// # Panics
    /// `stages` is empty.
    #[must_use]
    pub fn new(stages: Vec<FleetStage>, options: FleetOptions) -> Self {
        assert!(!stages.is_empty(), "a run has a stage");
        Self { stages, options }
    }

    /// Runs the fleet to its end. The calling thread takes part in the work.
    ///
    /// # Errors
    /// The fleet as a whole cannot continue, for example because the output cannot be written, or
    /// because the disk for temporary values is full. A failed transfer is no error of this
    /// function. It is counted and reported.
    pub fn run(
        self,
        client: &Client,
        items: FleetItems,
        output: DescriptorWriter,
        report: impl TransferReporter + 'static,
    ) -> Result<FleetSummary, Error> {
        let Self { stages, options } = self;
        let stages = repeated(stages);
        let cores = available_parallelism().map_or(1, usize::from);
        // Pipelining is for long round trips. More threads would only divide its few connections.
        let threads = if options.pipeline > 1 { 1 } else { options.threads.unwrap_or(cores) };
        let per_host = options.per_host.unwrap_or(INITIAL_LIMIT).max(1);
        let workers = WorkerOptions {
            threads: threads.max(1),
            depth: options.pipeline.max(1),
            per_host,
            connects_at_once: options.connects_at_once,
        };
        let caps = QueueCaps { total: options.parallel.max(1), per_host };
        let run = fleet_shared_state::FleetRun::new(stages, &options, caps, items, output, Box::new(report))?;
        let supply: Arc<dyn worker::Scheduler> = run.clone();
        worker::run(client, &supply, workers)?;
        run.finish()
    }
}

/// Appends the repetitions of the last stage ([`FleetStage::depth`]) to the list of stages.
fn repeated(mut stages: Vec<FleetStage>) -> Vec<FleetStage> {
    let Some(last) = stages.last().filter(|last| last.depth > 0) else { return stages };
    let template = UrlTemplate::parse("{}").expect("the template is valid");
    let again = FleetStage { template: Some(Arc::new(template)), ..last.clone() };
    let depth = last.depth as usize;
    stages.extend(std::iter::repeat_n(again, depth));
    stages
}
