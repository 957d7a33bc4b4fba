//! Refuses options that name the file of the job (`--job`), of the archive (`--warc`) or of the
//! events (`--events`). No other option may name such a file, because haul itself writes it during
//! the run.
//!
//! Without this check, haul could wait for a lock that it holds itself, truncate its own job file,
//! or close a second descriptor of that file, which would release the locks of SQLite. The output
//! files of `-o` and `-O` are checked later, when their names are known
//! (`run/transfers/reserved_output_names.rs`).

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haul::sink::temporary_and_final_names::directory_of;
use haul::system::file_metadata_and_flags;
use haul_policy::file_names_by_system::OsFamily;

use super::misused_option_error;
use crate::job_file_names::files_of_job;
use crate::plan::{FormPartSource, GlobalArgs, RequestArgs, RequestBodyArg, StageArgs, UploadArg, UrlGroup, UrlSource};
use crate::system::os_text::OsStrExt;
use crate::system::standard_streams;
use crate::usage_error::UsageError;
use crate::warc::file_name::ArchiveName;
use crate::write_out::{WriteOut, WriteOutDestination};

/// A file that haul itself writes during the run, and that no other option may name.
struct OwnFile {
    /// The option that names the file.
    option: &'static str,
    /// The role of the file in error messages, such as `the archive`.
    role: &'static str,
    identity: InodeIdentity,
}

/// The identity of a regular file: its device and inode numbers or, if it does not exist yet, its
/// absolute path (on Windows in upper case).
#[derive(PartialEq, Eq)]
enum InodeIdentity {
    Existing((u64, u64)),
    Missing(Vec<u8>),
}

impl InodeIdentity {
    /// Returns the identity of the file at `path`. Returns `None` for a device, a pipe or a
    /// directory, for an empty path, and for `-` and `%`, which stand for standard streams.
    fn from_path(path: &Path) -> Option<Self> {
        if [Path::new("-"), Path::new("%"), Path::new("")].contains(&path)
            || file_metadata_and_flags::is_named_device(path)
        {
            return None;
        }
        if let Ok(metadata) = std::fs::metadata(path) {
            return metadata
                .is_file()
                .then(|| file_metadata_and_flags::identity_at(path).ok().map(Self::Existing))
                .flatten();
        }
        let directory = directory_of(path);
        let directory = directory.canonicalize().or_else(|_| std::path::absolute(directory)).ok()?;
        let path = directory.join(path.file_name()?);
        Some(Self::Missing(OsFamily::CURRENT.comparison_key(path.as_os_str().as_bytes()).into_owned()))
    }

    /// Returns the identity of the regular file to which a standard stream is redirected; `None` if
    /// it is not redirected to a regular file.
    fn from_stream(stream: io::Result<File>) -> Option<Self> {
        let stream =
            stream.ok().filter(|file| file_metadata_and_flags::is_regular(file).is_ok_and(|is_regular| is_regular))?;
        file_metadata_and_flags::identity(&stream).ok().map(Self::Existing)
    }
}

/// Checks that no other option names the file of `--job`, `--warc` or `--events`, and that standard
/// output and standard error are not redirected to the job's file.
///
/// # Errors
/// The message names the option and the file, and advises another file name.
pub(super) fn check(global: &GlobalArgs, groups: &[Arc<UrlGroup>]) -> Result<(), UsageError> {
    let own = own_files(global)?;
    if own.is_empty() {
        return Ok(());
    }
    let archive = numbered_archive(global);
    let refuse = |option: &str, path: &Path| match InodeIdentity::from_path(path) {
        Some(identity) => refuse_own(&own, option, &path.display().to_string(), &identity)
            .and_then(|()| refuse_numbered_archive_file(archive.as_ref(), option, path)),
        None => Ok(()),
    };
    // The shell may have redirected a stream to the archive or the events on purpose.
    let job = || own.iter().filter(|own| own.option == "--job");
    let streams = [
        ("standard output", InodeIdentity::from_stream(standard_streams::stdout_file())),
        ("standard error", InodeIdentity::from_stream(standard_streams::stderr_file())),
    ];
    for (name, identity) in streams {
        identity.map_or(Ok(()), |identity| refuse_own(job(), "--job", name, &identity))?;
    }
    let configs = global.job.iter().flat_map(|job| &job.command).filter(|option| option.name == "config");
    for value in configs.filter_map(|option| std::str::from_utf8(option.value.as_deref()?).ok()) {
        refuse("--config", Path::new(value))?;
    }
    for (option, path) in [("--stderr", &global.stderr), ("--trace", &global.trace.file)] {
        path.as_deref().map_or(Ok(()), |path| refuse(option, path))?;
    }
    for group in groups {
        for url in group.urls.iter() {
            if let UrlSource::InputFile(name) = url {
                refuse("--input-file", Path::new(name))?;
            }
        }
        for upload in &group.uploads {
            if let UploadArg::File(name) = upload {
                refuse("--upload-file", Path::new(name))?;
            }
        }
        group.stages.iter().flat_map(files_of_stage).try_for_each(|(option, path)| refuse(option, path))?;
    }
    Ok(())
}

/// Returns the files of `--job`, `--warc` and `--events`. Refuses two options with the same file.
fn own_files(global: &GlobalArgs) -> Result<Vec<OwnFile>, UsageError> {
    let mut own = Vec::new();
    let archive = numbered_archive(global);
    let mut add = |option: &'static str, role: &'static str, path: &Path| {
        let Some(identity) = InodeIdentity::from_path(path) else { return Ok(()) };
        refuse_own(&own, option, &path.display().to_string(), &identity)?;
        refuse_numbered_archive_file(archive.as_ref().filter(|_| option != "--warc"), option, path)?;
        own.push(OwnFile { option, role, identity });
        Ok(())
    };
    if let Some(job) = &global.job {
        files_of_job(&job.file).iter().try_for_each(|(path, role)| add("--job", role, path))?;
    }
    if let Some(path) = &global.warc.path {
        add("--warc", "the archive", path)?;
    }
    // A number is a descriptor.
    let is_number = |path: &&PathBuf| path.to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    if let Some(path) = global.events.as_ref().filter(|path| !is_number(path)) {
        add("--events", "the file of --events", path)?;
    }
    Ok(own)
}

/// Returns an error if `identity` is the identity of a file in `own`, the files that haul itself
/// writes. The error message names the option by `option`, and the file by `name`.
fn refuse_own<'o>(
    own: impl IntoIterator<Item = &'o OwnFile>,
    option: &str,
    name: &str,
    identity: &InodeIdentity,
) -> Result<(), UsageError> {
    match own.into_iter().find(|own| own.identity == *identity) {
        Some(own) => {
            Err(misused_option_error(option, &format!("{name} is {} of this run; name another file", own.role)))
        }
        None => Ok(()),
    }
}

/// Returns the name of an archive whose files are numbered (`--warc-max-size`); `None` without such
/// an archive.
fn numbered_archive(global: &GlobalArgs) -> Option<ArchiveName> {
    global.warc.max_size.and_then(|_| global.warc.archive_name())
}

/// Returns an error if `path`, which the option `option` names, is a numbered file of the archive.
/// The file need not exist.
fn refuse_numbered_archive_file(archive: Option<&ArchiveName>, option: &str, path: &Path) -> Result<(), UsageError> {
    if !archive.is_some_and(|archive| archive.has_path(path)) {
        return Ok(());
    }
    let reason = format!("{} is a file of the archive of this run; name another file", path.display());
    Err(misused_option_error(option, &reason))
}

/// Returns the paths of all files that occur in the options of a stage (`--then` separates stages),
/// each preceded by the name of its option.
fn files_of_stage(stage: &StageArgs) -> Vec<(&'static str, &Path)> {
    let mut files = stage.written_files();
    files.extend(stage.transfer.cookies.files.iter().map(|path| ("--cookie", path.as_path())));
    let streams = stage.report.write_out.iter().flat_map(WriteOut::streams);
    files.extend(streams.filter_map(|stream| match stream {
        WriteOutDestination::File(path, _) => Some(("--write-out", path.as_path())),
        WriteOutDestination::Stdout | WriteOutDestination::Stderr => None,
    }));
    files.extend(files_of_body(&stage.request));
    files
}

fn files_of_body(request: &RequestArgs) -> Vec<(&'static str, &Path)> {
    match &request.body {
        Some(RequestBodyArg::File(path)) => vec![("--data", path)],
        Some(RequestBodyArg::Multipart(form)) => {
            let files = form.sources().into_iter().filter_map(|source| match source {
                FormPartSource::File(path) => Some(("--form", path.as_path())),
                FormPartSource::Stdin => None,
            });
            files.collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn different_paths_of_a_file_have_one_identity() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let is_same = |a: &str, b: &str| InodeIdentity::from_path(&path(a)) == InodeIdentity::from_path(&path(b));
        std::fs::create_dir(path("d")).unwrap();
        std::fs::write(path("a"), "").unwrap();
        std::os::unix::fs::symlink("a", path("link")).unwrap();
        std::os::unix::fs::symlink("d", path("e")).unwrap();
        std::fs::hard_link(path("a"), path("hard")).unwrap();
        for (a, b) in [("a", "d/../a"), ("a", "link"), ("a", "hard"), ("d/new", "e/new"), ("d/new", "./d/./new")] {
            assert!(is_same(a, b), "{a} {b}");
        }
        for (a, b) in [("a", "b"), ("d/new", "new"), ("a", "d/a")] {
            assert!(!is_same(a, b), "{a} {b}");
        }
        for other in ["-", "%", "/dev/null", "/"] {
            assert!(InodeIdentity::from_path(Path::new(other)).is_none(), "{other}");
        }
    }
}
