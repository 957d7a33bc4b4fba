//! Copies local files (`file:PATH`) as ftp(1) does. fw_update installs its downloads in this way,
//! and a mirror may be a local directory.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use haul::trace::system_error_text;

use super::ftp_command_args::FtpOutput;
use super::unnamed_file_message;
use crate::usage_error::{one_line, shown_url};

/// Returns the path of a `file:` URL, or `None` for any other URL. As in ftp(1), the path may be
/// relative and is not percent-decoded.
pub(super) fn file_url_path(url: &str) -> Option<&str> {
    let (scheme, path) = url.split_at_checked("file:".len())?;
    scheme.eq_ignore_ascii_case("file:").then_some(path)
}

/// Copies the local file `from` to `output`. Returns the length of the file in bytes.
///
/// # Errors
/// The message to print. `None` if the reader of the output pipe has closed it, because that is not
/// reported as a failure.
pub(super) fn copy(from: &str, output: &FtpOutput) -> Result<u64, Option<String>> {
    let to = match output {
        FtpOutput::Stdout => None,
        FtpOutput::File(path) => Some(path.clone()),
        FtpOutput::Named => Some(default_output_name(from).ok_or_else(|| unnamed_file_message(&shown_url(from)))?),
    };
    let shown = to.as_ref().map_or("-".into(), |path| one_line(&path.display().to_string()));
    let cannot_read = |error| format!("Can't open file {}: {}", one_line(from), system_error_text(&error));
    let mut source = File::open(from).map_err(cannot_read)?;
    if to.as_ref().is_some_and(|path| is_same_file(&source, path)) {
        return Err(Some(format!("Can't open {shown}: it is what is to be copied")));
    }
    let sink = match &to {
        None => io::stdout().as_fd().try_clone_to_owned().map(File::from),
        Some(path) => File::create(path),
    };
    let mut sink = sink.map_err(|error| format!("Can't open {shown}: {}", system_error_text(&error)))?;
    io::copy(&mut source, &mut sink).map_err(|error| {
        let is_left = error.kind() == io::ErrorKind::BrokenPipe;
        (!is_left).then(|| format!("Writing {shown}: {}", system_error_text(&error)))
    })
}

fn default_output_name(path: &str) -> Option<PathBuf> {
    Path::new(path).file_name().filter(|_| !path.ends_with('/')).map(PathBuf::from)
}

/// Returns true if `path` leads to `file`, the open file that is copied. A file must not be copied
/// to itself, because opening it for writing would empty it.
fn is_same_file(file: &File, path: &Path) -> bool {
    let identity = |metadata: Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), path.metadata()) {
        (Ok(one), Ok(other)) => identity(one) == identity(other),
        _ => false,
    }
}
