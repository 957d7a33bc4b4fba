//! Sets the metadata of a downloaded file: its modification time (`-R`) and extended attributes
//! (`--xattr`). Also writes the file of `--etag-save`.

use std::fs::{self, DirBuilder, File, FileTimes};
use std::path::Path;

use haul::ResponseHead;
use haul::sink::file::directory_mode;
use haul::system::file_metadata_and_flags::DirBuilderExt;
use haul::transfer::TransferOutcome;
use haul::{Error, ErrorKind, Result};

use crate::date;
use crate::plan::UrlGroup;
use crate::system::extended_attributes;

/// Sets the modification time and the extended attributes of a downloaded file, as the options ask.
/// Returns a message for each step that failed.
pub(crate) fn set_file_metadata(group: &UrlGroup, path: &Path, url: &str, outcome: &TransferOutcome) -> Vec<String> {
    let mut failed = Vec::new();
    // For unchanged content, nothing arrived that could be stamped.
    let Some(head) = outcome.head.as_ref().filter(|_| outcome.facts.status != 304) else { return failed };
    if group.remote_time
        && let Err(error) = set_modification_time(path, head)
    {
        failed.push(format!("Failed to set filetime on outfile: {error}"));
    }
    if group.xattr {
        let mut attributes =
            vec![("user.creator", b"haul".to_vec()), ("user.xdg.origin.url", without_user(url).into_bytes())];
        attributes.extend(head.get("content-type").map(|kind| ("user.mime_type", kind.to_vec())));
        for (name, value) in attributes {
            if let Err(error) = extended_attributes::set(path, name, &value) {
                failed.push(format!("Error setting extended attributes on '{}': {error}", path.display()));
                break;
            }
        }
    }
    failed
}

/// Sets the modification time of a downloaded file to the date in the response's `Last-Modified`.
/// Does nothing without this header field.
pub(crate) fn set_modification_time(path: &Path, head: &ResponseHead) -> std::io::Result<()> {
    let Some(modified) = head.get("last-modified").and_then(date::parse_http_date) else { return Ok(()) };
    let times = FileTimes::new().set_modified(modified).set_accessed(modified);
    File::options().write(true).open(path)?.set_times(times)
}

/// Returns the URL without user and password, for an extended attribute.
fn without_user(url: &str) -> String {
    haul::Target::parse(url).map_or_else(|_| crate::usage_error::shown_url(url), |target| target.to_url())
}

/// Checks that the file of `--etag-save` can be written, and creates it. This is called before any
/// request is sent.
///
/// # Errors
/// [`ErrorKind::Read`] if the file cannot be opened. The kind determines the exit code, which is
/// curl's.
pub(crate) fn check_can_be_saved(group: &UrlGroup, path: &Path) -> Result<()> {
    if path == Path::new("-") {
        return Ok(());
    }
    let open = make_directories(group, path).and_then(|()| File::options().create(true).append(true).open(path));
    let cannot = |error| Error::with_source(ErrorKind::Read, format!("failed to open {}", path.display()), error);
    open.map(|_| ()).map_err(cannot)
}

/// Creates the missing parent directories of a file that is not a response body, such as a dump of
/// heads, if `--create-dirs` is given. The directories get the same permissions as the directories
/// of output files.
pub(crate) fn make_directories(group: &UrlGroup, path: &Path) -> std::io::Result<()> {
    let Some(directory) = path.parent().filter(|_| group.create_dirs) else { return Ok(()) };
    DirBuilder::new().recursive(true).mode(directory_mode(group.in_place)).create(directory)
}

/// Returns the entity tag of a response, followed by a line end. Returns `None` if the response has
/// no entity tag, or if its status is an error. The entity tag of an error response identifies the
/// error page, and not the content that the user requested.
pub(crate) fn entity_tag_line(head: &ResponseHead) -> Option<Vec<u8>> {
    let tag = head.get("etag").filter(|tag| (200..400).contains(&head.status()) && !tag.is_empty())?;
    Some([tag, b"\n"].concat())
}

/// Writes the entity tag of a 2xx or 3xx response to the file of `--etag-save`. Does nothing for
/// `-`, because the tag was printed when the head arrived.
///
/// A 2xx response without an entity tag empties the file, because a tag identifies only the content
/// with which it came (RFC 9110 section 8.8.3). In any other case without a tag, an existing file
/// stays unchanged, and a missing file is created empty. If haul acts as curl (`in_place`), this
/// also applies to a 2xx response without a tag.
pub(crate) fn save_entity_tag(path: &Path, outcome: &TransferOutcome, in_place: bool) -> std::io::Result<()> {
    if path == Path::new("-") {
        return Ok(());
    }
    let replaces_content = !in_place && outcome.head.as_ref().is_some_and(|head| (200..300).contains(&head.status()));
    match outcome.head.as_ref().and_then(entity_tag_line) {
        Some(tag) => fs::write(path, tag),
        None if replaces_content => fs::write(path, ""),
        None => File::options().create(true).append(true).open(path).map(|_| ()),
    }
}
