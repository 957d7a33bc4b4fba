//! The destinations of bodies, and the treatment of files that exist (`--no-clobber`,
//! `--skip-existing`).

use std::ffi::OsString;

use crate::system::os_text::OsStrExt;

/// The placeholder for the page number of a paginated listing in the name of an output file.
pub const PAGE_PLACEHOLDER: &[u8] = b"{page}";

/// The destination of bodies, or of the text extracted from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputArg {
    /// Standard output.
    Stdout,
    /// `-o`: a file name. In the name, `#1` stands for the value of the URL's first glob, and
    /// placeholders such as `{host}` stand for parts of the URL.
    File(OsString),
    /// `-O`: a file named after the last segment of the URL's path.
    RemoteName,
    /// `--mirror-paths`: a file named after the host and the path of the URL.
    MirroredPath,
    /// `--out-null`: no output; the body is received and discarded.
    Null,
}

impl OutputArg {
    /// Returns true if the output is standard output, including file names such as `-` and
    /// `/dev/stdout`.
    pub fn is_stdout(&self) -> bool {
        match self {
            Self::Stdout => true,
            Self::File(name) => {
                matches!(name.as_bytes(), b"-" | b"/dev/stdout" | b"/dev/fd/1" | b"/proc/self/fd/1")
            }
            Self::RemoteName | Self::MirroredPath | Self::Null => false,
        }
    }
}

/// Returns true if a file name contains a placeholder. `#1` and `#<name>` (the value of a glob)
/// always count, `{}` (an extracted value) counts if `by_value` is true, and `{page}` (the number
/// of a page) counts if `by_page` is true.
pub(super) fn has_placeholder(name: &[u8], by_value: bool, by_page: bool) -> bool {
    let is_hash = |pair: &[u8]| pair[0] == b'#' && (pair[1].is_ascii_digit() || pair[1] == b'<');
    name.windows(2).any(|pair| is_hash(pair) || by_value && pair == b"{}")
        || by_page && name.windows(PAGE_PLACEHOLDER.len()).any(|text| text == PAGE_PLACEHOLDER)
}

/// The treatment of an output file that already exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExistingFilePolicy {
    /// Replaces the file. But if the response chose the file name (`-J`), the transfer fails with
    /// exit code 23. The default.
    #[default]
    ReplaceUnlessNamedByResponse,
    /// `--clobber`: replaces the file, even if the response chose its name.
    Replace,
    /// `--no-clobber`: appends `.1` to the name, or the next number up to `.100` if that file
    /// exists too. If all exist, the transfer fails with exit code 23.
    Number,
    /// `--skip-existing`: the file is kept and no request is sent. This counts as success.
    Skip,
}
