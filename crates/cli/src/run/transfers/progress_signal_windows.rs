//! The signal that prints the progress, which Windows does not have.

use std::sync::Arc;

use crate::plan::RunPlan;
use crate::run::report::progress::ProgressReporter;

/// Does nothing, because no signal asks for the progress.
pub(crate) fn start_signal_thread(_plan: &Arc<RunPlan>, _progress: &Arc<ProgressReporter>) {}
