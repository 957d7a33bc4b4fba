use super::*;

fn part(text: &str) -> ParsedFormPart {
    match parse(text.as_bytes()) {
        Ok((ParsedFormOption::Part(part), warnings)) if warnings.is_empty() => part,
        Ok(_) => panic!("{text}: warnings, or no part"),
        Err(reason) => panic!("{text}: {reason}"),
    }
}

fn bytes(part: &ParsedFormPart) -> &str {
    match &part.content {
        ParsedPartContent::Bytes(bytes) => std::str::from_utf8(bytes).expect("text"),
        _ => panic!("no bytes"),
    }
}

fn is_file(part: &ParsedFormPart, file: &str, told: bool) -> bool {
    matches!(&part.content, ParsedPartContent::File { path, named } if path == std::path::Path::new(file) && *named == told)
}

#[test]
fn form_values_are_quoted_or_bare_words() {
    for (text, value) in [
        ("a=b", "b"),
        ("a=", ""),
        ("a=b=c,d", "b=c,d"),
        ("a= sp ;type=text/plain", "sp"),
        (r#"a="x\"y\\z;\n""#, r#"x"y\z;\n"#),
        (r#"a="un"#, r#""un"#),
        (r#"a="un\""#, r#""un\""#),
        ("a=b@c", "b@c"),
        ("a=b(", "b("),
        ("a=)", ")"),
    ] {
        assert_eq!(bytes(&part(text)), value, "{text}");
        assert_eq!(part(text).name.as_deref(), Some(&b"a"[..]), "{text}");
    }
    assert_eq!(part("=b").name, None);
}

#[test]
fn form_parameters_follow_the_value() {
    let all = part(r#"e=v; type=text/x; charset="u" ; FILENAME="a;b";headers="X: y";headers=@h"#);
    assert_eq!(all.content_type.as_deref(), Some(r#"text/x; charset="u""#));
    assert_eq!(all.filename.as_deref(), Some(&b"a;b"[..]));
    assert!(all.headers == [ParsedPartHeaders::Text(b"X: y".to_vec()), ParsedPartHeaders::File("h".into())]);
    for bad in ["a=b;type=xx", "a=b;type=/x", "a=b;type=x/", "a=b;type=", "a=b;type=x/y\nz", "a"] {
        assert!(matches!(parse(bad.as_bytes()), Err(UsageErrorReason::BadUse(_))), "{bad}");
    }
    assert_eq!(part("a=b;encoder=Base64;type=a/b").encoder, Some(FormPartEncoding::Base64));
    for odd in ["a=b;encoder=rot13", "a=b;encoder="] {
        assert_eq!(parse(odd.as_bytes()).err(), Some(UsageErrorReason::Encoder), "{odd}");
    }
    for odd in ["a=b;foo=bar", r#"a="x"y"#] {
        let (item, warnings) = parse(odd.as_bytes()).unwrap_or_else(|reason| panic!("{odd}: {reason}"));
        assert!(matches!(item, ParsedFormOption::Part(_)) && warnings.len() == 1, "{odd}");
    }
}

#[test]
fn form_files_are_single_or_listed() {
    assert!(is_file(&part("a=@f"), "f", true));
    assert!(is_file(&part("a=<f,g"), "f,g", false));
    assert!(is_file(&part("a=@-"), "-", true));
    assert!(is_file(&part(r#"a=@"f,g";filename=z"#), "f,g", true));
    assert_eq!(part("a=<f;filename=q").filename, None);
    let ParsedPartContent::List(files) = part("a=@f;type=a/b,g;filename=z , h").content else { panic!("a list") };
    assert!(is_file(&files[0], "f", true) && is_file(&files[1], "g", true) && is_file(&files[2], "h", true));
    assert_eq!(files[0].content_type.as_deref(), Some("a/b"));
    assert_eq!(files[1].filename.as_deref(), Some(&b"z"[..]));
    assert!(files.iter().all(|file| file.name.is_none()));
    for bad in ["a=@", "a=@f,", "a=@,f", "a=<", "a=b;headers=@"] {
        assert_eq!(parse(bad.as_bytes()).err(), Some(UsageErrorReason::Blank), "{bad}");
    }
}

fn form(items: &[&str]) -> Result<Vec<ParsedFormPart>, UsageErrorReason> {
    let mut form = FormOfAllOptions::default();
    for text in items {
        form.push(parse(text.as_bytes())?.0)?;
    }
    Ok(form.into_parts())
}

#[test]
fn nested_form_lists_open_and_close() {
    let parts = form(&["a=1", "b=(;type=multipart/alternative", "=2", "c=(", "=3", "=)", "=4", "=)", "d=5"]);
    let parts = parts.expect("a form");
    assert_eq!(parts.len(), 3);
    assert_eq!(parts[1].content_type.as_deref(), Some("multipart/alternative"));
    let ParsedPartContent::List(inner) = &parts[1].content else { panic!("a list") };
    assert!(bytes(&inner[0]) == "2" && bytes(&inner[2]) == "4");
    assert!(matches!(&inner[1].content, ParsedPartContent::List(inner) if inner.len() == 1));
    let open = form(&["b=(", "c=(", "=1"]).expect("lists close by themselves");
    assert!(matches!(&open[..], [ParsedFormPart { content: ParsedPartContent::List(inner), .. }] if inner.len() == 1));
    assert!(form(&["a=1", "=)"]).is_err());
    assert!(form(&["a=("; DEPTH_MAX]).is_ok() && form(&["a=("; DEPTH_MAX + 1]).is_err());
}

#[test]
fn form_parser_survives_truncated_and_changed_input() {
    let seed = br#"n=@"a\"b";type=x/y; q=1;filename=z,c;headers="H: v",d"#;
    for end in 0..seed.len() {
        let _ = parse(&seed[..end]);
        for byte in [0, b'"', b'\\', b';', b',', b'=', b'@', b'(', b'\n', 0xff] {
            let mut text = seed.to_vec();
            text[end] = byte;
            if let Ok((ParsedFormOption::Part(part), _)) = parse(&text) {
                let clean = |part: &ParsedFormPart| !part.content_type.iter().any(|text| text.contains(['\n', '\0']));
                let ParsedPartContent::List(parts) = &part.content else {
                    assert!(clean(&part));
                    continue;
                };
                assert!(parts.iter().all(clean), "{text:?}");
            }
        }
    }
}
