//! The names of the output files of a run. They ensure that the body of one URL never replaces the
//! body of another URL.
//!
//! Only hashes of the names are kept in memory. The URLs, which are needed for messages, are kept
//! in memory up to [`IN_MEMORY`] bytes, and then in an unnamed temporary file. So a million files
//! need about 30 MB. If two names had the same 64-bit hash, the second one would be refused; a disk
//! failure is more likely.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use haul::sink::naming::FilePathCheck;
use haul::{Error, ErrorKind, Result};
use tempfile::SpooledTempFile;

/// The number of bytes of URLs that are kept in memory for messages. If there are more, all URLs go
/// to a temporary file.
const IN_MEMORY: usize = 4 << 20;

/// The output file names that URLs of the run have reserved. Clones refer to the same set.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutputNames(Arc<Mutex<TakenNames>>);

#[derive(Debug)]
struct TakenNames {
    hasher: RandomState,
    /// The reserved names of output files: the hash of each, and the offset in `urls` of the URL
    /// that reserved it.
    names: HashMap<u64, u64>,
    urls: SpooledTempFile,
    /// The hashes of the directories in which [`OutputNames::unblocked`] has put files.
    directories: HashSet<u64>,
    /// A cache of one entry: the directory of the last output file as written, and its canonical
    /// path.
    directory: Option<(PathBuf, PathBuf)>,
    /// A cache of one entry: the last output path that is a device or pipe. With `-o /dev/null`,
    /// many URLs have this path.
    device: Option<PathBuf>,
}

impl Default for TakenNames {
    fn default() -> Self {
        Self {
            hasher: RandomState::new(),
            names: HashMap::new(),
            urls: SpooledTempFile::new(IN_MEMORY),
            directories: HashSet::new(),
            directory: None,
            device: None,
        }
    }
}

impl OutputNames {
    /// Returns true if a URL of the run has reserved this name of an output file.
    pub(crate) fn has(&self, path: &Path) -> bool {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = taken.hash(path);
        taken.names.contains_key(&name)
    }

    /// Returns a path with whose directories no file is in conflict, and which is no directory, below
    /// the directory `base`. A directory whose name a file has gets the suffix `.dir`, and a file
    /// whose name a directory has gets the suffix `.file`. So `/docs` and `/docs/intro` of a site
    /// both have a file.
    pub(crate) fn unblocked(&self, base: &Path, path: PathBuf) -> PathBuf {
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
                let directory = taken.hasher.hash_one(made.as_os_str());
                taken.directories.insert(directory);
            }
        }
        if made == path { path } else { made }
    }

    /// Returns a check that the engine calls with the file name that a response chose, and that
    /// reserves this name. If `skips_existing` is true, the name of a file that existed before the
    /// run is not reserved.
    pub(crate) fn check(&self, skips_existing: bool) -> FilePathCheck {
        let names = self.clone();
        FilePathCheck::new(move |path, target| match skips_existing && path.exists() && !names.has(path) {
            true => Ok(()),
            false => names.take(path, &target.to_url()),
        })
    }

    /// Reserves the name of an output file for a URL.
    ///
    /// # Errors
    /// [`ErrorKind::Write`] if another URL of the run has reserved the name. There is no error for
    /// a device or a pipe, to which any number of URLs may be written.
    pub(crate) fn take(&self, path: &Path, url: &str) -> Result<()> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.device.as_deref().is_some_and(|device| device.as_os_str() == path.as_os_str()) {
            return Ok(());
        }
        let name = taken.hash(path);
        let Some(&position) = taken.names.get(&name) else {
            let position = taken.add(url).map_err(|error| {
                Error::with_source(ErrorKind::Write, "failed to note the URL of an output file", error)
            })?;
            taken.names.insert(name, position);
            return Ok(());
        };
        if is_device(path) {
            taken.device = Some(path.to_owned());
            return Ok(());
        }
        let first = taken.url(position).unwrap_or_default();
        let message = format!(
            "{} is the output of {} in this run; tell them apart by #1 in -o, or number them by --no-clobber",
            path.display(),
            crate::usage_error::shown_url(&first),
        );
        Err(Error::new(ErrorKind::Write, message).with_url(crate::usage_error::shown_url(url)))
    }
}

impl TakenNames {
    /// Returns true if a file cannot have this path, or if `is_file` is false, a directory cannot.
    fn is_blocked(&mut self, path: &Path, is_file: bool) -> bool {
        let is_known_directory = self.directories.contains(&self.hasher.hash_one(path.as_os_str()));
        if is_file {
            return is_known_directory || path.is_dir();
        }
        let is_taken = |names: &mut Self| {
            let name = names.hash(path);
            names.names.contains_key(&name)
        };
        !is_known_directory && (path.metadata().is_ok_and(|metadata| !metadata.is_dir()) || is_taken(self))
    }

    /// Returns the hash of an output path. Different spellings of the path have the same hash, and so
    /// have links to the file.
    fn hash(&mut self, path: &Path) -> u64 {
        let is_link = path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
        let linked = is_link.then(|| path.canonicalize().ok()).flatten();
        let path = linked.as_deref().unwrap_or(path);
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if self.directory.as_ref().is_none_or(|(written, _)| written != parent) {
            self.directory = Some((parent.to_owned(), absolute(parent)));
        }
        let directory = self.directory.as_ref().map(|(_, canonical)| canonical);
        self.hasher.hash_one((directory, path.file_name()))
    }

    /// Appends a URL to `urls`. Returns the offset of the URL in `urls`.
    fn add(&mut self, url: &str) -> std::io::Result<u64> {
        let position = self.urls.seek(SeekFrom::End(0))?;
        self.urls.write_all(&(url.len() as u64).to_le_bytes())?;
        self.urls.write_all(url.as_bytes())?;
        Ok(position)
    }

    fn url(&mut self, position: u64) -> std::io::Result<String> {
        let mut length = [0; 8];
        self.urls.seek(SeekFrom::Start(position))?;
        self.urls.read_exact(&mut length)?;
        let mut url = String::new();
        (&mut self.urls).take(u64::from_le_bytes(length)).read_to_string(&mut url)?;
        Ok(url)
    }
}

/// Returns the absolute path of a file or directory, without links as far as it exists. So the path
/// is the same before and after the missing part is created.
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
    let is_descriptor = ["/dev/fd", "/dev/stdout", "/dev/stderr", "/proc"].iter().any(|name| path.starts_with(name));
    is_descriptor || path.metadata().is_ok_and(|metadata| !metadata.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_name_is_taken_once_in_any_spelling() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::os::unix::fs::symlink("d", dir.path().join("link")).unwrap();
        let names = OutputNames::default();
        let take = |name: &str, url: &str| names.take(&dir.path().join(name), url);
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
            names.take(Path::new("/dev/null"), "http://h/5").unwrap();
        }
    }

    #[test]
    fn name_stays_taken_when_its_directory_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let names = OutputNames::default();
        let take = |name: &str| names.take(&dir.path().join(name), "http://h/");
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
    fn files_and_directories_of_one_name_both_exist() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("out");
        let names = OutputNames::default();
        let take = |name: &str| {
            let path = names.unblocked(&base, base.join(name));
            names.take(&path, "http://h/").unwrap();
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
        assert_eq!(names.unblocked(&base, outside.clone()), outside);
    }

    #[test]
    fn conflict_names_the_url_that_came_first() {
        let names = OutputNames::default();
        let url = |number: usize| format!("http://h/{number}/{}", "x".repeat(9_000));
        for number in 0..1_000 {
            names.take(Path::new(&format!("/nowhere/{number}")), &url(number)).unwrap();
        }
        let error = names.take(Path::new("/nowhere/765"), "http://h/new").unwrap_err();
        assert!(error.to_string().contains("http://h/765/"), "{error}");
    }
}
