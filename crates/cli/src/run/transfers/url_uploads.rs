//! The uploads of `-T`: the content for each URL.

use std::ffi::OsString;
use std::path::Path;

use haul::{ErrorKind, Result};
use haul_policy::glob::GlobValues;

use crate::plan::{UploadArg, UrlGroup, name_upload};
use crate::run::engine_options::request_body::UploadContent;
use crate::run::engine_options::url_to_allowed_target::parse_target;
use crate::run::parse_glob;

/// Returns true if the `-T` value for one source of URLs looks like a glob, which stands for
/// several files. The source is the URL argument or the file of URLs at the position `index` in the
/// group.
pub(crate) fn is_glob(group: &UrlGroup, index: usize) -> bool {
    match group.upload_of_source(index) {
        Some(UploadArg::File(file)) => {
            !group.globoff && file.to_str().is_some_and(|file| file.contains(['[', ']', '{', '}', '\\']))
        }
        _ => false,
    }
}

/// The content that is uploaded to the URLs of one source of URLs (an argument or a file of URLs).
#[derive(Clone)]
pub(crate) enum UrlUpload {
    Nothing,
    Stdin,
    /// The file at this path is uploaded. The second field has the values of the globs in the `-T`
    /// value.
    File(OsString, GlobValues),
}

impl UrlUpload {
    /// Returns the values of the globs of a URL, together with the values of the named globs in the
    /// `-T` value.
    pub(crate) fn with_named_values(&self, parts: GlobValues) -> GlobValues {
        match self {
            UrlUpload::File(_, named) => parts.with_named(named),
            UrlUpload::Nothing | UrlUpload::Stdin => parts,
        }
    }

    /// Returns the URL to which the content is uploaded. The name of the uploaded file is appended
    /// to a URL that does not end in a name.
    pub(crate) fn named_url(&self, url: &str) -> String {
        match self {
            UrlUpload::File(file, _) => name_upload(url, file),
            UrlUpload::Nothing | UrlUpload::Stdin => url.to_owned(),
        }
    }

    /// Returns the URL to which the content is uploaded, and the content. The content is `None` if
    /// nothing is uploaded; the URL is then fetched.
    pub(crate) fn for_url(&self, url: &str, group: &UrlGroup) -> Result<(String, Option<UploadContent>)> {
        let request = &group.stages[0].request;
        Ok(match self {
            UrlUpload::Nothing => (url.to_owned(), None),
            UrlUpload::Stdin => (url.to_owned(), Some(UploadContent::from_stdin(request)?)),
            UrlUpload::File(file, _) => {
                let upload_url = self.named_url(url);
                // A file is not opened for an invalid URL, as in curl.
                if let Err(error) = parse_target(&group.stages[0], &upload_url)
                    && error.kind() == ErrorKind::Url
                {
                    return Err(error);
                }
                (upload_url, Some(UploadContent::from_file(Path::new(file), request)?))
            }
        })
    }
}

/// Returns the uploads (`-T`) for one source of URLs, in order. The source is the URL argument or
/// the file of URLs at the position `index` in the group. As in curl, each upload is sent to all
/// URLs of the source.
pub(crate) fn uploads(group: &UrlGroup, index: usize) -> Result<Vec<UrlUpload>> {
    Ok(match group.upload_of_source(index) {
        None | Some(UploadArg::Nothing) => vec![UrlUpload::Nothing],
        Some(UploadArg::Stdin { .. }) => vec![UrlUpload::Stdin],
        Some(UploadArg::File(files)) => match files.to_str().filter(|_| !group.globoff) {
            Some(files) => parse_glob(files)?.iter().map(|file| UrlUpload::File(file.url.into(), file.parts)).collect(),
            None => vec![UrlUpload::File(files.clone(), GlobValues::default())],
        },
    })
}
