//! The URL group whose transfers a reporter reports.

use std::ops::Deref;
use std::sync::Arc;

use crate::plan::{RunPlan, UrlGroup};

/// The URL group of a reporter.
pub(crate) enum UrlGroupRef {
    /// The group at an index of the plan, without a copy.
    OfPlan(Arc<RunPlan>, usize),
    /// A copy of a group, with other settings.
    Changed(Box<UrlGroup>),
}

impl Deref for UrlGroupRef {
    type Target = UrlGroup;

    fn deref(&self) -> &UrlGroup {
        match self {
            Self::OfPlan(plan, index) => &plan.operations[*index],
            Self::Changed(group) => group,
        }
    }
}
