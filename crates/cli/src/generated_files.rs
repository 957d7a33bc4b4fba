//! The files that are generated from the table of flags and the guides: the man pages, the
//! completions, the page about compatibility with curl, and the index of the guides.
//!
//! `haul --generate DIRECTORY` writes all of them (`make generate`). Tests check that the files in
//! the repository are current.
//!
//! ```
//! use haul_cli::generated_files;
//!
//! let names: Vec<_> = generated_files::files_from_flags().map(|(name, _)| name).collect();
//! assert!(names.contains(&"docs/haul.1") && names.contains(&"completions/haul.fish"));
//! ```

use std::path::Path;

use crate::flags::curl_compat_page;
use crate::{completions, guide_section_index, man};

/// The path of the index of the guides, a file that is compiled into the program.
const GUIDE_INDEX: &str = "crates/cli/src/guide_index.txt";

/// Returns the files that are generated from the table of flags: the path of each one in the
/// repository, and its text.
pub fn files_from_flags() -> impl Iterator<Item = (&'static str, String)> {
    [
        ("docs/curl-compat.md", curl_compat_page::page as fn() -> String),
        ("docs/haul.1", man::page),
        ("docs/haul-curl.1", man::curl_page),
        ("docs/haul-ftp.1", man::ftp_page),
        ("completions/haul.bash", completions::bash),
        ("completions/_haul", completions::zsh),
        ("completions/haul.fish", completions::fish),
        ("completions/haul.ps1", completions::powershell),
    ]
    .into_iter()
    .map(|(name, make)| (name, make()))
}

/// Returns the files that are generated from the guides below the directory `root`.
///
/// # Errors
/// A guide cannot be read.
fn files_from_guides(root: &Path) -> std::io::Result<Vec<(&'static str, String)>> {
    let docs = root.join("docs");
    let recipes = std::fs::read_to_string(docs.join("recipes.md"))?;
    Ok(vec![(GUIDE_INDEX, guide_section_index::generate(&docs)?), ("docs/haul-recipes.7", man::recipes(&recipes))])
}

/// Writes all generated files to their paths below the directory `root`. Files that are made from
/// guides are written only if the guides exist.
///
/// # Errors
/// The error of the file system.
pub fn write(root: &Path) -> std::io::Result<()> {
    let of_guides = match root.join("docs/recipes.md").exists() {
        true => files_from_guides(root)?,
        false => Vec::new(),
    };
    files_from_flags().chain(of_guides).try_for_each(|(name, text)| {
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
    assert!(there == text, "{} is not what the table of flags and the guides say: make generate", path.display());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_files_match_the_flag_table() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (name, text) in files_from_flags().chain(files_from_guides(&root).expect("the guides")) {
            assert_is(&root.join(name), &text);
        }
    }
}
