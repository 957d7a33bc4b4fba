//! The files that are generated from the table of flags: the man page, the completions, and the
//! page about compatibility with curl.
//!
//! `haul --generate DIRECTORY` writes all of them (`make generate`). Tests check that the files in
//! the repository are current.
//!
//! ```
//! use haul_cli::generated_files;
//!
//! let names: Vec<_> = generated_files::all().map(|(name, _)| name).collect();
//! assert_eq!(names[..2], ["docs/curl-compat.md", "docs/haul.1"]);
//! assert_eq!(names[2..], ["completions/haul.bash", "completions/_haul", "completions/haul.fish", "completions/haul.ps1"]);
//! ```

use std::path::Path;

use crate::flags::compat;
use crate::{completions, man};

/// Returns the generated files: the path of each one in the repository, and its text.
pub fn all() -> impl Iterator<Item = (&'static str, String)> {
    [
        ("docs/curl-compat.md", compat::page as fn() -> String),
        ("docs/haul.1", man::page),
        ("completions/haul.bash", completions::bash),
        ("completions/_haul", completions::zsh),
        ("completions/haul.fish", completions::fish),
        ("completions/haul.ps1", completions::powershell),
    ]
    .into_iter()
    .map(|(name, make)| (name, make()))
}

/// Writes all generated files to their paths below the directory `root`.
///
/// # Errors
/// The error of the file system.
pub fn write(root: &Path) -> std::io::Result<()> {
    all().try_for_each(|(name, text)| {
        let path = root.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, text)
    })
}

/// Panics if the content of the generated file at `path` differs from `text`.
#[cfg(test)]
pub(crate) fn assert_is(path: &Path, text: &str) {
    let there = std::fs::read_to_string(path).unwrap_or_default();
    assert!(there == text, "{} is not what the table of flags says: make generate", path.display());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_files_match_the_flag_table() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (name, text) in all() {
            assert_is(&root.join(name), &text);
        }
    }
}
