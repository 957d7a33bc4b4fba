//! Options for writing a file.

use std::path::PathBuf;

use super::super::checksum::ExpectedChecksum;
use super::super::temporary_and_final_names::{ClobberMode, FilePathCheck};

/// The options of a [`FileSink`](super::FileSink): where and how it writes the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileOptions {
    /// True to create missing directories of the path. Default: false.
    pub create_dirs: bool,
    /// The directory below which the file must be, for a path that a URL, a list or a page chose.
    /// Links below this directory are not followed, and the body is not written to a link, a FIFO
    /// or a device. Default: `None`, for a path that the user chose; links are then followed as
    /// usual.
    pub beneath: Option<PathBuf>,
    /// True to replace the last segment of the path by the file name that the response suggests,
    /// after unsafe characters were removed (curl's `-J`). Default: false.
    pub named_by_response: bool,
    /// A check that accepts or refuses the path of the file before the file is opened. It has an
    /// effect only if `named_by_response` is true, and is then called even if the response suggests
    /// no name. Default: `None`; any path is accepted.
    pub name_check: Option<FilePathCheck>,
    /// The treatment of an existing file with the target's name. Default: the body replaces the
    /// file if the user chose the name. If the response suggested the name, the sink fails and
    /// keeps the file.
    pub clobber: ClobberMode,
    /// True to sync the content and the name to the disk before the file counts as complete.
    /// Default: false.
    pub sync: bool,
    /// The permission bits of a new file, before the umask; `None` for `0o666`. Default: `None`.
    pub mode: Option<u32>,
    /// True to remove everything that a failed transfer wrote. Default: false; the partial file is
    /// kept, so that a later run of the program can complete it.
    pub remove_on_error: bool,
    /// True to treat a status of 400 or above as a failed transfer even if its content is
    /// delivered. It has an effect only with `remove_on_error`. Default: false.
    pub statuses_fail: bool,
    /// The position in the existing file from which the body is written (curl's `-C`). Default:
    /// `None`; the body replaces the file.
    pub append: Option<AppendPosition>,
    /// True to write the file in place: it is opened under its own name and truncated, links are
    /// followed, and the received part of a failed transfer remains (as in curl). Default: false.
    /// Hazard: another program may read the file before it is complete.
    pub in_place: bool,
    /// The checksum that the content must have. If the content has a different checksum, the file
    /// is not renamed to its target. Default: `None`, so that nothing is verified.
    pub checksum: Option<ExpectedChecksum>,
}

/// Returns the permission bits, before the umask, for new directories. If files are written [in
/// place](FileOptions::in_place), returns the bits that curl uses.
#[must_use]
pub fn directory_mode(in_place: bool) -> u32 {
    if in_place { 0o750 } else { 0o777 }
}

/// The position from which a body is written into an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendPosition {
    /// The body is written from this offset in bytes on.
    At(u64),
    /// The body is appended to the existing file. Only the rest of the content is requested.
    AtEnd,
    /// The whole body is appended to the existing file, and no range is requested. This is for an
    /// upload with curl's `-C`, whose offset applies to the content that is sent.
    WholeAtEnd,
}
