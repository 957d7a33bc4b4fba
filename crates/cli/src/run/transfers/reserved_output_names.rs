//! The names of the output files of a run. Each name is reserved for one URL, so that the body of
//! one URL never replaces the body of another.
//!
//! The names are stored as hashes in a [`OnDiskHashIndex`]. The URLs, which are needed for error
//! messages, are stored in an [`AppendOnlyUrlStore`]. Both use temporary files when they grow, so
//! that ten million files need less than 20 MB of memory. If two names had the same 64-bit hash,
//! the second one would be refused; a disk failure is more likely.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use haul::sink::temporary_and_final_names::{FilePathCheck, directory_of};
use haul::system::file_metadata_and_flags::FileExt;
use haul::{Error, ErrorKind, Result};
use haul_policy::file_names_by_system::OsFamily;

use crate::job_file_names::{job_beside_file, job_with_file};
use crate::run::transfers::on_disk_hash_index::OnDiskHashIndex;
use crate::system::os_text::OsStrExt;
use crate::system::output_path_rules;
use crate::warc::file_name::ArchiveName;

/// The maximum number of bytes of URLs that are kept in memory for error messages. Further URLs are
/// written to a temporary file.
const MAX_URL_BYTES_IN_MEMORY: usize = 1 << 20;

/// The character before a text that describes the use of a file, such as `the job`. For a file of
/// the run itself, [`ReservedOutputNames::reserve`] stores this text where the URL of an output
/// file is stored otherwise. No URL begins with this character.
const OWNER_MARK: char = '\0';

/// The use of a numbered file of the archive, in error messages.
const ARCHIVE_FILE: &str = "a file of the archive";

/// The output file names that URLs of the run have reserved. Clones refer to the same set.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReservedOutputNames(Arc<Mutex<ReservedOutputNamesState>>);

#[derive(Debug, Default)]
struct ReservedOutputNamesState {
    hasher: RandomState,
    /// The family of systems by whose rules paths are compared.
    family: OsFamily,
    /// The reserved names of output files: the hash of each, and the offset in `urls` of the URL
    /// that reserved it.
    names: OnDiskHashIndex,
    urls: AppendOnlyUrlStore,
    /// The hashes of the paths of directories that contain output files.
    /// [`ReservedOutputNames::avoid_blocked_path`] gives no output file the path of such a
    /// directory.
    directories: OnDiskHashIndex,
    /// A cache of one entry: the directory of the last output file as written, and its canonical
    /// path. `None` before the first file.
    directory: Option<(PathBuf, PathBuf)>,
    /// A cache of one entry: the last output path that is a device or pipe, or `None`. With `-o
    /// /dev/null`, many URLs have this path.
    device: Option<PathBuf>,
    /// The time when the job of the run began. Files that were created since then belong to the job
    /// and may be overwritten. `None` without a job.
    own_since: Option<SystemTime>,
    /// The name of the run's archive if its files are numbered. No output has the name of such a
    /// file, whether or not the file exists.
    archive: Option<ArchiveName>,
    /// The first error of a temporary file, after which no name can be reserved. `None` if there
    /// was none.
    failure: Option<io::Error>,
}

impl ReservedOutputNames {
    /// Sets the time when the job of the run began. Files that were created since then belong to
    /// the job and may be overwritten.
    pub(crate) fn set_overwritable_since(&self, time: SystemTime) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).own_since = Some(time);
    }

    /// Returns the time when the job of the run began; `None` without a job. Files that were created
    /// since then may be overwritten.
    pub(crate) fn overwritable_since(&self) -> Option<SystemTime> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).own_since
    }

    /// Returns true if a URL of the run has reserved this name of an output file.
    pub(crate) fn has(&self, path: &Path) -> bool {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.is_archive_file(path) {
            return true;
        }
        let name = taken.hash(path);
        taken.has_name(name)
    }

    /// Returns true if `path` is the last output path that was found to be a device or a pipe. Many
    /// URLs may write to such a path, so it need not be reserved again.
    pub(crate) fn is_known_device(&self, path: &Path) -> bool {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken.device.as_deref().is_some_and(|device| device.as_os_str() == path.as_os_str())
    }

    /// Returns `path`, changed if necessary so that none of its directories is a file and it is not
    /// a directory itself. Only components below the directory `base` are changed: a directory with
    /// the name of a file gets the suffix `.dir`, and a file with the name of a directory gets the
    /// suffix `.file`. So `/docs` and `/docs/intro` of a site can both be saved.
    pub(crate) fn avoid_blocked_path(&self, base: &Path, path: PathBuf) -> PathBuf {
        let Ok(below) = path.strip_prefix(base) else { return path };
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut made = base.to_owned();
        let mut components = below.components().peekable();
        while let Some(component) = components.next() {
            let is_file = components.peek().is_none();
            let mut name = component.as_os_str().to_owned();
            if let Component::Normal(_) = component {
                while taken.is_blocked(&made.join(&name), is_file) {
                    name.push(if is_file { ".file" } else { ".dir" });
                }
            }
            made.push(name);
            if !is_file {
                taken.add_directory(&made);
            }
        }
        if made == path { path } else { made }
    }

    /// Returns a check that the engine calls with the file name that a response chose. The check
    /// reserves this name. If `skips_existing` is true, the name of a file that existed before the
    /// run is not reserved.
    pub(crate) fn path_check(&self, skips_existing: bool) -> FilePathCheck {
        let names = self.clone();
        FilePathCheck::new(move |path, target| match skips_existing && path.exists() && !names.has(path) {
            true => refuse_files_beside_jobs(path, &target.to_url()),
            false => names.reserve_new(path, &target.to_url()),
        })
    }

    /// Returns a check of names for files that the engine numbers. The check only refuses the names
    /// that [`Self::refuse_used`] refuses. Unlike [`Self::path_check`], it reserves no name, since
    /// a numbered file replaces no other file.
    pub(crate) fn used_path_check(&self) -> FilePathCheck {
        let names = self.clone();
        FilePathCheck::new(move |path, target| names.refuse_used(path, &target.to_url()))
    }

    /// Reserves the name of a file that the run uses, such as the job (`--job`), so that no output
    /// of a URL replaces the file. `owner` describes the use of the file in error messages.
    ///
    /// # Errors
    /// The reserved names no longer fit into memory, and cannot be written to a temporary file.
    pub(crate) fn reserve(&self, path: &Path, owner: &str) -> Result<()> {
        if self.has(path) {
            return Ok(());
        }
        self.reserve_for_url(path, &format!("{OWNER_MARK}{owner}"))
    }

    /// Reserves the names of all numbered files of the run's archive.
    pub(crate) fn reserve_archive(&self, archive: ArchiveName) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).archive = Some(archive);
    }

    /// Reserves the name of an output file for a URL, like [`Self::reserve_for_url`]. Refuses the
    /// name of a job (`--job`), also of another one, and the names of the files that SQLite keeps
    /// beside it. Otherwise a body could choose the command line of the job's next run.
    ///
    /// # Errors
    /// [`ErrorKind::Write`] if the name belongs to a job, or another URL of the run has reserved it.
    pub(crate) fn reserve_new(&self, path: &Path, url: &str) -> Result<()> {
        self.reserve_for_url(path, url)?;
        refuse_files_of_jobs(path, url)
    }

    /// Refuses the output file name `path` for the body of `url` if the run itself will write that
    /// file, or if the file would belong to a job. Only for runs whose files the engine numbers, so
    /// that none is replaced. The name of an existing file is therefore refused only if SQLite
    /// keeps the file beside a job.
    ///
    /// # Errors
    /// [`ErrorKind::Write`] if the name is refused.
    pub(crate) fn refuse_used(&self, path: &Path, url: &str) -> Result<()> {
        if path.exists() {
            return refuse_files_beside_jobs(path, url);
        }
        let owner = self.0.lock().unwrap_or_else(PoisonError::into_inner).owner(path);
        match owner {
            Some(owner) => Err(own_file_error(path, &owner, url)),
            None => refuse_files_of_jobs(path, url),
        }
    }

    /// Reserves the name of an output file for a URL, so that no other URL of the run replaces the
    /// file.
    ///
    /// # Errors
    /// [`ErrorKind::Write`] if another URL of the run has reserved the name. There is no error for
    /// a device or a pipe, to which any number of URLs may be written.
    pub(crate) fn reserve_for_url(&self, path: &Path, url: &str) -> Result<()> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.device.as_deref().is_some_and(|device| device.as_os_str() == path.as_os_str()) {
            return Ok(());
        }
        if taken.is_archive_file(path) {
            return Err(own_file_error(path, ARCHIVE_FILE, url));
        }
        let name = taken.hash(path);
        let unnoted = |error| Error::with_source(ErrorKind::Write, "failed to note the name of an output file", error);
        if let Some(error) = taken.failure.take() {
            return Err(unnoted(error));
        }
        let Some(position) = taken.names.get(name).map_err(unnoted)? else {
            let position = taken.urls.add(url).map_err(unnoted)?;
            return taken.names.insert(name, position).map_err(unnoted);
        };
        if is_device(path) {
            taken.device = Some(path.to_owned());
            return Ok(());
        }
        let first = taken.urls.get(position).unwrap_or_default();
        if let Some(owner) = first.strip_prefix(OWNER_MARK) {
            return Err(own_file_error(path, owner, url));
        }
        let name = path.display();
        let message = format!(
            "{name} is the output of {} in this run; tell them apart by #1 in -o, or number them by --no-clobber",
            crate::usage_error::shown_url(&first),
        );
        Err(Error::new(ErrorKind::Write, message).with_url(crate::usage_error::shown_url(url)))
    }
}

/// Returns the error for the body of `url` that must not be written to `path`, because the file is
/// the `owner` of this run, such as `the job`.
fn own_file_error(path: &Path, owner: &str, url: &str) -> Error {
    let message = format!("{} is {owner} of this run; choose another name for the output", path.display());
    Error::new(ErrorKind::Write, message).with_url(crate::usage_error::shown_url(url))
}

/// Returns an error if `path` is, or would become, a file of a job. The name is for the body of
/// `url`.
fn refuse_files_of_jobs(path: &Path, url: &str) -> Result<()> {
    job_with_file(path).map_or(Ok(()), |job| Err(job_file_error(path, &job, url)))
}

/// Refuses the names of the files that SQLite keeps beside a job. An existing file of this name is
/// refused, too: SQLite may remove it before the body is complete.
fn refuse_files_beside_jobs(path: &Path, url: &str) -> Result<()> {
    job_beside_file(path).map_or(Ok(()), |job| Err(job_file_error(path, &job, url)))
}

fn job_file_error(path: &Path, job: &Path, url: &str) -> Error {
    let name = path.display();
    let message = match job == path {
        true => format!("{name} is a job of haul; choose another name for the output"),
        false => format!("{name} is a part of the job {}; choose another name for the output", job.display()),
    };
    Error::new(ErrorKind::Write, message).with_url(crate::usage_error::shown_url(url))
}

impl ReservedOutputNamesState {
    /// Returns the use of a file of the run itself, such as `the job`. Returns `None` for any other
    /// path.
    fn owner(&mut self, path: &Path) -> Option<String> {
        if self.is_archive_file(path) {
            return Some(ARCHIVE_FILE.to_owned());
        }
        let name = self.hash(path);
        let position = self.names.get(name).ok()??;
        Some(self.urls.get(position).ok()?.strip_prefix(OWNER_MARK)?.to_owned())
    }

    fn is_archive_file(&self, path: &Path) -> bool {
        self.archive.as_ref().is_some_and(|archive| archive.has_path(path))
    }

    fn has_name(&mut self, name: u64) -> bool {
        let found = self.names.get(name);
        self.is_found(found)
    }

    fn is_found(&mut self, found: io::Result<Option<u64>>) -> bool {
        found
            .unwrap_or_else(|error| {
                self.failure = Some(error);
                None
            })
            .is_some()
    }

    fn has_directory(&mut self, path: &Path) -> bool {
        let found = self.directories.get(self.path_hash(path));
        self.is_found(found)
    }

    fn add_directory(&mut self, path: &Path) {
        if !self.has_directory(path)
            && let Err(error) = self.directories.insert(self.path_hash(path), 0)
        {
            self.failure = Some(error);
        }
    }

    /// Returns true if the path cannot be created because its name is taken: for a file
    /// (`is_file`), by a directory; for a directory, by a file.
    fn is_blocked(&mut self, path: &Path, is_file: bool) -> bool {
        let is_known_directory = self.has_directory(path);
        if is_file {
            return is_known_directory || path.is_dir();
        }
        let is_taken = |names: &mut Self| {
            let name = names.hash(path);
            names.has_name(name)
        };
        !is_known_directory && (path.metadata().is_ok_and(|metadata| !metadata.is_dir()) || is_taken(self))
    }

    /// Returns the hash of a path as it is spelled, except that upper and lower case are equal on
    /// Windows.
    fn path_hash(&self, path: &Path) -> u64 {
        self.hasher.hash_one(self.family.comparison_key(path.as_os_str().as_bytes()))
    }

    /// Returns the hash of the file to which an output path leads. All spellings of the path have
    /// the same hash. The path of a symbolic link has the hash of the link's target.
    fn hash(&mut self, path: &Path) -> u64 {
        let is_link = path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
        let linked = is_link.then(|| path.canonicalize().ok()).flatten();
        let path = linked.as_deref().unwrap_or(path);
        let parent = directory_of(path);
        if self.directory.as_ref().is_none_or(|(written, _)| written != parent) {
            self.directory = Some((parent.to_owned(), absolute(parent)));
        }
        let family = self.family;
        let directory = self.directory.as_ref();
        let directory = directory.map(|(_, canonical)| family.comparison_key(canonical.as_os_str().as_bytes()));
        let name = path.file_name().map(|name| family.comparison_key(name.as_bytes()));
        self.hasher.hash_one((directory, name))
    }
}

/// A log of URLs, to which URLs are appended, and which is rarely read. The last URLs are in
/// memory, and the earlier ones in an unnamed temporary file.
#[derive(Debug, Default)]
struct AppendOnlyUrlStore {
    /// The temporary file; `None` as long as all URLs are in memory.
    file: Option<File>,
    /// The number of bytes in the temporary file.
    written: u64,
    /// The bytes of the log that follow those in the temporary file.
    last: Vec<u8>,
}

impl AppendOnlyUrlStore {
    /// Appends a URL to the log. Returns its offset.
    fn add(&mut self, url: &str) -> io::Result<u64> {
        if self.last.len() >= MAX_URL_BYTES_IN_MEMORY {
            let file = match self.file.take() {
                Some(file) => file,
                None => tempfile::tempfile()?,
            };
            let file = self.file.insert(file);
            file.write_all_at(&self.last, self.written)?;
            self.written += self.last.len() as u64;
            self.last.clear();
        }
        let offset = self.written + self.last.len() as u64;
        self.last.extend_from_slice(&(url.len() as u64).to_le_bytes());
        self.last.extend_from_slice(url.as_bytes());
        Ok(offset)
    }

    /// Returns the URL at this offset of the log.
    fn get(&self, offset: u64) -> io::Result<String> {
        let mut length = [0; 8];
        self.read(offset, &mut length)?;
        let mut url = vec![0; usize::try_from(u64::from_le_bytes(length)).unwrap_or(usize::MAX)];
        self.read(offset + 8, &mut url)?;
        String::from_utf8(url).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        match (offset.checked_sub(self.written), &self.file) {
            (Some(at), _) => {
                let at = usize::try_from(at).unwrap_or(usize::MAX);
                let found = self.last.get(at..).and_then(|rest| rest.get(..bytes.len()));
                bytes.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
            (None, Some(file)) => file.read_exact_at(bytes, offset),
            (None, None) => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Returns the absolute path of a file or directory, with links resolved in the part of the path
/// that exists. So the path does not change when its missing part is created.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        let existing = if ancestor.as_os_str().is_empty() { Path::new(".") } else { ancestor };
        let Ok(mut whole) = existing.canonicalize() else { continue };
        let mut climbs = false;
        for component in path.strip_prefix(ancestor).unwrap_or(path).components() {
            match component {
                Component::ParentDir => {
                    whole.pop();
                    climbs = true;
                }
                Component::Normal(name) => whole.push(name),
                _ => {}
            }
        }
        // After `..`, the rest may exist, and may be a link.
        return if climbs { absolute(&whole) } else { whole };
    }
    path.components().collect()
}

/// Returns true if the path exists and is not a regular file, or names a descriptor such as
/// `/dev/fd/3`.
fn is_device(path: &Path) -> bool {
    output_path_rules::names_descriptor(path) || path.metadata().is_ok_and(|metadata| !metadata.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn output_name_is_reserved_once_in_any_spelling() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::os::unix::fs::symlink("d", dir.path().join("link")).unwrap();
        let names = ReservedOutputNames::default();
        let take = |name: &str, url: &str| names.reserve_for_url(&dir.path().join(name), url);
        take("d/f", "http://h/1").unwrap();
        take("d/g", "http://h/2").unwrap();
        take("f", "http://h/3").unwrap();
        for other in ["d/f", "d/./f", "d//f", "d/../d/f", "link/f"] {
            let error = take(other, "http://u:secret@h/4").unwrap_err();
            let text = error.to_string();
            assert_eq!(error.exit_code(), 23);
            assert!(text.contains("http://h/1") && text.contains("h/4") && !text.contains("secret"), "{text}");
        }
        for _ in 0..2 {
            names.reserve_for_url(Path::new("/dev/null"), "http://h/5").unwrap();
        }
    }

    #[test]
    fn reserved_file_is_refused_as_output() {
        let dir = tempfile::tempdir().unwrap();
        let names = ReservedOutputNames::default();
        let path = dir.path().join("job");
        std::fs::write(&path, "").unwrap();
        names.reserve(&path, "the job").unwrap();
        names.reserve(&path, "the list").unwrap();
        let error = names.reserve_for_url(&dir.path().join("./job"), "http://h/").unwrap_err();
        assert!(error.to_string().contains("job is the job of this run"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn output_name_stays_reserved_when_directories_are_created() {
        let dir = tempfile::tempdir().unwrap();
        let names = ReservedOutputNames::default();
        let take = |name: &str| names.reserve_for_url(&dir.path().join(name), "http://h/");
        std::os::unix::fs::symlink("real", dir.path().join("link")).unwrap();
        std::fs::create_dir(dir.path().join("real")).unwrap();
        take("a/b/f").unwrap();
        take("link/c/f").unwrap();
        take("other/f").unwrap();
        for made in ["a/b", "real/c"] {
            std::fs::create_dir_all(dir.path().join(made)).unwrap();
        }
        take("other/g").unwrap();
        for same in ["a/b/f", "a/./b/f", "a/new/../b/f", "real/c/f", "link/c/f", "new/../link/c/f", "other/f"] {
            assert!(take(same).is_err(), "{same}");
        }
        std::fs::write(dir.path().join("a/b/f"), "").unwrap();
        std::os::unix::fs::symlink("f", dir.path().join("a/b/to-f")).unwrap();
        assert!(take("a/b/to-f").is_err(), "a link to the file");
        let relative = absolute(Path::new("nowhere/x"));
        assert_eq!(relative, std::env::current_dir().unwrap().canonicalize().unwrap().join("nowhere/x"));
    }

    #[test]
    fn output_file_and_directory_may_share_a_name() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("out");
        let names = ReservedOutputNames::default();
        let take = |name: &str| {
            let path = names.avoid_blocked_path(&base, base.join(name));
            names.reserve_for_url(&path, "http://h/").unwrap();
            path.strip_prefix(&base).unwrap().display().to_string()
        };
        for (name, expected) in [
            ("h/docs", "h/docs"),
            ("h/docs/intro", "h/docs.dir/intro"),
            ("h/docs/intro/a", "h/docs.dir/intro.dir/a"),
            ("h/docs.dir/b", "h/docs.dir/b"),
            ("h/blog/1", "h/blog/1"),
            ("h/blog", "h/blog.file"),
            ("h", "h.file"),
        ] {
            assert_eq!(take(name), expected, "{name}");
        }
        // Those on the disk count as well, also in the next run.
        std::fs::create_dir_all(base.join("h/old")).unwrap();
        std::fs::write(base.join("h/page"), "").unwrap();
        assert_eq!((take("h/old"), take("h/page/x")), ("h/old.file".into(), "h/page.dir/x".into()));
        let outside = dir.path().join("elsewhere");
        assert_eq!(names.avoid_blocked_path(&base, outside.clone()), outside);
    }

    #[test]
    fn windows_output_names_that_differ_in_case_are_one() {
        let dir = tempfile::tempdir().unwrap();
        let names = ReservedOutputNames::default();
        names.0.lock().unwrap().family = OsFamily::Windows;
        let take = |name: &str| names.reserve_for_url(&dir.path().join(name), "http://h/");
        take("Docs/a").unwrap();
        assert!(take("docs/A").is_err(), "before the directory exists");
        std::fs::create_dir(dir.path().join("DOCS")).unwrap();
        assert!(take("DOCS/a").is_err(), "after its creation in another spelling");
        take("docs/b").unwrap();

        let base = dir.path().join("out");
        let avoid = |name: &str| {
            let path = names.avoid_blocked_path(&base, base.join(name));
            names.reserve_for_url(&path, "http://h/").unwrap();
            path.strip_prefix(&base).unwrap().display().to_string()
        };
        for (name, expected) in [("h/docs/intro", "h/docs/intro"), ("h/Docs", "h/Docs.file"), ("H/DOCS/x", "H/DOCS/x")]
        {
            assert_eq!(avoid(name), expected);
        }
        assert_eq!((avoid("h/page"), avoid("h/Page/x")), ("h/page".into(), "h/Page.dir/x".into()));
    }

    #[test]
    fn output_name_conflict_names_the_first_url() {
        let names = ReservedOutputNames::default();
        let url = |number: usize| format!("http://h/{number}/{}", "x".repeat(9_000));
        for number in 0..1_000 {
            names.reserve_for_url(Path::new(&format!("/nowhere/{number}")), &url(number)).unwrap();
        }
        let error = names.reserve_for_url(Path::new("/nowhere/765"), "http://h/new").unwrap_err();
        assert!(error.to_string().contains("http://h/765/"), "{error}");
    }
}
