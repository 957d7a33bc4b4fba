//! The transfers of later stages, which are made from values of the stages before.

use std::sync::Arc;

use haul_policy::secrets::without_userinfo;
use haul_policy::target::{Scheme, Target};

use super::{
    BodyDestination, DispatchState, Dispatcher, DispatcherStages, FleetStage, InvalidJob, NewJob, OrderedWindow,
    placeholder_target, url_error,
};
use crate::{Error, ErrorKind, Result};

/// The place of a transfer that is made from a value.
pub(super) struct ValuePlace<'a> {
    /// The index of the stage to which the transfer belongs.
    pub(super) number: usize,
    pub(super) stage: &'a FleetStage,
    pub(super) window: &'a OrderedWindow,
    pub(super) order: Arc<[u64]>,
}

impl Dispatcher {
    /// Adds a transfer to the stage `number`, made from a value that the previous stage has
    /// extracted.
    pub(in crate::fleet) fn feed(
        &self,
        number: usize,
        stage: &FleetStage,
        window: &OrderedWindow,
        value: &[u8],
        order: Arc<[u64]>,
    ) {
        self.add_value(&mut self.lock(), ValuePlace { number, stage, window, order }, value, true);
    }

    /// Adds a transfer that an earlier run queued, under its number.
    pub(super) fn add_unfinished(
        &self,
        state: &mut DispatchState,
        (stage, number): (usize, u64),
        value: &[u8],
        view: &DispatcherStages<'_>,
    ) {
        let next = std::mem::replace(&mut state.numbers[stage], number);
        let order = [number].into();
        let place = ValuePlace { number: stage, stage: &view.stages[stage], window: &view.windows[stage], order };
        self.add_value(state, place, value, false);
        state.numbers[stage] = next;
    }

    /// Adds the transfer that a stage makes from a value. `is_new` is false if an earlier run queued
    /// it.
    pub(super) fn add_value(&self, state: &mut DispatchState, place: ValuePlace<'_>, value: &[u8], is_new: bool) {
        let ValuePlace { number, stage, window, order } = place;
        let made = job_from_value(stage, value);
        match &self.memory {
            Some(memory) if is_new && !matches!(made, Ok(None)) => {
                memory.queued(number, state.numbers[number], value);
            }
            Some(memory) if !is_new && matches!(made, Ok(None)) => memory.skipped(number, state.numbers[number]),
            _ => {}
        }
        match made {
            Ok(Some((url, target, destination))) => {
                state.note_url(stage, &target);
                let job = state.job(number, url, order, destination, window.reserve());
                let value = stage.value_mapper.is_some().then(|| value.into());
                let job = NewJob { job, target, value, request: None, kept: 0 };
                self.add(state, job.in_listing(stage, None));
            }
            Ok(None) => {}
            Err(error) => {
                let shown = without_userinfo(&String::from_utf8_lossy(value)).escape_debug().to_string();
                let error = error.with_url(shown.clone());
                let job = state.job(number, shown, order, BodyDestination::Output, window.reserve());
                state.invalid.push_back(InvalidJob { job, target: placeholder_target(), error });
            }
        }
    }
}

/// Returns the URL that a stage makes from a value, its target, and the destination of its page.
/// Returns `None` if the page need not be fetched.
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
