//! Tests of the transfer and file settings: limits, resumption, files, checksums.

use std::time::Duration;

use super::*;
use crate::checksum::ChecksumArg;
use crate::plan::{ContinueAt, ExistingFilePolicy, TransferArgs};
use haul::request::SpeedLimit;

fn transfer(args: &[&str]) -> TransferArgs {
    Arc::unwrap_or_clone(group(&[args, &["u"]].concat()).stages.remove(0).transfer)
}

/// Resolves a command line that must be refused because of `option`. Returns the text of the error.
fn refusal(args: &[&str], option: &str) -> String {
    let error = read(args).expect_err("they contradict each other");
    assert_eq!(error.exit_code(), 2, "{args:?}");
    let text = error.to_string();
    let begin = format!("haul: option {option}: ");
    let rest = text.strip_prefix(&begin).unwrap_or_else(|| panic!("{args:?}: {text}"));
    rest.split_once('\n').expect("a line").0.to_owned()
}

#[test]
fn transfer_has_no_limits_by_default() {
    let own = group(&["u"]);
    assert_eq!(
        (own.existing, own.create_file_mode, &own.checksum),
        (ExistingFilePolicy::ReplaceUnlessNamedByResponse, None, &None)
    );
    assert!(!own.remote_header_name && !own.remove_on_error && !own.fsync);
    let transfer = &own.stages[0].transfer;
    assert_eq!(
        (transfer.options.limit_rate, transfer.min_speed(), own.stages[0].request.continue_at),
        (None, None, None)
    );
}

#[test]
fn speed_limit_and_speed_time_imply_each_other() {
    let slowest = |args: &[&str]| transfer(args).min_speed().map(|slow| (slow.bytes_per_second, slow.time.as_secs()));
    assert_eq!(slowest(&["-Y", "300"]), Some((300, 30)));
    assert_eq!(slowest(&["-y", "7"]), Some((1, 7)));
    for args in [["-Y", "300", "-y", "7"], ["-y", "7", "-Y", "300"]] {
        assert_eq!(slowest(&args), Some((300, 7)));
    }
    assert_eq!(slowest(&["-Y", "1", "-Y", "2"]), Some((2, 30)));
    for off in [&["-Y", "0"][..], &["-y", "0"], &["-Y", "5", "-y", "0"], &["-y", "5", "-Y", "0"]] {
        assert_eq!(slowest(off), None, "{off:?}");
    }
    let both = transfer(&["--speed-limit", "2", "--speed-time", "3"]).min_speed();
    assert_eq!(both, Some(SpeedLimit { bytes_per_second: 2, time: Duration::from_secs(3) }));
}

#[test]
fn split_defaults_to_the_connection_limit_per_host() {
    let connections = |args: &[&str]| {
        let plan = plan(&[args, &["u"]].concat());
        plan.groups[0].stages[0].transfer.connections(&plan.global)
    };
    assert_eq!(connections(&[]), 6);
    assert_eq!(connections(&["--parallel-max-host", "3"]), 3);
    assert_eq!(connections(&["--parallel-max-host", "3", "--split", "9"]), 9);
    assert_eq!(connections(&["--split", "1"]), 1);
}

#[test]
fn then_stage_inherits_limits() {
    let chain = ["u", "--limit-rate", "1k", "-Y5", "--split", "2", "--extract", "a", "--then", "http://h/{}"];
    let own = group(&[&chain[..], &["--limit-rate", "0"]].concat());
    let [first, second] = &own.stages[..] else { panic!("two stages") };
    assert_eq!((first.transfer.options.limit_rate, second.transfer.options.limit_rate), (Some(1024), None));
    assert_eq!((first.transfer.min_speed(), first.transfer.split), (second.transfer.min_speed(), Some(2)));
    assert_eq!(second.transfer.split, Some(2));
}

#[test]
fn groups_share_settings_until_an_option_changes_them() {
    let all = plan(&["u", "--next", "v", "--next", "-m5", "w", "--next", "-x", "p", "x"]);
    let [first, second, timed, proxied] = &all.groups[..] else { panic!("four groups") };
    let shares_transfer = |group: &UrlGroup| Arc::ptr_eq(&group.stages[0].transfer, &first.stages[0].transfer);
    let shares_proxy = |group: &UrlGroup| Arc::ptr_eq(&group.stages[0].proxy, &first.stages[0].proxy);
    assert_eq!([shares_transfer(second), shares_transfer(timed), shares_transfer(proxied)], [true, false, true]);
    assert_eq!([shares_proxy(second), shares_proxy(timed), shares_proxy(proxied)], [true, true, false]);
    let limit = |group: &UrlGroup| group.stages[0].transfer.max_time;
    assert_eq!([limit(first), limit(timed), limit(proxied)], [None, Some(Duration::from_secs(5)), None]);
}

#[test]
fn clobber_options_set_the_existing_file_policy() {
    let existing = |args: &[&str]| group(&[args, &["-O", "u"]].concat()).existing;
    assert_eq!(existing(&["--clobber"]), ExistingFilePolicy::Replace);
    assert_eq!(existing(&["--no-clobber"]), ExistingFilePolicy::Number);
    assert_eq!(existing(&["--no-clobber", "--clobber"]), ExistingFilePolicy::Replace);
    assert_eq!(existing(&["--skip-existing"]), ExistingFilePolicy::Skip);
    assert_eq!(existing(&["--skip-existing", "--no-clobber"]), ExistingFilePolicy::Skip);
    assert_eq!(existing(&["--skip-existing", "--no-skip-existing"]), ExistingFilePolicy::ReplaceUnlessNamedByResponse);
    let files = group(&["-JO", "--remove-on-error", "--fsync", "--create-file-mode", "600", "u"]);
    assert!(files.remote_header_name && files.remove_on_error && files.fsync);
    assert_eq!(files.create_file_mode, Some(0o600));
    let groups = plan(&["-JO", "--fsync", "--no-clobber", "u", "--next", "v"]).groups;
    assert!(
        !groups[1].remote_header_name
            && !groups[1].fsync
            && groups[1].existing == ExistingFilePolicy::ReplaceUnlessNamedByResponse
    );
}

#[test]
fn continue_at_resumes_at_offset_or_file_size() {
    let from = |args: &[&str]| request(&[args, &["-O", "u"]].concat()).continue_at;
    assert_eq!(from(&["-C", "-"]), Some(ContinueAt::OutputSize));
    assert_eq!(from(&["-C", "-", "-C", "400"]), Some(ContinueAt::Offset(400)));
    assert_eq!(from(&["-C", "0"]), None);
    assert_eq!(request(&["-C5", "u"]).continue_at, Some(ContinueAt::Offset(5)));
    assert_eq!(from(&["--clobber", "-C5"]), Some(ContinueAt::Offset(5)));
    let all = group(&["-C-", "--remote-name-all", "u", "v"]);
    assert_eq!(all.stages[0].request.continue_at, Some(ContinueAt::OutputSize));

    let coded = plan(&["--compressed", "-C5", "u"]);
    assert_eq!(coded.warnings.len(), 1);
    assert!(!coded.groups[0].stages[0].requests_compression());
    assert!(plan(&["--compressed", "-C0", "u"]).groups[0].stages[0].requests_compression());
}

#[test]
fn continue_at_conflicts_with_range_and_no_clobber() {
    let exclusive = |option: &str| format!("--continue-at is mutually exclusive with {option}");
    for (args, option) in [
        (&["-C5", "-r", "1-2", "u"][..], "--range"),
        (&["-r", "1-2", "-C", "-", "-O", "u"], "--range"),
        (&["-C0", "-r", "1-2", "u"], "--range"),
        (&["-C5", "-H", "range: bytes=1-", "u"], "a Range header"),
        (&["-C5", "--remove-on-error", "u"], "--remove-on-error"),
        (&["--no-clobber", "-C", "-", "-O", "u"], "--no-clobber"),
    ] {
        assert_eq!(refusal(args, "-C"), exclusive(option), "{args:?}");
    }
    let combined = "--continue-at and --remote-header-name cannot be combined";
    assert_eq!(refusal(&["-C", "-", "-JO", "u"], "-C"), combined);
    assert_eq!(request(&["-C5", "-JO", "u"]).continue_at, Some(ContinueAt::Offset(5)));
    let extracted = refusal(&["-C5", "u", "--extract", "a"], "-C");
    assert_eq!(extracted, "what is extracted cannot be gone on with");
    for args in
        [&["-C", "-", "u"][..], &["-C-", "-o", "-", "u"], &["-C-", "-O", "u", "v"], &["-C-", "-o-", "-O", "u", "v"]]
    {
        assert!(refusal(args, "-C").contains("and there is none: -o or -O"), "{args:?}");
    }
    let skipped = plan(&["--skip-existing", "-C-", "-O", "u"]);
    assert_eq!(skipped.warnings, ["--skip-existing leaves nothing to --continue-at"]);
}

#[test]
fn remote_header_name_without_remote_name_warns() {
    let idle = plan(&["-J", "-o", "x", "u"]);
    assert_eq!(idle.warnings, ["--remote-header-name does nothing without --remote-name"]);
    assert!(plan(&["-J", "--remote-name-all", "u"]).warnings.is_empty());
}

#[test]
fn checksum_digest_requires_a_single_url() {
    let digest = format!("sha256:{}", "00".repeat(32));
    let digest = digest.as_str();
    for urls in [&["u"][..], &["http://[::1]/x"], &["http://h/{a}"], &["-g", "http://h/[1-3]"]] {
        let own = group(&[&["--checksum", digest], urls].concat());
        assert!(matches!(own.checksum, Some(ChecksumArg::Digest(_))), "{urls:?}");
    }
    for urls in [&["u", "v"][..], &["http://h/[1-3]"], &["--input-file", "l"], &["http://h/{a,b}"]] {
        let text = refusal(&[&["--checksum", digest], urls].concat(), "--checksum");
        assert_eq!(text, "one checksum for several URLs, name a list instead", "{urls:?}");
        let own = group(&[&["--checksum", "http://h/SHA256SUMS"], urls].concat());
        assert_eq!(own.checksum, Some(ChecksumArg::From("http://h/SHA256SUMS".to_owned())));
    }
    assert!(refusal(&["--checksum", digest, "-I", "u"], "--checksum").contains("HEAD"));
    assert!(refusal(&["--checksum", digest, "--extract", "a", "u"], "--checksum").contains("extracted"));
    let secret = read(&["--checksum", "ftp://u:secret@h/f", "u"]).expect_err("another scheme");
    assert!(!secret.to_string().contains("secret"), "{secret}");
}

#[test]
fn output_named_like_a_directory_is_refused() {
    for name in ["/tmp/", "a/", "/", ".", "..", "a/..", "a/.", "#1/"] {
        let error = read(&["-o", name, "u"]).expect_err(name);
        assert_eq!((error.reason(), error.exit_code()), (&UsageErrorReason::Directory, 23), "{name}");
        assert!(error.to_string().starts_with("haul: option -o: names a directory"), "{error}");
    }
    for name in ["...", ".a", "a.", "/dev/null", "a/#1"] {
        assert_eq!(group(&["-o", name, "u"]).output_of_source(0), &OutputArg::File(name.into()));
    }
}
