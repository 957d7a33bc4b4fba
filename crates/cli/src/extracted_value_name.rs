//! The names of extracted values: `--extract name=REGEX` and similar options.
//!
//! A name is a prefix `NAME=` of an expression, where `NAME` is a letter or `_`, followed by
//! letters, digits, `_` and `-`. Names exist only with `--jsonl` and `--csv`. Without these options
//! the prefix belongs to the expression, so that `--extract 'id=([0-9]+)'` keeps its meaning. A CSS
//! selector or a JSONPath never begins like a name, because `=` occurs in them only within
//! brackets. A regular expression that matches text beginning with `id=` can be written as
//! `(?:id)=`.
//!
//! ```
//! use haul_cli::extracted_value_name::ValueName;
//!
//! let (name, expression) = ValueName::split("price=[0-9.]+");
//! assert_eq!((name.unwrap().as_str(), expression), ("price", "[0-9.]+"));
//! assert_eq!(ValueName::split("a[rel=next]@href"), (None, "a[rel=next]@href"));
//! ```

/// The name of the values that one expression extracts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueName(String);

impl ValueName {
    /// Splits `NAME=EXPRESSION` into the name and the expression. Returns `None` and the whole text
    /// if the text has no name.
    pub fn split(expression: &str) -> (Option<ValueName>, &str) {
        let Some((name, rest)) = expression.split_once('=') else { return (None, expression) };
        let is_start = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        match name.as_bytes().first().is_some_and(is_start) && name.bytes().all(is_part) {
            true => (Some(ValueName(name.to_owned())), rest),
            false => (None, expression),
        }
    }

    /// Returns the name as a string slice.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Removes the names from all expressions of a stage (`NAME=EXPRESSION`). Returns the names, in
    /// the order of the expressions, or no names if no expression has one.
    ///
    /// # Errors
    /// Some expressions have a name and others have none, or two have the same name. The text names
    /// the expressions and the remedy.
    pub fn split_all(expressions: &mut [String]) -> Result<Vec<ValueName>, String> {
        let mut names: Vec<ValueName> = Vec::new();
        let mut unnamed = None;
        for expression in expressions.iter_mut() {
            let (name, rest) = Self::split(expression);
            let Some(name) = name else {
                unnamed = Some(expression.clone());
                continue;
            };
            if rest.is_empty() {
                return Err(format!("nothing follows the name {}=", name.0));
            }
            if names.contains(&name) {
                return Err(format!("the name {} is given twice; use another one, or a|b in one expression", name.0));
            }
            *expression = rest.to_owned();
            names.push(name);
        }
        match (names.first(), unnamed) {
            (Some(name), Some(unnamed)) => Err(format!(
                "{}= names its values, and {unnamed:?} does not: name all of them or none; (?:{})= is no name",
                name.0, name.0
            )),
            _ => Ok(names),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_name_is_a_prefix_before_equals_sign() {
        for (text, expected) in [
            ("a=b", Some(("a", "b"))),
            ("_x-1=a=b", Some(("_x-1", "a=b"))),
            ("title=", Some(("title", ""))),
            ("1a=b", None),
            ("=a", None),
            ("-a=b", None),
            ("é=b", None),
            ("a b=c", None),
            ("[id=x]", None),
            ("a[x=y]", None),
            ("$.a[?@.b=='c']", None),
            ("(?:id)=([0-9]+)", None),
            ("href", None),
            ("", None),
        ] {
            let (name, rest) = ValueName::split(text);
            let found = name.as_ref().map(|name| (name.as_str(), rest));
            assert_eq!(found, expected, "{text}");
            assert!(found.is_some() || rest == text);
        }
    }

    #[test]
    fn all_expressions_or_none_must_have_names() {
        let split = |texts: &[&str]| {
            let mut expressions: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            let names = ValueName::split_all(&mut expressions)?;
            Ok((names.iter().map(|name| name.as_str().to_owned()).collect::<Vec<_>>(), expressions))
        };
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(split(&["a=x", "b=y"]), Ok((owned(&["a", "b"]), owned(&["x", "y"]))));
        assert_eq!(split(&["x", "y"]), Ok((Vec::new(), owned(&["x", "y"]))));
        for (texts, word) in [(&["a=x", "y"][..], "(?:a)="), (&["a=x", "a=y"], "twice"), (&["a="], "nothing")] {
            let error: String = split(texts).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}
