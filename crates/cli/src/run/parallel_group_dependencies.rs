//! Decides which URL groups (`--next` separates groups) run in parallel with each other.
//!
//! A group may run in parallel with the groups before it if `next` in a config file (`-K`) began
//! it, or if `-Z` is given. The group waits for the earlier groups if one of them may write a file
//! that the group reads, or if they have other settings for the whole run, such as name resolution.
//! Some groups always run alone, for example groups that use cookies, extract values or read
//! standard input.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haul::system::file_metadata_and_flags::is_null_device_name;
use haul_policy::auth::AllowedAuthSchemes;
use haul_policy::file_url::is_file_url;

use crate::plan::{
    ExistingFilePolicy, FormPartSource, GlobalArgs, OutputArg, RequestBodyArg, TraceFormat, UploadArg, UrlGroup,
    UrlSource, WriteOut,
};
use crate::run::engine_options::output_options::in_output_dir;
use crate::run::transfers::reserved_output_names::absolute;
use crate::run::transfers::url_uploads;
use crate::system::os_text::OsStrExt;
use crate::write_out::{WriteOutDestination, WriteOutToken};

/// Returns how many groups at the beginning of `groups` can run in parallel with each other.
/// Returns 1 if the first group must run alone, and 0 if there are no groups.
pub(crate) fn count_parallel_groups(global: &GlobalArgs, groups: &[Arc<UrlGroup>]) -> usize {
    let Some((first, others)) = groups.split_first() else { return 0 };
    let is_off = !global.parallel || global.trace.form != TraceFormat::Off;
    if is_off || others.first().is_none_or(|next| !next.is_listed) || !may_join(first) {
        return 1;
    }
    let mut written = written_files(first);
    let mut count = 1;
    for group in others {
        if !group.is_listed
            || !may_join(group)
            || !shares_settings(first, group)
            || (!written.is_empty() && written.may_share(&read_files(group)))
        {
            break;
        }
        written.extend(written_files(group));
        count += 1;
    }
    count
}

/// Returns true if a group can run in parallel with other groups: it extracts no values, fetches no
/// paginated listings, has no `file:` URL (which haul accepts only if it acts as curl), and has no
/// state on which other groups may depend.
fn may_join(group: &UrlGroup) -> bool {
    let [stage] = group.stages.as_slice() else { return false };
    !stage.takes_values()
        && stage.pagination.is_none()
        && group.checksum.is_none()
        && !stage.transfer.cookies.are_enabled()
        && stage.report.dump_header.is_none()
        && stage.request.etag_save.is_none()
        && !reads_stdin(group)
        && !(group.in_place && group.has_file_url())
}

/// Returns true if two URL groups (`--next` separates groups) have the same settings for the
/// run's HTTP client, and for the stores that transfers change, such as cookies.
fn shares_settings(first: &UrlGroup, group: &UrlGroup) -> bool {
    let (first, group) = (&first.stages[0].transfer, &group.stages[0].transfer);
    if Arc::ptr_eq(first, group) {
        return true;
    }
    first.resolve == group.resolve
        && first.dns == group.dns
        && (&first.doh_url, first.doh_insecure) == (&group.doh_url, group.doh_insecure)
        && first.hsts == group.hsts
        && first.alt_svc == group.alt_svc
}

/// Returns true if two URL groups (`--next` separates groups) can share one set of request options.
/// Their options must be equal, except for the request content. The content must be bytes in memory
/// or absent, because other content, such as a file or a form, determines header fields. A group
/// whose lists describe requests (as with `--jsonl-in`) cannot share its options.
pub(crate) fn shares_request_options(first: &UrlGroup, group: &UrlGroup) -> bool {
    let ([first_stage], [stage]) = (first.stages.as_slice(), group.stages.as_slice()) else { return false };
    let is_shareable = |group: &UrlGroup| {
        group.records.is_none() && matches!(group.stages[0].request.body, None | Some(RequestBodyArg::Bytes(_)))
    };
    is_shareable(first)
        && is_shareable(group)
        && Arc::ptr_eq(&first_stage.transfer, &stage.transfer)
        && Arc::ptr_eq(&first_stage.proxy, &stage.proxy)
        && first_stage.report == stage.report
        && first_stage.records == stage.records
        && first_stage.request.range.is_none()
        // Answers to challenges belong to one group.
        && first_stage.request.auth.allowed == AllowedAuthSchemes::BASIC
        && first_stage.request.is_equal_except_body(&stage.request)
}

/// Returns true if a URL group reads standard input, which can be read only once.
fn reads_stdin(group: &UrlGroup) -> bool {
    let of_urls = |source| source == UrlSource::InputFile("-");
    let of_form = |source: &&FormPartSource| **source == FormPartSource::Stdin;
    group.urls.iter().any(of_urls)
        || group.uploads.iter().any(|upload| matches!(upload, UploadArg::Stdin { .. }))
        || match &group.stages[0].request.body {
            Some(RequestBodyArg::Stdin) => true,
            Some(RequestBodyArg::Multipart(form)) => form.sources().iter().any(of_form),
            _ => false,
        }
}

/// The files that a URL group (`--next` separates groups) reads while its transfers run, or the
/// files that it writes.
#[derive(Default)]
struct FilesReadOrWritten {
    /// The absolute paths of the files whose names are known before the run.
    known: HashSet<PathBuf>,
    /// True if the group may use further files whose names are not known yet, such as an output file
    /// that is named after a URL.
    has_others: bool,
}

impl FilesReadOrWritten {
    fn add(&mut self, name: impl AsRef<Path>) {
        self.known.insert(absolute(name.as_ref()));
    }

    fn is_empty(&self) -> bool {
        self.known.is_empty() && !self.has_others
    }

    fn extend(&mut self, other: FilesReadOrWritten) {
        self.known.extend(other.known);
        self.has_others |= other.has_others;
    }

    /// Returns true if a file may be in both `self` and `other`.
    fn may_share(&self, other: &FilesReadOrWritten) -> bool {
        let shares = || !self.known.is_disjoint(&other.known);
        !self.is_empty() && !other.is_empty() && (self.has_others || other.has_others || shares())
    }
}

/// Returns the files that a URL group reads while it runs.
fn read_files(group: &UrlGroup) -> FilesReadOrWritten {
    let mut files = FilesReadOrWritten::default();
    for (index, upload) in group.uploads.iter().enumerate() {
        match upload {
            UploadArg::File(_) if url_uploads::is_glob(group, index) => files.has_others = true,
            UploadArg::File(file) => files.add(file),
            UploadArg::Nothing | UploadArg::Stdin { .. } => {}
        }
    }
    match &group.stages[0].request.body {
        Some(RequestBodyArg::File(path)) => files.add(path),
        Some(RequestBodyArg::Multipart(form)) => {
            for source in form.sources() {
                match source {
                    FormPartSource::File(path) => files.add(path),
                    FormPartSource::Stdin => {}
                }
            }
        }
        _ => {}
    }
    for source in group.urls.iter() {
        match source {
            UrlSource::InputFile(path) => files.add(path),
            UrlSource::Argument(url) => files.has_others |= is_file_url(url),
        }
    }
    // A record may name a file to send.
    files.has_others |= group.records.as_ref().is_some_and(|records| records.allow_body_files);
    files
}

/// Returns the files that a group may write while it runs.
fn written_files(group: &UrlGroup) -> FilesReadOrWritten {
    // A record may name its output.
    let mut files = FilesReadOrWritten { has_others: group.records.is_some(), ..FilesReadOrWritten::default() };
    for token in group.stages[0].report.write_out.iter().flat_map(WriteOut::tokens) {
        if let WriteOutToken::Stream(WriteOutDestination::File(path, _)) = token {
            files.add(path);
        }
    }
    for index in 0..group.urls.len() {
        match group.output_of_source(index) {
            output if output.is_stdout() => {}
            OutputArg::File(name) if is_null_device_name(Path::new(name)) => {}
            // It may have numbers of globs, or parts of the URL; --no-clobber adds a number.
            OutputArg::File(name) if name.as_bytes().iter().any(|byte| matches!(byte, b'#' | b'{')) => {
                files.has_others = true;
            }
            OutputArg::File(name) => {
                files.add(in_output_dir(group, name.clone()));
                files.has_others |= group.existing == ExistingFilePolicy::Number;
            }
            OutputArg::RemoteName | OutputArg::MirroredPath => files.has_others = true,
            OutputArg::Stdout | OutputArg::Null => {}
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build_plan::resolve;
    use crate::file_and_environment_access::SystemFilesAndEnvironment;
    use crate::parse::parse;

    /// Returns true if the two groups of a command line share their request options.
    fn shares(line: &str) -> bool {
        let parsed =
            parse(line.split_whitespace().map(Into::into), &mut SystemFilesAndEnvironment).expect("valid options");
        let plan = resolve(parsed, &mut SystemFilesAndEnvironment).expect("a plan");
        shares_request_options(&plan.groups[0], &plan.groups[1])
    }

    #[test]
    fn groups_that_differ_in_content_share_request_options() {
        for line in [
            "u --next v",
            "-d a u --next -d b v",
            "-d a -o x u --next -d b -o y v",
            "-d a -H A:b u --next -d b -H A:b v",
            "--json {} u --next --json [] v",
            "-X PUT -d a u --next -X PUT -d b v",
            "-u me:pw -d a u --next -u me:pw -d b v",
        ] {
            assert!(shares(line), "{line}");
        }
    }

    #[test]
    fn groups_with_different_settings_share_no_request_options() {
        for line in [
            "-d a u --next v",
            "-d a u --next --json 1 v",
            "-d a u --next -X PUT -d b v",
            "-d a -H A:b u --next -d b v",
            "-d a -m5 u --next -d b v",
            "-d a -x p u --next -d b v",
            "-d a -w x u --next -d b v",
            "-d a -i u --next -d b v",
            "-d a -u me:pw u --next -d b -u you:pw v",
            // The content decides about fields, or a challenge about credentials.
            "-F a=b u --next -F a=c v",
            "-r 0-1 -d ab u --next -r 0-1 -d abc v",
            "--digest -u me:pw -d a u --next --digest -u me:pw -d b v",
        ] {
            assert!(!shares(line), "{line}");
        }
    }
}
