//! Tests of `--csv-in` and `--tsv-in`: the columns of a table replace the placeholders of the
//! command line, encoded for the part of the request in which they are inserted.

use crate::common;

use std::fs;
use std::path::Path;

use common::{CommandOutput, HAUL, names, program, run_haul};
use testkit::origin::{LoggedRequest, Origin};

fn origin() -> Origin {
    Origin::builder().start().unwrap()
}

/// Runs haul in a directory with the text `table` in the file `name`. Returns its output.
fn run_table(dir: &Path, name: &str, table: &str, args: &[&str]) -> CommandOutput {
    fs::write(dir.join(name), table).unwrap();
    let mut command = program(HAUL);
    command.current_dir(dir).args(["--csv-in", "--input-file", name]).args(args);
    common::run(&mut command)
}

/// Returns the requests that a server received, sorted by their targets.
fn log(origin: &Origin) -> Vec<LoggedRequest> {
    let mut log = origin.log();
    log.sort_by(|one, other| one.target.cmp(&other.target));
    log
}

#[test]
fn columns_replace_placeholders_in_url_header_and_body() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let table = "id,first name,age\n1,\"Ann \"\"A\"\" & Co\",7\n2,B/../C,\n";
    let url = origin.url("/echo/{id}?n={first name}");
    let json = r#"{"name": "{first name}", "age": {age}, "list": [{}]}"#;
    let output = ["-o", "out/{id}-{first name}.txt", "--create-dirs"];
    let args = [
        &[
            "-X",
            "PUT",
            "--json",
            json,
            "-H",
            "X-Name: {first name}",
            "-A",
            "agent {id}",
            "--url-query",
            "q={age}",
            &url,
        ],
        &output[..],
    ];
    run_table(dir.path(), "t.csv", table, &args.concat()).ok();
    let log = log(&origin);
    assert_eq!(log[0].target, "/echo/1?n=Ann%20%22A%22%20%26%20Co&q=7");
    assert_eq!(log[1].target, "/echo/2?n=B/../C&q=");
    assert_eq!(String::from_utf8_lossy(&log[0].body), r#"{"name": "Ann \"A\" & Co", "age": 7, "list": [{}]}"#);
    assert_eq!(String::from_utf8_lossy(&log[1].body), r#"{"name": "B/../C", "age": "", "list": [{}]}"#);
    assert_eq!((log[0].header("x-name"), log[0].header("user-agent")), (Some("Ann \"A\" & Co"), Some("agent 1")));
    assert_eq!((&*log[0].method, log[0].header("content-type")), ("PUT", Some("application/json")));
}

#[test]
fn columns_replace_placeholders_in_output_names() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let table = "n,name,dir\n1,../../up,a/b\n2,.rc,..\n3,,/etc\n";
    let args = ["-o", "out/{dir}/{name}-{port}", "--create-dirs", &origin.url("/small/{n}")];
    run_table(dir.path(), "t.csv", table, &args).ok();
    let port = origin.http_addr().port();
    let read = |path: String| fs::read_to_string(dir.path().join("out").join(path)).unwrap();
    assert_eq!(read(format!("a_b/_._.._up-{port}")), "small 1\n");
    assert_eq!(read(format!("_/_rc-{port}")), "small 2\n");
    assert_eq!(read(format!("_etc/_-{port}")), "small 3\n");
    assert_eq!(names(dir.path()), ["out", "t.csv"]);
    let ran = run_table(dir.path(), "t.csv", "n\n1\n1\n", &["-o", "same-{n}", &origin.url("/small/{n}")]);
    assert!(ran.failed(23).contains("same-1 is the output of"), "{}", ran.stderr);
}

#[test]
fn column_values_are_never_parsed_as_syntax() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let url = origin.url("/small/{n}");
    for (value, args, code, message) in [
        ("../x", &[&*url][..], 3, "line 2: the row cannot be made a URL: the match climbs"),
        ("\"1\nEvil: x\"", &["-H", "X-A: {n}", &*origin.url("/small/1")], 3, "line 2: a value has control characters"),
        ("evil.example/", &["http://{n}:1/"], 3, "line 2: the row cannot be made a URL: in the host, only letters"),
        ("ftp://h/", &["{n}"], 3, "line 2: the row cannot be made a URL: the match is not an absolute http"),
    ] {
        let ran = run_table(dir.path(), "t.csv", &format!("n\n{value}\n"), args);
        assert!(ran.failed(code).contains(message), "{value}: {}", ran.stderr);
    }
    assert_eq!(origin.requests(), 0);
    let form = ["-d", "a={n}&b={n}", &*origin.url("/echo"), "-o", "/dev/null"];
    run_table(dir.path(), "t.csv", "n\n\"x&c=1 {n}\"\n", &form).ok();
    assert_eq!(&log(&origin)[0].body[..], b"a=x%26c%3D1+%7Bn%7D&b=x%26c%3D1+%7Bn%7D");
}

#[test]
fn tsv_is_selected_by_file_name_or_option() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let table = "n\turl\n1\tx,y\n";
    let url = origin.url("/small/{n}");
    for name in ["t.tsv", "T.TAB"] {
        assert_eq!(run_table(dir.path(), name, table, &[&url]).text(), "small 1\n");
    }
    fs::write(dir.path().join("plain"), table).unwrap();
    let plain = dir.path().join("plain").display().to_string();
    assert_eq!(run_haul(["--tsv-in", "--input-file", &plain, &url]).text(), "small 1\n");
}

#[test]
fn url_comes_from_column_or_url_templates() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let table = format!("url,n\n{0}1,3\n{0}2,4\n", origin.url("/small/"));
    assert_eq!(run_table(dir.path(), "t.csv", &table, &[]).text(), "small 1\nsmall 2\n");
    let both = [&*origin.url("/small/{n}"), "{url}"];
    assert_eq!(run_table(dir.path(), "t.csv", &table, &both).text(), "small 3\nsmall 1\nsmall 4\nsmall 2\n");
}

#[test]
fn invalid_row_fails_alone_invalid_table_ends_run() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let url = origin.url("/small/{n}");
    let ran = run_table(dir.path(), "t.csv", "n,m\n1,x\n2\n\n3,y,z\n4,\n", &[&url]);
    assert_eq!((ran.code, &ran.stdout[..]), (26, &b"small 1\nsmall 4\n"[..]));
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{}", ran.stderr);
    assert!(lines[0].contains("t.csv, line 3: the row has 1 fields, but the header line has 2"), "{}", lines[0]);
    assert!(lines[1].contains("t.csv, line 5: the row has 3 fields"), "{}", lines[1]);
    for (table, args, code, message) in [
        ("", &[&*url][..], 26, "t.csv: there is no header line"),
        ("n,n\n1,2\n", &[&*url], 26, "two columns have the name \"n\""),
        ("a,b\n1,2\n", &[&*url], 2, "t.csv has no column \"n\" for the placeholder {n}; its columns are a, b"),
        ("a\n1\n", &[], 2, "t.csv has no column \"url\", and the command line names no URL"),
        ("n\n1\n", &["-o", "{m}", &*url], 2, "has no column \"m\""),
        ("n\n1\n", &["-H", "A: {m}", &*url], 2, "has no column \"m\""),
        ("n\n1\n", &["--url-query", "a={m}", &*url], 2, "has no column \"m\""),
        ("n\n1\n", &["http://h/{}"], 2, "has no column \"\""),
        ("a/b\n1\n", &["http://h/{a/b}"], 2, "the column \"a/b\" of t.csv cannot be a placeholder"),
        ("n,{x}\n1,2\n", &["-H", "A: {{x}}", &*url], 2, "the column \"{x}\" of t.csv cannot be a placeholder"),
    ] {
        let ran = run_table(dir.path(), "t.csv", table, args);
        assert!(ran.failed(code).contains(message), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn credentials_go_only_to_command_line_origins() {
    let (own, strange) = (origin(), origin());
    let dir = tempfile::tempdir().unwrap();
    let table = format!("n,url,port\n1,{},{}\n", strange.url("/echo?of-column"), strange.http_addr().port());
    let secrets = ["-u", "me:word", "-b", "sid=1", "-H", "X-Api-Key: {n}", "-o", "/dev/null"];
    let urls = [own.url("/echo?{n}"), "{url}".to_owned(), "http://127.0.0.1:{port}/echo?of-port".to_owned()];
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    run_table(dir.path(), "t.csv", &table, &[&secrets[..], &urls].concat()).ok();
    let sent = log(&own);
    assert_eq!(sent[0].header("authorization"), Some("Basic bWU6d29yZA=="));
    assert_eq!((sent[0].header("cookie"), sent[0].header("x-api-key")), (Some("sid=1"), Some("1")));
    assert_eq!(strange.requests(), 2);
    for request in log(&strange) {
        for name in ["authorization", "cookie", "x-api-key"] {
            assert_eq!(request.header(name), None, "{}", request.target);
        }
    }
}

#[test]
fn placeholders_in_column_values_are_not_replaced() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let args = ["-H", "X-A: {a}", "-H", "X-A: {b}", "-A", "{a}", "-o", "/dev/null", &*origin.url("/echo?{a}")];
    run_table(dir.path(), "t.csv", "a,b\n{b},{a}\n", &args).ok();
    let log = log(&origin);
    let values: Vec<&str> =
        log[0].headers.iter().filter(|(name, _)| name == "x-a").map(|(_, value)| value.as_str()).collect();
    assert_eq!(values, ["{b}", "{a}"]);
    assert_eq!((log[0].header("user-agent"), &*log[0].target), (Some("{b}"), "/echo?%7Bb%7D"));
}

#[test]
fn host_from_a_column_gets_no_credentials() {
    let own = origin();
    let dir = tempfile::tempdir().unwrap();
    let table = format!("n,host\n1,{}\n2,evil.example\n", own.http_addr());
    let with_user = own.url("/echo?{n}").replace("http://", "http://me:word@");
    for (secrets, url) in [(&["-u", "me:word"][..], own.url("/echo?{n}")), (&[], with_user)] {
        for field in ["Host", "X-Forwarded-Host"] {
            own.forget();
            let field = format!("{field}: {{host}}");
            run_table(dir.path(), "t.csv", &table, &[secrets, &["-H", &field, "-o", "/dev/null", &url]].concat()).ok();
            let log = log(&own);
            assert!(log[0].header("authorization").is_some() && log[1].header("authorization").is_none(), "{field}");
            let name = if field.starts_with("Host") { "host" } else { "x-forwarded-host" };
            assert_eq!(log[1].header(name), Some("evil.example"));
        }
    }
}

#[test]
fn content_without_columns_stays_with_command_line_origins() {
    let (own, strange) = (origin(), origin());
    let dir = tempfile::tempdir().unwrap();
    let table = format!("n,url\n1,{}\n", strange.url("/echo?strange"));
    let urls = [own.url("/echo?own"), "{url}".to_owned()];
    for (args, content, query, method) in [
        (["--url-query", "key=secret", "-d", "password=hunter2"], "", "", "GET"),
        (["--url-query", "key={n}", "-d", "row={n}"], "row=1", "&key=1", "POST"),
    ] {
        own.forget();
        strange.forget();
        run_table(dir.path(), "t.csv", &table, &[&args[..], &["-o", "/dev/null", &urls[0], &urls[1]]].concat()).ok();
        let sent = &log(&strange)[0];
        assert_eq!((&*sent.method, &*sent.target), (method, &*format!("/echo?strange{query}")));
        assert_eq!(String::from_utf8_lossy(&sent.body), content);
        assert!(!log(&own)[0].body.is_empty() && log(&own)[0].target.contains("&key="));
    }
}
