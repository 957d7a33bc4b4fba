//! The transfers of later stages. They are made from values of the previous stages.

use std::sync::Arc;

use haul_policy::secret_fields::without_userinfo;
use haul_policy::target::{Scheme, Target};

use super::{
    BodyDestination, DispatchState, Dispatcher, FleetStage, JobWithError, OrderedWindow, QueuedOrRunningJob,
    placeholder_target, url_error,
};
use crate::fleet::fleet_input_item::PerItemRequestOptions;
use crate::fleet::stage_value_store_for_resume::EarlierQueuedTransfer;
use crate::request::RequestOverrides;
use crate::sink::temporary_and_final_names::ClobberMode;
use crate::{Error, ErrorKind, Result};

/// The stage to which a new transfer belongs, with the stage's output window (an ordered queue of
/// bodies), and the position of the transfer in the order of the output (`order`). The URL of the
/// transfer is made from a value that the previous stage extracted.
pub(super) struct NewTransferStage<'a> {
    /// The index of the transfer's own stage among the stages of the fleet, counted from 0.
    pub(super) number: usize,
    pub(super) stage: &'a FleetStage,
    pub(super) window: &'a OrderedWindow,
    pub(super) order: Arc<[u64]>,
}

/// The output windows (ordered queues of bodies) and the settings of all stages of a fleet. A fleet
/// runs many transfers in parallel, and each of its later stages requests URLs that are made from
/// the values which the previous stage extracted.
pub(in crate::fleet) struct StageWindowsAndSettings<'a> {
    pub(in crate::fleet) windows: &'a [Arc<OrderedWindow>],
    pub(in crate::fleet) stages: &'a [FleetStage],
}

/// The saved settings of a transfer that an earlier run of the program queued.
pub(super) struct EarlierRunTransferSettings {
    fields: Vec<(String, Vec<u8>)>,
    replaces_file: bool,
}

impl EarlierRunTransferSettings {
    /// Applies the saved settings to `destination`, the destination of the transfer's body. Returns
    /// the saved settings of the request; `None` if there are none.
    fn apply(self, destination: &mut BodyDestination) -> Option<Box<PerItemRequestOptions>> {
        if let BodyDestination::File { options, .. } = destination
            && self.replaces_file
        {
            options.clobber = ClobberMode::Replace;
        }
        let overrides = RequestOverrides { fields: self.fields, ..RequestOverrides::default() };
        (!overrides.fields.is_empty()).then(|| Box::new(PerItemRequestOptions { options: None, overrides }))
    }
}

impl Dispatcher {
    /// Adds a transfer to the stage with the index `number`. The transfer is made from a value that
    /// the previous stage has extracted.
    pub(in crate::fleet) fn add_job_from_value(
        &self,
        number: usize,
        stage: &FleetStage,
        window: &OrderedWindow,
        value: &[u8],
        order: Arc<[u64]>,
    ) {
        self.add_value(&mut self.lock(), NewTransferStage { number, stage, window, order }, value, None);
    }

    /// Adds an unfinished transfer that an earlier run of the program queued. The transfer keeps
    /// its number.
    pub(super) fn add_unfinished(
        &self,
        state: &mut DispatchState,
        stage: usize,
        transfer: EarlierQueuedTransfer,
        view: &StageWindowsAndSettings<'_>,
    ) {
        let next = std::mem::replace(&mut state.numbers[stage], transfer.number);
        let order = [transfer.number].into();
        let to = NewTransferStage { number: stage, stage: &view.stages[stage], window: &view.windows[stage], order };
        let EarlierQueuedTransfer { value, fields, replaces_file, .. } = transfer;
        self.add_value(state, to, &value, Some(EarlierRunTransferSettings { fields, replaces_file }));
        state.numbers[stage] = next;
    }

    /// Adds the transfer that a stage of the fleet makes from a value of the previous stage.
    /// `recalled` contains the saved settings of the transfer if an earlier run of the program
    /// queued it; otherwise `None`.
    pub(super) fn add_value(
        &self,
        state: &mut DispatchState,
        to: NewTransferStage<'_>,
        value: &[u8],
        recalled: Option<EarlierRunTransferSettings>,
    ) {
        let NewTransferStage { number, stage, window, order } = to;
        let made = job_from_value(stage, value);
        match (&self.value_store, &recalled) {
            (Some(value_store), None) if !matches!(made, Ok(None)) => {
                value_store.on_queued(number, state.numbers[number], value)
            }
            (Some(value_store), Some(_)) if matches!(made, Ok(None)) => {
                value_store.on_skipped(number, state.numbers[number])
            }
            _ => {}
        }
        match made {
            Ok(Some((url, target, mut destination))) => {
                state.remember_url(stage, &target);
                let request = recalled.and_then(|recalled| recalled.apply(&mut destination));
                let value: Option<Box<[u8]>> = stage.value_mapper.is_some().then(|| value.into());
                let request_bytes = url.len()
                    + value.as_ref().map_or(0, |value| value.len())
                    + request.as_deref().map_or(0, PerItemRequestOptions::kept_bytes);
                let job = state.new_job(number, url, order, destination, window.reserve_slot());
                let job = Box::new(QueuedOrRunningJob { job, target: Some(target), value, request, request_bytes });
                self.enqueue_job(state, job.in_listing(stage, None));
            }
            Ok(None) => {}
            Err(error) => {
                let shown = without_userinfo(&String::from_utf8_lossy(value)).escape_debug().to_string();
                let error = error.with_url(shown.clone());
                let job = state.new_job(number, shown, order, BodyDestination::Output, window.reserve_slot());
                state.errors.push_back(JobWithError { job, target: placeholder_target(), error });
            }
        }
    }
}

/// Returns the URL that a stage of the fleet makes from a value of the previous stage, the parsed
/// URL, and the destination of the response's body. Returns `None` if the stage's
/// [`ExtractedValueMapper`](crate::fleet::ExtractedValueMapper) wants no request for the value.
fn job_from_value(stage: &FleetStage, value: &[u8]) -> Result<Option<(String, Target, BodyDestination)>> {
    let template = stage.template.as_ref().expect("every stage but the first has a template");
    let url = template
        .expand(value)
        .map_err(|error| Error::with_source(ErrorKind::Url, "the value cannot be made a URL", error))?;
    let url = match &stage.value_mapper {
        Some(value_mapper) => value_mapper.url(value, url),
        None => url,
    };
    let target = Target::parse_with(&url, Scheme::Http, stage.options.path_as_is);
    let target = target.map_err(|error| url_error(&url, error))?;
    let destination = match &stage.value_mapper {
        Some(value_mapper) => value_mapper.destination(value, &target)?,
        None => Some(BodyDestination::Output),
    };
    Ok(destination.map(|destination| (url, target, destination)))
}
