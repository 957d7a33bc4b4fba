//! Options for writing a file.

use super::super::checksum::ExpectedChecksum;
use super::super::naming::{Clobber, NameCheck};

/// Options for writing a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileOptions {
    /// Make missing directories of the path too. Default no.
    pub create_dirs: bool,
    /// Replace the last part of the path by the name that a Content-Disposition suggests, made
    /// harmless (curl's `-J`). Default no.
    pub named_by_response: bool,
    /// With `named_by_response`: a check that accepts or refuses the file's name, whatever its
    /// origin. Default: any name is accepted.
    pub name_check: Option<NameCheck>,
    /// Treatment of an existing file of that name. Default: the body replaces it, unless the
    /// response suggested the name.
    pub clobber: Clobber,
    /// Sync bytes and name to the disk before the file counts as complete. Default no.
    pub sync: bool,
    /// Permission bits of a new file, before the umask. Default `0o666`.
    pub mode: Option<u32>,
    /// Remove everything that a failed transfer wrote. Default no: a later run can complete it.
    pub remove_on_error: bool,
    /// With `remove_on_error`: treat a response with a status of 400 or above as a failure, though
    /// its content is delivered. Default no.
    pub statuses_fail: bool,
    /// Add the bytes to the file in place (curl's `-C`). Default no.
    pub append: Option<AppendPosition>,
    /// Write the file in place: it is opened under its own name and truncated, links are followed,
    /// and the received part of a failed transfer stays (as in curl). Default no. Hazard: a reader
    /// may see half a file.
    pub in_place: bool,
    /// Checksum that the content must have; if it differs, the file does not get its name.
    pub checksum: Option<ExpectedChecksum>,
}

/// Permission bits of directories that are made for files, before the umask: curl's where files are
/// written [as by curl](FileOptions::in_place).
#[must_use]
pub fn directory_mode(in_place: bool) -> u32 {
    if in_place { 0o750 } else { 0o777 }
}

/// Position from which bytes are written to an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendPosition {
    /// From this offset on.
    At(u64),
    /// At the end of the file.
    AtEnd,
}
