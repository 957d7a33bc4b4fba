//! The open file, and its temporary name.

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
    last: Mutex<Option<(PathBuf, Device)>>,
}

/// A file other than a regular one, and its kind.
#[derive(Debug, Clone)]
pub(super) struct Device {
    file: Arc<File>,
    is_null: bool,
}

impl Device {
    pub(super) fn new(file: File) -> Self {
        Self { is_null: is_null(&file), file: Arc::new(file) }
    }
}

impl Devices {
    pub(super) fn find(&self, path: &Path) -> Option<Device> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // As text: it is the very name that comes again, and paths are compared part by part.
        last.as_ref().filter(|(name, _)| name.as_os_str() == path.as_os_str()).map(|(_, device)| device.clone())
    }

    pub(super) fn keep(&self, path: &Path, device: &Device) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((path.to_owned(), device.clone()));
    }
}

#[derive(Debug)]
pub(super) enum State {
    Closed,
    /// To be opened in place when there is something to write: what was there before is lost by no response without content.
    Due,
    /// Gone unless it is given a name.
    #[cfg(target_os = "linux")]
    Unnamed(File),
    Beside(File, TempPath),
    Partial(PartWriter),
    /// Without a name and not in the target's directory: the content is copied into the target when it is complete.
    Elsewhere(File),
    InPlace(Arc<File>),
    /// Open, but what is written to it is gone.
    Null(Arc<File>),
}

impl State {
    pub(super) fn of(device: Device) -> Self {
        if device.is_null { Self::Null(device.file) } else { Self::InPlace(device.file) }
    }

    pub(super) fn file(&self) -> Option<&File> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Unnamed(file) => Some(file),
            Self::Beside(file, _) | Self::Elsewhere(file) => Some(file),
            Self::InPlace(file) | Self::Null(file) => Some(file),
            Self::Partial(_) | Self::Due | Self::Closed => None,
        }
    }
}
