use std::collections::HashMap;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use super::*;
use crate::parsed_args::{InfoOption, TextOrFile};
use crate::plan::{ContinueAt, OutputArg, StatsFormat};
use crate::url_sources::UrlSource;
use haul::net::tls::TlsVersion;

#[derive(Default)]
struct MemoryFileAccess(HashMap<PathBuf, String>);

impl MemoryFileAccess {
    fn with(mut self, path: &str, text: &str) -> Self {
        self.0.insert(path.into(), text.to_owned());
        self
    }
}

impl FilesAndEnvironment for MemoryFileAccess {
    fn open(&mut self, path: &Path) -> io::Result<Box<dyn Read>> {
        let text = self.0.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(io::Cursor::new(text.clone())))
    }
}

fn read(args: &[&str], files: MemoryFileAccess) -> Result<ParsedArgs, UsageError> {
    let mut files = files;
    parse(args.iter().map(Into::into), &mut files)
}

fn ok(args: &[&str]) -> ParsedArgs {
    read(args, MemoryFileAccess::default()).unwrap_or_else(|error| panic!("{args:?}: {error}"))
}

fn first_line(args: &[&str]) -> String {
    let error = read(args, MemoryFileAccess::default()).expect_err("the command line is wrong");
    error.to_string().lines().next().expect("an error has a line").to_owned()
}

fn urls(parsed: &ParsedArgs, group: usize) -> Vec<UrlSource<'_>> {
    parsed.groups[group].urls.iter().collect()
}

#[test]
fn short_options_bundle_and_values_may_be_attached() {
    let file = |name: &str| OutputArg::File(name.into());
    for args in [
        &["-sSkofile"][..],
        &["-sSko", "file"],
        &["-s", "-S", "-k", "-o", "file"],
        &["-sS", "-k", "--output=file"],
        &["--silent", "--show-error", "--insecure", "--output", "file"],
    ] {
        let parsed = ok(args);
        assert!(parsed.global.silent && parsed.global.show_error, "{args:?}");
        assert!(!parsed.groups[0].stages[0].transfer.tls.options.verify, "{args:?}");
        assert_eq!(parsed.groups[0].outputs, [file("file")], "{args:?}");
    }
    assert_eq!(ok(&["-o=x"]).groups[0].outputs, [file("=x")]);
    assert_eq!(ok(&["-o-s"]).groups[0].outputs, [file("-s")]);
    assert_eq!(ok(&["-o-"]).groups[0].outputs, [OutputArg::Stdout]);
    assert_eq!(ok(&["--output=a=b"]).groups[0].outputs, [file("a=b")]);
    assert_eq!(ok(&["-so", "-"]).groups[0].outputs, [OutputArg::Stdout]);
}

#[test]
fn no_prefix_turns_switches_off() {
    let parsed = ok(&["--no-location", "--no-fail", "--no-progress-meter", "-k", "--no-insecure"]);
    let transfer = &parsed.groups[0].stages[0].transfer;
    assert!(
        !transfer.options.redirects.follow
            && !transfer.options.fail
            && transfer.tls.options.verify
            && !parsed.global.progress
    );
    assert!(ok(&["--no-location", "-L"]).groups[0].stages[0].transfer.options.redirects.follow);
}

#[test]
fn options_may_follow_urls_until_two_dashes() {
    let parsed = ok(&["a", "-s", "b", "--url", "c", "--", "-s", "--", "--next"]);
    let text = ["a", "b", "c", "-s", "--", "--next"];
    assert_eq!(urls(&parsed, 0), text.map(UrlSource::Argument));
    assert_eq!(parsed.groups.len(), 1);
}

#[test]
fn parse_errors_name_the_option() {
    let text = [
        (&["--foo"][..], "haul: there is no option --foo"),
        (&["--foo=secret"], "haul: there is no option --foo"),
        (&["-"], "haul: there is no option -"),
        (&["-s!"], "haul: there is no option -s!"),
        (&["--silen"], "haul: there is no option --silen; did you mean --silent?"),
        (&["--no-"], "haul: there is no option --no-"),
        (&["-sX"], "haul: option -sX: needs a value"),
        (&["--data"], "haul: option --data: needs a value"),
        (&["--max-time", "abc"], "haul: option --max-time: the value is not a number"),
        (&["-m-1"], "haul: option -m: the value must be a positive number"),
        (&["--parallel-max=70000"], "haul: option --parallel-max: the number is too large"),
        (&["--no-data", "x"], "haul: option --no-data: has no form with --no-"),
        (&["--no-next"], "haul: option --no-next: has no form with --no-"),
        (&["--silent=1"], "haul: option --silent: takes no value"),
        (&["-o", ""], "haul: option -o: the value is empty"),
        (&["-C", "x"], "haul: option -C: the value is not a number"),
        (&["-C-5"], "haul: option -C: the value must be a positive number"),
        (&["-C", ""], "haul: option -C: the value is empty"),
        (&["--limit-rate", "5x"], "haul: option --limit-rate: unsupported unit, use B, K, M, G, T or P"),
        (&["--limit-rate", "99999999999G"], "haul: option --limit-rate: the number is too large"),
        (&["-Y1k"], "haul: option -Y: the value is not a number"),
        (&["-y", "0.5"], "haul: option -y: the value is not a number"),
        (&["-y", "9999999999"], "haul: option -y: the number is too large"),
        (&["--split", "0"], "haul: option --split: the least value is 1"),
        (&["--split=257"], "haul: option --split: the number is too large"),
        (&["--create-file-mode", "0888"], "haul: option --create-file-mode: the value is not a number"),
        (&["--create-file-mode", "4755"], "haul: option --create-file-mode: the number is too large"),
        (&["--no-split"], "haul: option --no-split: has no form with --no-"),
        (&["--checksum=sha256:00"], "haul: option --checksum: sha256: needs 64 hexadecimal digits"),
        (&["--next"], "haul: option --next: missing URL before --next"),
        (&["u", "--next", "--next"], "haul: option --next: missing URL before --next"),
    ];
    for (args, expected) in text {
        assert_eq!(first_line(args), expected, "{args:?}");
    }
}

#[test]
fn unsupported_curl_options_are_refused_with_reason() {
    let version = crate::program_persona::VERSION;
    for (option, why) in [
        ("--proxy-http3", "no proxy is spoken to by HTTP/3"),
        ("--epsv", "it belongs to FTP, and haul speaks only HTTP"),
        ("-Q", "it belongs to FTP, and haul speaks only HTTP"),
    ] {
        let expected = format!("haul: option {option}: is not supported by haul {version} ({why})");
        assert_eq!(first_line(&[option, "x"]), expected);
    }
}

#[test]
fn parse_errors_do_not_repeat_values() {
    for args in [
        &["-usecret\n"][..],
        &["--user=secret\n"],
        &["-Hsecret word: x"],
        &["--oauth2-bearer=secret\n"],
        &["-bsecret=\n"],
        &["--user", "secret\n"],
        &["-xsecret://h"],
        &["--socks5=secret:x"],
        &["-Fsecret"],
    ] {
        // The example of the second line has a word of its own.
        let line = first_line(args);
        assert!(!line.contains("secret"), "{line}");
    }
    let files = MemoryFileAccess::default().with("c", "user = \"secret\\n\"\n");
    let error = read(&["-Kc"], files).expect_err("the value is refused");
    let line = error.to_string().lines().next().expect("a line").to_owned();
    assert!(line.starts_with("haul: c:1: option user: ") && !line.contains("secret"), "{line}");
}

#[test]
fn optional_values_require_an_equals_sign() {
    let parsed = ok(&["--stats", "json"]);
    assert_eq!(parsed.global.stats, Some(StatsFormat::Text));
    assert_eq!(urls(&parsed, 0), [UrlSource::Argument("json")]);
    assert_eq!(ok(&["--stats=json"]).global.stats, Some(StatsFormat::Json));
    assert!(first_line(&["--stats=xml"]).contains("option --stats: "));
}

#[test]
fn help_and_version_end_parsing() {
    assert_eq!(ok(&["-h"]).info, Some(InfoOption::Help(None)));
    assert_eq!(ok(&["--help", "all", "--foo"]).info, Some(InfoOption::Help(Some("all".into()))));
    assert_eq!(ok(&["-sh", "--output"]).info, Some(InfoOption::Help(Some("--output".into()))));
    assert_eq!(ok(&["-V", "--foo"]).info, Some(InfoOption::Version));
}

#[test]
fn next_resets_options_of_the_group() {
    let args = ["-s", "-k", "-oa", "u", "-:", "v", "--next", "-I", "w", "--threads", "3"];
    let parsed = ok(&args);
    assert_eq!(parsed.groups.len(), 3);
    assert!(!parsed.groups[0].stages[0].transfer.tls.options.verify);
    assert!(parsed.groups[1].stages[0].transfer.tls.options.verify);
    assert!(parsed.groups[1].outputs.is_empty());
    assert!(parsed.groups[2].stages[0].request.head);
    assert!(parsed.global.silent);
    assert_eq!(parsed.global.threads, Some(3));
    assert_eq!(urls(&parsed, 1), [UrlSource::Argument("v")]);
}

#[test]
fn options_belong_to_the_latest_then_stage() {
    let parsed = ok(&[
        "u",
        "-A",
        "one",
        "-u",
        "a:b",
        "-d",
        "x",
        "--cacert",
        "ca",
        "-m",
        "7",
        "--extract",
        "A+",
        "--then",
        "http://h/{}",
        "-H",
        "X: 2",
        "--tlsv1.3",
        "--extract",
        "B+",
        "--unique",
        "--sort",
    ]);
    let [first, second] = &parsed.groups[0].stages[..] else { panic!("two stages") };
    assert!(first.template.is_none());
    let template = second.template.as_ref().expect("--then has a template");
    assert_eq!(template.expand(b"A").as_deref(), Ok("http://h/A"));
    assert_eq!((&*first.extract, &*second.extract), (&["A+".to_owned()][..], &["B+".to_owned()][..]));
    assert!(!first.unique && second.unique && !first.sort && second.sort);
    // What is sent stays with its stage; how it is moved is inherited.
    assert!(first.request.user.is_some() && second.request.user.is_none());
    assert!(first.request.user_agent.is_some() && second.request.user_agent.is_none());
    assert!(!first.request.data.is_empty() && second.request.data.is_empty());
    assert!(first.request.fields.is_empty() && !second.request.fields.is_empty());
    assert_eq!(second.transfer.tls.options.ca_file, first.transfer.tls.options.ca_file);
    assert_eq!(second.transfer.max_time, Some(Duration::from_secs(7)));
    assert_eq!(first.transfer.tls.options.min_version, TlsVersion::V1_2);
    assert_eq!(second.transfer.tls.options.min_version, TlsVersion::V1_3);
}

#[test]
fn then_requires_extract() {
    assert!(first_line(&["u", "--then", "{}"]).contains("--extract"));
    assert!(first_line(&["u", "--extract", "a", "--then", "{}", "--then", "{}"]).contains("--extract"));
    let expected = "haul: option --then: ";
    assert!(first_line(&["u", "--extract", "a", "--then", "http://h/"]).starts_with(expected));
    assert!(first_line(&["u", "--extract", "a", "--then", "http://u:p@{}/"]).starts_with(expected));
}

#[test]
fn config_file_options_apply_at_their_position() {
    let text =
        "# list\nurl = \"http://h/1\"\n-o one\n\nurl=http://h/2\noutput: \"two\"\nno-location\n--max-time 4\n-sS\n";
    let parsed =
        read(&["-o", "zero", "http://h/0", "-K", "c", "http://h/3"], MemoryFileAccess::default().with("c", text));
    let parsed = parsed.expect("the file is right");
    assert_eq!(urls(&parsed, 0), ["http://h/0", "http://h/1", "http://h/2", "http://h/3"].map(UrlSource::Argument));
    let names = ["zero", "one", "two"].map(|name| OutputArg::File(name.into()));
    assert_eq!(parsed.groups[0].outputs, names);
    let transfer = &parsed.groups[0].stages[0].transfer;
    assert!(!transfer.options.redirects.follow);
    assert_eq!(transfer.max_time, Some(Duration::from_secs(4)));
    assert!(parsed.global.silent && parsed.global.show_error);
}

#[test]
fn config_files_hold_groups_and_stages() {
    let text = "next\nurl = a\nnext\nurl = b\nextract = \"x+\"\nthen = \"http://h/{}\"\n--next\nurl = c\n";
    let parsed = read(&["-K-"], MemoryFileAccess::default().with("-", text)).expect("the file is right");
    assert_eq!(parsed.groups.len(), 3);
    assert_eq!(parsed.groups[1].stages.len(), 2);
    assert_eq!(urls(&parsed, 2), [UrlSource::Argument("c")]);
}

#[test]
fn config_files_nest_up_to_a_limit() {
    let mut files = MemoryFileAccess::default();
    for depth in 0..5 {
        files = files.with(&format!("c{depth}"), &format!("config = c{}\n", depth + 1));
    }
    let mut deep = MemoryFileAccess(files.0.clone());
    deep = deep.with("c5", "url = u");
    let error = read(&["-K", "c0"], deep).expect_err("six deep");
    assert_eq!(*error.reason(), UsageErrorReason::TooDeep);
    let parsed = read(&["-K", "c0"], files.with("c4", "url = u")).expect("five deep");
    assert_eq!(urls(&parsed, 0), [UrlSource::Argument("u")]);
    let own = MemoryFileAccess::default().with("c", "-K c");
    assert_eq!(*read(&["-K", "c"], own).expect_err("its own").reason(), UsageErrorReason::TooDeep);
    // Depth is not a count: files beside each other are fine.
    let side = MemoryFileAccess::default().with("a", "url = a");
    assert_eq!(read(&["-Ka"; 20], side).expect("beside").groups[0].urls.len(), 20);
}

#[test]
fn config_errors_name_file_and_line() {
    let cases = [
        ("url = a\nfoo = b\n", "haul: c:2: there is no option foo"),
        ("o = b\n", "haul: c:1: there is no option o"),
        ("silent = x\n", "haul: c:1: option silent: takes no value"),
        ("\n-o\n", "haul: c:2: option -o: needs a value"),
        ("max-time = soon\n", "haul: c:1: option max-time: the value is not a number"),
        ("proxy-http3\n", "haul: c:1: option proxy-http3: is not supported by haul"),
        ("a\x1b[31m\n", "haul: c:1: there is no option a?[31m"),
        ("url = a\0b\n", "haul: c:1: the line holds a NUL byte; if the file is UTF-16, save it as UTF-8"),
    ];
    for (text, expected) in cases {
        let error = read(&["-K", "c"], MemoryFileAccess::default().with("c", text)).expect_err(text);
        assert!(error.to_string().starts_with(expected), "{error}");
        assert_eq!(error.exit_code(), 2);
    }
    let error = read(&["-K", "none"], MemoryFileAccess::default()).expect_err("no such file");
    assert_eq!(error.exit_code(), 26);
    assert!(error.to_string().starts_with("haul: option -K: cannot read 'none': "), "{error}");
}

#[test]
fn suspicious_config_lines_warn() {
    let text = "url = http://h/a b\nurl = \"http://h/\n";
    let parsed = read(&["-K", "c"], MemoryFileAccess::default().with("c", text)).expect("taken as in curl");
    assert_eq!(parsed.warnings.len(), 2);
    assert!(parsed.warnings[0].starts_with("c:1 Option 'url' uses argument with unquoted whitespace. "));
    assert_eq!(urls(&parsed, 0), ["http://h/a", "http://h/"].map(UrlSource::Argument));
    let many = "url = a b\n".repeat(100_000);
    let parsed = read(&["-K", "c"], MemoryFileAccess::default().with("c", &many)).expect("taken as in curl");
    assert_eq!(parsed.groups[0].urls.len(), 100_000);
    assert_eq!(parsed.warnings.len(), 100);
}

#[test]
fn file_names_that_look_like_flags_warn() {
    let parsed = ok(&["-o", "--foo", "u"]);
    assert_eq!(parsed.warnings, ["The filename argument '--foo' looks like a flag."]);
    assert!(ok(&["-o", "-", "u"]).warnings.is_empty());
    assert!(ok(&["-d", "-x", "u"]).warnings.is_empty());
}

#[test]
fn flag_values_are_parsed_into_typed_settings() {
    let parsed = ok(&[
        "-bone=1",
        "-b",
        "two=2",
        "-e",
        "http://r/;auto",
        "-r",
        "5",
        "--max-redirs",
        "-1",
        "--retry-delay",
        "0.5",
        "--max-filesize",
        "1k",
        "--max-memory",
        "2M",
        "--pipeline",
        "32",
        "--connect-timeout",
        "0",
        "--limit-rate",
        "1.5m",
        "--split",
        "16",
        "--create-file-mode",
        "0640",
        "-C7",
        "-w@f",
        "--json",
        "@-",
    ]);
    let stage = &parsed.groups[0].stages[0];
    assert_eq!(stage.request.cookie.as_deref(), Some(&b"one=1; two=2"[..]));
    assert_eq!(stage.request.referer.as_deref(), Some(&b"http://r/"[..]));
    assert!(stage.request.auto_referer);
    assert_eq!(stage.request.range.as_deref(), Some("5-"));
    assert_eq!(stage.transfer.options.redirects.max, u32::MAX);
    assert_eq!(stage.transfer.options.retry.delay, Some(Duration::from_millis(500)));
    assert_eq!(stage.transfer.options.max_size, Some(1024));
    assert_eq!(stage.transfer.connect_timeout, Some(Duration::from_secs(300)));
    assert_eq!((stage.transfer.options.limit_rate, stage.transfer.split), (Some(3 << 19), Some(16)));
    assert_eq!(stage.request.continue_at, Some(ContinueAt::Offset(7)));
    assert_eq!(parsed.groups[0].create_file_mode, Some(0o640));
    assert_eq!((parsed.global.max_memory, parsed.global.pipeline), (2 << 20, 32));
    assert_eq!(stage.write_out, Some(TextOrFile::File("f".into())));
    assert_eq!(stage.request.data[0].text, TextOrFile::File("-".into()));
    assert!(first_line(&["-X", "GET /"]).contains("token"));
    assert!(first_line(&["-X", "GET\r\nA: b"]).contains("token"));
    assert!(first_line(&["-A", "a\r\nB: c"]).contains("CR, LF or NUL"));
}

#[cfg(unix)]
#[test]
fn non_utf8_values_are_accepted_as_bytes() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let arg = |bytes: &'static [u8]| OsStr::from_bytes(bytes).to_owned();
    let parsed = parse([arg(b"-d\xff"), arg(b"-HA: \xe4"), arg(b"-D\xff")], &mut MemoryFileAccess::default());
    let parsed = parsed.expect("these are bytes");
    let data = &parsed.groups[0].stages[0].request.data[0];
    assert_eq!(data.text, TextOrFile::Text(vec![0xff]));
    let parsed =
        parse([arg(b"http://h/\xc3\xa9\xff")], &mut MemoryFileAccess::default()).expect("a URL has them encoded");
    assert_eq!(parsed.groups[0].urls.iter().next(), Some(UrlSource::Argument("http://h/\u{e9}%FF")));
    for text in [&b"--extract=\xff"[..], b"--\xff"] {
        assert!(parse([OsStr::from_bytes(text).to_owned()], &mut MemoryFileAccess::default()).is_err());
    }
}

#[test]
fn verbose_letters_count_as_in_curl() {
    use crate::plan::TraceFormat::{Ascii, Lines, Off};
    for (args, form, has_ids, has_time) in [
        (&["-v"][..], Lines, false, false),
        (&["-vv"], Lines, true, true),
        (&["-vvv"], Ascii, true, true),
        (&["-vsvs"], Lines, true, true),
        (&["-v", "-v", "-v"], Lines, false, false),
        (&["-vv", "-v"], Lines, false, false),
        (&["-vvv", "--verbose"], Lines, false, false),
        (&["-vv", "-sv"], Ascii, true, true),
        (&["-sv", "-sv"], Lines, true, true),
        (&["-vv", "--no-verbose"], Off, false, false),
        (&["-vv", "--no-verbose", "-sv"], Lines, false, false),
        (&["-vv", "--no-trace-time"], Lines, true, false),
        (&["--trace-config", "ids", "-v"], Lines, true, false),
        (&["-vv", "--trace-config", "time", "-v"], Lines, true, true),
        (&["-v", "--trace-time"], Lines, false, true),
        // Under haul's own name, -v ends no option that was given by its name.
        (&["--trace-time", "-v"], Lines, false, true),
    ] {
        let trace = ok(&[args, &["http://h/"]].concat()).global.trace;
        assert_eq!((trace.form, trace.ids, trace.time), (form, has_ids, has_time), "{args:?}");
    }
    let words = ["-q", "--trace-time", "--trace-ids", "-v", "http://h/"].map(OsString::from);
    let parsed = parse_as(ProgramPersona::Curl, words, &mut MemoryFileAccess::default());
    let trace = parsed.expect("options of curl").global.trace;
    assert!(!trace.time && !trace.ids);
}
