//! Iterates over the URLs of several URL groups, which run in parallel as one list.

use std::ops::Range;
use std::sync::Arc;

use haul::body::upload::RequestBody;
use haul::fleet::{FleetItem, ItemUserData};
use haul::{Error, RequestOptions, Result};

use crate::plan::{RequestBodyArg, RunPlan, UrlGroup};
use crate::run::parallel_group_dependencies::shares_request_options;
use crate::run::report::reporter::UrlGroupReporter;
use crate::run::report::urlnum_variable::UrlNumbers;
use crate::run::transfers::parallel::request_of_many;
use crate::run::transfers::shard_filter::ShardFilter;
use crate::run::transfers::state_stores::StateStores;
use crate::run::transfers::url_items::{UrlGroupRequestSettings, UrlItems};

/// Iterates over the URLs of consecutive URL groups, as items for the engine's fleet, which
/// transfers them in parallel. Each item has the request options and the reporter of its group,
/// created when the first URL of the group is due, so that a long list of groups needs little
/// memory.
pub(crate) struct UrlsOfGroups {
    plan: Arc<RunPlan>,
    indexes: Range<usize>,
    /// The reporter of the first group, from which the reporters of all groups are made.
    first: Arc<UrlGroupReporter>,
    /// The cookies, HSTS hosts and alternative services of the first group, which all groups share.
    stores: StateStores,
    /// The values of `%{urlnum}` for the URLs of all groups.
    numbers: UrlNumbers,
    /// The items of the last group that was opened without an error. Once they are used up, the
    /// next group is opened, and numbers its items after these. `None` before the first group.
    current: Option<UrlItems>,
    /// The last group whose request options a later group can share, and these options without the
    /// request content. A later group shares the options if it differs from that group only in the
    /// content. `None` before the first such group.
    shared_options: Option<(Arc<UrlGroup>, Arc<RequestOptions>)>,
}

impl UrlsOfGroups {
    pub(crate) fn new(
        plan: &Arc<RunPlan>,
        indexes: Range<usize>,
        first: &Arc<UrlGroupReporter>,
        stores: &StateStores,
        numbers: UrlNumbers,
    ) -> Self {
        let (plan, first, stores) = (Arc::clone(plan), Arc::clone(first), stores.clone());
        Self { plan, indexes, first, stores, numbers, current: None, shared_options: None }
    }

    fn open(&mut self, index: usize) -> Result<UrlItems> {
        let group = &Arc::clone(&self.plan.groups[index]);
        let reporter = Arc::new(self.first.for_joined_group(&self.plan.global, group)?);
        let (options, body) = self.request_options(group, &reporter)?;
        let names = reporter.output_names().clone();
        let requests = UrlGroupRequestSettings {
            options,
            body,
            runs_with_other_groups: true,
            context: Some(ItemUserData::new(Arc::clone(&reporter))),
        };
        let shard = ShardFilter::new(self.plan.global.shard, group.stages[0].transfer.redirect.default_scheme);
        let items =
            UrlItems::new(group, requests, None, self.numbers.clone(), names, shard).with_skip_reporter(&reporter);
        Ok(match &self.current {
            Some(earlier) => items.numbered_after(earlier),
            None => items,
        })
    }

    /// Returns the request options of a group, and the content if the options do not contain it.
    /// Groups whose options differ only in the content share one set of options. A list of POST
    /// requests therefore needs only one set, however many groups it has.
    fn request_options(
        &mut self,
        group: &Arc<UrlGroup>,
        reporter: &Arc<UrlGroupReporter>,
    ) -> Result<(Arc<RequestOptions>, Option<RequestBody>)> {
        let known = self.shared_options.as_ref().filter(|(of, _)| shares_request_options(of, group));
        let options = match known {
            Some((_, options)) => Arc::clone(options),
            None => {
                let options = request_of_many(&self.plan, group, 0, reporter, &mut self.stores)?;
                if options.trace.is_some() || !shares_request_options(group, group) {
                    return Ok((Arc::new(options), None));
                }
                let options = Arc::new(RequestOptions { body: None, ..options });
                self.shared_options = Some((Arc::clone(group), Arc::clone(&options)));
                options
            }
        };
        let body = match &group.stages[0].request.body {
            Some(RequestBodyArg::Bytes(bytes)) => Some(RequestBody::from(bytes)),
            _ => None,
        };
        Ok((options, body))
    }
}

impl Iterator for UrlsOfGroups {
    type Item = Result<FleetItem, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.current.as_mut().and_then(Iterator::next) {
                return Some(item);
            }
            let index = self.indexes.next()?;
            match self.open(index) {
                Ok(items) => self.current = Some(items),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
