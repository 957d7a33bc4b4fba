//! Tests of `--jsonl`: one JSON object for each URL. Each line is validated against the schema that
//! the documentation publishes.

use crate::common;

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use boon::{Compiler, SchemaIndex, Schemas};
use common::agent::TestAgentDirectory;
use common::{REFUSED, list, run_haul};
use serde_json::Value;
use testkit::h1_peer::{H1Peer, ScriptStep};
use testkit::origin::Origin;

/// Asserts that each line of the output is valid by the schema. Returns the parsed lines.
#[track_caller]
pub(crate) fn records(output: &[u8]) -> Vec<Value> {
    static SCHEMA: OnceLock<(Schemas, SchemaIndex)> = OnceLock::new();
    let (schemas, index) = SCHEMA.get_or_init(|| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/records.schema.json");
        let mut schemas = Schemas::new();
        let schema = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let mut compiler = Compiler::new();
        compiler.add_resource("http://haul.test/records", schema).unwrap();
        let index = compiler.compile("http://haul.test/records", &mut schemas).unwrap();
        (schemas, index)
    });
    let text = std::str::from_utf8(output).expect("UTF-8");
    assert!(text.is_empty() || text.ends_with('\n'), "a line is cut: {}", &text[text.len().saturating_sub(200)..]);
    let parse = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        schemas.validate(&value, *index).unwrap_or_else(|error| panic!("{error}: {line}"));
        value
    };
    text.lines().map(parse).collect()
}

/// Runs haul with `--jsonl` and these arguments. Returns the exit code and the records.
#[track_caller]
fn jsonl(args: &[&str]) -> (i32, Vec<Value>) {
    let output = run_haul(["-sS", "--jsonl"].iter().chain(args));
    (output.code, records(&output.stdout))
}

/// Starts a server that sends each of these responses on a separate connection.
fn peer(replies: &[&[u8]]) -> H1Peer {
    let script = |reply: &&[u8]| vec![ScriptStep::ReadHead, ScriptStep::send(reply), ScriptStep::Close];
    H1Peer::start(replies.iter().map(script).collect())
}

#[test]
fn record_has_the_facts_of_a_transfer() {
    let server = peer(&[
        &b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\nx-a: \xe9\r\nContent-Type: text/plain\r\n\r\nhello"[..],
    ]);
    let url = server.url("/p?q=1#f");
    let (code, records) = jsonl(&[&url]);
    let record = &records[0];
    assert_eq!((code, records.len()), (0, 1));
    assert_eq!((&record["url"], &record["effective_url"]), (&Value::from(&*url), &Value::from(&*url)));
    assert_eq!(
        (&record["method"], &record["status"], &record["http_version"]),
        (&"GET".into(), &200.into(), &"1.1".into())
    );
    assert_eq!(record["headers"]["x-a"], serde_json::json!(["1", "\u{e9}"]));
    assert_eq!((&record["body"], &record["bytes"]["body"]), (&"hello".into(), &5.into()));
    assert_eq!((&record["error"], &record["tls"]), (&Value::Null, &Value::Null));
    assert_eq!(record["attempts"], serde_json::json!({"count": 1, "failed": []}));
    assert_eq!(record["addresses"]["remote_ip"], "127.0.0.1");
    assert!(record["times"]["total"].as_f64() >= record["times"]["starttransfer"].as_f64());
}

#[test]
fn failed_urls_have_records() {
    let server = Origin::builder().start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let urls = [server.url("/bytes/3"), server.url("/status/404"), format!("{REFUSED}/"), "http://[bad".to_owned()];
    let file = list(dir.path(), "list", urls.iter().cloned());
    for order in [&[][..], &["--unordered"], &["--no-parallel"]] {
        let args = ["--retry", "0", "--input-file", file.to_str().unwrap()];
        let (code, mut lines) = jsonl(&[order, &args[..]].concat());
        if order == ["--unordered"] {
            lines.sort_by_key(|line| urls.iter().position(|url| line["url"] == **url));
            assert!([22, 7, 3].contains(&code));
        } else {
            assert_eq!(code, 22);
        }
        let errors: Vec<_> = lines.iter().map(|line| (&line["url"], &line["error"]["name"])).collect();
        let names = [Value::Null, "status".into(), "connect".into(), "url".into()];
        assert_eq!(
            errors,
            urls.iter().map(|url| Value::from(&**url)).collect::<Vec<_>>().iter().zip(&names).collect::<Vec<_>>()
        );
        assert_eq!((&lines[1]["error"]["code"], &lines[1]["status"]), (&22.into(), &404.into()));
        assert!(lines[1]["body"].is_string(), "the body of a failed status");
        assert_eq!((&lines[2]["status"], &lines[2]["headers"]), (&Value::Null, &Value::Null));
    }
}

#[test]
fn record_is_printed_for_invalid_single_url() {
    for (url, code, name) in [("http://[bad", 3, "url"), ("nosuch://h/", 1, "unsupported_scheme")] {
        let (exit, records) = jsonl(&[url]);
        assert_eq!((exit, records.len()), (code, 1), "{url}");
        assert_eq!((&records[0]["url"], &records[0]["error"]["name"]), (&url.into(), &name.into()));
        assert_eq!(records[0]["attempts"]["count"], 0);
    }
}

#[test]
fn records_keep_the_order_of_the_list() {
    let server = Origin::builder().start().unwrap();
    let urls: Vec<String> = (0..200).map(|n| server.url(&format!("/bytes/{}", n * 37 % 500))).collect();
    let dir = tempfile::tempdir().unwrap();
    let file = list(dir.path(), "list", urls.iter().cloned());
    for memory in ["64M", "20k"] {
        for threads in ["1", "3"] {
            let args = ["--max-memory", memory, "--threads", threads, "--input-file", file.to_str().unwrap()];
            let (code, ordered) = jsonl(&args);
            assert_eq!(code, 0);
            assert!(ordered.iter().map(|line| line["url"].as_str().unwrap()).eq(urls.iter().map(String::as_str)));
            let (_, mut unordered) = jsonl(&[&args[..], &["--unordered"]].concat());
            assert_eq!(unordered.len(), 200);
            unordered.sort_by_key(|line| urls.iter().position(|url| line["url"] == **url));
            assert!(
                unordered
                    .iter()
                    .map(|line| &line["bytes"]["body"])
                    .eq(ordered.iter().map(|line| &line["bytes"]["body"]))
            );
        }
    }
}

#[test]
fn bodies_are_text_or_base64_by_charset() {
    let server = peer(&[
        &b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=windows-1251\r\nContent-Length: 4\r\n\r\na\xcf\"\n"[..],
        b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ]);
    let (_, text) = jsonl(&[&server.url("/")]);
    assert_eq!(text[0]["body"], "aП\"\n");
    let (_, empty) = jsonl(&[&server.url("/")]);
    assert_eq!(empty[0]["body"], "");
    let server = Origin::builder().start().unwrap();
    let (_, binary) = jsonl(&[&server.url("/bytes/1000")]);
    let body = binary[0]["body_base64"].as_str().expect("binary");
    assert_eq!(haul_cli::base64::decode(body).unwrap(), server.pattern().slice(0, 1000));
}

#[test]
fn jsonl_no_body_omits_bodies() {
    let server = Origin::builder().start().unwrap();
    let url = server.url("/bytes/70000");
    for urls in [&[&*url][..], &[&*url, &*url]] {
        let output = run_haul(["-sS", "--jsonl=no-body"].iter().chain(urls));
        for record in records(&output.stdout) {
            assert!(record.get("body").is_none() && record.get("body_base64").is_none());
            assert_eq!(record["bytes"]["body"], 70000);
        }
    }
    assert_eq!(run_haul(["--jsonl=bodies", &url]).code, 2);
}

#[test]
fn head_requests_print_only_records() {
    let server = Origin::builder().start().unwrap();
    let url = server.url("/bytes/7");
    for urls in [&[&*url][..], &[&*url, &*url]] {
        let (code, records) = jsonl(&[&["-I"], urls].concat());
        assert_eq!((code, records.len()), (0, urls.len()));
        assert_eq!((&records[0]["method"], &records[0]["body"]), (&"HEAD".into(), &"".into()));
    }
}

#[test]
fn files_have_size_and_checksum_in_records() {
    let server = Origin::builder().start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let sum = |name: &str| {
        let file = fs::File::open(dir.path().join(name)).unwrap();
        haul::sink::checksum::hex(&haul::sink::checksum::HashAlgorithm::Sha256.hash_file(&file).unwrap())
    };
    let one = server.url("/bytes/3000");
    let (_, single) = jsonl(&["--output-dir", path, "-o", "one", &one]);
    assert_eq!((&single[0]["size"], single[0]["sha256"].as_str()), (&3000.into(), Some(&*sum("one"))));
    let (_, many) = jsonl(&["--output-dir", path, "-o", "n#1", &server.url("/bytes/[10-12]")]);
    for (record, name) in many.iter().zip(["n10", "n11", "n12"]) {
        assert!(record["file"].as_str().is_some_and(|file| file.ends_with(name)));
        assert_eq!(record["sha256"].as_str(), Some(&*sum(name)));
        assert!(record.get("body_base64").is_none());
    }
    for urls in [&[&*one][..], &[&*one, &*one]] {
        let (_, null) = jsonl(&[&["-o", "/dev/null", "-o", "/dev/null"][..], urls].concat());
        assert_eq!((&null[0]["size"], &null[0]["sha256"]), (&3000.into(), &Value::Null));
        let (_, dropped) = jsonl(&[&["--out-null", "--out-null"][..], urls].concat());
        assert!(dropped.iter().all(|record| record.get("file").is_none() && record.get("body_base64").is_none()));
    }
    let (code, failed) = jsonl(&["--output-dir", path, "-o", "gone", &server.url("/status/404")]);
    assert_eq!((code, failed[0].get("file")), (22, None));
}

#[test]
fn records_are_written_to_the_output_file() {
    let server = Origin::builder().start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.jsonl");
    let output = run_haul(["-sS", "--jsonl", "-o", out.to_str().unwrap(), &server.url("/bytes/[1-5]")]);
    assert_eq!((output.code, &*output.stdout), (0, &b""[..]));
    assert_eq!(records(&fs::read(&out).unwrap()).len(), 5);
}

#[test]
fn extracted_values_replace_bodies_in_records() {
    let page = common::page("<a href=x1> <a href=x2>");
    let (code, records) = jsonl(&["--extract", "x([0-9])", &page.url("/1"), &page.url("/2")]);
    assert_eq!((code, records.len()), (0, 2));
    assert!(
        records.iter().all(|record| record["values"] == serde_json::json!(["1", "2"]) && record.get("body").is_none())
    );
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let args = ["--extract", "x([0-9])", "--output-dir", path, "-o", "p#1", &page.url("/[1-2]")];
    let (_, stored) = jsonl(&args);
    assert_eq!((&stored[1]["values"], &stored[1]["size"]), (&serde_json::json!(["1", "2"]), &23.into()));
    assert_eq!(fs::read(dir.path().join("p2")).unwrap(), b"<a href=x1> <a href=x2>");
}

#[test]
fn only_the_last_stage_prints_records() {
    let page = common::page("<1> <2> <3>");
    let then = page.url("/p{}");
    let (code, lines) = jsonl(&[&page.url("/"), "--extract", "<([0-9])>", "--then", &then]);
    assert_eq!((code, lines.len()), (0, 3));
    let urls: Vec<_> = lines.iter().map(|line| line["url"].as_str().unwrap().to_owned()).collect();
    assert_eq!(urls, ["1", "2", "3"].map(|n| page.url(&format!("/p{n}"))));
    assert!(lines.iter().all(|line| line["body"] == "<1> <2> <3>"));
}

#[test]
fn redirects_and_failed_attempts_are_recorded() {
    let server = peer(&[
        &b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy"[..],
        b"HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ]);
    let (code, records) = jsonl(&["--retry-delay", "1", &server.url("/first")]);
    let record = &records[0];
    assert_eq!((code, &record["body"], &record["effective_url"]), (0, &"ok".into(), &server.url("/next").into()));
    assert_eq!(record["attempts"]["count"], 2);
    let failed = &record["attempts"]["failed"][0];
    assert_eq!((&failed["code"], &failed["name"]), (&22.into(), &"status".into()));
    assert!(failed["message"].as_str().unwrap().contains("503") && failed["pause"].as_f64() >= Some(1.0));
    let expected = serde_json::json!([{"url": server.url("/first"), "status": 302, "location": "/next"}]);
    assert_eq!(record["redirects"], expected);
}

#[test]
fn records_contain_no_user_and_password() {
    let server = peer(&[&b"HTTP/1.1 302 Found\r\nLocation: //u2:p2@127.0.0.1:1/x\r\nContent-Length: 0\r\n\r\n"[..]]);
    let url = server.url("/").replace("http://", "http://user:secret@");
    let output = run_haul(["-sS", "--jsonl", "--retry", "0", &url]);
    let record = &records(&output.stdout)[0];
    assert!(!record["url"].as_str().unwrap().contains("secret"), "{record}");
    let text = serde_json::to_string(&record["error"]).unwrap() + &record["effective_url"].to_string();
    assert!(!text.contains("secret") && !text.contains("p2"), "{text}");
}

#[test]
fn too_large_body_record_fails_within_memory_limit() {
    let server = Origin::builder().start().unwrap();
    let (small, large) = (server.url("/bytes/1900000"), server.url("/bytes/3000000"));
    for order in [&[][..], &["--unordered"]] {
        for urls in [&[&*large][..], &[&*large, &*small, &*large, &*small]] {
            let output = run_haul([&["-sS", "--jsonl", "--max-memory", "8M"][..], order, urls].concat());
            assert_eq!(output.code, 63);
            assert!(
                output.stderr.contains("2097152 bytes") && output.stderr.contains("--jsonl=no-body"),
                "{}",
                output.stderr
            );
            let lines = records(&output.stdout);
            assert_eq!(lines.len(), urls.len());
            for line in lines {
                match line["url"] == *large {
                    true => assert_eq!((&line["error"]["name"], line.get("body_base64")), (&"too_large".into(), None)),
                    false => assert_eq!(line["body_base64"].as_str().unwrap().len(), 1_900_000_usize.div_ceil(3) * 4),
                }
            }
        }
    }
}

#[test]
fn records_omit_incomplete_bodies() {
    let server = peer(&[&b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf"[..]]);
    let (code, records) = jsonl(&["--retry", "0", &server.url("/")]);
    assert_eq!((code, &records[0]["error"]["name"], &records[0]["status"]), (18, &"partial_body".into(), &200.into()));
    assert!(records[0].get("body").is_none());
}

#[test]
fn options_that_print_between_records_are_refused() {
    for (args, word) in [
        (&["-w", "x"][..], "-w"),
        (&["-i"], "-i"),
        (&["-D", "-"], "-D -"),
        (&["-c", "-"], "-c -"),
        (&["--extract", "x", "--sort"], "--sort"),
        (&["--extract", "x", "--unique"], "--unique"),
    ] {
        let output = run_haul([&["--jsonl"], args, &["http://127.0.0.1/"]].concat());
        assert!(output.code == 2 && output.stderr.contains(word), "{}", output.stderr);
    }
}

#[test]
fn records_do_not_use_the_agent() {
    let (agent, server) = (TestAgentDirectory::new(), Origin::builder().start().unwrap());
    let (code, records) = jsonl(&[&agent.option(), &server.url("/bytes/3")]);
    assert_eq!((code, records.len()), (0, 1));
}

#[test]
fn record_names_the_tls_session() {
    let server = Origin::builder().start().unwrap();
    for urls in [1, 2] {
        let url = server.https_url("/bytes/3");
        let (code, records) = jsonl(&[&["-k"][..], &vec![&*url; urls]].concat());
        assert_eq!((code, records.len()), (0, urls));
        assert_eq!(records[0]["tls"]["version"], "TLSv1.3");
        assert!(records[0]["tls"]["cipher"].as_str().is_some_and(|cipher| cipher.starts_with("TLS_")));
    }
}

#[test]
fn uploads_and_curl_persona_print_records() {
    let server = Origin::builder().start().unwrap();
    let url = server.url("/bytes/3");
    let output = common::run(common::haul(["curl", "-sS", "--jsonl", &url, &url]).arg("--no-progress-meter"));
    assert_eq!(records(&output.stdout).len(), 2, "{}", output.stderr);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("up");
    fs::write(&file, "up").unwrap();
    let (_, sent) = jsonl(&["-T", file.to_str().unwrap(), &server.url("/")]);
    assert_eq!((&sent[0]["method"], &sent[0]["bytes"]["uploaded"]), (&"PUT".into(), &2.into()));
}

#[test]
fn record_of_a_fifo_has_no_checksum() {
    let page = common::page("body");
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    // The reader leaves after the body, so another opening of the FIFO would wait for ever.
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || fs::read(fifo).unwrap()
    });
    let (code, found) = jsonl(&["-o", fifo.to_str().unwrap(), &page.url("/")]);
    assert_eq!((code, reader.join().unwrap()), (0, b"body".to_vec()));
    assert_eq!((&found[0]["size"], &found[0]["sha256"]), (&4.into(), &Value::Null));
}
