//! The files that the options of a stage name and that haul writes, besides response bodies.

use std::path::Path;

use super::{StageArgs, StateFileArg};

impl StageArgs {
    /// Returns the files that haul writes for the options of this stage, each preceded by the name
    /// of its option. The files of `-w` are left out, because `-w` may append to the file of a
    /// body.
    pub fn written_files(&self) -> Vec<(&'static str, &Path)> {
        let options = [
            ("--dump-header", &self.report.dump_header),
            ("--cookie-jar", &self.transfer.cookies.jar),
            ("--etag-save", &self.request.etag_save),
        ];
        let mut files: Vec<_> =
            options.into_iter().filter_map(|(option, path)| Some((option, path.as_deref()?))).collect();
        for (option, store) in [("--hsts", &self.transfer.hsts), ("--alt-svc", &self.transfer.alt_svc)] {
            if let StateFileArg::File(path) = store {
                files.push((option, path));
            }
        }
        files
    }
}
