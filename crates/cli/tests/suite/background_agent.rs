//! Tests of the agent: connections that several calls share, the checks of its socket, and calls
//! that continue without it when it dies.

use crate::common;

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use common::agent::{TestAgentDirectory, is_zombie};
use common::{HAUL, REFUSED, RunningCommand, eventually, haul, origin, program, run, skipped};
use rustix::process::{Signal, kill_process};
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;

#[test]
fn agent_calls_share_one_connection_per_scheme() {
    let origin = origin();
    let agent = TestAgentDirectory::new();
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca.pem");
    fs::write(&ca, origin.ca_pem()).unwrap();
    for number in 0..10 {
        let path = format!("/small/{number}");
        assert_eq!(agent.run(&["-s", &origin.url(&path)]).text(), format!("small {number}\n"));
    }
    assert_eq!(origin.connections(), 1);
    let ca = ca.to_str().unwrap();
    for number in 0..10 {
        let path = format!("/small/{number}");
        assert_eq!(agent.run(&["-s", "--cacert", ca, &origin.https_url(&path)]).text(), format!("small {number}\n"));
    }
    assert_eq!(origin.connections(), 2);
    assert_eq!(agent.status("calls"), Some(20));
    // A call without certificate checks must not share a connection with one that checks.
    assert_eq!(agent.run(&["-s", "-k", &origin.https_url("/small")]).text(), "small\n");
    assert_eq!(origin.connections(), 3);
    let refused = agent.run(&["-s", &origin.https_url("/small")]);
    assert_eq!(refused.code, 60, "a warm connection opens no door: {}", refused.stderr);
}

#[test]
fn agent_bodies_arrive_whole_at_every_output() {
    let origin = origin();
    let agent = TestAgentDirectory::new();
    let dir = tempfile::tempdir().unwrap();
    let body = |bytes: usize| origin.pattern().slice(0, bytes);
    for bytes in [0, 1, 65_536, 147_456, 147_457, 400_000, 5_000_000] {
        for kind in ["bytes", "chunked", "close"] {
            let url = origin.url(&format!("/{kind}/{bytes}"));
            let shown = |ran: common::CommandOutput| ran.ok();
            assert!(shown(agent.run(&["-s", &url])) == body(bytes), "{url} to a pipe");
            let file = dir.path().join("file");
            assert_eq!(agent.run(&["-s", "-o", file.to_str().unwrap(), &url]).text(), "");
            assert!(fs::read(&file).unwrap() == body(bytes), "{url} to a file");
            let redirected = dir.path().join("redirected");
            let mut command = agent.haul(&["-s", &url]);
            let status = command.stdout(fs::File::create(&redirected).unwrap()).status().unwrap();
            assert!(status.success());
            assert!(fs::read(&redirected).unwrap() == body(bytes), "{url} to a file as standard output");
        }
    }
    let coded = agent.run(&["-s", "--compressed", &origin.url("/gzip/300000")]).ok();
    assert!(coded == testkit::byte_pattern::compressible_text(origin.site().seed(), 300_000), "decoded by the agent");
}

/// Tomcat sends weak validators, and closes a connection with ENHANCE_YOUR_CALM after a few
/// RST_STREAM frames. So the agent must not cancel HTTP/2 streams.
#[test]
fn agent_keeps_connection_when_validators_are_weak() {
    let origin = origin();
    let agent = TestAgentDirectory::new();
    for bytes in [100_000, 147_457, 400_000] {
        for _ in 0..3 {
            let body = agent.run(&["-s", &origin.url(&format!("/weak/{bytes}"))]).ok();
            assert!(body == origin.pattern().slice(0, bytes), "{bytes} bytes");
        }
    }
    assert_eq!(origin.connections(), 1);
}

#[test]
fn agent_output_and_errors_match_direct_runs() {
    let origin = origin();
    let agent = TestAgentDirectory::new();
    let format =
        "%{http_code} %{size_download} %{num_redirects} %{url_effective} %{content_type} %{http_version} %{exitcode}\n";
    let redirects = ["/redirect/302?to=/small", "/redirect/302?to=/status/404"];
    for path in ["/small", "/status/404", "/chain/3", "/bytes/500000", "/status/204"].into_iter().chain(redirects) {
        for fail in ["--fail", "--no-fail"] {
            let args = ["-s", "-S", fail, "-w", format, &origin.url(path)];
            let (with, without) = (agent.run(&args), run(&mut haul(args)));
            assert_eq!(
                (with.code, &with.stdout, &with.stderr),
                (without.code, &without.stdout, &without.stderr),
                "{path}"
            );
        }
    }
    let (with, without) = (agent.run(&["-s", "-S", REFUSED]), run(&mut haul(["-s", "-S", REFUSED])));
    assert_eq!((with.code, with.stderr), (without.code, without.stderr));
}

#[test]
fn ulimit_of_caller_does_not_limit_the_agent() {
    let (origin, agent, dir) = (origin(), TestAgentDirectory::new(), tempfile::tempdir().unwrap());
    let file = dir.path().join("file");
    let args = |path: &str| ["-s".into(), "-S".into(), "-o".into(), file.display().to_string(), origin.url(path)];
    let limited = |path: &str| {
        let mut command = program("sh");
        command.args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$0\" \"$@\"", HAUL]);
        run(command.arg(agent.option()).args(args(path)))
    };
    limited("/small").ok();
    run(agent.haul(&[]).args(args("/bytes/2000000"))).ok();
    assert!(fs::read(&file).unwrap() == origin.pattern().slice(0, 2_000_000), "the agent is under no call's limit");
    let ran = limited("/bytes/100000");
    assert!(ran.failed(23).contains("File too large"), "no call is beyond its own: {}", ran.stderr);
}

#[test]
fn concurrent_agent_calls_share_one_http2_connection() {
    let origin = Origin::builder().http2(100).start().unwrap();
    let agent = TestAgentDirectory::new();
    // The first makes the connection.
    let url = origin.https_url("/delay/300/small");
    agent.run(&["-s", "-k", &origin.https_url("/small")]).ok();
    let calls: Vec<RunningCommand> =
        (0..8).map(|_| RunningCommand::start(&mut agent.haul(&["-s", "-k", &url]))).collect();
    for call in calls {
        assert_eq!(call.wait().text(), "small\n");
    }
    assert_eq!(origin.connections(), 1);
    assert!(origin.peak_requests() > 1, "they were under way together");
}

#[test]
fn fifty_concurrent_calls_start_one_agent() {
    let origin = origin();
    let agent = TestAgentDirectory::new();
    let url = origin.url("/small");
    let calls: Vec<RunningCommand> = (0..50).map(|_| RunningCommand::start(&mut agent.haul(&["-s", &url]))).collect();
    for call in calls {
        assert_eq!(call.wait().text(), "small\n");
    }
    assert_eq!(agent.status("calls"), Some(50), "all went by the one that is there");
}

#[test]
fn agent_starts_in_an_empty_environment() {
    let origin = origin();
    let agent = TestAgentDirectory::new();
    for _ in 0..2 {
        let mut command = program("env");
        command.args([
            "-i",
            "HOME=/var/empty",
            "PATH=/bin:/usr/bin",
            HAUL,
            "-s",
            &agent.option(),
            &origin.url("/small"),
        ]);
        assert_eq!(run(&mut command).text(), "small\n");
    }
    assert_eq!(origin.connections(), 1);
    let mut command = program("env");
    command.args(["-i", HAUL, "-s", "-S", "--agent", &origin.url("/small")]);
    let ran = run(&mut command);
    assert!(ran.failed(2).contains("XDG_RUNTIME_DIR"), "{}", ran.stderr);
    // The variable does as the option.
    let mut command = haul(["-s", &origin.url("/small")]);
    command.env("HAUL_AGENT", agent.socket());
    assert_eq!(run(&mut command).text(), "small\n");
    assert_eq!(origin.connections(), 1);
    let runtime = tempfile::tempdir().unwrap();
    let mut command = haul(["-s", "--agent", "--agent-idle", "1", &origin.url("/small")]);
    command.env("XDG_RUNTIME_DIR", runtime.path());
    assert_eq!(run(&mut command).text(), "small\n");
    let mode = |path: &str| fs::symlink_metadata(runtime.path().join(path)).unwrap().mode() & 0o777;
    assert_eq!((mode("haul"), mode("haul/agent")), (0o700, 0o600));
    eventually("it ends when it was idle", || !runtime.path().join("haul/agent").exists());
}

/// OpenBSD does not report the path of a process, and pkg_add calls its fetch program by its name
/// alone.
#[test]
fn agent_starts_for_haul_called_by_bare_name() {
    let origin = origin();
    let agent = TestAgentDirectory::new();
    let directory = std::path::Path::new(HAUL).parent().unwrap();
    for _ in 0..2 {
        let mut command = program("env");
        command.args(["-i", &format!("PATH={}", directory.display()), "haul", "ftp", &agent.option()]);
        command.args(["-o", "-", &origin.url("/small")]);
        assert_eq!(run(&mut command).text(), "small\n");
    }
    assert_eq!(origin.connections(), 1);
}

/// haul is called by its name alone, and `PATH` is not set. To start the agent, haul looks for its
/// own executable in the directories where packages are installed.
#[test]
fn program_called_without_any_environment_starts_the_agent() {
    let origin = origin();
    let agent = TestAgentDirectory::new();
    let script = "mount --bind \"$1\" /usr/local/bin && shift && exec -c -a haul /usr/local/bin/haul \"$@\"";
    let directory = std::path::Path::new(HAUL).parent().unwrap();
    let in_namespace = |args: &[&str]| {
        let mut command = program("unshare");
        command.args(["--mount", "bash", "-c", script, "x"]).arg(directory).args(args);
        run(&mut command)
    };
    if in_namespace(&["--version"]).code != 0 {
        return skipped("an agent without PATH: no directory may be mounted here");
    }
    for _ in 0..2 {
        let option = agent.option();
        let ran = in_namespace(&["ftp", &option, "-o", "-", &origin.url("/small")]);
        assert_eq!(ran.text(), "small\n");
    }
    assert_eq!(origin.connections(), 1);
}

/// Runs haul with an agent that it must refuse to use. Asserts that haul prints the reason `why`,
/// and fetches the URL without the agent.
#[track_caller]
fn is_refused(agent: &TestAgentDirectory, origin: &Origin, why: &str) {
    let before = origin.connections();
    let ran = agent.run(&[&origin.url("/small")]);
    assert_eq!((ran.code, &ran.stdout[..]), (0, &b"small\n"[..]));
    assert!(ran.stderr.contains("the agent is not used") && ran.stderr.contains(why), "{}", ran.stderr);
    assert_eq!(origin.connections(), before + 1);
    let asked = agent.run(&["--agent-status"]);
    assert_eq!(asked.code, 2, "{}", asked.stderr);
}

#[test]
fn agent_refuses_directory_open_to_others() {
    let origin = origin();
    for mode in [0o770, 0o750, 0o701, 0o777] {
        let agent = TestAgentDirectory::new();
        fs::set_permissions(agent.dir(), Permissions::from_mode(mode)).unwrap();
        is_refused(&agent, &origin, "0700");
    }
}

#[test]
fn agent_refuses_symlinked_directory_or_socket() {
    let origin = origin();
    let agent = TestAgentDirectory::new();
    let real = tempfile::tempdir_in(agent.dir()).unwrap();
    let link = agent.dir().join("link");
    symlink(real.path(), &link).unwrap();
    let ran = run(&mut haul([&format!("--agent={}", link.join("agent").display()), &origin.url("/small")]));
    assert_eq!(ran.stdout, b"small\n");
    assert!(ran.stderr.contains("is no directory"), "{}", ran.stderr);
    let other = agent.dir().join("other");
    let _listener = UnixListener::bind(&other).unwrap();
    symlink(&other, agent.socket()).unwrap();
    is_refused(&agent, &origin, "is no socket");
    fs::remove_file(agent.socket()).unwrap();
    fs::write(agent.socket(), "x").unwrap();
    is_refused(&agent, &origin, "is no socket");
    assert_eq!(fs::read(agent.socket()).unwrap(), b"x", "and left alone");
}

#[test]
fn agent_refuses_shared_socket_and_replaces_stale_one() {
    let origin = origin();
    let agent = TestAgentDirectory::new();
    let listener = UnixListener::bind(agent.socket()).unwrap();
    fs::set_permissions(agent.socket(), Permissions::from_mode(0o666)).unwrap();
    is_refused(&agent, &origin, "0600");
    drop(listener);
    fs::set_permissions(agent.socket(), Permissions::from_mode(0o600)).unwrap();
    let before = origin.connections();
    for _ in 0..2 {
        agent.run(&["-s", &origin.url("/small")]).ok();
    }
    assert_eq!((origin.connections(), agent.status("calls")), (before + 1, Some(2)));
}

#[test]
fn agent_refuses_directory_or_socket_of_another_user() {
    if !rustix::process::geteuid().is_root() {
        return skipped("another user's directory and socket: only root can make them");
    }
    let origin = origin();
    let agent = TestAgentDirectory::new();
    std::os::unix::fs::chown(agent.dir(), Some(65534), None).unwrap();
    is_refused(&agent, &origin, "belongs to another user");
    std::os::unix::fs::chown(agent.dir(), Some(0), None).unwrap();
    let listener = UnixListener::bind(agent.socket()).unwrap();
    fs::set_permissions(agent.socket(), Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::chown(agent.socket(), Some(65534), None).unwrap();
    is_refused(&agent, &origin, "belongs to another user");
    drop(listener);
    fs::remove_file(agent.socket()).unwrap();

    // An agent of another user listens behind our path: the listener's user counts, not the owner
    // of the path.
    let Some(setpriv) = common::installed("setpriv", "an agent that runs as another user") else { return };
    agent.run(&["-s", &origin.url("/small")]).ok();
    let connections = origin.connections();
    let foreign = |args: &[&str]| {
        let mut command = program(setpriv);
        command.args(["--reuid", "65534", "--clear-groups", HAUL]).args(args);
        run(&mut command)
    };
    if foreign(&["--version"]).code != 0 {
        return skipped("a call of another user: this program's directory is closed to it");
    }
    fs::set_permissions(agent.dir(), Permissions::from_mode(0o711)).unwrap();
    fs::set_permissions(agent.socket(), Permissions::from_mode(0o666)).unwrap();
    let ran = foreign(&[&agent.option(), &origin.url("/small")]);
    assert_eq!(ran.stdout, b"small\n");
    assert!(ran.stderr.contains("the agent is not used"), "{}", ran.stderr);
    assert_eq!(origin.connections(), connections + 1, "not by the agent's");
    // The agent also refuses other users itself.
    let script = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.settimeout(20); \
                  s.sendall(b'\\0\\0\\0\\0\\x02'); print(len(s.recv(9)))";
    if common::installed("python3", "a foreign peer of the agent").is_some() {
        let mut command = program(setpriv);
        let socket = agent.socket();
        command.args(["--reuid", "65534", "--clear-groups", "python3", "-c", script]).arg(&socket);
        let ran = run(&mut command);
        assert!(ran.code != 0 || ran.stdout == b"0\n", "it was answered: {:?}", ran);
        let mut command = program("python3");
        command.args(["-c", script]).arg(&socket);
        assert_eq!(run(&mut command).text(), "9\n", "its own user is");
    }
    fs::set_permissions(agent.dir(), Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(agent.socket(), Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn downloads_complete_when_the_agent_is_killed() {
    let origin = origin();
    let agent = TestAgentDirectory::new();
    let calls = std::env::var("HAUL_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(60_u32);
    let dir = tempfile::tempdir().unwrap();
    let mut random = testkit::rng::Rng::new(u64::from(calls));
    let mut kills = 0;
    for number in 0..calls {
        let bytes = [10, 3_000, 100_000, 200_000, 2_000_000_usize][random.below(5) as usize];
        let coded = number % 7 == 3;
        let url = origin.url(&format!("/{}/{bytes}", if coded { "text" } else { "bytes" }));
        let file = dir.path().join("file");
        let mut args = vec!["-s", "-S"];
        if number % 3 == 0 {
            args.extend(["-o", file.to_str().unwrap()]);
        }
        if coded {
            args.push("--compressed");
        }
        args.push(&url);
        let pid = agent.pid();
        let call = RunningCommand::start(&mut agent.haul(&args));
        thread::sleep(Duration::from_micros(random.below(6_000)));
        if let Some(pid) = pid
            && kill_process(pid, Signal::KILL).is_ok()
        {
            kills += 1;
        }
        let ran = call.wait();
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "call {number}: {url}");
        let got = if number % 3 == 0 { fs::read(&file).unwrap() } else { ran.stdout };
        let whole = if coded {
            testkit::byte_pattern::compressible_text(origin.site().seed(), bytes)
        } else {
            origin.pattern().slice(0, bytes)
        };
        assert!(got == whole, "call {number}: {url}: {} bytes", got.len());
        if let Some(pid) = pid {
            eventually("the killed one is gone", || is_zombie(pid) || kill_process(pid, Signal::KILL).is_err());
        }
        // Every other one finds a warm agent that it then loses.
        agent.run(&["-s", &origin.url("/small")]).ok();
    }
    assert!(kills > calls / 2, "only {kills} kills");
}

#[test]
fn idle_agent_is_small_and_never_wakes() {
    let origin = origin();
    let agent = TestAgentDirectory::new();
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca.pem");
    fs::write(&ca, origin.ca_pem()).unwrap();
    for _ in 0..5 {
        agent.run(&["-s", &origin.url("/bytes/3000000")]).ok();
        agent.run(&["-s", "--cacert", ca.to_str().unwrap(), &origin.https_url("/bytes/3000000")]).ok();
    }
    let Some(pid) = agent.pid() else { panic!("no agent") };
    let read = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", pid.as_raw_nonzero())).unwrap();
    // Clean pages are those of the program's file, whose number depends on the build.
    let private: u64 = read("smaps_rollup")
        .lines()
        .filter(|line| line.starts_with("Private_Dirty:"))
        .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
        .sum();
    assert!(private <= 6 << 10, "{private} KiB of its own");
    let switches = || -> u64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())).unwrap();
        let of = |task: fs::DirEntry| -> u64 {
            let status = fs::read_to_string(task.path().join("status")).unwrap();
            let lines = status.lines().filter(|line| line.starts_with("voluntary_ctxt_switches"));
            lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum()
        };
        tasks.map(|task| of(task.unwrap())).sum()
    };
    let mut before = switches();
    // The last call's connection may still be closing.
    eventually("it comes to rest", || {
        thread::sleep(Duration::from_millis(200));
        let now = switches();
        std::mem::replace(&mut before, now) == now
    });
    thread::sleep(Duration::from_secs(3));
    assert_eq!(switches(), before, "it woke up though nobody asked");
}

#[test]
fn killing_the_caller_cancels_its_request() {
    let origin = origin();
    let agent = TestAgentDirectory::new();
    let mut command = agent.haul(&["-s", &origin.url("/delay/60000/small")]);
    let call = RunningCommand::start(command.stdin(Stdio::null()));
    eventually("it is under way", || agent.status("running") == Some(1) && origin.requests() == 1);
    kill_process(call.pid(), Signal::KILL).unwrap();
    call.wait();
    eventually("the agent lets go of it", || agent.status("running") == Some(0));
    eventually("so the server sees the end of it", || origin.open_connections() == 0);
}

/// The reader of the output stops after 70,000 bytes, while the first range is still being
/// received. The agent receives the rest of the range, and uses the connection again.
#[test]
fn agent_keeps_connection_if_output_closes_within_range() {
    const OPENING: usize = 147_456;
    let head = format!(
        "HTTP/1.1 206 Partial Content\r\nETag: \"a\"\r\nContent-Range: bytes 0-{}/200000\r\nContent-Length: {OPENING}\r\n\r\n",
        OPENING - 1
    );
    let opening = [ScriptStep::ReadHead, ScriptStep::send(head), ScriptStep::send(vec![b'x'; 70_000])];
    let rest = [ScriptStep::Await(1), ScriptStep::send(vec![b'x'; OPENING - 70_000])];
    let next = [ScriptStep::ReadHead, ScriptStep::send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")];
    let agent = TestAgentDirectory::new();
    let stop_early = |peer: &H1Peer| {
        let script = "\"$GET\" \"$1\" -s -q -N \"$2\" | head -c 70000 | wc -c";
        let mut command = program("bash");
        command.args(["-c", script, "x", &agent.option(), &peer.url("/")]).env("GET", HAUL);
        assert_eq!(run(&mut command).text().trim(), "70000");
    };

    let peer = H1Peer::start(vec![[&opening[..], &rest, &next].concat()]);
    stop_early(&peer);
    peer.release();
    eventually("the rest of it is read", || agent.status("running") == Some(0));
    assert_eq!(agent.run(&["-s", &peer.url("/")]).text(), "ok");
    assert_eq!(agent.status("connections"), Some(1));

    // A rest that does not come is not waited for, and of a long response nothing more is read.
    let peer = H1Peer::start(vec![[&opening[..], &[ScriptStep::ReadToEnd]].concat()]);
    stop_early(&peer);
    eventually("the agent lets go of it", || agent.status("running") == Some(0));
    assert!(peer.finished(1));
    let long = ScriptStep::send("HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 1000000\r\n\r\n");
    let peer = H1Peer::start(vec![vec![
        ScriptStep::ReadHead,
        long,
        ScriptStep::send(vec![b'x'; 70_000]),
        ScriptStep::ReadToEnd,
    ]]);
    stop_early(&peer);
    assert!(peer.finished(1));
}

#[test]
fn agent_keeps_connection_if_output_closes_early() {
    let origin = origin();
    let agent = TestAgentDirectory::new();
    for bytes in [100_000, 1_000_000, 20_000_000] {
        let script = "\"$GET\" \"$1\" -s -q -N -L \"$2\" | head -c 70000 | wc -c";
        let mut command = program("bash");
        command.args(["-c", script, "x", &agent.option(), &origin.url(&format!("/bytes/{bytes}"))]).env("GET", HAUL);
        assert_eq!(run(&mut command).text().trim(), "70000");
        eventually("what was under way is read", || agent.status("running") == Some(0));
    }
    assert_eq!(agent.run(&["-s", &origin.url("/small")]).text(), "small\n");
    assert_eq!(origin.connections(), 1);
    let sent: Vec<_> = origin.log().iter().map(|request| request.header("range").map(str::to_owned)).collect();
    assert_eq!(sent.iter().flatten().count(), 4, "each call asked for a beginning, and none for the rest: {sent:?}");
}

#[test]
fn agent_is_used_for_output_to_dev_null() {
    let origin = origin();
    let agent = TestAgentDirectory::new();
    for _ in 0..3 {
        let ran =
            agent.run(&["-s", "-o", "/dev/null", "-w", "%{http_code} %{size_download}", &origin.url("/bytes/70000")]);
        assert_eq!(ran.text(), "200 70000");
    }
    assert_eq!((origin.connections(), agent.status("calls")), (1, Some(3)));
}

#[test]
fn agent_carries_no_unrepeatable_request() {
    let origin = origin();
    let agent = TestAgentDirectory::new();
    agent.run(&["-s", "-X", "PUT", &origin.url("/echo")]).ok();
    assert_eq!(agent.status("calls"), Some(1));
    agent.run(&["-s", "-X", "POST", &origin.url("/echo")]).ok();
    assert_eq!(agent.status("calls"), Some(1), "this process sends the POST");
}

#[test]
fn agent_saves_error_body_with_fail_with_body() {
    let origin = origin();
    let agent = TestAgentDirectory::new();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    let url = origin.url("/status/404");
    for remove in [&[][..], &["--remove-on-error"]] {
        let args = [&["-s", "--fail-with-body", "-o", file.to_str().unwrap(), &url], remove].concat();
        let results = [agent.haul(&args), haul(&args)].map(|mut command| {
            let code = run(&mut command).code;
            let content = fs::read(&file).ok();
            let _ = fs::remove_file(&file);
            (code, content)
        });
        assert_eq!(results[0], results[1], "{remove:?}");
        assert_eq!((results[0].0, results[0].1.is_some()), (22, remove.is_empty()));
    }
}

/// Checks that the time limit of 3 s includes at least 1 s of an agent that is then killed. The
/// server answers the repeated request after 2.5 s, so the call must time out.
#[test]
fn time_limit_includes_the_time_of_a_killed_agent() {
    let agent = TestAgentDirectory::new();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    for output in [&[][..], &["-o", file.to_str().unwrap()]] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let call = RunningCommand::start(&mut agent.haul(&[&["-s", "-m", "3", &url], output].concat()));
        let mut first = listener.accept().unwrap().0;
        first.read_exact(&mut [0]).unwrap();
        thread::sleep(Duration::from_secs(1));
        kill_process(agent.pid().unwrap(), Signal::KILL).unwrap();
        let mut second = listener.accept().unwrap().0;
        let server = thread::spawn(move || {
            thread::sleep(Duration::from_millis(2_500));
            let _ = second.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        });
        assert_eq!(call.wait().code, 28, "{output:?}");
        server.join().unwrap();
    }
}
