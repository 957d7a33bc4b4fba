//! Options of a group that contradict each other: refused, and in curl's words where curl refuses them.

use haul_policy::glob::Glob;

use super::misused;
use crate::args::{Group, StageLow};
use crate::checksum::Checksum;
use crate::plan::{ContinueAt, Output, UrlSource};
use crate::usage::UsageError;

/// Refuses what cannot be done together, and names what has no effect.
pub(super) fn check(group: &Group, warnings: &mut Vec<String>) -> Result<(), UsageError> {
    for stage in &group.stages {
        check_continued(group, stage)?;
    }
    check_names(group, warnings)?;
    check_checksum(group)
}

/// `-C` with what decides otherwise about the bytes asked for, or about the file.
fn check_continued(group: &Group, stage: &StageLow) -> Result<(), UsageError> {
    let Some(from) = stage.request.continue_at else { return Ok(()) };
    let refusals = [
        (stage.request.range.is_some(), "--continue-at is mutually exclusive with --range"),
        (group.remove_on_error, "--continue-at is mutually exclusive with --remove-on-error"),
        (group.clobber == Some(false), "--continue-at is mutually exclusive with --no-clobber"),
        (group.stages.len() > 1 || stage.extract.is_some(), "what is extracted cannot be gone on with"),
    ];
    if let Some((_, text)) = refusals.iter().find(|(applies, _)| *applies) {
        return Err(misused("--continue-at", text));
    }
    if from == ContinueAt::OutputSize {
        if group.remote_header_name {
            return Err(misused("--continue-at", "--continue-at and --remote-header-name cannot be combined"));
        }
        // Standard output has no size. curl begins at 0 then: behind `>>` a second copy of what is there.
        let is_left_over = group.outputs.len() < group.urls.len() && !group.remote_name_all;
        if is_left_over || group.outputs.contains(&Output::Stdout) {
            return Err(misused(
                "--continue-at",
                "\"-\" takes the size of the output file, and there is none: -o or -O",
            ));
        }
    }
    Ok(())
}

fn check_names(group: &Group, warnings: &mut Vec<String>) -> Result<(), UsageError> {
    if group.remote_header_name {
        if group.stages.iter().any(|stage| stage.include || stage.request.head) {
            let text = "showing headers and --remote-header-name cannot be combined";
            return Err(misused("--remote-header-name", text));
        }
        if !group.remote_name_all && !group.outputs.contains(&Output::RemoteName) {
            warnings.push("--remote-header-name does nothing without --remote-name".to_owned());
        }
    }
    if group.skip_existing && group.stages[0].request.continue_at.is_some() {
        warnings.push("--skip-existing leaves nothing to --continue-at".to_owned());
    }
    Ok(())
}

fn check_checksum(group: &Group) -> Result<(), UsageError> {
    let Some(checksum) = &group.checksum else { return Ok(()) };
    if group.stages.iter().any(|stage| stage.extract.is_some()) {
        return Err(misused("--checksum", "what is extracted has no checksum"));
    }
    if group.stages[0].request.head {
        return Err(misused("--checksum", "a reply to HEAD has no body"));
    }
    match checksum {
        Checksum::Digest(_) if !is_one_url(group) => {
            Err(misused("--checksum", "one checksum for several URLs, name a list instead"))
        }
        Checksum::Digest(_) | Checksum::From(_) => Ok(()),
    }
}

fn is_one_url(group: &Group) -> bool {
    match group.urls.get(0) {
        Some(UrlSource::Argument(url)) if group.urls.len() == 1 => {
            // A glob that is none is found when the URL is used.
            group.globoff || Glob::parse(url).map_or(true, |glob| glob.count() == Some(1))
        }
        _ => false,
    }
}
