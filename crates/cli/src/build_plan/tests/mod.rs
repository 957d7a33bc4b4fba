use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use super::*;
use crate::parse::parse;
use crate::plan::ResolveArg;
use crate::program_persona::VERSION;
use haul::request::ConnectToRule;
use haul_policy::auth::Credentials;

/// The [`FilesAndEnvironment`] of these tests. It has the files `body`, `headers`, `netrc` and
/// `big` (with a reported size of 5 MiB), some environment variables, and answers to password
/// prompts.
struct TestFileAccess;

impl FilesAndEnvironment for TestFileAccess {
    fn open(&mut self, path: &Path) -> io::Result<Box<dyn Read>> {
        match path.to_str() {
            Some("body") => Ok(Box::new(&b"a\r\nb\0c"[..])),
            Some("headers") => Ok(Box::new(&b"X-One: 1\r\n\r\nAccept:\nodd\n"[..])),
            Some("netrc" | "/home/me/.netrc") => Ok(Box::new(&b"machine h login l password secret"[..])),
            Some("big") => Ok(Box::new(&b""[..])),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn size(&mut self, path: &Path) -> io::Result<Option<u64>> {
        self.open(path).map(|_| Some(if path == Path::new("big") { 5 << 20 } else { 7 }))
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        let variables = [
            ("HOME", "/home/me"),
            ("http_proxy", "http://u:secret@env.example"),
            ("no_proxy", "direct.example"),
            ("https_proxy", "nonsense://x"),
        ];
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into())
    }

    fn password(&mut self, prompt: &str) -> io::Result<Vec<u8>> {
        match prompt {
            "Enter host password for user 'me':" => Ok(b"typed".to_vec()),
            "Enter proxy password for user 'me':" => Ok(b"proxied".to_vec()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

fn read(args: &[&str]) -> Result<RunPlan, UsageError> {
    resolve(parse(args.iter().map(Into::into), &mut TestFileAccess)?, &mut TestFileAccess)
}

fn plan(args: &[&str]) -> RunPlan {
    read(args).unwrap_or_else(|error| panic!("{args:?}: {error}"))
}

/// Returns the first URL group of the plan.
fn group(args: &[&str]) -> UrlGroup {
    Arc::unwrap_or_clone(plan(args).groups.remove(0))
}

fn request(args: &[&str]) -> RequestArgs {
    group(args).stages.remove(0).request
}

fn set(name: &str, value: &str) -> HeaderArg {
    HeaderArg::Set { name: name.to_owned(), value: value.into() }
}

mod bodies;
mod credentials;
mod transfer_and_file_settings;

#[test]
fn plan_of_a_single_url_has_defaults() {
    let plan = plan(&["http://h/"]);
    let group = &plan.groups[0];
    let stage = &group.stages[0];
    assert_eq!((stage.request.method.as_str(), stage.request.custom_method), ("GET", false));
    let agent = format!("haul/{VERSION}");
    assert_eq!(stage.request.user_agent.as_deref(), Some(agent.as_bytes()));
    assert!(stage.transfer.options.redirects.follow && stage.transfer.options.fail && !stage.requests_compression());
    assert_eq!((stage.transfer.options.retry.max, stage.transfer.options.redirects.max), (3, 50));
    assert_eq!((plan.global.parallel_max, plan.global.parallel_max_host), (64, None));
    assert_eq!(plan.global.max_memory, 64 << 20);
    assert_eq!(group.output_of_source(0), &OutputArg::Stdout);
}

#[test]
fn group_without_url_is_an_error() {
    for args in [&[][..], &["-s"], &["u", "--next", "-s"]] {
        let error = read(args).expect_err("a group without URL");
        let text = "haul: (2) no URL specified\nhaul: give a URL, such as https://example.com/, or a list of URLs with --input-file";
        assert_eq!((error.to_string().as_str(), error.exit_code()), (text, 2));
    }
}

#[test]
fn outputs_pair_with_urls_by_position() {
    let all = plan(&["-O", "u", "-o", "b", "--input-file", "l", "v", "--no-remote-name", "w", "--remote-name-all"]);
    let group = &all.groups[0];
    let expected = [OutputArg::RemoteName, OutputArg::File("b".into()), OutputArg::Stdout, OutputArg::RemoteName];
    for (at, expected) in expected.iter().enumerate() {
        assert_eq!(group.output_of_source(at), expected);
    }
    let more = plan(&["-o", "a", "-o", "b", "u"]);
    assert_eq!(more.warnings, ["Got more output options than URLs"]);
    assert_eq!(more.groups[0].outputs.len(), 1);
}

#[test]
fn output_option_applies_to_the_preceding_stage() {
    let stages = ["--extract", "a", "--then", "http://h/{}"];
    let file = |name: &str| OutputArg::File(name.into());
    let first = group(&[&["u", "-o", "x"], &stages[..]].concat());
    assert_eq!((first.output_of_source(0), &first.stages[1].output), (&file("x"), &OutputArg::Stdout));
    let later = group(&[&["u"], &stages[..], &["-o", "x"]].concat());
    assert_eq!((later.output_of_source(0), &later.stages[1].output), (&OutputArg::Stdout, &file("x")));
    assert_eq!(later.shared_output(), Some(&file("x")));
    for (name, is_shared) in [("x_{}", false), ("x_#1", false), ("x_#<n>", false), ("x#", true), ("-", true)] {
        let group = group(&[&["u"], &stages[..], &["-o", name]].concat());
        assert_eq!(group.shared_output().is_some(), is_shared, "{name}");
    }
    for remote in ["-O", "--remote-name-all"] {
        let group = group(&[&["u"], &stages[..], &[remote]].concat());
        assert_eq!((group.output_of_source(0), &group.stages[1].output), (&OutputArg::Stdout, &OutputArg::RemoteName));
        assert_eq!(group.shared_output(), None);
    }
    let two = plan(&[&["u"], &stages[..], &["-o", "y", "-o", "x"]].concat());
    assert_eq!((&two.groups[0].stages[1].output, two.warnings.len()), (&file("x"), 1));
    let fed = read(&[&["u", "-o", "-"], &stages[..]].concat()).expect_err("its pages are not output");
    assert!(fed.to_string().contains("name them by -o FILE or -O"), "{fed}");
}

#[test]
fn sort_and_unique_require_one_shared_output() {
    for args in [&["-o", "x", "u", "-o", "y", "v"][..], &["-O", "u"], &["-o", "x_#1", "u{1,2}"]] {
        for option in ["--unique", "--sort"] {
            let error = read(&[args, &["--extract", "a", option]].concat()).expect_err("there are several");
            assert!(error.to_string().contains(option), "{error}");
        }
    }
    for args in [&["-o", "x", "u[1-2]"][..], &["u", "v"], &["-o", "x", "--input-file", "l"]] {
        plan(&[args, &["--extract", "a", "--sort", "--unique"]].concat());
    }
}

#[test]
fn uploads_and_extraction_are_refused_together() {
    for args in [&["--extract", "a"][..], &["--extract", "a", "--then", "http://h/{}"]] {
        let error = read(&[&["-T", "body", "u"], args].concat()).expect_err("replies to uploads are not searched");
        assert!(error.to_string().contains("--data-binary @FILE"), "{error}");
    }
}

#[test]
fn then_stage_inserts_the_value_into_its_options() {
    let later = |args: &[&str]| {
        let chain = [&["u", "-d", "{}", "--extract", "a", "--then", "http://h/{}"], args].concat();
        let group = group(&chain);
        assert_eq!(
            group.stages[0].request.body,
            Some(RequestBodyArg::Bytes(b"{}".to_vec())),
            "the first stage has no value"
        );
        group.stages[1].request.clone()
    };
    let filled = |request: &RequestArgs| match &request.body {
        Some(RequestBodyArg::ByValue(body)) => String::from_utf8(body.fill(b"a\" &<")).unwrap(),
        other => panic!("{other:?}"),
    };
    for (args, expected) in [
        (&["-d", "x={}", "-d", "@body"][..], "x=a%22+%26%3C&abc"),
        (&["--data-urlencode", "x y={}="], "x y=a%22+%26%3C%3D"),
        (&["--json", "[{}, \"{}\"]"], "[\"a\\\" &<\", \"a\\\" &<\"]"),
        (&["-d", "<{}>", "-H", "Content-Type: text/xml; charset=utf-8"], "<a&quot; &amp;&lt;>"),
        (&["-d", "{}", "-H", "Content-Type: text/plain"], "a\" &<"),
    ] {
        assert_eq!(filled(&later(args)), expected, "{args:?}");
    }
    assert_eq!(later(&["-d", "@body"]).body, Some(RequestBodyArg::Bytes(b"abc".to_vec())));
    assert_eq!(later(&["-G", "-d", "a={}", "--url-query", "b={}#"]).query.as_deref(), Some("b={}%23&a={}"));
    let fields = later(&["-H", "X: {}", "-H", "Y: z", "-H", "@headers"]).fields_by_value;
    assert_eq!(fields, [("X".to_owned(), b"{}".to_vec())]);
}

#[test]
fn unique_and_sort_require_extract() {
    for option in ["--unique", "--sort"] {
        let error = read(&["u", option]).expect_err("nothing to print once");
        assert!(error.to_string().starts_with(&format!("haul: option {option}: needs --extract")), "{error}");
        assert!(read(&["u", option, "--extract", "a"]).is_ok());
        assert!(read(&["u", "--extract", "a", "--then", "http://h/{}", option]).is_err());
    }
}

#[test]
fn extracting_stages_ask_for_compressed_bodies() {
    let asks = |args: &[&str]| plan(args).groups[0].stages[0].requests_compression();
    assert!(asks(&["u", "--extract", "a"]));
    assert!(!asks(&["u", "--extract", "a", "--no-compressed"]));
    assert!(asks(&["u", "--compressed"]));
}

#[test]
fn data_options_are_joined_as_in_curl() {
    let body = |args: &[&str]| match request(&[args, &["u"]].concat()).body {
        Some(RequestBodyArg::Bytes(bytes)) => bytes,
        other => panic!("{other:?}"),
    };
    assert_eq!(body(&["-d", "a=1", "--data-binary", "b", "--data-raw", "@c"]), b"a=1&b&@c");
    assert_eq!(body(&["-d", "@body"]), b"abc");
    assert_eq!(body(&["--data-binary", "@body"]), b"a\r\nb\0c");
    assert_eq!(body(&["--json", "{\"a\":", "--json", "1}"]), b"{\"a\":1}");
    assert_eq!(body(&["-d", ""]), b"");
    assert_eq!(body(&["-d", "", "-d", "a"]), b"a");
    let error = read(&["-d", "@none", "u"]).expect_err("no such file");
    assert_eq!(error.exit_code(), 26);
    assert!(error.to_string().starts_with("haul: option --data: cannot read 'none': "), "{error}");
}

#[test]
fn data_options_choose_method_and_media_type() {
    let form = request(&["-d", "a", "u"]);
    assert_eq!(form.method, "POST");
    assert_eq!(form.content_type.as_deref(), Some("application/x-www-form-urlencoded"));
    let json = request(&["--json", "1", "-H", "content-type: x/y", "-X", "PUT", "u"]);
    assert_eq!((json.method.as_str(), json.custom_method), ("PUT", true));
    assert_eq!(json.fields, [set("content-type", "x/y"), set("Accept", "application/json")]);
    assert_eq!(request(&["-I", "u"]).method, "HEAD");
    let error = read(&["-I", "-d", "x", "u"]).expect_err("two methods");
    assert!(error.to_string().contains("only select one HTTP request method"));
}

#[test]
fn header_fields_override_dedicated_options() {
    let agent = |args: &[&str]| request(&[args, &["u"]].concat()).user_agent;
    assert_eq!(agent(&["-A", "x"]).as_deref(), Some(&b"x"[..]));
    assert_eq!(agent(&["-A", ""]), None);
    assert_eq!(agent(&["-A", "x", "-H", "user-agent: y"]), None);
    assert_eq!(agent(&["-H", "User-Agent:"]), None);
    let own = request(&["-u", "a:b:c", "u"]);
    assert_eq!(own.auth.user, Credentials::new("a", "b:c").ok());
    let secrets = ["-u", "a:secret", "-b", "c=secret", "-d", "secret", "-H", "X: secret", "u"];
    assert!(!format!("{:?}", request(&secrets)).contains("secret"));
    assert_eq!(request(&["-u", "a:b", "-H", "Authorization: c", "u"]).auth.user, None);
}

#[test]
fn header_option_reads_fields_from_a_file() {
    let plan = plan(&["-H", "X-Zero;", "-H", "@headers", "u"]);
    let name = |name: &str| name.to_owned();
    assert_eq!(
        plan.groups[0].stages[0].request.fields,
        [HeaderArg::Empty { name: name("X-Zero") }, set("X-One", "1"), HeaderArg::Remove { name: name("Accept") },],
    );
    assert_eq!(plan.warnings, ["a line of 'headers' does not look like a header; it is left out"]);
}

#[test]
fn write_out_warns_about_unknown_variables() {
    let plan = plan(&["-w", "%{nope}", "-D", "-", "-i", "u"]);
    assert_eq!(plan.warnings, ["unknown --write-out variable: 'nope'"]);
    let report = &plan.groups[0].stages[0].report;
    assert!(report.include && report.write_out.is_some());
    assert_eq!(report.dump_header, Some(PathBuf::from("-")));
    assert_eq!(read(&["-w", "@none", "u"]).expect_err("no such file").exit_code(), 26);
}

#[test]
fn resolve_and_connect_to_are_parsed() {
    let all = plan(&[
        "--resolve",
        "EXAMPLE.com:443:127.0.0.1,[::1]",
        "--resolve",
        "+*:80:::1",
        "--resolve",
        "-example.com:443",
        "--connect-to",
        "A.example:80:[::1]:8080",
        "--connect-to",
        "::b.example:",
        "u",
    ]);
    let transfer = &all.groups[0].stages[0].transfer;
    let entry = |host: &str, port, addresses: &[&str]| ResolveArg {
        host: host.to_owned(),
        port,
        addresses: addresses.iter().map(|text| text.parse().expect("an address")).collect(),
    };
    assert_eq!(
        transfer.resolve,
        [entry("example.com", 443, &["127.0.0.1", "::1"]), entry("*", 80, &["::1"]), entry("example.com", 443, &[]),],
    );
    let host = |name: &str| Some(name.to_owned());
    let first = ConnectToRule { host: host("a.example"), port: Some(80), to_host: host("::1"), to_port: Some(8080) };
    let second = ConnectToRule { host: None, port: None, to_host: host("b.example"), to_port: None };
    assert_eq!(transfer.options.connect_to, [first, second]);
    for bad in
        ["foo", "h:80", "h:x:127.0.0.1", "h:80:nope", "h:70000:127.0.0.1", ":80:::1", "h::::1", "[h:80:::1", "h:80:"]
    {
        assert_eq!(read(&["--resolve", bad, "u"]).expect_err(bad).exit_code(), 49);
    }
    for bad in ["", "a", "a:1", "a:x:b:1", "a:1:b:1:2", "[a:1:b:1", "a:1:[b]c:1"] {
        assert_eq!(read(&["--connect-to", bad, "u"]).expect_err(bad).exit_code(), 49);
    }
}
