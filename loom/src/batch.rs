//! The module `batch` of the engine.

#[path = "../../crates/engine/src/batch/memory_budget.rs"]
mod memory_budget;
#[path = "../../crates/engine/src/batch/program_task_wakers.rs"]
mod task_waker;

mod models;

/// The parts of `batch::executor` that the sources name.
mod executor {
    #[derive(Debug, PartialEq, Eq)]
    pub(crate) enum AdmissionRule {
        Any,
        Only(u64),
        None,
    }
}
