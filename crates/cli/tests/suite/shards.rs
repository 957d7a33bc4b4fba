//! Tests of `--shard K/N`: N runs with the same list fetch each URL once, and only one run fetches
//! from each host.

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::guides::block_with;
use common::small_site::SmallSite;
use common::{CommandOutput, HAUL, installed, list, origin, program, run};
use haul_policy::Scheme;
use haul_policy::shard::UrlListShard;

const SHARDS: usize = 3;

/// Runs haul in a directory. All host names are resolved to the address of `server`.
fn haul_in(dir: &Path, server: &str, args: &[&str]) -> CommandOutput {
    let address = server.trim_start_matches("http://").trim_end_matches('/');
    run(program(HAUL).current_dir(dir).args(["--connect-to", &format!("::{address}")]).args(args))
}

/// Returns the lines of a text, sorted.
fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn shards_together_fetch_each_url_once() {
    let server = origin();
    let dir = tempfile::tempdir().unwrap();
    let urls: Vec<String> = (0..40).map(|n| format!("http://h{}.example/small/{n}", n % 20)).collect();
    list(dir.path(), "urls", &urls);
    list(dir.path(), "urls.jsonl", urls.iter().map(|url| format!(r#"{{"url":"{url}","query":{{"q":1}}}}"#)));
    let rows = (0..40).map(|n| format!("h{}.example,{n}", n % 20));
    list(dir.path(), "urls.csv", std::iter::once("host,n".to_owned()).chain(rows));
    let arguments: Vec<&str> = urls.iter().map(String::as_str).collect();
    let glob = "http://h[0-9].example/small/[1-2]";
    let modes: [&[&str]; 7] = [
        &arguments,
        &[glob],
        &["--no-parallel", glob],
        &["--input-file", "urls"],
        &["--jsonl-in", "--input-file", "urls.jsonl"],
        &["--csv-in", "--input-file", "urls.csv", "http://{host}/small/{n}", "https://{host}:8443/small/{n}"],
        &["-T", "urls", glob],
    ];
    for mode in modes {
        let report = ["-k", "--retry", "0", "-o", "/dev/null", "-w", "%{url} %{http_code}\n"];
        let args = [&report, mode].concat();
        let whole = haul_in(dir.path(), &server.url("/"), &args);
        let whole = sorted(&String::from_utf8_lossy(&whole.stdout));
        assert!(whole.len() >= 20, "{mode:?}");
        let mut all = Vec::new();
        let mut owner = BTreeMap::new();
        for number in 0..SHARDS {
            let shard = format!("{number}/{SHARDS}");
            let part = haul_in(dir.path(), &server.url("/"), &[&["--shard", &shard], &args[..]].concat());
            let part = sorted(&String::from_utf8_lossy(&part.stdout));
            assert!(!part.is_empty(), "{mode:?} {shard}");
            for line in &part {
                let host = line.split('/').take(3).collect::<Vec<_>>().join("/");
                assert_eq!(*owner.entry(host).or_insert(number), number, "{mode:?}: {line}");
            }
            all.extend(part);
        }
        all.sort();
        assert_eq!(all, whole, "{mode:?}");
    }
}

#[test]
fn shard_uses_the_documented_hash() {
    let server = origin();
    let dir = tempfile::tempdir().unwrap();
    for n in 0..6 {
        let url = format!("http://h{n}.example/small/1");
        for number in 0..2 {
            let name = format!("{number}/2");
            let printed = haul_in(dir.path(), &server.url("/"), &["--shard", &name, &url]).text();
            let is_chosen = UrlListShard::parse(&name).unwrap().contains_url(&url, Scheme::Http);
            assert_eq!(!printed.is_empty(), is_chosen, "{url} {name}");
        }
    }
}

#[test]
fn extracted_links_belong_to_their_page_shard() {
    let hosts: Vec<String> = (0..6).map(|n| format!("http://h{n}.example")).collect();
    let links: String = hosts.iter().map(|host| format!("<a href={host}/leaf>x</a>")).collect();
    let server = SmallSite::of(&[("/", "text/html", &links), ("/leaf", "text/html", "leaf\n")]);
    let dir = tempfile::tempdir().unwrap();
    let printed: Vec<String> = (0..2)
        .map(|number| {
            let shard = format!("{number}/2");
            let args = ["--shard", &shard, &format!("{}/", hosts[0]), "--select", "a@href", "--then", "{}"];
            haul_in(dir.path(), &server.url("/"), &args).text()
        })
        .collect();
    let owner = usize::from(UrlListShard::parse("1/2").unwrap().contains_url(&hosts[0], Scheme::Http));
    assert_eq!(printed[owner], "leaf\n".repeat(6));
    assert_eq!(printed[1 - owner], "");
}

#[test]
fn unusable_urls_and_records_belong_to_shard_0() {
    let dir = tempfile::tempdir().unwrap();
    list(dir.path(), "urls", ["http://h:99999/", "ftp://h/"]);
    list(dir.path(), "urls.jsonl", ["{", r#"{"method":"GET"}"#, r#"{"url":"http://h:99999/"}"#]);
    list(dir.path(), "urls.csv", ["url,n", "http://h:99999/,1", "one field"]);
    let modes: [(&[&str], usize); 3] = [
        (&["--input-file", "urls"], 2),
        (&["--jsonl-in", "--input-file", "urls.jsonl"], 3),
        (&["--csv-in", "--input-file", "urls.csv"], 2),
    ];
    for (mode, failures) in modes {
        let args = |shard| [&["--jsonl", "--shard", shard], mode].concat();
        let first = haul_in(dir.path(), "127.0.0.1:1", &args("0/3"));
        assert_eq!(String::from_utf8_lossy(&first.stdout).lines().count(), failures, "{mode:?}: {}", first.stderr);
        assert_ne!(first.code, 0);
        for shard in ["1/3", "2/3"] {
            assert_eq!(haul_in(dir.path(), "127.0.0.1:1", &args(shard)).text(), "", "{mode:?}");
        }
    }
}

#[test]
fn invalid_shard_is_refused() {
    let wrong = [
        ("3/3", "with 3 shards, K is from 0 to 2"),
        ("0/0", "N is at least 1"),
        ("a/b", "expected K/N"),
        ("1", "expected K/N"),
        ("0/4294967296", "N is at most 4294967295"),
    ];
    for (shard, reason) in wrong {
        let ran = common::run_haul(&["--shard", shard, "http://127.0.0.1:1/"]);
        assert_eq!(ran.code, 2, "{shard}");
        assert!(ran.stderr.contains(reason), "{shard}: {}", ran.stderr);
    }
}

/// Runs the command of the guide's Kubernetes job for each pod.
#[test]
fn kubernetes_pods_of_guide_fetch_each_url_once() {
    let server = origin();
    let dir = tempfile::tempdir().unwrap();
    let urls: Vec<String> = (0..60).map(|n| format!("http://h{}.example/small/{n}", n % 30)).collect();
    fs::write(dir.path().join("urls.txt"), urls.join("\n")).unwrap();
    let job = block_with("docs/scale-out.md", "JOB_COMPLETION_INDEX");
    let pods: usize = job.split_once("completions: ").unwrap().1.split(' ').next().unwrap().parse().unwrap();
    let command = job.split_once(">-\n").unwrap().1.split("volumeMounts").next().unwrap();
    let command = command.split_whitespace().collect::<Vec<_>>().join(" ");
    let command = command.replace("/data/", &format!("{}/", dir.path().display()));
    let address = server.url("/").trim_start_matches("http://").trim_end_matches('/').to_owned();
    // All hosts are at the address of the server.
    let haul = dir.path().join("haul");
    fs::write(&haul, format!("#!/bin/sh\nexec {HAUL} --connect-to ::{address} \"$@\"\n")).unwrap();
    fs::set_permissions(&haul, fs::Permissions::from_mode(0o755)).unwrap();
    for pod in 0..pods {
        let mut shell = program("sh");
        shell.args(["-c", &command]).env("JOB_COMPLETION_INDEX", pod.to_string());
        shell.env("PATH", format!("{}:/usr/bin:/bin", dir.path().display()));
        assert_eq!(run(&mut shell).text(), "");
    }
    let records = (0..pods).map(|pod| fs::read_to_string(dir.path().join(format!("records.{pod}.jsonl"))).unwrap());
    let records: String = records.collect();
    let fetched = records.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let fetched: Vec<String> = fetched.map(|record| record["url"].as_str().unwrap().to_owned()).collect();
    assert_eq!(sorted(&fetched.join("\n")), sorted(&urls.join("\n")));
}

/// Runs the shards on three machines of GNU parallel. Two of them are simulated: a program in place
/// of ssh runs the command on this machine.
#[test]
fn gnu_parallel_runs_shards_on_several_machines() {
    if installed("parallel", "shards by GNU parallel").is_none() {
        return;
    }
    let server = origin();
    let dir = tempfile::tempdir().unwrap();
    let urls: Vec<String> = (0..200).map(|n| format!("http://h{}.example/small/{n}", n % 50)).collect();
    list(dir.path(), "urls", &urls);
    let ssh = dir.path().join("ssh");
    fs::write(&ssh, "#!/bin/sh\nshift\n[ \"$1\" = -- ] && shift\nexec sh -c \"$*\"\n").unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    let address = server.url("/").trim_start_matches("http://").trim_end_matches('/').to_owned();
    let urls_file = dir.path().join("urls").display().to_string();
    let haul = [HAUL, "--connect-to", &format!("::{address}"), "--input-file", &urls_file, "--jsonl"];
    let fields = ["url", "status", "body"];
    let records = |output: CommandOutput| -> BTreeSet<String> {
        let text = output.text();
        let all: BTreeSet<String> = text
            .lines()
            .map(|line| {
                let record: serde_json::Value = serde_json::from_str(line).unwrap();
                fields.map(|field| record[field].to_string()).join(" ")
            })
            .collect();
        assert_eq!(all.len(), text.lines().count(), "a URL was fetched twice");
        all
    };
    let whole = records(run(program(HAUL).args(&haul[1..])));
    assert_eq!(whole.len(), urls.len());
    let mut parallel = program("parallel");
    parallel.args(["--will-cite", "--sshlogin", "1/one", "--sshlogin", "1/two", "--sshlogin", "1/:"]);
    parallel.args(haul).args(["--shard", "{}/5", ":::", "0", "1", "2", "3", "4"]);
    // What GNU parallel sends to another machine starts $SHELL there, which sshd would have set.
    parallel.env("PARALLEL_SSH", &ssh).env("HOME", dir.path()).env("SHELL", "/bin/sh");
    assert_eq!(records(run(&mut parallel)), whole);
}
