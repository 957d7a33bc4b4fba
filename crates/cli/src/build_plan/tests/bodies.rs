use super::*;
use crate::plan::{ContinueAt, FormArgs, FormPartSource, append_query};
use haul_policy::multipart::{MultipartBoundary, MultipartLayout, MultipartPiece};

fn query(args: &[&str]) -> Option<String> {
    request(&[args, &["u"]].concat()).query
}

fn form(args: &[&str]) -> FormArgs {
    match request(&[args, &["u"]].concat()).body {
        Some(RequestBodyArg::Multipart(form)) => form,
        other => panic!("{other:?}"),
    }
}

/// Resolves the `-F` options in `args`. Returns the multipart body as text, with `<INDEX>` in place
/// of each content and `B` in place of the boundary.
fn laid_out(args: &[&str]) -> String {
    let form = form(args);
    let layout =
        MultipartLayout::new(&form.parts_of(&[]), &MultipartBoundary::new([0; 16]), form.escape).expect("a layout");
    let text = |piece: &MultipartPiece| match piece {
        MultipartPiece::Literal(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        MultipartPiece::Source { index, .. } => format!("<{index}>"),
    };
    layout.pieces.iter().map(text).collect::<String>().replace(&format!("{}{}", "-".repeat(24), "0".repeat(22)), "B")
}

#[test]
fn data_urlencode_accepts_five_forms() {
    for (argument, expected) in [
        ("a b&c", "a+b%26c"),
        ("=a=b", "a%3Db"),
        ("n=a b", "n=a+b"),
        ("@body", "a%0D%0Ab%00c"),
        ("n@body", "n=a%0D%0Ab%00c"),
    ] {
        let body = request(&["-d", "x=1", "--data-urlencode", argument, "u"]).body;
        assert_eq!(body, Some(RequestBodyArg::Bytes(format!("x=1&{expected}").into_bytes())), "{argument}");
    }
    for (argument, code) in [("n@", 2), ("n@none", 26)] {
        assert_eq!(read(&["--data-urlencode", argument, "u"]).expect_err(argument).exit_code(), code);
    }
}

#[test]
fn get_option_appends_data_to_the_query() {
    let get = request(&["-G", "-d", "a=1", "--data-urlencode", "b=c d", "--json", "2", "u"]);
    assert_eq!((get.method.as_str(), get.body, get.query.as_deref()), ("GET", None, Some("a=1&b=c+d2")));
    assert_eq!(request(&["-G", "-d", "a", "-I", "u"]).method, "HEAD");
    assert!(request(&["-G", "-d", "a", "u"]).content_type.is_none(), "a GET has no Content-Type");
    assert_eq!(query(&["-G"]), None);
    assert_eq!(query(&["--url-query", "a=b c", "--url-query", "+d%20e"]).as_deref(), Some("a=b+c&d%20e"));
    assert_eq!(query(&["-G", "-d", "a b#\u{e4}\"", "--url-query", "q=1"]).as_deref(), Some("q=1&a%20b%23%C3%A4\""));
    let post = request(&["-d", "a", "--url-query", "q", "u"]);
    assert_eq!((post.method.as_str(), post.query.as_deref()), ("POST", Some("q")));
    assert_eq!(append_query("http://h/?x#f", "q"), "http://h/?x&q#f");
}

#[test]
fn single_large_data_file_is_streamed() {
    assert_eq!(request(&["--data-binary", "@big", "u"]).body, Some(RequestBodyArg::File("big".into())));
    assert_eq!(request(&["--json", "@big", "u"]).body, Some(RequestBodyArg::File("big".into())));
    for args in [&["-d", "@big", "u"][..], &["--data-binary", "@big", "-d", "", "u"], &["--data-binary", "@body", "u"]]
    {
        assert!(matches!(request(args).body, Some(RequestBodyArg::Bytes(_))), "{args:?}");
    }
    assert_eq!(read(&["--data-binary", "@none", "u"]).expect_err("no file").exit_code(), 26);
}

#[test]
fn form_options_build_the_same_parts_as_curl() {
    assert_eq!(request(&["-F", "a=b", "u"]).method, "POST");
    assert!(request(&["-F", "a=b", "u"]).fields.is_empty(), "the layout has the Content-Type");
    let expected = "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"body\"\r\n\
                    Content-Type: application/octet-stream\r\nX-One: 1\r\nAccept:\r\nodd\r\n\r\n<0>\r\n\
                    --B\r\nContent-Disposition: form-data; name=\"g\"; filename=\"z.png\"\r\nContent-Type: image/png\r\n\r\n<1>\r\n\
                    --B\r\nContent-Disposition: form-data; name=\"v\"\r\n\r\n<2>\r\n\
                    --B\r\nContent-Disposition: form-data; name=\"s\"; filename=\"-\"\r\n\r\n<3>\r\n\
                    --B\r\nContent-Disposition: form-data; name=\"m\"; filename=\"x.html\"\r\nContent-Type: text/html\r\n\r\n1\r\n\
                    --B\r\nContent-Disposition: form-data; name=\"o\"; filename=\"x.foo\"\r\n\r\n2\r\n\
                    --B\r\nContent-Disposition: form-data; name=\"l\"\r\n\r\n@a;type=b\r\n--B--\r\n";
    let args = [
        "-F",
        "f=@body;headers=@headers",
        "-F",
        "g=@body;filename=z.png",
        "-F",
        "v=<body",
        "-F",
        "s=@-",
        "-F",
        "m=1;filename=x.html",
        "-F",
        "o=2;filename=x.foo",
        "--form-string",
        "l=@a;type=b",
    ];
    assert_eq!(laid_out(&args), expected);
    let file = FormPartSource::File("body".into());
    assert_eq!(form(&args).sources(), [&file, &file, &file, &FormPartSource::Stdin]);
    assert!(laid_out(&["--form-escape", "-F", "a\"b=c"]).contains("name=\"a\\\"b\""));
    let list = form(&["-F", "a=@body,big", "-F", "b=(", "-F", "=<body", "-F", "=)"]);
    assert_eq!((list.parts.len(), list.sources().len()), (2, 3));
    for (args, code) in [
        (&["-F", "a=@none"][..], 26),
        (&["-F", "a=b;headers=@none"], 26),
        (&["-F", "a=@-", "-F", "b=<-"], 2),
        (&["-F", "a=b;encoder=rot13"], 43),
    ] {
        assert_eq!(read(&[args, &["u"]].concat()).expect_err("a bad form").exit_code(), code, "{args:?}");
    }
}

#[test]
fn uploads_pair_with_urls_by_position() {
    let uploads = group(&["-T", "body", "-T", "", "-T", "-", "a", "b", "c", "d"]);
    let request = &uploads.stages[0].request;
    let method = |at| request.method_for(uploads.upload_of_source(at)).to_owned();
    assert_eq!([method(0), method(1), method(2), method(3)], ["PUT", "GET", "PUT", "GET"]);
    assert_eq!(uploads.upload_of_source(0), Some(&UploadArg::File("body".into())));
    assert_eq!(uploads.upload_of_source(2), Some(&UploadArg::Stdin { interleave: false }));
    let patched = group(&["-X", "PATCH", "-T", ".", "a"]);
    assert_eq!(patched.stages[0].request.method_for(patched.upload_of_source(0)), "PATCH");
    assert_eq!(plan(&["-T", "body", "-T", "big", "u"]).warnings, ["Got more uploads than URLs"]);
    assert!(read(&["-T", "{body,big}", "u"]).is_ok());
    let rest = group(&["-C", "5", "-T", "body", "u"]);
    assert_eq!(rest.stages[0].request.continue_at, Some(ContinueAt::Offset(5)));
    for (args, code) in [
        (&["-T", "none", "u"][..], 26),
        (&["-T", "{body,none}", "u"], 26),
        (&["-g", "-T", "{body,big}", "u"], 26),
        (&["-T", "{body", "u"], 2),
        (&["-T", "-", "-T", ".", "u", "v"], 2),
    ] {
        assert_eq!(read(args).expect_err("a bad upload").exit_code(), code, "{args:?}");
    }
}

#[test]
fn conflicting_methods_are_refused() {
    for args in [
        &["-d", "a", "-F", "b=c"][..],
        &["-d", "a", "-T", "body"],
        &["-F", "a=b", "-T", "body"],
        &["-I", "-F", "a=b"],
        &["-I", "-T", "body"],
        &["-I", "-d", "a"],
    ] {
        let error = read(&[args, &["u"]].concat()).expect_err("two methods");
        assert!(error.to_string().contains("only select one HTTP request method"), "{error}");
        assert_eq!(error.exit_code(), 2);
    }
}
