//! The sinks of stages. Each receives the content that the window of a stage passes on, and outputs
//! it, filters it, or makes requests of the next stage from it.
//!
//! ```text
//!  last stage:    window ─▶ [UniqueOrSortSink] ─▶ FleetOutputSink ─▶ standard output or a file
//!  other stages:  window ─▶ UniqueOrSortSink ─▶ NextStageSink ─▶ the next stage's queue
//! ```

use std::path::Path;
use std::sync::Arc;

use haul_policy::terminal_text::escape_for_terminal;

use super::dispatch::Dispatcher;
use super::known_urls::KnownUrls;
use super::next_repetition_urls_sink::LevelSink;
use super::ordered_window::{DeliveryOrder, OrderedWindow, StageSink};
use super::stage_value_store_for_resume::{RecalledValueKind, StageValueStore};
use super::written_output_observer::FleetOutputProgress;
use super::{FleetOptions, FleetStage};
use crate::Result;
use crate::body::decoder_memory_budget::DecoderMemoryBudget;
use crate::buffer_pool::OfferedBodyBytes;
use crate::extraction::{Distinct, DistinctOverflowValues, DistinctResult, SortedValues, Sorter};
use crate::sink::descriptor_writer::{DescriptorWriter, OutputReadiness};
use crate::sink::extracted_value_list::ExtractedValues;

/// Makes the output windows of a fleet (a parallel run of transfers in stages). Each stage has one
/// window: an ordered queue of its bodies or values. The last window is made first, because the
/// sink of each stage passes values to the next stage's window.
pub(super) fn new_windows(
    stages: &[FleetStage],
    options: &FleetOptions,
    dispatch: &Arc<Dispatcher>,
    output: DescriptorWriter,
    decoders: &Arc<DecoderMemoryBudget>,
    known_urls: Option<&KnownUrls>,
) -> Result<Vec<Arc<OrderedWindow>>> {
    let progress = Arc::<FleetOutputProgress>::default();
    let share = options.max_memory / stages.len() as u64;
    let mut windows: Vec<Arc<OrderedWindow>> = Vec::new();
    let mut output = Some(output);
    // The stages before a stage that sorts need not keep any order.
    let mut order_matters = true;
    for (number, stage) in stages.iter().enumerate().rev() {
        let sink: Box<dyn StageSink> = match (windows.last(), output.take()) {
            (Some(window), _) => Box::new(NextStageSink {
                dispatch: Arc::clone(dispatch),
                stage: stages[number + 1].clone(),
                window: Arc::clone(window),
                number: number + 1,
            }),
            (None, Some(output)) => Box::new(FleetOutputSink::new(output, Arc::clone(&progress))),
            (None, None) => unreachable!("the output is taken once, by the last stage"),
        };
        let feeds = !windows.is_empty();
        let known = known_urls.filter(|_| stage.depth > 0);
        let sifts = stage.extract.is_some() && (feeds || known.is_some() || stage.unique || stage.sort);
        let sink: Box<dyn StageSink> = if let Some(known) = known.filter(|_| feeds) {
            Box::new(LevelSink::new(known, stage.sort, share / 2, &options.temporary, &windows, sink))
        } else if sifts {
            let unique = feeds || known.is_some() || stage.unique;
            let sifter = UniqueOrSortSink::new(unique, stage.sort, share / 2, &options.temporary, sink);
            let sifter = match known {
                Some(known) => sifter.with_known_urls(known),
                None => sifter,
            };
            Box::new(match &options.stage_memory {
                Some(value_store) => sifter.with_value_store(value_store, number, feeds)?,
                None => sifter,
            })
        } else {
            sink
        };
        order_matters &= !(sifts && stage.sort);
        let order = match (order_matters, options.unordered) {
            (false, _) => DeliveryOrder::Free,
            (true, true) if feeds => DeliveryOrder::Free,
            (true, true) => DeliveryOrder::Whole,
            (true, false) => DeliveryOrder::Input,
        };
        let memory = if sifts { share / 2 } else { share };
        // The content of one record may come on top of a full budget.
        let memory = memory - stage.records.map_or(0, |records| records.max_content.min(memory / 2));
        let window = OrderedWindow::new(order, usize::try_from(memory).unwrap_or(usize::MAX), sink);
        let window = window.with_decoder_memory(decoders, stages.len()).with_overflow_directory(&options.temporary);
        windows.push(Arc::new(window.observed_by(options.output_observer.as_ref(), &progress, number)));
    }
    windows.reverse();
    Ok(windows)
}

/// The sink that writes to the output of a fleet (a run of many parallel transfers). It receives
/// the bodies of the fleet's last stage, or the values extracted from these bodies.
pub(super) struct FleetOutputSink {
    output: DescriptorWriter,
    /// True if the output is a terminal. Control characters in values are then escaped.
    is_terminal: bool,
    /// The number of bytes that were passed to the output so far.
    passed: u64,
    progress: Arc<FleetOutputProgress>,
}

impl FleetOutputSink {
    pub(super) fn new(output: DescriptorWriter, progress: Arc<FleetOutputProgress>) -> Self {
        Self { is_terminal: output.is_terminal(), output, passed: 0, progress }
    }

    /// Stores how many bytes were passed to the output and how many of them are written, for the
    /// observer.
    fn update_progress(&self) {
        // The buffer may also have bytes that the caller wrote before the run.
        self.progress.set(self.passed, self.passed.saturating_sub(self.output.waiting_bytes() as u64));
    }
}

impl StageSink for FleetOutputSink {
    fn write_bytes(&mut self, bytes: &[u8]) -> Result<OutputReadiness> {
        self.passed += bytes.len() as u64;
        let room = self.output.write(bytes);
        self.update_progress();
        room
    }

    fn write_records(&mut self, records: &mut ExtractedValues) -> Result<OutputReadiness> {
        let lines = if self.is_terminal { records.for_terminal().to_lines() } else { records.to_lines() };
        let room = self.write_bytes(&lines);
        records.clear();
        room
    }

    fn flush(&mut self) -> Result<OutputReadiness> {
        let room = self.output.flush();
        self.update_progress();
        room
    }

    fn finish(&mut self, mut tail: Option<StageEndValues>) -> Result<Option<StageEndValues>> {
        // Everything else is finished, so this may wait for a slow reader.
        if let Some(tail) = &mut tail {
            let mut line = Vec::new();
            while let Some(value) = tail.next_value()? {
                line.clear();
                match self.is_terminal {
                    true => line.extend_from_slice(&escape_for_terminal(value)),
                    false => line.extend_from_slice(value),
                }
                line.push(b'\n');
                if self.write_bytes(&line)? == OutputReadiness::Full {
                    self.output.drain(None)?;
                }
            }
        }
        self.output.drain(None)?;
        self.update_progress();
        Ok(None)
    }
}

/// A sink for the values that one stage of a fleet (many parallel transfers) extracts from its
/// responses, if the stage has the option `unique` or `sort`. The sink drops repeated values, or
/// keeps all values until the end to sort them.
pub(super) struct UniqueOrSortSink {
    distinct: Option<Distinct>,
    /// The links found so far, if the stage is repeated on the links in its own pages
    /// ([`FleetStage::depth`](super::FleetStage::depth)); otherwise `None`. All repetitions of the
    /// stage share this set. The sink drops each link that is already in the set. `distinct` is
    /// `None` if there is a set.
    known_urls: Option<KnownUrls>,
    sorter: Option<Sorter>,
    next: Box<dyn StageSink>,
    passing: ExtractedValues,
    /// The store that records the values, the index of the stage, and a flag. The flag is true if
    /// the values are output, and false if the next stage makes requests from them. `None` if no
    /// values are recorded.
    value_store: Option<(Arc<dyn StageValueStore>, usize, bool)>,
}

impl UniqueOrSortSink {
    /// Makes a sink for the options `unique` and `sort` of a stage. It uses about `memory` bytes of
    /// memory, writes temporary files to the directory `dir`, and passes values on to the sink
    /// `next`.
    pub(super) fn new(unique: bool, sort: bool, memory: u64, dir: &Path, next: Box<dyn StageSink>) -> Self {
        Self {
            // A sorter that drops repeated values needs no other filter.
            distinct: (unique && !sort).then(|| Distinct::new(memory, dir)),
            known_urls: None,
            sorter: sort.then(|| Sorter::new(memory, dir, unique)),
            next,
            passing: ExtractedValues::default(),
            value_store: None,
        }
    }

    /// Makes the sink record the values of the stage in `value_store`, and reads the values of
    /// earlier runs of the program from it. The sink drops values that these runs have output or
    /// requested. It keeps the values that waited for the end of the stage. `feeds` is true if the
    /// next stage makes requests from the values.
    fn with_value_store(mut self, value_store: &Arc<dyn StageValueStore>, stage: usize, feeds: bool) -> Result<Self> {
        let (of, kind) =
            if feeds { (stage + 1, RecalledValueKind::Queued) } else { (stage, RecalledValueKind::Printed) };
        if let Some(distinct) = &mut self.distinct {
            value_store.recall_values(of, kind, &mut |value| {
                distinct.recall_known(value);
                Ok(())
            })?;
            value_store.recall_values(stage, RecalledValueKind::Kept, &mut |value| distinct.recall_deferred(value))?;
        }
        if let Some(sorter) = &mut self.sorter {
            value_store.recall_values(stage, RecalledValueKind::Kept, &mut |value| sorter.push(value))?;
        }
        self.value_store = Some((Arc::clone(value_store), stage, !feeds));
        Ok(self)
    }

    /// Makes the sink drop each URL that was already found in any repetition of the stage (a stage
    /// can be repeated on the links in its own pages).
    fn with_known_urls(mut self, known_urls: &KnownUrls) -> Self {
        (self.distinct, self.known_urls) = (None, Some(known_urls.clone()));
        self
    }

    /// Returns true if `value` is new and the caller must pass it on now. Returns false for a
    /// repeated value, which is dropped, and for a value that the filter keeps on disk until the
    /// stage ends. For later runs of the program, `value_store` records each value that is kept on
    /// disk, and each new value of the last stage.
    fn is_passed_at_once(&mut self, value: &[u8]) -> Result<bool> {
        let result = match (&self.known_urls, &mut self.distinct) {
            (Some(known), _) if known.is_new(value)? => DistinctResult::New,
            (Some(_), _) => DistinctResult::Old,
            (None, Some(distinct)) => distinct.push(value)?,
            (None, None) => return Ok(true),
        };
        match (&self.value_store, result) {
            (Some((value_store, stage, true)), DistinctResult::New) => value_store.on_printed(*stage, value),
            (Some((value_store, stage, _)), DistinctResult::Deferred) => value_store.on_kept(*stage, value),
            _ => {}
        }
        Ok(result == DistinctResult::New)
    }
}

impl StageSink for UniqueOrSortSink {
    fn write_bytes(&mut self, bytes: &[u8]) -> Result<OutputReadiness> {
        self.next.write_bytes(bytes)
    }

    fn write_records(&mut self, records: &mut ExtractedValues) -> Result<OutputReadiness> {
        if let Some(sorter) = &mut self.sorter {
            // Values that another repetition of the stage prints have no place, and are known.
            let known_urls = self.known_urls.as_ref().filter(|_| records.place.is_some());
            for value in records.iter() {
                if known_urls.map_or(Ok(true), |known| known.is_new(value))? {
                    sorter.push(value)?;
                    if let Some((value_store, stage, _)) = &self.value_store {
                        value_store.on_kept(*stage, value);
                    }
                }
            }
            records.clear();
            return Ok(OutputReadiness::Free);
        }
        if self.distinct.is_none() && self.known_urls.is_none() {
            return self.next.write_records(records);
        }
        self.passing.clear();
        self.passing.place = records.place.clone();
        for value in records.iter() {
            if self.is_passed_at_once(value)? {
                self.passing.push(value);
            }
        }
        records.clear();
        if self.passing.is_empty() { self.next.flush() } else { self.next.write_records(&mut self.passing) }
    }

    fn may_receive_while_full(&self) -> bool {
        self.next.may_receive_while_full()
    }

    fn flush(&mut self) -> Result<OutputReadiness> {
        self.next.flush()
    }

    fn finish(&mut self, _tail: Option<StageEndValues>) -> Result<Option<StageEndValues>> {
        let tail = match (self.sorter.take(), self.distinct.take()) {
            (Some(sorter), _) => Some(StageEndValues::Sorted(sorter.finish()?)),
            (None, Some(distinct)) => Some(StageEndValues::Deferred(distinct.finish()?)),
            (None, None) => None,
        };
        self.next.finish(tail)
    }
}

/// The values that a stage of a fleet passes on only when the stage ends: to the output, or to the
/// next stage, which makes requests from them.
pub(super) enum StageEndValues {
    /// All values of a stage, in bytewise order.
    Sorted(SortedValues),
    /// The values that did not fit into memory and were kept on disk, in the order in which they
    /// were first seen.
    Deferred(DistinctOverflowValues),
}

impl StageEndValues {
    pub(super) fn next_value(&mut self) -> Result<Option<&[u8]>> {
        match self {
            Self::Sorted(sorted) => sorted.next_value(),
            Self::Deferred(deferred) => deferred.next_value(),
        }
    }
}

/// A sink that makes a request from each value that one stage of a fleet (many parallel transfers)
/// has extracted. The requests belong to the next stage.
pub(super) struct NextStageSink {
    pub(super) dispatch: Arc<Dispatcher>,
    /// The next stage, which makes requests from the values.
    pub(super) stage: FleetStage,
    pub(super) window: Arc<OrderedWindow>,
    /// The index of the next stage.
    pub(super) number: usize,
}

impl StageSink for NextStageSink {
    /// Puts bytes of this stage, such as response heads and report texts, into a slot of their own
    /// in the output window (the queue of bodies) of the next stage. If the output is in input
    /// order, the bytes stand between two groups of bodies: those requested for values before the
    /// bytes, and those requested for values after them.
    fn write_bytes(&mut self, bytes: &[u8]) -> Result<OutputReadiness> {
        if !bytes.is_empty() {
            let slot = self.window.reserve_slot();
            self.window.add_bytes(slot, OfferedBodyBytes::borrowed(bytes))?;
            self.window.finish_slot(slot)?;
        }
        self.flush()
    }

    fn write_records(&mut self, records: &mut ExtractedValues) -> Result<OutputReadiness> {
        let place = records.place.take();
        for (i, value) in records.iter().enumerate() {
            let order = place.as_ref().map_or_else(Vec::new, |place| place.order_of_match(i));
            self.dispatch.add_job_from_value(self.number, &self.stage, &self.window, value, order.into());
        }
        records.clear();
        self.flush()
    }

    fn flush(&mut self) -> Result<OutputReadiness> {
        Ok(if self.dispatch.accepts_values(self.number) { OutputReadiness::Free } else { OutputReadiness::Full })
    }

    /// Returns true, so that pages of this stage can end even if the next stage has no room.
    /// Otherwise, a page would keep a connection that the next stage may need. The values extracted
    /// from a page are small, so they can wait in memory.
    fn may_receive_while_full(&self) -> bool {
        true
    }

    fn finish(&mut self, tail: Option<StageEndValues>) -> Result<Option<StageEndValues>> {
        Ok(tail)
    }
}
