//! Resolves `-T`: assigns the files to upload to the URLs, and checks that the files exist.

use std::path::Path;

use haul_policy::glob::UrlGlob;

use super::{PlanBuilder, misused_option_error};
use crate::plan::{UploadArg, UrlSources};
use crate::usage_error::UsageError;

/// The maximum number of files of one `-T` glob that are checked before the first one is uploaded.
const MAX_CHECKED_URLS: u64 = 10_000;

impl PlanBuilder<'_> {
    pub(super) fn uploads(
        &mut self,
        mut uploads: Vec<UploadArg>,
        urls: &UrlSources,
        globoff: bool,
    ) -> Result<Vec<UploadArg>, UsageError> {
        if uploads.len() > urls.len() {
            self.warnings.push("Got more uploads than URLs".to_owned());
            uploads.truncate(urls.len());
        }
        if uploads.iter().filter(|upload| matches!(upload, UploadArg::Stdin { .. })).count() > 1 {
            return Err(misused_option_error("--upload-file", "standard input can be read once only"));
        }
        // curl looks when a file's turn comes: those before one that is missing have gone out then.
        let looked_at = if self.persona.is_curl() { &[][..] } else { &uploads[..] };
        for upload in looked_at {
            let UploadArg::File(name) = upload else { continue };
            let Some(text) = name.to_str().filter(|_| !globoff) else {
                self.file_size(Path::new(name), "--upload-file")?;
                continue;
            };
            let glob = UrlGlob::parse(text).map_err(|error| {
                misused_option_error(
                    "--upload-file",
                    &format!("the glob in the file name is malformed: {error}; use -g to take it literally"),
                )
            })?;
            if glob.count().is_some_and(|count| count <= MAX_CHECKED_URLS) {
                for file in glob.iter() {
                    self.file_size(Path::new(&file.url), "--upload-file")?;
                }
            }
        }
        Ok(uploads)
    }
}
