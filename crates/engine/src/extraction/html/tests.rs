//! Tests of the values of HTML elements: pages with missing tags, text, hostile pages, and
//! html5lib's tokenizer tests, if they are on this machine.

use std::collections::BTreeMap;

use serde_json::Value;

use super::tag_name_and_rules::{TagName, TagSearchRules};
use super::tag_parser::Tag;
use super::tokenizer::{TextState, TokenSink, Tokenizer};
use crate::extraction::{CssQuery, ExtractRegexes, PageInfo, PageQuery, PageSearch};
use crate::{ErrorKind, Result, Target};

fn search(queries: &[&str]) -> PageSearch {
    let queries: Vec<CssQuery> = queries.iter().map(|query| CssQuery::new(query).unwrap()).collect();
    PageSearch::new(PageQuery::css(&queries).unwrap())
}

/// Searches a page in pieces of `size` bytes.
fn values_in(search: &mut PageSearch, info: &PageInfo<'_>, page: &[u8], size: usize) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut take = |_: usize, value: &[u8]| {
        found.push(String::from_utf8(value.to_vec()).expect("values are UTF-8"));
        Ok(())
    };
    search.begin(info);
    for piece in page.chunks(size) {
        search.push(piece, &mut take)?;
    }
    search.finish(&mut take)?;
    Ok(found)
}

/// Searches a page in pieces of several sizes, and checks that the values are always the same.
#[track_caller]
fn selected_as(content_type: Option<&[u8]>, queries: &[&str], page: &str) -> Vec<String> {
    let url = Target::parse("http://h/dir/page").unwrap();
    let info = PageInfo { url: Some(&url), content_type };
    let mut search = search(queries);
    let whole = values_in(&mut search, &info, page.as_bytes(), page.len().max(1)).unwrap();
    for size in [1, 2, 3, 5, 17, 300] {
        let split = values_in(&mut search, &info, page.as_bytes(), size).unwrap();
        assert_eq!(split, whole, "{queries:?} in pieces of {size}: {page}");
    }
    whole
}

#[track_caller]
fn selects(query: &str, page: &str, expected: &[&str]) {
    assert_eq!(selected_as(Some(b"text/html"), &[query], page), expected, "{query} in {page}");
}

#[test]
fn element_text_joins_blanks_and_decodes_references() {
    selects("h1", "<h1>\n  One <b>t</b>wo&nbsp;&amp;\tthree &lt;4 </h1>", &["One two\u{a0}& three <4"]);
    selects("p", "<p>a<br>b<p>c &copy &notit; &#x41;&#128; &unknown;", &["a b", "c © ¬it; A€ &unknown;"]);
    selects("tr", "<table><tr><td>1<td>2</table>", &["1 2"]);
    selects("div", "<div><p>a</p><p>b</p><span>c</span><i>d</i></div>", &["a b cd"]);
    selects("pre", "<pre>\n a  b\r\n  c\t</pre>", &["a  b   c"]);
    selects("p", "<p></p><p> </p><p>x</p>", &["x"]);
    selects("p", "<p>a<!-- b -->c<!---->d</p>", &["acd"]);
    selects("p", "<p>&am<!-- -->p; a&am<b>p;</b>", &["&amp; a&amp;"]);
    selects("b", "<b>a\0b</b>", &["ab"]);
}

#[test]
fn surrounding_text_excludes_scripts_styles_and_templates() {
    let page = "<body>a<script>if (1 < 2) \"</b>\"</script>b<style>c</style><template><p>d</p></template>e</body>";
    selects("body", page, &["abe"]);
    selects("script", page, &["if (1 < 2) \"</b>\""]);
    selects("script@type", "<script type='a&amp;b'></script>", &["a&b"]);
    let both = selected_as(None, &["body", "script", "p"], page);
    assert_eq!(both, ["abe", "if (1 < 2) \"</b>\"", "d"]);
    selects("script", "<script><!-- <script> </script> --> x</script>y", &["<!-- <script> </script> --> x"]);
    selects("script", "<script>\n{\n  \"a  b\": 1\n}\n</script>", &["{   \"a  b\": 1 }"]);
    selects("title", "<title>a &lt; <b>b</b></title>", &["a < <b>b</b>"]);
    selects("textarea", "<textarea><p>x</p></textarea>", &["<p>x</p>"]);
}

#[test]
fn attributes_are_decoded_and_urls_resolved() {
    selects("a@href", "<a HREF = '?a=1&amp;b=2&copy=3'>x</a>", &["http://h/dir/page?a=1&b=2&copy=3"]);
    selects("a@href", "<a href=x href=y><a href><a>", &["http://h/dir/x"]);
    selects("a@href", "<a href=x><base href='/b/'><base href='/c/'><a href=x>", &["http://h/dir/x", "http://h/b/x"]);
    selects("meta[name=D]@content", "<meta name=D content=' a\nb '>", &["a b"]);
    selects("img@srcset", "<img srcset='a 1x, b 2x'>", &["http://h/dir/a", "http://h/dir/b"]);
    selects("a@title", "<a title='x>y' href=\"'\">", &["x>y"]);
    selects("i@a", "<i a=1/><i a='2'b=3><i/a=4><i a = 5 / >", &["1/", "2", "4", "5"]);
}

#[test]
fn selectors_match_as_in_browsers() {
    let page = "<div id=i class='a b'><p class=a>1</p><p>2</p><ul><li>3<li class=A>4<li>5</ul></div><p>6</p>";
    for (query, expected) in [
        ("#i > p", &["1", "2"][..]),
        (".a.b .a", &["1"]),
        ("p + p", &["2"]),
        ("p ~ ul li", &["3", "4", "5"]),
        ("li:nth-child(odd)", &["3", "5"]),
        ("li:nth-child(-n+2)", &["3", "4"]),
        ("li:first-child, body > p", &["3", "6"]),
        ("p:nth-of-type(2)", &["2"]),
        ("li:not(.A)", &["3", "5"]),
        ("div :is(li, p):not(:first-child)", &["2", "4", "5"]),
        ("div > :not(ul > *):not(div)", &["1", "2", "3 4 5"]),
        ("body div[class~=b][class^='a'][class$=b][class*=' '] > p:first-of-type", &["1"]),
        ("[CLASS=a]", &["1"]),
        ("[class=a i]", &["1", "4"]),
        ("html > body > div > ul", &["3 4 5"]),
        ("li + li + li", &["5"]),
        ("#I", &[]),
        ("div > li", &[]),
    ] {
        selects(query, page, expected);
    }
    selects("a[rel=next]@href", "<a rel=Next href=x>", &["http://h/dir/x"]);
    selects("a[lang|=en]", "<a lang=en-GB>1</a><a lang=english>2</a>", &["1"]);
    selects(":root@lang", "<html lang=de><p lang=en>", &["de"]);
    selects("article-title", "<article-title>x</article-title><article-titlf>y</article-titlf>", &["x"]);
}

#[test]
fn missing_html_tags_are_supplied() {
    selects("li", "<ul><li>a<ul><li>b</ul>c<li>d</ul>", &["a b c", "b", "d"]);
    selects("dd", "<dl><dt>a<dd>b<dt>c<dd>d</dl>e", &["b", "d"]);
    selects("p", "<p>a<div>b</div>c<p>d", &["a", "d"]);
    selects("td", "<table><tr><td>a<td>b<tr><td>c</table>d", &["a", "b", "c"]);
    selects("table > tbody > tr > td", "<table><td>a<table><td>b</table></table>", &["a b", "b"]);
    selects("option", "<select><option>a<option>b<optgroup><option>c</select>d", &["a", "b", "c"]);
    selects("h1", "<h1>a<h2>b</h1>c", &["a"]);
    selects("a@href", "<a href=x>1<a href=y>2", &["http://h/dir/x", "http://h/dir/y"]);
    selects("b", "<b>a<i>b</b>c</i>", &["ab"]);
    selects("div", "<div>a<span>b</div>c</span>", &["ab"]);
    selects("head > title", "<title>a</title><p>b", &["a"]);
    selects("body", "a<p>b", &["a b"]);
    selects("body > p", "<head><title>t</title></head><p>b</body><p>c", &["b", "c"]);
    selects("body@class", "<html><head></head><body class=x><body class=y>", &["x"]);
    selects("form", "<form>a<div></form>b</div>", &["a"]);
    selects("button", "<button>a<button>b", &["a", "b"]);
}

#[test]
fn svg_and_mathml_follow_foreign_content_rules() {
    selects("svg a@xlink:href", "<svg><a xlink:href=x /><title>t</title></svg>", &["http://h/dir/x"]);
    selects("svg title", "<svg><title>a<b>b</b></title><style>c<d></style></svg>", &["ab"]);
    selects("svg", "<svg><![CDATA[<x>]]>y</svg>", &["<x>y"]);
    selects("p", "<svg><g><p>a</p>", &["a"]);
    selects("foreignobject p", "<svg><foreignObject><p>a<p>b</foreignObject></svg>", &["a", "b"]);
    selects("mi", "<math><mi>x</mi><mo>+</mo></math>", &["x"]);
    selects("p", "<p>a<![CDATA[x]]>b", &["ab"]);
}

#[test]
fn xml_is_read_without_html_rules() {
    let feed = "<?xml version='1.0'?><rss><item><link>http://o/1</link><title><![CDATA[a <b> & c]]></title></item>\
                <item><link>x</link><title>d &amp; e</title><p/></item></rss>";
    for content_type in [Some(&b"application/rss+xml; charset=utf-8"[..]), Some(b"text/xml"), None] {
        assert_eq!(selected_as(content_type, &["item > link"], feed), ["http://o/1", "x"]);
        assert_eq!(selected_as(content_type, &["title"], feed), ["a <b> & c", "d & e"]);
        assert_eq!(selected_as(content_type, &["item"], feed), ["http://o/1 a <b> & c", "x d & e"]);
    }
    let names = "<a><dc:date>1</dc:date><B/><b>2</b></a>";
    assert_eq!(selected_as(Some(b"text/xml"), &[r"dc\:date, a > b:nth-of-type(2)"], names), ["1", "2"]);
}

#[test]
fn values_of_several_queries_are_in_page_order() {
    let page = "<p id=1>a <a href=x id=2>b</a></p><p>c</p>";
    let queries = ["p@id", "a@href", "p", "a"];
    assert_eq!(selected_as(None, &queries, page), ["1", "a b", "http://h/dir/x", "b", "c"]);
}

#[test]
fn regex_filter_searches_each_selected_value() {
    let query = PageQuery::css(&[CssQuery::new("p").unwrap()]).unwrap();
    let filtered = query.filtered(ExtractRegexes::new("[a-z]([0-9]+)").unwrap());
    let mut search = PageSearch::new(filtered);
    let page = b"<p>a1 b2</p>c3<p>4</p><p>d</p><p>5e6</p>";
    assert_eq!(values_in(&mut search, &PageInfo::default(), page, 4).unwrap(), ["1", "2", "6"]);
}

#[test]
fn search_of_hostile_pages_stays_within_memory_limit() {
    const LIMIT: u64 = 1 << 20;
    let query = |text: &str| {
        let queries: Vec<CssQuery> = text.split('|').map(|text| CssQuery::new(text).unwrap()).collect();
        PageQuery::css(&queries).unwrap()
    };
    let run = |text: &str, start: &str, part: &str, end: &str| -> Result<u64> {
        let mut search = PageSearch::with_memory(query(text), LIMIT);
        let mut found = 0;
        let mut take = |_: usize, _: &[u8]| {
            found += 1;
            Ok(())
        };
        search.push(start.as_bytes(), &mut take)?;
        let piece = part.repeat((64 << 10) / part.len());
        for _ in 0..40 {
            search.push(piece.as_bytes(), &mut take)?;
            assert!(search.memory_in_use() <= 2 * LIMIT + (64 << 10), "{} bytes for {part:?}", search.memory_in_use());
        }
        search.push(end.as_bytes(), &mut take)?;
        search.finish(&mut take)?;
        Ok(found)
    };
    // A value that is not selected may have any length.
    assert_eq!(run("b", "<a title='", "x", "'><b>y</b>").unwrap(), 1);
    assert_eq!(run("b", "<a ", "x=1 ", "><b>y</b>").unwrap(), 1);
    assert_eq!(run("b", "<a ", "xyz", "><b>y</b>").unwrap(), 1);
    assert_eq!(run("b", "<a x=", "xyz", "><b>y</b>").unwrap(), 1);
    assert_eq!(run("b", "<", "xyz", "><b>y</b>").unwrap(), 1);
    assert_eq!(run("b", "<!--", "x", "--><b>y</b>").unwrap(), 1);
    assert_eq!(run("b", "<div>", "&#00000", "<b>y</b>").unwrap(), 1);
    assert_eq!(run("p", "<p>&#", "0", "</p>").unwrap(), 1);
    assert_eq!(run("div b", "", "<i><u><div>", "<b>y</b>").unwrap(), 1);
    assert_eq!(run(":nth-of-type(2)", "<x>", "<a></a><b></b>", "").unwrap(), 0);
    for (text, start, part) in
        [("p", "<p>", "x"), ("a@title", "<a title='", "x"), ("u", "", "<u>"), ("p|a@title", "<p>", "<a title=x>")]
    {
        let error = run(text, start, part, "'></p>").expect_err("the value is too long");
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{text}");
        assert!(error.to_string().contains("more than 1 MiB"), "{error}");
    }
}

#[test]
fn text_of_nested_matches_is_limited_in_total() {
    const LIMIT: usize = 1 << 20;
    let pass = |depth: usize, length: usize| -> Result<(usize, u64)> {
        let query = PageQuery::css(&[CssQuery::new("div").unwrap()]).unwrap();
        let mut search = PageSearch::with_memory(query, LIMIT as u64);
        let (mut passed, mut held) = (0, 0);
        let mut take = |_: usize, value: &[u8]| {
            passed += value.len();
            Ok(())
        };
        search.push("<div>".repeat(depth).as_bytes(), &mut take)?;
        for piece in "x".repeat(length).as_bytes().chunks(1000) {
            search.push(piece, &mut take)?;
            held = held.max(search.memory_in_use());
        }
        search.finish(&mut take)?;
        Ok((passed, held))
    };
    let error = pass(500, 100 << 10).expect_err("the values have 50 MB");
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    let (passed, held) = pass(10, 50 << 10).unwrap();
    assert_eq!(passed, 10 * (50 << 10));
    // What waits counts before it is passed on, so that credit can stop the page.
    assert!(held as usize >= passed, "{held}");
    // A single value may have nearly all of the memory.
    assert_eq!(pass(1, LIMIT - 1000).unwrap().0, LIMIT - 1000);
    // What follows a closed element counts once.
    let page = format!("<div><div>a</div>{}</div>", "x".repeat(LIMIT - 1000));
    let mut search = search(&["div"]);
    assert_eq!(values_in(&mut search, &PageInfo::default(), page.as_bytes(), 1000).unwrap().len(), 2);
}

#[test]
fn stray_end_tags_insert_empty_elements() {
    // WHATWG HTML, 13.2.6.4.7.
    selects("p + b", "<div>a</p><b>c</b></div>", &["c"]);
    selects("p:first-of-type + p", "<div></p><p>a</div>", &["a"]);
    selects("br + i", "<div>a</br><i>b</i></div>", &["b"]);
    selects("div", "<div>a</p>b</br>c</div>", &["a b c"]);
    selects("body > br + p", "</br><p>a", &["a"]);
    selects("body > p:first-child", "</p><p>a", &["a"]);
    selects("body > p:nth-child(2)", "<svg><g></p><p>a", &[]);
    selects("body > svg + p + p", "<svg><g></p><p>a", &["a"]);
    selects("p + b", "<p>a</p><b>c</b>", &["c"]);
}

#[test]
fn missing_head_is_supplied_before_body() {
    selects("head + body", "<body>a", &["a"]);
    selects("head + body", "<html><body>a", &["a"]);
    selects("head + body", "a", &["a"]);
    selects("body:first-child", "<p>a", &[]);
    selects("html > head:first-child + body > p", "<head></head><p>a", &["a"]);
    selects("head + head", "<head></head><body>a", &[]);
}

#[test]
fn image_tag_is_read_as_img() {
    selects("img@src", "<image src=1><img src=2>", &["http://h/dir/1", "http://h/dir/2"]);
    selects("image@src", "<image src=1>", &[]);
    selects("svg image@href", "<svg><image href=1 /></svg>", &["http://h/dir/1"]);
}

#[test]
fn forms_inside_forms_are_ignored() {
    selects("form@id", "<form id=1><form id=2><form id=3></form></form><form id=4>", &["1", "4"]);
    selects("form@id", "<div><form id=1></div><form id=2></form><form id=3>", &["1", "3"]);
    selects("form input@id", "<form><form><input id=1></form><input id=2>", &["1"]);
    selects("form@id", "<template><form id=1></form></template><form id=2>", &["1", "2"]);
    selects("form@id", "<table><form id=1><tr><td><form id=2></table>", &["1"]);
    selects("tr > td", "<table><form><tr><td>a</form><td>b</table>", &["a", "b"]);
}

#[test]
fn input_tag_closes_open_select() {
    selects("select input@id", "<select><option>a<input id=1></select>", &[]);
    selects("select + input@id", "<select><option>a<input id=1></select>", &["1"]);
    selects("select", "<select><option>a<select><option>b</select>", &["a"]);
}

#[test]
fn base_element_in_a_template_is_ignored() {
    selects("a@href", "<template><base href='/t/'></template><a href=x>", &["http://h/dir/x"]);
    selects("a@href", "<template><base href='/t/'></template><base href='/b/'><a href=x>", &["http://h/b/x"]);
    // Elements in a template are selected as others are; `:not()` leaves them out.
    selects("a@href", "<template><a href=1></a></template><a href=2>", &["http://h/dir/1", "http://h/dir/2"]);
    selects("a:not(template *)@href", "<template><a href=1></a></template><a href=2>", &["http://h/dir/2"]);
}

#[test]
fn long_numeric_references_decode_at_every_split() {
    let zeros = "0".repeat(100);
    selects("p", &format!("<p>&#{zeros}65;&#x{zeros}42;"), &["AB"]);
    selects("p", &format!("<p>&#{zeros}65&#x{zeros}42 z"), &["AB z"]);
    selects("p", &format!("<p>a&#{}b", "9".repeat(100)), &["a\u{fffd}b"]);
    selects("p", &format!("<p>&#{}", "z".repeat(100)), &[&format!("&#{}", "z".repeat(100))]);
    selects("p", &format!("<p>a&#{zeros}"), &["a\u{fffd}"]);
    selects("p", "<p>&#x;&#;&#", &["&#x;&#;&#"]);
}

#[test]
fn link_queries_are_encoded_in_the_page_charset() {
    let url = Target::parse("http://h/dir/page").unwrap();
    let page = PageInfo { url: Some(&url), content_type: Some(b"text/html; charset=windows-1251") };
    let query = PageQuery::css(&[CssQuery::new("a@href").unwrap()]).unwrap();
    let values = |page: &PageInfo<'_>, body: &[u8]| query.values_in(page, body).unwrap();
    assert_eq!(values(&page, b"<a href='/\xef?q=\xef'>"), ["http://h/%D0%BF?q=%EF"]);
    assert_eq!(values(&page, b"<a href='?q=&#8364;&#26085;'>"), ["http://h/dir/page?q=%88%26%2326085%3B"]);
    let undeclared = PageInfo { content_type: Some(b"text/html"), ..page };
    assert_eq!(values(&undeclared, b"<a href='?q=\xe9'>"), ["http://h/dir/page?q=%E9"]);
    assert_eq!(values(&undeclared, "<a href='?q=\u{e9}'>".as_bytes()), ["http://h/dir/page?q=%C3%A9"]);
}

/// A sink that records tokens in the notation of html5lib's tests, except tokens that cannot affect
/// values.
#[derive(Default)]
struct TokenLog {
    tokens: Vec<Value>,
    text: Vec<u8>,
    has_references: bool,
    is_cdata: bool,
}

impl TokenLog {
    fn end_text_node(&mut self) {
        let text = std::mem::take(&mut self.text);
        let text = match self.has_references {
            true => htmlize::unescape_bytes_in(text, htmlize::Context::General).into_owned(),
            false => text,
        };
        if !text.is_empty() {
            self.tokens.push(serde_json::json!(["Character", String::from_utf8_lossy(&text)]));
        }
    }
}

impl TokenSink for TokenLog {
    fn rules(&self, _name: TagName) -> TagSearchRules {
        TagSearchRules { needs_attributes: true, ..TagSearchRules::default() }
    }

    fn start_tag(&mut self, tag: &Tag<'_>) -> Result<TextState> {
        self.end_text_node();
        let mut attributes = BTreeMap::new();
        for name in tag.attribute_names() {
            if let Some(super::tag_parser::AttributeValue::Whole(value)) = tag.value(&name) {
                attributes.insert(name, String::from_utf8_lossy(&value).into_owned());
            }
        }
        let name = String::from_utf8_lossy(tag.name()).to_ascii_lowercase();
        self.tokens.push(match tag.is_self_closing {
            true => serde_json::json!(["StartTag", name, attributes, true]),
            false => serde_json::json!(["StartTag", name, attributes]),
        });
        Ok(TextState::Data)
    }

    fn end_tag(&mut self, tag: &Tag<'_>) -> Result<()> {
        self.end_text_node();
        let name = String::from_utf8_lossy(tag.name()).to_ascii_lowercase();
        self.tokens.push(serde_json::json!(["EndTag", name]));
        Ok(())
    }

    fn text(&mut self, text: &[u8], has_references: bool) -> Result<()> {
        if has_references != self.has_references {
            self.end_text_node();
        }
        self.has_references = has_references;
        self.text.extend_from_slice(text);
        Ok(())
    }

    fn end_text(&mut self) -> Result<()> {
        self.end_text_node();
        Ok(())
    }

    fn wants_text(&self) -> bool {
        true
    }

    fn allows_cdata(&self) -> bool {
        self.is_cdata
    }
}

/// Returns the tokens as they are compared: without comments and declarations, with adjacent text
/// joined, and without null bytes, which the tree leaves out.
fn comparable(tokens: &[Value]) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    for token in tokens {
        let text = token
            .to_string()
            .replace("\\u0000", "")
            .replace('\u{fffd}', "")
            .replace("\\r\\n", "\\n")
            .replace("\\r", "\\n");
        let token: Value = serde_json::from_str(&text).unwrap();
        match (token[0].as_str(), found.last_mut()) {
            (Some("Comment" | "DOCTYPE"), _) => {}
            (Some("Character"), Some(last)) if last[0] == "Character" => {
                last[1] = Value::String(format!("{}{}", last[1].as_str().unwrap(), token[1].as_str().unwrap()));
            }
            (Some("Character"), _) if token[1] == "" => {}
            _ => found.push(token),
        }
    }
    found
}

fn tokens_of(input: &str, state: &str, last_tag: &str, size: usize) -> Option<Vec<Value>> {
    let mut tokenizer = Tokenizer::new(1 << 20);
    let mut log = TokenLog::default();
    match state {
        "Data state" => {}
        "RCDATA state" => tokenizer.begin_in_state(TextState::Rcdata, last_tag),
        "RAWTEXT state" => tokenizer.begin_in_state(TextState::RawText, last_tag),
        "Script data state" => tokenizer.begin_in_state(TextState::ScriptData, last_tag),
        "PLAINTEXT state" => tokenizer.begin_in_state(TextState::PlainText, last_tag),
        "CDATA section state" => {
            tokenizer.begin_in_cdata_section();
            log.is_cdata = true;
        }
        _ => return None,
    }
    for piece in input.as_bytes().chunks(size) {
        tokenizer.push(piece, &mut log).unwrap();
    }
    tokenizer.finish(&mut log).unwrap();
    log.end_text_node();
    Some(comparable(&log.tokens))
}

/// Runs the tokenizer tests of html5lib (<https://github.com/html5lib/html5lib-tests>), if the
/// variable `HTML5LIB_TESTS` names the directory of their files.
#[test]
fn tokens_agree_with_html5lib() {
    let Some(dir) = std::env::var_os("HTML5LIB_TESTS") else {
        eprintln!("skipped: HTML5LIB_TESTS does not name a directory");
        return;
    };
    let (mut run, mut failed) = (0, Vec::new());
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "test") {
            continue;
        }
        let Ok(file) = serde_json::from_slice::<Value>(&std::fs::read(&path).unwrap()) else {
            eprintln!("{}: has characters that UTF-8 cannot have", path.display());
            continue;
        };
        for test in file["tests"].as_array().into_iter().flatten() {
            let unescaped = |value: &Value| match test["doubleEscaped"].as_bool() {
                Some(true) => serde_json::from_str(&value.to_string().replace("\\\\u", "\\u")).ok(),
                _ => Some(value.clone()),
            };
            let (Some(input), Some(output)) = (unescaped(&test["input"]), unescaped(&test["output"])) else { continue };
            let input = input.as_str().unwrap().to_owned();
            let states = test["initialStates"].as_array().cloned().unwrap_or(vec!["Data state".into()]);
            let expected = comparable(output.as_array().unwrap());
            for state in states {
                let last = test["lastStartTag"].as_str().unwrap_or("script");
                for size in [1, 2, 5, input.len().max(1)] {
                    let Some(tokens) = tokens_of(&input, state.as_str().unwrap(), last, size) else { continue };
                    run += 1;
                    if tokens != expected {
                        failed.push(format!(
                            "{}: {input:?} {state} {size}: {tokens:?}, not {expected:?}",
                            path.display()
                        ));
                    }
                }
            }
        }
    }
    eprintln!("{run} runs, {} failed", failed.len());
    assert!(failed.is_empty(), "{} of {run}:\n{}", failed.len(), failed.join("\n"));
}
