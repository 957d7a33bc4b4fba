//! The parser of CSS queries (Selectors Level 4, CSS Syntax Level 3).

use super::{AttributeCondition, Combinator, ComplexSelector, CompoundSelector, Condition, ValueRelation};

/// The maximum nesting depth of `:is()` and `:not()`.
const MAX_NESTING: usize = 8;

/// The HTML attributes whose values are compared without regard to case (HTML, "Case-sensitivity of
/// selectors").
const CASE_INSENSITIVE_ATTRIBUTES: &[&str] = &[
    "accept",
    "accept-charset",
    "align",
    "alink",
    "axis",
    "bgcolor",
    "charset",
    "checked",
    "clear",
    "codetype",
    "color",
    "compact",
    "declare",
    "defer",
    "dir",
    "direction",
    "disabled",
    "enctype",
    "face",
    "frame",
    "hreflang",
    "http-equiv",
    "lang",
    "language",
    "link",
    "media",
    "method",
    "multiple",
    "nohref",
    "noresize",
    "noshade",
    "nowrap",
    "readonly",
    "rel",
    "rev",
    "rules",
    "scope",
    "scrolling",
    "selected",
    "shape",
    "target",
    "text",
    "type",
    "valign",
    "valuetype",
    "vlink",
];

/// Parses a query. Returns its list of selectors, and the lower-case name of the attribute after
/// `@`; `None` if there is no `@`. The error is a message for people.
pub(super) fn parse_query(text: &str) -> Result<(Vec<ComplexSelector>, Option<Box<str>>), String> {
    let mut parser = CssParser { text, at: 0, nesting: 0 };
    let selectors = parser.parse_selector_list()?;
    let attribute = match parser.peek() {
        None => None,
        Some('@') => {
            let name = text[parser.at + 1..].trim();
            let is_name = |c: char| !c.is_whitespace() && !"\"'<>/=@,()[]".contains(c);
            if name.is_empty() || !name.chars().all(is_name) {
                return Err("the name of an attribute is missing after the @, as in a@href".to_owned());
            }
            Some(name.to_ascii_lowercase().into())
        }
        Some(c) => return Err(parser.error_text(&format!("{c:?} is not expected"))),
    };
    Ok((selectors, attribute))
}

/// A parser of the text of a CSS query.
struct CssParser<'t> {
    text: &'t str,
    at: usize,
    nesting: usize,
}

impl<'t> CssParser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn consume_if(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn error_text(&self, what: &str) -> String {
        format!("{what}, at byte {}", self.at)
    }

    /// Skips white space and comments. Returns true if there were any.
    fn skip_blanks(&mut self) -> bool {
        let start = self.at;
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']).len();
            self.at += blanks;
            match self.rest().strip_prefix("/*") {
                Some(comment) => self.at += 2 + comment.find("*/").map_or(comment.len(), |end| end + 2),
                None if blanks == 0 => return self.at > start,
                None => {}
            }
        }
    }

    /// Parses selectors separated by commas, up to a character that cannot belong to them.
    fn parse_selector_list(&mut self) -> Result<Vec<ComplexSelector>, String> {
        let mut list = Vec::new();
        loop {
            list.push(self.parse_complex()?);
            if !self.consume_if(",") {
                return Ok(list);
            }
        }
    }

    fn parse_complex(&mut self) -> Result<ComplexSelector, String> {
        let mut selector = ComplexSelector::default();
        self.skip_blanks();
        loop {
            let compound = self.parse_compound()?;
            let blanks = self.skip_blanks();
            let combinator = match self.peek() {
                None | Some(',' | ')' | '@') => None,
                Some('>') => Some(Combinator::Child),
                Some('+') => Some(Combinator::NextSibling),
                Some('~') => Some(Combinator::LaterSibling),
                Some(_) if blanks => Some(Combinator::Descendant),
                Some(c) => return Err(self.error_text(&format!("{c:?} is not expected"))),
            };
            if !matches!(combinator, None | Some(Combinator::Descendant)) {
                self.next();
                self.skip_blanks();
            }
            selector.compounds.push((compound, combinator));
            if combinator.is_none() {
                return Ok(selector);
            }
        }
    }

    fn parse_compound(&mut self) -> Result<CompoundSelector, String> {
        let start = self.at;
        let mut compound = CompoundSelector::default();
        if !self.consume_if("*") && self.is_at_identifier() {
            compound.name = Some(self.parse_identifier()?.to_ascii_lowercase().into());
        }
        if self.rest().starts_with('|') && !self.rest().starts_with("|=") {
            return Err(self.error_text("namespaces are not supported; leave out the | and what is before it"));
        }
        loop {
            let condition = match self.peek() {
                Some('#') => {
                    self.next();
                    Condition::Id(self.parse_identifier()?.into())
                }
                Some('.') => {
                    self.next();
                    Condition::Class(self.parse_identifier()?.into())
                }
                Some('[') => {
                    self.next();
                    Condition::Attribute(self.parse_attribute()?)
                }
                Some(':') => {
                    self.next();
                    self.parse_pseudo_class(&mut compound)?;
                    continue;
                }
                _ if self.at == start => {
                    let found = self.peek().map_or("the end".to_owned(), |c| format!("{c:?}"));
                    return Err(self.error_text(&format!("a selector is expected, not {found}")));
                }
                _ => return Ok(compound),
            };
            compound.conditions.push(condition);
        }
    }

    fn is_at_identifier(&self) -> bool {
        let mut chars = self.rest().chars();
        match chars.next() {
            Some('-') => chars.next().is_some_and(|c| is_name_start(c) || c == '-' || c == '\\'),
            Some(c) => is_name_start(c) || c == '\\',
            None => false,
        }
    }

    fn parse_identifier(&mut self) -> Result<String, String> {
        if !self.is_at_identifier() {
            let remedy = match self.peek() {
                Some(c) if c.is_ascii_digit() => format!("; write \\3{c} followed by a blank for the digit {c}"),
                _ => String::new(),
            };
            return Err(self.error_text("a name is expected") + &remedy);
        }
        self.parse_name()
    }

    /// Parses a name: letters, digits, hyphens, underscores and escapes.
    fn parse_name(&mut self) -> Result<String, String> {
        let mut name = String::new();
        while let Some(c) = self.peek() {
            if is_name_start(c) || c == '-' || c.is_ascii_digit() {
                name.push(c);
                self.next();
            } else if c == '\\' {
                self.next();
                name.push(self.parse_escape()?);
            } else {
                break;
            }
        }
        Ok(name)
    }

    /// Parses an escape, from the character after the backslash on.
    fn parse_escape(&mut self) -> Result<char, String> {
        let digits = self.rest().bytes().take(6).take_while(u8::is_ascii_hexdigit).count();
        if digits == 0 {
            let next = self.next().filter(|c| *c != '\n');
            return next.ok_or_else(|| self.error_text("a character is expected after the backslash"));
        }
        let code = u32::from_str_radix(&self.rest()[..digits], 16).unwrap_or(0);
        self.at += digits;
        if self.rest().starts_with([' ', '\t', '\n']) {
            self.at += 1;
        }
        Ok(char::from_u32(code).filter(|c| *c != '\0').unwrap_or('\u{fffd}'))
    }

    fn parse_string(&mut self, quote: char) -> Result<String, String> {
        let mut text = String::new();
        loop {
            match self.next() {
                Some(c) if c == quote => return Ok(text),
                Some('\\') if self.consume_if("\n") => {}
                Some('\\') => text.push(self.parse_escape()?),
                Some('\n') | None => return Err(self.error_text(&format!("the closing {quote} is missing"))),
                Some(c) => text.push(c),
            }
        }
    }

    /// Parses an attribute selector, after the opening bracket.
    fn parse_attribute(&mut self) -> Result<AttributeCondition, String> {
        self.skip_blanks();
        let name = self.parse_identifier()?.to_ascii_lowercase();
        self.skip_blanks();
        let relations = [
            ("=", ValueRelation::Equals),
            ("~=", ValueRelation::HasWord),
            ("|=", ValueRelation::HasLanguage),
            ("^=", ValueRelation::StartsWith),
            ("$=", ValueRelation::EndsWith),
            ("*=", ValueRelation::Contains),
        ];
        let Some((_, relation)) = relations.into_iter().find(|(token, _)| self.consume_if(token)) else {
            if !self.consume_if("]") {
                return Err(self.error_text("] or one of = ~= |= ^= $= *= is expected"));
            }
            let value = Box::default();
            return Ok(AttributeCondition {
                name: name.into(),
                relation: ValueRelation::Exists,
                value,
                ignores_case: false,
            });
        };
        self.skip_blanks();
        let value = match self.peek() {
            Some(quote @ ('"' | '\'')) => {
                self.next();
                self.parse_string(quote)?
            }
            _ => self.parse_name()?,
        };
        if value.is_empty() && !matches!(self.text.as_bytes().get(self.at - 1), Some(b'"' | b'\'')) {
            return Err(
                self.error_text("a value is expected; put quotes around it if it has other characters than letters")
            );
        }
        self.skip_blanks();
        let mut ignores_case = CASE_INSENSITIVE_ATTRIBUTES.binary_search(&&*name).is_ok();
        if self.rest().starts_with(['i', 'I', 's', 'S']) {
            ignores_case = self.next().is_some_and(|flag| flag.eq_ignore_ascii_case(&'i'));
            self.skip_blanks();
        }
        if !self.consume_if("]") {
            return Err(self.error_text("] is expected; put quotes around a value with other characters than letters"));
        }
        let value = if ignores_case { value.to_ascii_lowercase() } else { value };
        Ok(AttributeCondition { name: name.into(), relation, value: value.into(), ignores_case })
    }

    /// Parses a pseudo-class, after the colon, and adds its conditions to `compound`.
    fn parse_pseudo_class(&mut self, compound: &mut CompoundSelector) -> Result<(), String> {
        if self.consume_if(":") {
            let name = self.parse_name()?;
            return Err(match &*name {
                "attr" => "::attr(NAME) is not supported; write @NAME at the end".to_owned(),
                "text" => "::text is not supported; leave it out, a selector without @NAME gives the text".to_owned(),
                _ => format!("::{name} is not supported, as it is no element"),
            });
        }
        let name = self.parse_identifier()?.to_ascii_lowercase();
        let nth = |offset, of_type| Condition::Nth { step: 0, offset, of_type };
        let condition = match &*name {
            "root" => Condition::Root,
            "first-child" => nth(1, false),
            "first-of-type" => nth(1, true),
            "link" | "any-link" => {
                let named = |name: &str| ComplexSelector {
                    compounds: vec![(CompoundSelector { name: Some(name.into()), conditions: Vec::new() }, None)],
                };
                compound.conditions.push(Condition::AnyOf(vec![named("a"), named("area")]));
                Condition::Attribute(AttributeCondition {
                    name: "href".into(),
                    relation: ValueRelation::Exists,
                    value: Box::default(),
                    ignores_case: false,
                })
            }
            "nth-child" | "nth-of-type" => {
                let (step, offset) = self.parse_nth()?;
                Condition::Nth { step, offset, of_type: name == "nth-of-type" }
            }
            "is" | "where" | "matches" | "not" => {
                self.nesting += 1;
                if !self.consume_if("(") {
                    return Err(self.error_text(&format!(":{name} takes a selector in parentheses")));
                }
                if self.nesting > MAX_NESTING {
                    return Err(self.error_text("selectors are nested too deeply"));
                }
                let list = self.parse_selector_list()?;
                self.nesting -= 1;
                if !self.consume_if(")") {
                    return Err(self.error_text(") is expected"));
                }
                if name == "not" { Condition::NoneOf(list) } else { Condition::AnyOf(list) }
            }
            "has" | "last-child" | "last-of-type" | "only-child" | "only-of-type" | "nth-last-child"
            | "nth-last-of-type" | "empty" => {
                return Err(format!(
                    ":{name} is not supported: it depends on what follows the start tag, and a page is read once"
                ));
            }
            _ => return Err(format!(":{name} is not supported")),
        };
        compound.conditions.push(condition);
        Ok(())
    }

    /// Parses `(An+B)`, and returns A and B.
    fn parse_nth(&mut self) -> Result<(i32, i32), String> {
        if !self.consume_if("(") {
            return Err(self.error_text("a number or An+B in parentheses is expected"));
        }
        let end = self.rest().find(')').ok_or_else(|| self.error_text(") is expected"))?;
        let text = self.rest()[..end].trim().to_ascii_lowercase();
        let found = parse_an_plus_b(&text).ok_or_else(|| self.error_text("a number, odd, even or An+B is expected"))?;
        self.at += end + 1;
        Ok(found)
    }
}

/// Parses the notation An+B in lower case, such as `2n+1`, and returns A and B. Returns `None` if
/// it is malformed.
fn parse_an_plus_b(text: &str) -> Option<(i32, i32)> {
    match text {
        "odd" => return Some((2, 1)),
        "even" => return Some((2, 0)),
        _ => {}
    }
    let number = |text: &str| {
        let compact: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        compact.strip_prefix('+').unwrap_or(&compact).parse::<i32>().ok()
    };
    let Some((step, offset)) = text.split_once('n') else { return Some((0, number(text)?)) };
    let step = match step {
        "" | "+" => 1,
        "-" => -1,
        step => number(step)?,
    };
    let offset = offset.trim();
    let offset = if offset.is_empty() {
        0
    } else if offset.starts_with(['+', '-']) {
        number(offset)?
    } else {
        return None;
    };
    Some((step, offset))
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}
