//! The number of URLs of a run, if it can be known before the end of the run.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use haul_policy::glob::UrlGlob;

use super::list_reader::MAX_LINE;
use crate::plan::{RunPlan, UrlGroup, UrlSource};
use crate::url_sources::{url_in_line, without_byte_order_mark};

/// Returns the number of URLs of a run. Returns `None` if it is unknown: responses name further
/// URLs, there are uploads, a list is not a regular file, or the lines of a list are not plain
/// URLs.
pub(crate) fn total_urls(plan: &RunPlan) -> Option<u64> {
    plan.groups.iter().map(|group| urls_of_group(group)).sum()
}

/// Returns the number of URLs that the user gave (the first stage) in all URL groups of a run;
/// `None` if it is unknown.
pub(crate) fn urls_of_first_stage(plan: &RunPlan) -> Option<u64> {
    plan.groups.iter().map(|group| count_given_urls(group)).sum()
}

/// Returns true if the run has only one URL group, and responses add no URLs to it. The number of
/// the run's URLs is then known as soon as the lists of the group have been read to their ends.
pub(crate) fn is_known_after_lists(plan: &RunPlan) -> bool {
    matches!(plan.groups.as_slice(), [group] if has_only_given_urls(group))
}

fn has_only_given_urls(group: &UrlGroup) -> bool {
    matches!(group.stages.as_slice(), [stage] if stage.pagination.is_none() && stage.depth == 0)
}

fn urls_of_group(group: &UrlGroup) -> Option<u64> {
    if has_only_given_urls(group) { count_given_urls(group) } else { None }
}

/// Returns the number of URLs that the arguments and lists of a group contain; `None` if it is
/// unknown.
fn count_given_urls(group: &UrlGroup) -> Option<u64> {
    let has_uploads = || (0..group.urls.len()).any(|index| group.upload_of_source(index).is_some());
    let turns_pages = group.stages.first().is_some_and(|stage| stage.pagination.is_some() || stage.depth > 0);
    if turns_pages || group.records.is_some() || has_uploads() {
        return None;
    }
    let count = |(index, source)| match source {
        UrlSource::Argument(url) if group.is_glob(index, url) => UrlGlob::parse(url).ok()?.count(),
        UrlSource::Argument(_) => Some(1),
        UrlSource::InputFile(path) => count_urls_in_list(path),
    };
    group.urls.iter().enumerate().map(count).sum()
}

/// Returns the number of URLs in a list; `None` if it is unknown. Opens only regular files: a FIFO
/// that is opened and closed here would lose the list that its writer has begun to write.
fn count_urls_in_list(path: &str) -> Option<u64> {
    let is_file = path != "-" && std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let file = is_file.then(|| File::open(path).ok()).flatten()?;
    let mut reader = BufReader::with_capacity(1 << 18, file);
    let (mut line, mut number, mut count) = (Vec::new(), 0, 0);
    while (&mut reader).take(MAX_LINE + 1).read_until(b'\n', &mut line).ok()? > 0 {
        if line.len() as u64 > MAX_LINE && line.last() != Some(&b'\n') {
            return None;
        }
        number += 1;
        count += u64::from(url_in_line(without_byte_order_mark(&line, number)).is_some());
        line.clear();
    }
    Some(count)
}

#[cfg(all(test, unix))]
mod tests {
    use rustix::fs::{CWD, Mode, mkfifoat};

    use super::*;

    #[test]
    fn byte_order_mark_alone_is_no_url() {
        let list = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&list, "\u{feff}# a comment\n\u{feff}http://h/1\nhttp://h/2\n").unwrap();
        assert_eq!(count_urls_in_list(list.path().to_str().unwrap()), Some(2));
    }

    #[test]
    fn fifo_is_not_opened_to_count_its_urls() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(path("list"), "http://h/1\n\n# a comment\nhttp://h/2").unwrap();
        assert_eq!(count_urls_in_list(&path("list")), Some(2));
        mkfifoat(CWD, path("fifo"), Mode::RUSR | Mode::WUSR).unwrap();
        // Opening it would wait for a writer.
        assert_eq!(count_urls_in_list(&path("fifo")), None);
    }
}
