//! Options for writing a file.

use super::super::checksum::Checksum;
use super::super::naming::{Clobber, NameCheck};

/// Options for writing a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileOptions {
    /// Make missing directories of the path too. Default no.
    pub create_dirs: bool,
    /// The name that a Content-Disposition suggests, made harmless, takes the place of the path's last part (curl's `-J`).
    /// Default no.
    pub named_by_response: bool,
    /// With `named_by_response`: takes the name that the file is to have, whoever gave it. Default: any name may be had.
    pub name_check: Option<NameCheck>,
    /// Treatment of an existing file of that name. Default: the body replaces it, unless the
    /// response suggested the name.
    pub clobber: Clobber,
    /// Bytes and name are on the disk before it is done. Default no.
    pub sync: bool,
    /// Permission bits of a new file, before the umask. Default `0o666`.
    pub mode: Option<u32>,
    /// Leave nothing of a transfer that failed. Default no: a later run can complete it.
    pub remove_on_error: bool,
    /// With `remove_on_error`: a response whose status is 400 or above is a failure, though its content is delivered. Default no.
    pub statuses_fail: bool,
    /// The bytes are added to the file in place (curl's `-C`). Default no.
    pub append: Option<Append>,
    /// The file is written in place: it is opened under its own name and truncated, links are followed, and the received part of a failed transfer
    /// stays (as in curl). Default no. Hazard: a reader may see half a file.
    pub in_place: bool,
    /// The content must have this checksum; if not, the file does not get its name.
    pub checksum: Option<Checksum>,
}

/// Permission bits of directories that are made for files, before the umask: curl's where files are written
/// [as by curl](FileOptions::in_place).
#[must_use]
pub fn directory_mode(in_place: bool) -> u32 {
    if in_place { 0o750 } else { 0o777 }
}

/// Position from which bytes are written to an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Append {
    /// From this byte on.
    At(u64),
    /// At its end.
    AtEnd,
}
