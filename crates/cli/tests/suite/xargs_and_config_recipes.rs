//! Runs common shell recipes that fetch thousands of pages, with xargs or config files, with the
//! curl persona.

use crate::common;

use std::collections::BTreeSet;

use common::{CommandOutput, HAUL, bash, installed, run_haul};
use testkit::origin::Origin;
use testkit::site::GeneratedSite;

const PAGES: usize = 120;

/// Runs a shell script with curl and then with haul's curl persona as the download program. Returns
/// both outputs; the first is `None` if curl is not installed.
fn both(what: &str, script: &str) -> (Option<CommandOutput>, CommandOutput) {
    let curl = installed("curl", what).map(|curl| bash(curl, script));
    (curl, bash(HAUL, script))
}

fn origin() -> Origin {
    Origin::builder().site(GeneratedSite::scaled(7, PAGES).cached()).start().unwrap()
}

/// Returns a shell script that extracts the names of all pages from the test server's index, sorts
/// them, and pipes them into the command `fetch`.
fn recipe(origin: &Origin, fetch: &str) -> String {
    format!(
        "set -o pipefail; H={}; for i in 1 2 3; do $GET -s http://$H/$i; done | grep -oE 'AS[0-9]{{1,9}}' | sort -u | {fetch}",
        origin.http_addr()
    )
}

/// Returns the content of all pages of the test server, in the order of their sorted names.
fn pages(origin: &Origin) -> Vec<u8> {
    let paths: BTreeSet<String> = origin.site().as_paths().into_iter().collect();
    paths.iter().flat_map(|path| origin.site().page(path).unwrap()).collect()
}

#[track_caller]
fn same_as_curl(what: &str, fetch: &str) {
    let origin = origin();
    let (curl, haul) = both(what, &recipe(&origin, fetch));
    let haul = haul.ok();
    assert!(haul == pages(&origin), "{what}: {} bytes", haul.len());
    if let Some(curl) = curl {
        assert!(haul == curl.ok(), "{what}: not what curl prints");
    }
}

/// Runs the script of [`recipe`] with `fetch`, and asserts that haul prints each byte of the pages
/// as often as it occurs in them, in any order. (The outputs of parallel processes may mix, also
/// those of curl.)
#[track_caller]
fn assert_no_byte_lost(what: &str, fetch: &str) {
    let origin = origin();
    let (curl, haul) = both(what, &recipe(&origin, fetch));
    let haul = haul.ok();
    let mut expected = pages(&origin);
    assert_eq!(haul.len(), expected.len(), "{what}");
    if let Some(curl) = curl {
        assert_eq!(curl.ok().len(), haul.len(), "{what}");
    }
    let mut woven = haul;
    woven.sort_unstable();
    expected.sort_unstable();
    assert!(woven == expected, "{what}: other bytes");
}

#[test]
fn xargs_recipe_prints_what_curl_prints() {
    same_as_curl("xargs -I%", "xargs -I% $GET -s http://$H/%");
}

#[test]
fn parallel_xargs_recipe_loses_no_byte() {
    assert_no_byte_lost("xargs -P20", "xargs -P20 -I% $GET -s http://$H/%");
}

#[test]
fn config_from_process_substitution_prints_like_curl() {
    same_as_curl("--config", r#"{ $GET -s --config <(sed 's|.*|url = "http://'$H'/&"|'); }"#);
}

#[test]
fn config_from_stdin_prints_like_curl() {
    same_as_curl("--config -", r#"sed 's|.*|url = "http://'$H'/&"|' | $GET -s --config -"#);
}

#[test]
fn parallel_xargs_batches_lose_no_byte() {
    assert_no_byte_lost("xargs -L -P20", "sed \"s|^|http://$H/|\" | xargs -L6 -P20 $GET -s");
}

#[test]
fn recipe_and_single_command_print_the_same() {
    let origin = origin();
    let blocks = "[0-9.]{7,15}/[0-9]{1,2}";
    let fetch = format!("xargs -I% $GET -s http://$H/% | grep -oaE '{blocks}' | sort -u");
    let recipe = bash(HAUL, &recipe(&origin, &fetch)).ok();
    assert!(recipe == origin.site().known_answer().text, "{} bytes", recipe.len());
    let command = run_haul([
        "-s",
        &origin.url("/[1-3]"),
        "--extract",
        "AS[0-9]{1,9}",
        "--then",
        &origin.url("/{}"),
        "--extract",
        blocks,
        "--unique",
        "--sort",
    ]);
    assert!(command.ok() == recipe);
}
