//! The open file of a [`FileSink`](super::FileSink), and a cache of one open device.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tempfile::TempPath;

use super::super::null_device_detection::is_null_device;
use super::super::partial::PartialFileWriter;
use crate::ignore_poison::IgnorePoison;
use crate::system::file_metadata_and_flags::is_null_device_name;

/// A cache of the character device that was opened last, so that thousands of bodies that are
/// written to `/dev/null` open it only once. FIFOs are not cached, because a reader of a FIFO sees
/// the end of a body only when the FIFO is closed.
#[derive(Debug, Default)]
pub struct OpenDeviceCache {
    last: Mutex<Option<(PathBuf, DeviceFile)>>,
}

/// An open file that is not regular, such as a device or a FIFO.
#[derive(Debug, Clone)]
pub(super) struct DeviceFile {
    file: Arc<File>,
    is_null: bool,
}

impl DeviceFile {
    pub(super) fn new(file: File) -> Self {
        Self { is_null: is_null_device(&file), file: Arc::new(file) }
    }

    /// Makes the value for a device of Windows, such as `NUL` or `COM1`, that was opened by its
    /// name `path`. The name decides whether the device is the null device.
    pub(super) fn with_name(file: File, path: &Path) -> Self {
        Self { is_null: is_null_device_name(path), file: Arc::new(file) }
    }
}

impl OpenDeviceCache {
    pub(super) fn find(&self, path: &Path) -> Option<DeviceFile> {
        let last = self.last.lock().ignore_poison();
        // Compared as text, since the same spelling comes again, and paths would be compared by
        // component.
        last.as_ref().filter(|(name, _)| name.as_os_str() == path.as_os_str()).map(|(_, device)| device.clone())
    }

    pub(super) fn insert(&self, path: &Path, device: &DeviceFile) {
        *self.last.lock().ignore_poison() = Some((path.to_owned(), device.clone()));
    }
}

/// The state of the file to which a [`FileSink`](super::FileSink) writes.
#[derive(Debug)]
pub(super) enum OutputFileState {
    /// No file is open.
    Closed,
    /// The target is not open yet. The sink opens the target itself, without a temporary file, when
    /// the first byte is written. A response without content thus leaves the old file unchanged.
    Due,
    /// An unnamed file in the directory of the target. It is deleted when it is closed, unless it
    /// has got a name before.
    #[cfg(linux_calls)]
    Unnamed(File),
    /// A file with a temporary name in the directory of the target.
    Beside(File, TempPath),
    /// A partial file, which a later run of the program can complete.
    Partial(PartialFileWriter),
    /// An unnamed file in the directory for temporary files. When the content is complete, it is
    /// copied to the target.
    Elsewhere(File),
    /// The target itself, which is written directly.
    InPlace(Arc<File>),
    /// The null device. Writes to it are skipped.
    Null(Arc<File>),
}

impl OutputFileState {
    pub(super) fn from_device(device: DeviceFile) -> Self {
        if device.is_null { Self::Null(device.file) } else { Self::InPlace(device.file) }
    }

    pub(super) fn file(&self) -> Option<&File> {
        match self {
            #[cfg(linux_calls)]
            Self::Unnamed(file) => Some(file),
            Self::Beside(file, _) | Self::Elsewhere(file) => Some(file),
            Self::InPlace(file) | Self::Null(file) => Some(file),
            Self::Partial(_) | Self::Due | Self::Closed => None,
        }
    }
}
