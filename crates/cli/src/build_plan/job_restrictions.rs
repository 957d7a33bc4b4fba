//! Refuses the options that a job (`--job`) cannot carry over to its next run.

use std::path::Path;

use super::misused_option_error;
use crate::parsed_args::{DataOptionKind, ParsedArgs, ParsedStage, ParsedUrlGroup, TextOrFile};
use crate::plan::UploadArg;
use crate::usage_error::UsageError;

/// Refuses options that cannot be combined with `--job`. Does nothing without a job.
pub(super) fn check(parsed: &ParsedArgs) -> Result<(), UsageError> {
    let Some(job) = &parsed.global.job else {
        return match parsed.global.refresh {
            true => Err(misused_option_error(
                "--refresh",
                "only a job knows what was fetched before; name it by --job FILE",
            )),
            false => Ok(()),
        };
    };
    let refuse = |text: &str| Err(misused_option_error("--job", text));
    if parsed.global.persona.is_curl() {
        return refuse("curl has no jobs; call haul by its own name");
    }
    if job.command.is_empty() {
        return refuse("it belongs on the command line, not into a config file");
    }
    if job.command.iter().any(|option| option.name == "config" && option.value.as_deref() == Some(b"-")) {
        return refuse("-K - cannot be read again by the next run; name a file");
    }
    if parsed.groups.len() > 1 {
        return refuse("a job has one group of URLs; leave --next out, or make a job of each group");
    }
    let unordered = parsed.global.unordered;
    if parsed.global.refresh {
        parsed.groups.iter().try_for_each(check_refresh)?;
    }
    parsed.groups.iter().try_for_each(|group| check_group(group, unordered))
}

fn check_group(group: &ParsedUrlGroup, unordered: bool) -> Result<(), UsageError> {
    let stdin = "standard input cannot be read again by the next run; name a file";
    let (first, stages) = (&group.stages[0], &group.stages);
    let (last, earlier) = (&stages[stages.len() - 1], &stages[..stages.len() - 1]);
    let prints_text = |stage: &ParsedStage| stage.write_out.is_some() || stage.include;
    let refusals = [
        (group.clobber == Some(false), "--no-clobber would number a file twice after a kill; name files by -o '#1'"),
        (first.request.continue_at.is_some(), "a job goes on by itself; leave -C out"),
        (group.uploads.iter().any(|upload| matches!(upload, UploadArg::Stdin { .. })), stdin),
        (group.stages.iter().any(reads_stdin), stdin),
        (earlier.iter().any(prints_text), "-w and -i belong to the last stage of a job"),
        (earlier.iter().any(|stage| stage.sort), "--sort belongs to the last stage of a job"),
        (last.sort && !last.unique, "a job sorts unique values; add --unique"),
        (last.depth > 0, "the levels of --depth cannot go on after a kill; use a --then for each level"),
        (
            unordered && stages.iter().any(|stage| stage.pagination.is_given()),
            "the pages of a listing have an order in a job; leave --unordered out",
        ),
    ];
    match refusals.iter().find(|(applies, _)| *applies) {
        Some((_, text)) => Err(misused_option_error("--job", text)),
        None => Ok(()),
    }
}

/// Refuses `--refresh` with requests that cannot be made conditional, and with `-z` or
/// `--etag-compare`.
fn check_refresh(group: &ParsedUrlGroup) -> Result<(), UsageError> {
    let first = &group.stages[0];
    let refusals = [
        (
            group.stages.iter().any(|stage| stage.pagination.is_given()),
            "a listing has no validators, because its pages move; leave --refresh out, or --paginate",
        ),
        (group.skip_existing, "--skip-existing leaves nothing to refresh; leave it out"),
        (
            first.request.time_cond.is_some() || first.request.etag_compare.is_some(),
            "the job has conditions of its own",
        ),
    ];
    match refusals.iter().find(|(applies, _)| *applies) {
        Some((_, text)) => Err(misused_option_error("--refresh", text)),
        None => Ok(()),
    }
}

/// Returns true if the request content of a stage (`--then` begins a further stage) comes from
/// standard input.
fn reads_stdin(stage: &ParsedStage) -> bool {
    stage.request.data.iter().any(|data| {
        data.kind != DataOptionKind::Raw && matches!(&data.text, TextOrFile::File(path) if path == Path::new("-"))
    })
}
