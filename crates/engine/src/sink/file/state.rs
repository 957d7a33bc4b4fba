//! What is open, and what it is called meanwhile.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tempfile::TempPath;

use super::super::null::is_null;
use super::super::partial::PartWriter;

/// The character device that was opened last, for those who write to it next: thousands of bodies for `/dev/null` need
/// not open it thousands of times. (A FIFO is not kept: its reader waits for the end that closing it is.)
#[derive(Debug, Default)]
pub struct Devices {
    last: Mutex<Option<(PathBuf, Arc<File>)>>,
}

impl Devices {
    pub(super) fn find(&self, path: &Path) -> Option<Arc<File>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|(name, _)| name == path).map(|(_, file)| Arc::clone(file))
    }

    pub(super) fn keep(&self, path: &Path, file: &Arc<File>) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((path.to_owned(), Arc::clone(file)));
    }
}

#[derive(Debug)]
pub(super) enum State {
    Closed,
    /// Gone unless it is given a name.
    #[cfg(target_os = "linux")]
    Unnamed(File),
    Beside(File, TempPath),
    Partial(PartWriter),
    InPlace(Arc<File>),
    /// Open, but what is written to it is gone.
    Null(Arc<File>),
}

impl State {
    /// What is no regular file.
    pub(super) fn in_place(file: Arc<File>) -> Self {
        if is_null(&file) { Self::Null(file) } else { Self::InPlace(file) }
    }

    pub(super) fn file(&self) -> Option<&File> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Unnamed(file) => Some(file),
            Self::Beside(file, _) => Some(file),
            Self::InPlace(file) | Self::Null(file) => Some(file),
            Self::Partial(_) | Self::Closed => None,
        }
    }
}
