//! Includes the source files of the engine's module `batch` and compiles them against loom, so that
//! the models can run them in every order of the threads' steps.

#[path = "../../crates/engine/src/batch/memory_budget.rs"]
mod memory_budget;
#[path = "../../crates/engine/src/batch/descriptor_wakers.rs"]
mod task_waker;

mod models;

/// A stand-in for the engine's module `batch::executor`, with the only type that the included
/// sources use.
mod executor {
    #[derive(Debug, PartialEq, Eq)]
    pub(crate) enum AdmissionRule {
        Any,
        Only(u64),
        None,
    }
}
