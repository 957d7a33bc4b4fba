//! Iterates over the URLs of several URL groups (operations), which run in parallel as one list.

use std::ops::Range;
use std::sync::Arc;

use haul::fleet::{FleetItem, ItemUserData};
use haul::{Error, Result};

use crate::plan::RunPlan;
use crate::run::report::reporter::{GroupReporter, UrlGroupReporter};
use crate::run::report::url_group_ref::UrlGroupRef;
use crate::run::report::url_number::UrlNumbers;
use crate::run::transfers::parallel::request_of_many;
use crate::run::transfers::shard_filter::ShardFilter;
use crate::run::transfers::state_stores::StateStores;
use crate::run::transfers::url_items::{ItemRequestSettings, UrlItems};

/// Iterates over the URLs of consecutive URL groups, as items for the engine's fleet. Each item has
/// the request options and the reporter of its group. These are created when the first URL of the
/// group is due, so that a long list of groups needs little memory.
pub(crate) struct GroupItems {
    plan: Arc<RunPlan>,
    groups: Range<usize>,
    /// The reporter of the first group.
    first: Arc<UrlGroupReporter>,
    /// The stores of the first group, such as cookies, which all groups share.
    stores: StateStores,
    /// The numbers of the URLs of all groups.
    numbers: UrlNumbers,
    /// The remaining items of the current group, or of the last group that could be opened.
    current: Option<UrlItems>,
}

impl GroupItems {
    pub(crate) fn new(
        plan: &Arc<RunPlan>,
        groups: Range<usize>,
        first: &Arc<UrlGroupReporter>,
        stores: &StateStores,
        numbers: UrlNumbers,
    ) -> Self {
        let (plan, first, stores) = (Arc::clone(plan), Arc::clone(first), stores.clone());
        Self { plan, groups, first, stores, numbers, current: None }
    }

    fn open(&mut self, index: usize) -> Result<UrlItems> {
        let operation = &self.plan.operations[index];
        let reporter = Arc::new(self.first.for_joined_group(&self.plan.global, operation)?);
        let options = Arc::new(request_of_many(&self.plan, operation, 0, &reporter, &mut self.stores)?);
        let names = reporter.output_names().clone();
        let method = operation.stages[0].request.method.clone();
        let context = Some(ItemUserData::new(Arc::new(GroupReporter { reporter, method })));
        let requests = ItemRequestSettings { options, is_joined: true, context };
        let shard = ShardFilter::new(self.plan.global.shard, operation.stages[0].transfer.redirect.default_scheme);
        let items = UrlItems::new(operation, requests, None, self.numbers.clone(), names, shard);
        Ok(match &self.current {
            Some(earlier) => items.numbered_after(earlier),
            None => items,
        })
    }
}

impl Iterator for GroupItems {
    type Item = Result<FleetItem, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.current.as_mut().and_then(Iterator::next) {
                return Some(item);
            }
            let index = self.groups.next()?;
            match self.open(index) {
                Ok(items) => self.current = Some(items),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
