//! Tests of the agent with the command lines of curl and of package managers: calls in curl's place
//! and calls with `-C -`.

use crate::common;

use std::fs;
use std::path::Path;

use crate::guides::block_with;
use common::agent::TestAgentDirectory;
use common::{CommandOutput, HAUL, content, eventually, origin, program, run};
use rustix::process::{Signal, kill_process};
use testkit::faulty::{BodyBreak, FaultPlan, FaultyOrigin};
use testkit::h1_peer::{H1Peer, ScriptStep};

const SIZE: u64 = 300_000;

/// Runs `haul curl -q` with these arguments in the directory `dir`, where `HAUL_AGENT` names the
/// socket of the agent.
fn curl_with_agent(agent: &TestAgentDirectory, dir: &Path, args: &[&str]) -> CommandOutput {
    run(program(HAUL).args(["curl", "-q"]).args(args).env("HAUL_AGENT", agent.socket()).current_dir(dir))
}

#[test]
fn calls_as_curl_share_the_agent_connection() {
    let origin = origin();
    let agent = TestAgentDirectory::new();
    let dir = tempfile::tempdir().unwrap();
    let url = origin.url("/bytes/70000");
    let expected = origin.pattern().slice(0, 70_000);
    for name in ["a", "b", "c"] {
        curl_with_agent(&agent, dir.path(), &["-sfL", "-o", name, &url]).ok();
        assert!(fs::read(dir.path().join(name)).unwrap() == expected);
    }
    assert!(curl_with_agent(&agent, dir.path(), &["-sfL", &url]).ok() == expected);
    curl_with_agent(&agent, dir.path(), &["-s", "-o", "/dev/null", &url]).ok();
    let with_option = run(program(HAUL).args(["curl", "-q", "-s", &agent.option(), &url]).current_dir(dir.path()));
    assert!(with_option.ok() == expected);
    assert_eq!((origin.connections(), agent.status("calls")), (1, Some(6)));
    assert!(origin.log().iter().all(|request| request.header("range").is_none()), "curl asks for no ranges");
}

/// curl opens its output for the first byte. Its `-X POST` must not be sent twice.
#[test]
fn agent_output_as_curl_matches_direct_runs() {
    let origin = origin();
    let agent = TestAgentDirectory::new();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    let format = "%{http_code} %{size_download} %{url_effective} %{exitcode} %{filename_effective}\n";
    let refused = common::REFUSED.to_owned();
    let paths = ["/small", "/status/404", "/status/204", "/bytes/0", "/chain/3"].map(|path| origin.url(path));
    for url in paths.iter().chain([&refused]) {
        for options in [&["-s"][..], &["-sS", "-f"], &["-f"]] {
            for old in [None, Some("old content")] {
                let args = [options, &["-L", "-w", format, "-o", "file", url]].concat();
                let results = [true, false].map(|with_agent| {
                    let _ = fs::remove_file(&file);
                    if let Some(old) = old {
                        fs::write(&file, old).unwrap();
                    }
                    let ran = match with_agent {
                        true => curl_with_agent(&agent, dir.path(), &args),
                        false => common::curl_in(dir.path(), &args),
                    };
                    let meters = ran.stderr.contains("Xferd");
                    let error = ran.stderr.lines().last().filter(|line| line.starts_with("curl: "));
                    let error = error.and_then(|line| line.split(" after ").next()).map(str::to_owned);
                    (ran.code, ran.stdout, meters, error, fs::read(&file).ok())
                });
                assert_eq!(results[0], results[1], "{args:?} over {old:?}");
            }
        }
    }
    let calls = agent.status("calls");
    curl_with_agent(&agent, dir.path(), &["-s", "-X", "POST", &origin.url("/echo")]).ok();
    assert_eq!((calls, agent.status("calls")), (Some(36), calls));
}

#[test]
fn download_as_curl_completes_when_agent_is_killed() {
    let agent = TestAgentDirectory::new();
    let dir = tempfile::tempdir().unwrap();
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nETag: \"a\"\r\n\r\n";
    let half = vec![ScriptStep::ReadHead, ScriptStep::send(format!("{head}one")), ScriptStep::ReadToEnd];
    let peer = H1Peer::start(vec![half, vec![ScriptStep::ReadHead, ScriptStep::send(format!("{head}onetwo"))]]);
    let mut command = program(HAUL);
    command.args(["curl", "-q", "-s", "-o", "file", &peer.url("/")]).env("HAUL_AGENT", agent.socket());
    let call = common::RunningCommand::start(command.current_dir(dir.path()));
    eventually("the first half arrives", || fs::read(dir.path().join("file")).is_ok_and(|bytes| bytes == b"one"));
    kill_process(agent.pid().unwrap(), Signal::KILL).unwrap();
    assert_eq!(call.wait().code, 0);
    assert_eq!(fs::read(dir.path().join("file")).unwrap(), b"onetwo");
}

/// Returns the arguments of a haul command line of the guide, with the values of its variables.
fn arguments_of(line: &str, values: &[(&str, &str)]) -> Vec<String> {
    let line = values.iter().fold(line.replace(['"', '\\'], ""), |line, (name, value)| line.replace(name, value));
    let words = line.split_ascii_whitespace().skip_while(|word| !word.ends_with("haul")).skip(1);
    words.take_while(|word| *word != "#").map(str::to_owned).collect()
}

#[test]
fn guide_lines_of_package_managers_share_the_connection() {
    let origin = FaultyOrigin::builder().start().unwrap();
    let url = origin.url(&origin.serve("package", FaultPlan { size: SIZE, ..FaultPlan::default() }));
    let agent = TestAgentDirectory::new();
    let dir = tempfile::tempdir().unwrap();
    let page = "docs/package-managers.md";
    let line = |of: &str| {
        let block = block_with(page, of);
        block.lines().find(|line| line.contains(of)).unwrap().to_owned()
    };
    let lines = [line("XferCommand"), line("FETCHCOMMAND="), line("RESUMECOMMAND="), line("-N --agent=")];
    for (number, line) in lines.iter().enumerate() {
        let name = format!("file{number}");
        let path = dir.path().join(&name);
        let values = [
            ("%o", path.to_str().unwrap()),
            ("%u", &*url),
            ("${DISTDIR}", dir.path().to_str().unwrap()),
            ("${FILE}", &*name),
            ("${URI}", &*url),
            ("--agent=/var/run/haul/agent", ""),
        ];
        let mut args = arguments_of(line, &values);
        if !line.contains("-o") {
            args.extend(["-o".to_owned(), path.to_str().unwrap().to_owned(), url.clone()]);
        }
        let mut command = program(HAUL);
        assert_eq!(run(command.args(&args).env("HAUL_AGENT", agent.socket())).text(), "", "{args:?}");
        assert!(fs::read(&path).unwrap() == content(SIZE), "{args:?}");
    }
    assert_eq!(agent.status("calls"), Some(4));
    assert_eq!(origin.connections(), 1);
}

#[test]
fn continue_at_uses_agent_for_new_or_empty_files() {
    let origin = FaultyOrigin::builder().start().unwrap();
    let url = origin.url(&origin.serve("file", FaultPlan { size: SIZE, ..FaultPlan::default() }));
    let agent = TestAgentDirectory::new();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    let args = ["-s", "-C", "-", "-o", file.to_str().unwrap(), &url];
    for (old, calls) in [(None, 1), (Some(0), 2), (Some(1000), 2)] {
        let _ = fs::remove_file(&file);
        if let Some(old) = old {
            fs::write(&file, &content(SIZE)[..old]).unwrap();
        }
        assert_eq!(agent.run(&args).text(), "");
        assert!(fs::read(&file).unwrap() == content(SIZE), "{old:?}");
        assert_eq!(agent.status("calls"), Some(calls), "{old:?}: this process continues a file");
    }
    // A failed transfer leaves what arrived for the next call, and an error leaves no file.
    let cut = FaultPlan { size: SIZE, breaks: vec![BodyBreak::close_at(1000)], ..FaultPlan::default() };
    let cut = origin.url(&origin.serve("cut", cut));
    for (url, code) in [(&*cut, 18), (&*origin.url("/none"), 22)] {
        let results = [true, false].map(|with_agent| {
            let _ = fs::remove_file(&file);
            let args = ["-s", "--retry", "0", "-C", "-", "-o", file.to_str().unwrap(), url];
            let ran = if with_agent { agent.run(&args) } else { run(&mut common::haul(args)) };
            (ran.code, fs::read(&file).ok().map(|bytes| bytes.len()))
        });
        assert_eq!(results[0], results[1], "{url}");
        assert_eq!(results[0].0, code);
    }
}
