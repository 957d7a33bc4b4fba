use super::*;

fn urls(text: &str) -> Vec<String> {
    UrlGlob::parse(text).unwrap_or_else(|e| panic!("{text}: {e}")).iter().map(|e| e.url).collect()
}

#[test]
fn glob_expansions_equal_those_of_curl() {
    let table: &[(&str, &[&str])] = &[
        ("http://h/", &["http://h/"]),
        ("", &[""]),
        ("[1-3]", &["1", "2", "3"]),
        ("[08-10]", &["08", "09", "10"]),
        ("[001-2]", &["001", "002"]),
        ("[0-10:5]", &["0", "5", "10"]),
        ("[1-4:2]", &["1", "3"]),
        ("[7-7]", &["7"]),
        ("[1- 2]", &["1", "2"]),
        ("[1-\t 2]", &["1", "2"]),
        ("[a-e:2]", &["a", "c", "e"]),
        ("[X-Z]", &["X", "Y", "Z"]),
        ("{x,,z\\,q}", &["x", "", "z,q"]),
        ("{one}", &["one"]),
        ("{\u{e9},b}", &["\u{e9}", "b"]),
        ("{a,b}[1-2]", &["a1", "a2", "b1", "b2"]),
        ("\\[a\\]\\{\\x\\", &["[a]{\\x\\"]),
        ("http://[::1]/[1-2]", &["http://[::1]/1", "http://[::1]/2"]),
        ("http://[fe80::1%25lo]/", &["http://[fe80::1%25lo]/"]),
        ("a[]b", &["a[]b"]),
        ("[9223372036854775805-9223372036854775806]", &["9223372036854775805", "9223372036854775806"]),
        ("{<x>a,b}[<y z>1-2]", &["a1", "a2", "b1", "b2"]),
        ("{<>a,b}", &["<>a", "b"]),
        ("{<x,y}", &["<x", "y"]),
    ];
    for (text, expected) in table {
        assert_eq!(urls(text), *expected, "{text}");
        assert_eq!(UrlGlob::parse(text).unwrap().count(), Some(expected.len() as u64), "{text}");
    }
}

#[test]
fn glob_errors_name_the_position() {
    use GlobErrorKind::*;
    // Flaw and position as curl prints them. It counts neither the end of a set nor an address.
    let table = [
        ("http://127.1:9/{a,b", UnmatchedBrace, 20),
        ("http://127.1:9/{}", EmptySet, 17),
        ("http://127.1:9/a}", UnmatchedClose, 17),
        ("http://127.1:9/{a,{b}}", NestedBrace, 19),
        ("http://127.1:9/{a]b}", UnexpectedBracket, 18),
        ("http://127.1:9/[%]", RangeSpecification, 17),
        ("http://127.1:9/[ 1-2]", RangeSpecification, 17),
        ("http://127.1:9/{a,b}]", UnmatchedClose, 20),
        ("http://127.1:9/[x]", Range, 17),
        ("[", RangeSpecification, 2),
        ("[1-3:5]", Range, 8),
        ("[a-", Range, 2),
        ("[a-z:x]", Range, 6),
        ("[1-2:-1]", Range, 6),
        ("[99999999999999999999-3]", Range, 2),
        ("[9223372036854775806-9223372036854775807]", RangeEnd, 42),
        ("[0-9223372036854775806:2]", RangeEnd, 26),
        ("[::1]x]", UnmatchedClose, 2),
        ("{<a>1}{<a>2}", DuplicateName, 10),
        ("{<a>}", EmptySet, 5),
    ];
    for (text, kind, position) in table {
        assert_eq!(UrlGlob::parse(text).unwrap_err(), GlobError { kind, position }, "{text}");
    }
    for text in [
        "[z-a]",
        "[1-",
        "[1-5:0]",
        "[1-3:5]",
        "[1-1:2]",
        "[5-1]",
        "[a-5]",
        "[1-2:]",
        "[a-z:x]",
        "[a-",
        "[a-z:0]",
        "[A-c:200]",
        "[1]",
        "[1-2",
        "[99999999999999999999-3]",
        "[1-99999999999999999999]",
        "[a-\u{e9}]",
        "[1-2:-1]",
        "[1-2 ]",
        "[a-z:256]",
        "[A-z]",
    ] {
        assert_eq!(UrlGlob::parse(text).unwrap_err().kind, GlobErrorKind::Range, "{text}");
    }
    let error = UrlGlob::parse("http://h/x{").unwrap_err();
    assert_eq!(error.to_string(), "unmatched brace in position 12");
    let many = |sets: usize| "{a}".repeat(sets);
    assert!(UrlGlob::parse(&many(255)).is_ok());
    assert_eq!(UrlGlob::parse(&many(256)).unwrap_err(), GlobError { kind: TooMany, position: 513 });
}

#[test]
fn named_globs_fill_placeholders_by_name() {
    let glob = UrlGlob::parse("http://h/{<dir>a,b}/[<page>7-9]/{x}").unwrap();
    let second = glob.iter().nth(1).unwrap();
    assert_eq!(second.url, "http://h/a/8/x");
    assert_eq!(fill_template("#<page>-#<dir>-#3-#<none>-#<>-#<", &second.parts), "8-a-x-#<none>-#<>-#<");
    assert!(glob.has_name("dir") && !glob.has_name("x"));
    let other = UrlGlob::parse("{<dir>c}{<more>d}").unwrap().iter().next().unwrap();
    assert_eq!(fill_template("#<dir>#<more>#4", &second.parts.with_named(&other.parts)), "ad#4");
    let names: Vec<_> = template_names("somewhere/#<foo>#1#<>#<x").collect();
    assert_eq!(names, [("foo", 16)]);
}

#[test]
fn huge_globs_expand_lazily() {
    let huge = UrlGlob::parse("[0-9223372036854775806][0-9223372036854775806]{a,b}").unwrap();
    assert_eq!(huge.count(), None);
    let last = huge.iter().nth(3).unwrap();
    assert_eq!((last.url.as_str(), last.parts.by_number()), ("01b", &["0", "1", "b"].map(String::from)[..]));
    let wide = format!("[{}1-3]", "0".repeat(100_000));
    let first = UrlGlob::parse(&wide).unwrap().iter().next().unwrap();
    assert_eq!(first.url.len(), 100_001);
}

#[test]
fn template_placeholders_are_replaced_by_glob_values() {
    let of = |parts: &[&str]| GlobValues {
        numbered: parts.iter().map(ToString::to_string).collect(),
        ..GlobValues::default()
    };
    let parts = of(&["01", "b"]);
    let fill = |template| fill_template(template, &parts);
    assert_eq!(fill("f_#1_#2_#3_#0_#_##1_#12x_#1a"), "f_01_b_#3_#0_#_#01_#12x_01a");
    assert_eq!(fill("#"), "#");
    assert_eq!(fill("#99999999999999999999999"), "#99999999999999999999999");
    assert_eq!(fill("\u{e9}#01"), "\u{e9}01");
    assert_eq!(fill_template("#1", &of(&[])), "#1");
    // What was filled in is not looked at again.
    assert_eq!(fill_template("#1", &of(&["#2", "x"])), "#2");
}

#[test]
fn filled_value_stays_within_its_directory() {
    for (template, value, expected) in [
        ("{}", "a", "a"),
        ("p_#1", "a/b\\c", "p_a_b_c"),
        ("#<id>-{}", "1", "1-1"),
        ("{}", "..", "_."),
        ("{}", ".bashrc", "_bashrc"),
        (".{}", ".", "._"),
        ("d/.{}/x", ".", "d/._/x"),
        ("d/{}{}", ".", "d/_."),
        ("v{}", ".2", "v.2"),
        ("{}", "a\0\n\u{202e}b", "a___b"),
        ("#", "x", "#"),
        ("#<>{", "x", "#<>{"),
    ] {
        for family in [OsFamily::Unix, OsFamily::Windows] {
            let filled = fill_by_value(family, template.as_bytes(), value.as_bytes());
            assert_eq!(String::from_utf8_lossy(&filled), expected, "{template} {value:?}");
        }
    }
    assert_eq!(fill_by_value(OsFamily::Unix, b"\xff{}", b"\xfe/"), b"\xff\xfe_");
    let found: Vec<_> = placeholders(b"{}#01#<a>#<>#x").collect();
    assert_eq!(found, [ValuePlaceholder::Value, ValuePlaceholder::Number("01"), ValuePlaceholder::Name("a")]);
}

#[test]
fn windows_value_begins_name_after_backslash_or_drive() {
    for (template, value, expected) in [
        ("out\\{}\\page.html", "..", "out\\_.\\page.html"),
        ("out\\{}\\{}\\x", "..", "out\\_.\\_.\\x"),
        ("out\\{}", ".npmrc", "out\\_npmrc"),
        ("out\\.#1\\x", ".", "out\\._\\x"),
        ("C:{}\\x", "..", "C:_.\\x"),
        ("C:\\{}", ".ssh", "C:\\_ssh"),
        ("d/#<id>\\x", "..", "d/_.\\x"),
        ("out\\v{}", ".2", "out\\v.2"),
    ] {
        let filled = fill_by_value(OsFamily::Windows, template.as_bytes(), value.as_bytes());
        assert_eq!(String::from_utf8_lossy(&filled), expected, "{template} {value:?}");
    }
    assert_eq!(fill_by_value(OsFamily::Unix, b"out\\{}", b".x"), b"out\\.x", "one name on Unix");
}
