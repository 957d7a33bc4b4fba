//! Tests of `--warc`: the records of an archive, its files, and the effects of a full disk or a
//! kill. The archives are read with testkit's reader, which checks their digests.

use crate::common;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use common::{
    CommandOutput, HAUL, RunningCommand, bash, can_trace, eventually, haul, list, names, origin, program, received,
    reply_steps, run, run_haul,
};
use rustix::process::{Signal, kill_process};
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::http3::Http3Settings;
use testkit::origin::Origin;
use testkit::warc_reader::{WarcRecord, read, read_prefix};

/// Runs haul in `dir` with `--warc a.warc` and these arguments.
fn archived(dir: &Path, args: &[&str]) -> CommandOutput {
    run(haul(["-sS", "--warc", "a.warc"].iter().chain(args)).current_dir(dir))
}

/// Reads an archive, and asserts that it begins with a warcinfo record. Returns the other records.
#[track_caller]
fn records(archive: &Path) -> Vec<WarcRecord> {
    let records = read(&fs::read(archive).unwrap()).unwrap_or_else(|fault| panic!("{}: {fault}", archive.display()));
    let name = archive.file_name().unwrap().to_str();
    assert_eq!((records[0].field("WARC-Type"), records[0].field("WARC-Filename")), (Some("warcinfo"), name));
    assert!(records[0].block.starts_with(b"software: haul/"));
    assert!(records.iter().all(|record| record.version == "WARC/1.1"));
    records[1..].to_vec()
}

/// Asserts that the records are pairs of a request and its response. Returns the pairs.
#[track_caller]
fn exchanges(archive: &Path) -> Vec<(WarcRecord, WarcRecord)> {
    let records = records(archive);
    let pair = |pair: &[WarcRecord]| {
        let [request, response] = pair else { panic!("a record is alone: {pair:?}") };
        assert_eq!(request.field("WARC-Type"), Some("request"));
        assert!(matches!(response.field("WARC-Type"), Some("response" | "revisit")));
        assert_eq!(request.field("WARC-Concurrent-To"), response.field("WARC-Record-ID"));
        assert_eq!(response.field("WARC-Concurrent-To"), request.field("WARC-Record-ID"));
        for name in ["WARC-Target-URI", "WARC-Date", "WARC-IP-Address"] {
            assert_eq!(request.field(name), response.field(name), "{name}");
        }
        (request.clone(), response.clone())
    };
    records.chunks(2).map(pair).collect()
}

/// Returns the target URI and the status of each exchange.
#[track_caller]
fn statuses(archive: &Path) -> Vec<(String, String)> {
    let status = |(request, response): (WarcRecord, WarcRecord)| {
        let head = String::from_utf8_lossy(response.message().0).into_owned();
        (request.field("WARC-Target-URI").unwrap().to_owned(), head[9..12].to_owned())
    };
    exchanges(archive).into_iter().map(status).collect()
}

#[test]
fn archive_records_contain_the_transmitted_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let reply = "HTTP/1.1 200 Fine\r\nX-A:  1 \r\nx-a: 2\r\nTransfer-Encoding: chunked\r\n\r\n\
                 5;name=value\r\nhello\r\n00A\r\n, archive!\r\n0\r\nX-Trailer: 1\r\n\r\n";
    for send in [ScriptStep::send(reply), ScriptStep::send_bytewise(reply)] {
        let server = H1Peer::start(vec![vec![ScriptStep::ReadHead, send]]);
        let archive = dir.path().join("a.warc");
        assert_eq!(archived(dir.path(), &[&server.url("/p?q=1#f")]).text(), "hello, archive!");
        let [(request, response)] = &exchanges(&archive)[..] else { panic!("one exchange") };
        assert_eq!(request.block, server.received(0));
        assert_eq!(String::from_utf8_lossy(&response.block), reply);
        for record in [request, response] {
            assert_eq!(record.field("WARC-Target-URI"), Some(&*server.url("/p?q=1")));
            assert_eq!(record.field("WARC-IP-Address"), Some("127.0.0.1"));
            assert_eq!(record.field("WARC-Protocol"), Some("http/1.1"));
            assert!(record.field("WARC-Date").is_some_and(|date| date.len() == 27 && date.ends_with('Z')));
            assert!(record.field("WARC-Truncated").is_none() && record.field("WARC-Block-Digest").is_some());
        }
        assert_eq!(request.field("Content-Type"), Some("application/http; msgtype=request"));
        assert_eq!(response.field("Content-Type"), Some("application/http; msgtype=response"));
        assert!(response.field("WARC-Payload-Digest").is_some());
        fs::remove_file(archive).unwrap();
    }
}

#[test]
fn archive_omits_the_address_of_a_proxy() {
    let dir = tempfile::tempdir().unwrap();
    let proxy = H1Peer::start(vec![reply_steps("200 OK", "ok")]);
    archived(dir.path(), &["-x", &proxy.url(""), "http://origin.test/"]).ok();
    let [(request, response)] = &exchanges(&dir.path().join("a.warc"))[..] else { panic!("one exchange") };
    assert_eq!(request.field("WARC-Target-URI"), Some("http://origin.test/"));
    assert_eq!(response.field("WARC-IP-Address"), None);
}

#[test]
fn compressed_archive_has_one_gzip_member_per_record() {
    let dir = tempfile::tempdir().unwrap();
    let origin = origin();
    let urls: Vec<String> = ["/bytes/10", "/bytes/2000000", "/text/600000", "/chunked/300000", "/status/204"]
        .map(|path| origin.url(path))
        .into();
    for name in ["a.warc", "a.warc.gz"] {
        let warc = dir.path().join(name);
        let args = ["-sS", "--warc", name, "-o", "/dev/null", "--no-parallel", "--no-compressed"];
        let ran = run(haul(args.iter().copied().chain(urls.iter().map(|url| url.as_str()))).current_dir(dir.path()));
        ran.ok();
        let exchanges = exchanges(&warc);
        let given: Vec<_> = exchanges.iter().map(|(request, _)| request.field("WARC-Target-URI").unwrap()).collect();
        assert_eq!(given, urls);
        assert_eq!(exchanges[1].1.message().1.len(), 2_000_000);
        let whole = fs::read(&warc).unwrap();
        for (request, response) in &exchanges {
            for record in [request, response] {
                assert_eq!(read(&whole[record.offset..]).unwrap()[0].block, record.block);
            }
        }
    }
    assert_eq!(names(dir.path()), ["a.warc", "a.warc.gz"]);
}

#[test]
fn archive_omits_credentials_without_warc_secrets() {
    let dir = tempfile::tempdir().unwrap();
    let archive = dir.path().join("a.warc");
    let server = H1Peer::always(reply_steps("200 OK", "x"));
    let url = server.url("/").replace("http://", "http://nobody7:secret1@");
    let args = ["-b", "a=secret2", "-H", "X-Api-Key: secret3", "-H", "X-Author: me", &url];
    archived(dir.path(), &args).ok();
    let text = String::from_utf8(fs::read(&archive).unwrap()).unwrap();
    assert!(!text.contains("secret") && !text.contains("Authorization") && !text.contains("nobody7"), "{text}");
    assert!(text.contains("X-Author: me") && text.contains(&format!("WARC-Target-URI: {}\r\n", server.url("/"))));
    fs::remove_file(&archive).unwrap();
    archived(dir.path(), &[&["--warc-secrets"], &args[..]].concat()).ok();
    let kept = exchanges(&archive);
    assert_eq!(kept[0].0.block, server.received(1));
    assert!(received(&server, 1).contains("secret2") && received(&server, 1).contains("Authorization: Basic"));
    assert_eq!(kept[0].0.field("WARC-Target-URI"), Some(&*server.url("/")));
    assert_eq!(fs::metadata(&archive).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn redirects_challenges_and_retries_are_archived() {
    let dir = tempfile::tempdir().unwrap();
    let origin = origin();
    let challenge = "401 Unauthorized\r\nWWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\"";
    let secured = H1Peer::start(vec![reply_steps(challenge, "who?"), reply_steps("200 OK", "you")]);
    let (redirect, flaky) = (origin.url("/redirect/302?to=/small"), origin.url("/flaky/2/small/7"));
    let both = ["--no-parallel", "-L", "--retry-delay", "0", &redirect, &flaky];
    archived(dir.path(), &both).ok();
    let seen = statuses(&dir.path().join("a.warc"));
    let expected = [
        (redirect, "302"),
        (origin.url("/small"), "200"),
        (flaky.clone(), "503"),
        (flaky.clone(), "503"),
        (flaky, "200"),
    ];
    assert_eq!(seen, expected.map(|(url, status)| (url, status.to_owned())));
    fs::remove_file(dir.path().join("a.warc")).unwrap();
    assert_eq!(archived(dir.path(), &["--digest", "-u", "me:secret", &secured.url("/")]).text(), "you");
    let seen = statuses(&dir.path().join("a.warc"));
    assert_eq!(seen.iter().map(|(_, status)| status.as_str()).collect::<Vec<_>>(), ["401", "200"]);
}

#[test]
fn repeated_payload_becomes_a_revisit_record() {
    let dir = tempfile::tempdir().unwrap();
    let origin = origin();
    let paths = ["/bytes/500000?1", "/bytes/500000?2", "/status/204", "/status/204", "/small", "/small"];
    let urls: Vec<String> = paths.iter().map(|path| origin.url(path)).collect();
    for name in ["a.warc", "a.warc.gz"] {
        let args = ["-sS", "--no-parallel", "--warc", name, "-o", "/dev/null"];
        run(haul(args.iter().copied().chain(urls.iter().map(|url| url.as_str()))).current_dir(dir.path())).ok();
        let exchanges = exchanges(&dir.path().join(name));
        let kinds: Vec<_> = exchanges.iter().map(|(_, response)| response.field("WARC-Type").unwrap()).collect();
        assert_eq!(kinds, ["response", "revisit", "response", "response", "response", "revisit"]);
        let (first, second) = (&exchanges[0].1, &exchanges[1].1);
        assert_eq!(
            second.field("WARC-Profile"),
            Some("http://netpreserve.org/warc/1.1/revisit/identical-payload-digest")
        );
        for (name, own) in [
            ("WARC-Refers-To", "WARC-Record-ID"),
            ("WARC-Refers-To-Target-URI", "WARC-Target-URI"),
            ("WARC-Refers-To-Date", "WARC-Date"),
            ("WARC-Payload-Digest", "WARC-Payload-Digest"),
        ] {
            assert_eq!(second.field(name), first.field(own), "{name}");
        }
        assert_eq!(second.message().1, b"");
        assert!(second.message().0.starts_with(b"HTTP/1.1 200"));
    }
}

#[test]
fn truncated_response_record_gives_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let archive = dir.path().join("a.warc");
    let partial = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc";
    for (end, options, code, reason) in [
        (ScriptStep::Close, &["--retry", "0"][..], 18, "disconnect"),
        (ScriptStep::Reset, &["--retry", "0"], 56, "disconnect"),
        (ScriptStep::Await(1), &["--retry", "0", "-m", "0.2"], 28, "time"),
        (ScriptStep::Close, &["--max-filesize", "4"], 63, "length"),
    ] {
        let server = H1Peer::start(vec![vec![ScriptStep::ReadHead, ScriptStep::send(partial), end]]);
        let ran = archived(dir.path(), &[options, &["-o", "body", &server.url("/")]].concat());
        server.release();
        assert_eq!(ran.code, code, "{}", ran.stderr);
        let [(_, response)] = &exchanges(&archive)[..] else { panic!("one exchange") };
        assert_eq!(response.field("WARC-Truncated"), Some(reason));
        assert!(partial.as_bytes().starts_with(&response.block));
        fs::remove_file(&archive).unwrap();
    }
    let silent = H1Peer::start(vec![vec![ScriptStep::ReadHead]]);
    assert_eq!(archived(dir.path(), &["--retry", "0", &silent.url("/")]).code, 52);
    assert!(records(&archive).is_empty());
}

#[test]
fn archived_error_pages_are_received_completely() {
    let dir = tempfile::tempdir().unwrap();
    let body = "x".repeat(300_000);
    let reply = format!("HTTP/1.0 404 Not Found\r\n\r\n{body}");
    let server = H1Peer::start(vec![vec![ScriptStep::ReadHead, ScriptStep::send(&reply)]]);
    assert_eq!(archived(dir.path(), &[&server.url("/")]).code, 22);
    let [(_, response)] = &exchanges(&dir.path().join("a.warc"))[..] else { panic!("one exchange") };
    assert_eq!((response.block.len(), response.field("WARC-Truncated")), (reply.len(), None));
}

#[test]
fn archive_records_uploads_as_sent() {
    let dir = tempfile::tempdir().unwrap();
    let archive = dir.path().join("a.warc");
    fs::write(dir.path().join("large"), vec![b'u'; 700_000]).unwrap();
    for (options, is_chunked) in [
        (&["-d", "a=1&b=2"][..], false),
        (&["--data-binary", "@large"], false),
        (&["-H", "Transfer-Encoding: chunked", "--expect100-timeout", "0", "-T", "large"], true),
    ] {
        let origin = origin();
        let url = origin.url("/echo");
        archived(dir.path(), &[options, &["-o", "/dev/null", &url]].concat()).ok();
        let exchanges = exchanges(&archive);
        let (head, content) = exchanges.last().unwrap().0.message();
        let head = String::from_utf8_lossy(head).to_lowercase();
        assert_eq!(head.contains("transfer-encoding: chunked"), is_chunked, "{head}");
        match is_chunked {
            true => assert!(content.ends_with(b"\r\n0\r\n\r\n") && content.len() > 700_000),
            false => assert!(head.contains(&format!("content-length: {}\r\n", content.len())), "{head}"),
        }
        fs::remove_file(&archive).unwrap();
    }
}

#[test]
fn archived_http2_and_http3_heads_have_http1_syntax() {
    let dir = tempfile::tempdir().unwrap();
    let origin = Origin::builder().http2(100).http3(Http3Settings::new()).start().unwrap();
    let ca = dir.path().join("ca");
    fs::write(&ca, origin.ca_pem()).unwrap();
    let (secure, plain) = (origin.https_url("/bytes/300000"), origin.url("/echo"));
    let ca = ca.to_str().unwrap();
    for (name, args, protocols) in [
        ("2", &["--http2", "--cacert", ca, &*secure][..], &["h2", "tls/1.3"][..]),
        ("2c", &["--http2-prior-knowledge", "-d", "content", &plain], &["h2c"]),
        ("3", &["--http3-only", "--cacert", ca, &secure], &["h3", "quic/1", "tls/1.3"]),
    ] {
        if name == "3" && !cfg!(feature = "http3") {
            continue;
        }
        let archive = dir.path().join(name);
        let body = run_haul([&["-sS", "--warc", archive.to_str().unwrap()], args].concat()).ok();
        let [(request, response)] = &exchanges(&archive)[..] else { panic!("one exchange") };
        let (head, content) = request.message();
        let head = String::from_utf8_lossy(head);
        let authority = args.last().unwrap().split('/').nth(2).unwrap();
        assert!(head.contains(&format!(" HTTP/1.1\r\nhost: {authority}\r\n")) && !head.contains("\r\n:"), "{head}");
        assert_eq!(content, if name == "2c" { &b"content"[..] } else { b"" });
        let (head, payload) = response.message();
        let head = String::from_utf8_lossy(head);
        assert!(head.starts_with("HTTP/1.1 200 \r\n") && !head.contains("HTTP/2"), "{head}");
        assert!(payload == body);
        for record in [request, response] {
            assert_eq!(record.all("WARC-Protocol").collect::<Vec<_>>(), protocols);
            assert_eq!(record.field("WARC-Cipher-Suite").is_some(), protocols.len() > 1);
        }
    }
}

#[test]
fn archive_records_of_parallel_transfers_never_mix() {
    let dir = tempfile::tempdir().unwrap();
    let origin = Origin::builder().http2(50).start().unwrap();
    let path = |n: u32| match n % 4 {
        0 => format!("/bytes/{}", 260_000 + n),
        1 => format!("/chunked/{}", n * 131),
        2 => format!("/text/{}", n * 17),
        _ => format!("/redirect/302?to=/bytes/{}", 1000 + n),
    };
    let urls: Vec<String> = (0..400).map(|n| origin.url(&path(n))).collect();
    let file = list(dir.path(), "list", &urls);
    for (name, options) in [
        ("a.warc", &[][..]),
        ("a.warc.gz", &["--http2-prior-knowledge"]),
        ("b.warc.gz", &["--max-memory", "1M"]),
        ("c.warc", &["--pipeline", "8"]),
    ] {
        let args = ["-sS", "-L", "--threads", "4", "--warc", name, "-o", "/dev/null", "--input-file"];
        let all = [&args[..], &[file.to_str().unwrap()], options].concat();
        run(haul(all).current_dir(dir.path())).ok();
        let mut seen: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for (request, response) in exchanges(&dir.path().join(name)) {
            let url = request.field("WARC-Target-URI").unwrap().to_owned();
            let line = String::from_utf8_lossy(&request.block).lines().next().unwrap().to_owned();
            assert_eq!(line.split(' ').nth(1), url.strip_prefix(&origin.url("")));
            if response.field("WARC-Type") == Some("response") && url.starts_with(&origin.url("/bytes/")) {
                let size: usize = url.rsplit('/').next().unwrap().parse().unwrap();
                let expected = origin.pattern().slice(0, size);
                let payload = response.message().1;
                assert!(payload.len() == size && (size < 100 || payload[..100] == expected[..100]), "{url}");
            }
            seen.entry(url).or_default().push(0);
        }
        assert!(urls.iter().all(|url| seen.contains_key(url)), "{name}");
    }
}

#[test]
fn max_size_divides_the_archive_into_numbered_files() {
    let dir = tempfile::tempdir().unwrap();
    let origin = origin();
    let urls: Vec<String> = (0..12).map(|n| origin.url(&format!("/bytes/{}", 30_000 + n))).collect();
    let args = ["-sS", "--no-parallel", "--warc", "a.warc", "--warc-max-size", "100k", "-o", "/dev/null"];
    let all: Vec<&str> = args.iter().copied().chain(urls.iter().map(|url| url.as_str())).collect();
    run(haul(&all).current_dir(dir.path())).ok();
    let files = names(dir.path());
    assert_eq!(files, ["a-00000.warc", "a-00001.warc", "a-00002.warc", "a-00003.warc"]);
    let mut seen = Vec::new();
    for file in &files {
        let path = dir.path().join(file);
        assert!(fs::metadata(&path).unwrap().len() <= 100 << 10);
        seen.extend(exchanges(&path).iter().map(|(request, _)| request.field("WARC-Target-URI").unwrap().to_owned()));
    }
    assert_eq!(seen, urls);
    for file in &files[..3] {
        fs::remove_file(dir.path().join(file)).unwrap();
    }
    let line = run(haul(&all).current_dir(dir.path())).failed(23).to_owned();
    assert!(line.contains("a-00003.warc exists"), "{line}");
    assert_eq!(names(dir.path()), ["a-00003.warc"]);
}

#[test]
fn full_archive_files_are_closed() {
    let (dir, origin) = (tempfile::tempdir().unwrap(), origin());
    let list = list(dir.path(), "list", (0..100).map(|n| origin.url(&format!("/bytes/{}", 3_000 + n))));
    let mut command = program("sh");
    command.args(["-c", "ulimit -n 60; exec \"$0\" \"$@\"", HAUL, "-sS", "--parallel-max", "4", "--out-null"]);
    command.args(["--warc", "a.warc", "--warc-max-size", "4k", "--input-file"]).arg(list);
    run(command.current_dir(dir.path())).ok();
    assert_eq!(names(dir.path()).iter().filter(|name| name.ends_with(".warc")).count(), 100);
}

#[test]
fn existing_archive_is_refused_and_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.warc"), "old").unwrap();
    let origin = origin();
    let ran = archived(dir.path(), &[&origin.url("/small")]);
    let line = ran.failed(23);
    assert!(line.contains("a.warc exists") && line.contains("another name"), "{line}");
    assert_eq!((fs::read(dir.path().join("a.warc")).unwrap(), origin.requests()), (b"old".to_vec(), 0));
    let line = archived(dir.path(), &["--warc", "no/such/a.warc", &origin.url("/small")]).failed(23).to_owned();
    assert!(line.contains("cannot be created") && line.contains("No such file"), "{line}");
}

#[test]
fn max_filesize_applies_to_archived_bodies() {
    let dir = tempfile::tempdir().unwrap();
    let origin = origin();
    for path in ["/bytes/15000000", "/chunked/15000000"] {
        let archive = dir.path().join("a.warc");
        let ran = archived(dir.path(), &["-o", "out", "--max-filesize", "1000", &origin.url(path)]);
        assert_eq!(ran.code, 63, "{}", ran.stderr);
        assert!(fs::metadata(&archive).unwrap().len() < 1 << 20, "{path}");
        read(&fs::read(&archive).unwrap()).unwrap();
        fs::remove_file(archive).unwrap();
    }
}

#[test]
fn full_disk_leaves_complete_archive_records() {
    let dir = tempfile::tempdir().unwrap();
    let origin = origin();
    let urls: Vec<String> = (0..200).map(|n| origin.url(&format!("/bytes/{}", 3_000 + n))).collect();
    let file = list(dir.path(), "list", &urls);
    for (name, limit, options) in
        [("a.warc", 100, ""), ("b.warc.gz", 100, ""), ("c.warc", 64, "--no-parallel"), ("d.warc", 300, "--unordered")]
    {
        // A limit on the size of files acts like a full disk, with another error number.
        let script = format!(
            "trap '' XFSZ; ulimit -f {limit}; cd '{}'; $GET -sS --warc {name} {options} -o /dev/null --input-file {}",
            dir.path().display(),
            file.display()
        );
        let ran = bash(common::HAUL, &script);
        assert_eq!(ran.code, 23, "{}", ran.stderr);
        assert!(ran.stderr.contains(name) && ran.stderr.contains("File too large"), "{}", ran.stderr);
        let archive = dir.path().join(name);
        let exchanges = exchanges(&archive);
        assert!(!exchanges.is_empty() && fs::metadata(&archive).unwrap().len() <= limit * 1024);
        fs::remove_file(archive).unwrap();
    }
}

#[test]
fn full_disk_of_archive_leaves_no_output_file() {
    let dir = tempfile::tempdir().unwrap();
    let origin = origin();
    let script = format!(
        "trap '' XFSZ; ulimit -f 20; cd '{}'; $GET -sS --warc a.warc -o body '{}'",
        dir.path().display(),
        origin.url("/bytes/20000")
    );
    let ran = bash(common::HAUL, &script);
    assert!(ran.failed(23).contains("a.warc"), "{}", ran.stderr);
    assert_eq!(names(dir.path()), ["a.warc"]);
    assert!(records(&dir.path().join("a.warc")).is_empty());
}

#[test]
fn failed_archive_writes_leave_complete_records() {
    if !can_trace("failing writes of archives") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let server = H1Peer::always(reply_steps("200 OK", &"content ".repeat(50_000)));
    let urls = [server.url("/1"), server.url("/2")];
    for call in 1.. {
        let archive = dir.path().join("a.warc");
        let mut command = program("strace");
        command.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=write,copy_file_range", "-P"]).arg(&archive);
        command.arg("-e").arg(format!("inject=write,copy_file_range:error=ENOSPC:when={call}"));
        command.args([common::HAUL, "-sS", "--no-parallel", "-o", "/dev/null", "--warc"]).arg(&archive).args(&urls);
        let ran = run(&mut command);
        let (whole, _, fault) = read_prefix(&fs::read(&archive).unwrap());
        assert_eq!(fault, None, "{call}");
        fs::remove_file(archive).unwrap();
        if ran.code == 0 {
            assert!(call > 2 && whole.len() == 5, "{call}");
            return;
        }
        assert!(ran.code == 23 && ran.stderr.contains("No space left"), "{call}: {}", ran.stderr);
        assert!(whole.len() % 2 == 1 || whole.is_empty(), "{call}");
    }
}

#[test]
fn killed_run_leaves_at_most_one_incomplete_record() {
    let dir = tempfile::tempdir().unwrap();
    let origin = origin();
    let urls: Vec<String> = (0..5_000).map(|n| origin.url(&format!("/bytes/{}", 20_000 + n))).collect();
    let file = list(dir.path(), "list", &urls);
    for (name, size) in [("a.warc", 1), ("b.warc", 500_000), ("c.warc.gz", 300_000), ("d.warc", 2_000_000)] {
        let archive = dir.path().join(name);
        let args = ["-sS", "--warc", archive.to_str().unwrap(), "-o", "/dev/null", "--input-file"];
        let running = RunningCommand::start(&mut haul(args.iter().copied().chain([file.to_str().unwrap()])));
        eventually("the archive grows", || fs::metadata(&archive).is_ok_and(|file| file.len() > size));
        kill_process(running.pid(), Signal::KILL).unwrap();
        assert_eq!(running.wait().code, 137);
        let bytes = fs::read(&archive).unwrap();
        let (records, end, fault) = read_prefix(&bytes);
        // The rest is less than the longest exchange.
        assert!(bytes.len() - end < 30_000 && fault.is_some() == (end < bytes.len()), "{name}: {fault:?}");
        assert!(!records.is_empty(), "{name}");
    }
    assert_eq!(names(dir.path()).len(), 5);
}

#[test]
fn archive_options_without_warc_are_refused() {
    for (args, option) in [(&["--warc-max-size", "1G"][..], "--warc-max-size"), (&["--warc-secrets"], "--warc-secrets")]
    {
        let ran = run_haul([args, &["http://127.0.0.1:1/"]].concat());
        assert!(ran.code == 2 && ran.stderr.contains(option) && ran.stderr.contains("--warc"), "{}", ran.stderr);
    }
    let ran = run_haul(["--warc", "/nonexistent/a", "--http0.9", "http://127.0.0.1:1/"]);
    assert!(ran.code == 2 && ran.stderr.contains("--http0.9"), "{}", ran.stderr);
    for args in [["--warc", "-"], ["--warc", ""], ["--warc-max-size", "0"]] {
        assert_eq!(run_haul(args).code, 2);
    }
}

#[test]
fn archived_bodies_are_not_split() {
    let dir = tempfile::tempdir().unwrap();
    let origin = origin();
    let size = 20 << 20;
    archived(dir.path(), &["--split", "8", "-o", "body", &origin.url(&format!("/bytes/{size}"))]).ok();
    let [(_, response)] = &exchanges(&dir.path().join("a.warc"))[..] else { panic!("one exchange") };
    assert!(response.message().1 == fs::read(dir.path().join("body")).unwrap());
    assert_eq!((origin.requests(), response.message().1.len()), (1, size));
}

#[test]
fn silent_server_does_not_block_the_archive() {
    let dir = tempfile::tempdir().unwrap();
    let origin = origin();
    let silent = H1Peer::start(vec![vec![ScriptStep::ReadHead, ScriptStep::Sleep(Duration::from_secs(60))]]);
    let ran = archived(dir.path(), &["-m", "0.3", "--retry", "0", &silent.url("/"), &origin.url("/small")]);
    assert_eq!((ran.code, &ran.stdout[..]), (28, &b"small\n"[..]));
    assert_eq!(statuses(&dir.path().join("a.warc")), [(origin.url("/small"), "200".to_owned())]);
}
