//! The transfer of a job that is about to start: its options, with or without credentials, its sink
//! and its search.

use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use haul_policy::queue::HostId;

use super::FleetRun;
use crate::body::delivery::BodyDelivery;
use crate::extraction::{PageQuery, PageSearch};
use crate::fleet::dispatch::TransferInputs;
use crate::fleet::fleet_input_item::PerItemRequestOptions;
use crate::fleet::ordered_window_sink::{OrderedWindowSlotSink, PageFileAndValuesSink};
use crate::fleet::record_memory_sink::RecordMemorySink;
use crate::fleet::reported_job_and_destination::BodyDestination;
use crate::ignore_poison::IgnorePoison;
use crate::sink::Sink;
use crate::sink::file::FileSink;
use crate::transfer::Transfer;

impl FleetRun {
    /// Makes the transfer of a job that is about to start. The settings of the job's stage in the
    /// fleet determine the request options and the sink for the response's body. The request
    /// contains no credentials if only a page, and not the user, named the origin of the target
    /// ([`is_trusted`](Self::is_trusted)).
    pub(super) fn new_transfer(&self, started: TransferInputs, host: HostId, now: Instant) -> Box<Transfer> {
        let TransferInputs { key, stage: number, slot, order, destination, target, value, request, listing } = started;
        let stage = &self.stages[number];
        let is_trusted = self.is_trusted(number, &target, listing.as_deref());
        let options = if is_trusted { &stage.options } else { &self.secretless[number] };
        let filled = match (&stage.value_mapper, value) {
            (Some(value_mapper), Some(value)) => value_mapper.options(&value, options).map(Arc::new),
            _ => None,
        };
        let request = request.map(|request| if is_trusted { *request } else { request.without_secrets() });
        let PerItemRequestOptions { options: own, overrides } = request.unwrap_or_default();
        let options = own.or(filled).unwrap_or_else(|| Arc::clone(options));
        let feeds = number + 1 < self.stages.len();
        let in_window = || {
            let sink = OrderedWindowSlotSink::new(Arc::clone(&self.windows[number]), slot, order);
            if stage.with_url { sink.with_url(&self.dispatch.lock().url_of_running(key)) } else { sink }
        };
        let in_record = |options, file| RecordMemorySink::in_window(options, &self.windows[number], slot, file);
        let sink: Box<dyn Sink> = match (destination, stage.records) {
            (BodyDestination::Output, None) => Box::new(in_window()),
            (BodyDestination::Output, Some(records)) => Box::new(in_record(records, None)),
            (BodyDestination::File { path, options }, records) => {
                let algorithm = records.and_then(|records| records.file_checksum);
                // Boxed first, because each move of the sink would copy 440 bytes.
                let mut file = Box::new(FileSink::with_options(path, options));
                file.share_devices(&self.devices);
                if algorithm.is_some() {
                    *file = file.with_record_checksum(algorithm);
                }
                match records {
                    Some(records) if stage.extract.is_some() => Box::new(in_record(records, Some(*file))),
                    None if feeds => Box::new(PageFileAndValuesSink::new(in_window(), *file)),
                    _ => file,
                }
            }
        };
        let mut path = BodyDelivery::new(sink).with_decoder_memory(&self.decoders);
        if let Some(query) = &stage.extract {
            let spare = self.spare_searches(number).pop();
            let search = spare.unwrap_or_else(|| self.new_search(number, query));
            path = path.with_search(search, stage.search_in);
        }
        path = path.with_page_observer(stage.pagination.as_ref().and_then(|pagination| pagination.observer()));
        let mut transfer = Transfer::with_overrides(target, options, overrides, path, now, key as u64);
        transfer.scheduling.host_slot = Some(host);
        transfer.add_run_limits(self.limit_rate_total.as_ref(), self.stall);
        transfer.scheduling.rank = self.dispatch.priority(number, slot) + 1;
        transfer
    }

    fn new_search(&self, stage: usize, query: &PageQuery) -> PageSearch {
        let search = PageSearch::with_memory(query.clone(), self.search_memory);
        let next = self.stages.get(stage + 1).and_then(|next| next.template.as_ref());
        let makes_links = self.stages[stage].depth > 0 || next.is_some_and(|template| template.is_placeholder_only());
        if makes_links { search.with_link_resolution(Arc::clone(&self.skipped_values)) } else { search }
    }

    /// Returns the unused [`PageSearch`] values of the stage with the index `stage`. Finished
    /// transfers of the stage have left them for new ones.
    pub(super) fn spare_searches(&self, stage: usize) -> MutexGuard<'_, Vec<PageSearch>> {
        self.searches[stage].lock().ignore_poison()
    }
}
