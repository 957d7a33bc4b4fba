//! The Public Suffix List (publicsuffix.org), as text that is searched in place. The list, in
//! `public_suffixes.txt`, is subject to the terms of the Mozilla Public License, v. 2.0
//! (mozilla.org/MPL/2.0).
//!
//! `scripts/public-suffixes.sh` makes the text from the rules of the crate psl and describes its
//! form. That crate's own code, a branch for each rule, is six times as large.

use core::cmp::Ordering;

const LIST: &str = include_str!("public_suffixes.txt");

/// Returns the part of `name` below which anyone may register names. `name` is in lower case, in
/// ASCII and without a trailing dot. By the default rule, its last label is a public suffix.
pub(super) fn public_suffix(name: &str) -> &str {
    let mut suffix = last_labels(name, "");
    let mut parent = "";
    while parent.len() < name.len() {
        let domain = last_labels(name, parent);
        let label = domain.strip_suffix(parent).unwrap_or(domain).trim_end_matches('.');
        let by_parent = |line: &str| line.split(' ').next().cmp(&Some(parent));
        if let Some((_, labels)) = find(LIST.trim_end(), b'\n', by_parent).and_then(|line| line.split_once(' ')) {
            let by_exception = |item: &str| item.strip_prefix('!').map_or(Ordering::Greater, |item| item.cmp(label));
            if find(labels, b' ', by_exception).is_some() {
                return parent;
            }
            if find(labels, b' ', |item| item.cmp(label)).is_some()
                || find(labels, b' ', |item| item.cmp("*")).is_some()
            {
                suffix = domain;
            }
        }
        parent = domain;
    }
    suffix
}

/// Returns the last labels of `name`: one label more than `parent` has. `name` must end with
/// `parent`. If `parent` is empty, the result is the top-level domain.
fn last_labels<'a>(name: &'a str, parent: &str) -> &'a str {
    let below = &name[..name.len() - parent.len()];
    let below = below.strip_suffix('.').unwrap_or(below);
    &name[below.rfind('.').map_or(0, |dot| dot + 1)..]
}

/// Searches the sorted items of `list`, which `separator` separates. `order` compares an item with
/// the wanted one.
fn find(list: &'static str, separator: u8, order: impl Fn(&str) -> Ordering) -> Option<&'static str> {
    let (mut start, mut end) = (0, list.len());
    while start < end {
        let middle = start + (end - start) / 2;
        let before = memchr::memrchr(separator, &list.as_bytes()[start..middle]);
        let first = before.map_or(start, |distance| start + distance + 1);
        let after = memchr::memchr(separator, &list.as_bytes()[middle..end]);
        let last = after.map_or(end, |distance| middle + distance);
        match order(&list[first..last]) {
            Ordering::Equal => return Some(&list[first..last]),
            Ordering::Less => start = last + 1,
            Ordering::Greater => end = first.saturating_sub(1),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_suffix_has_the_longest_rule() {
        for (name, expected) in [
            ("com", "com"),
            ("www.example.com", "com"),
            ("a.b.co.uk", "co.uk"),
            ("x.github.io", "github.io"),
            ("a.b.kawasaki.jp", "b.kawasaki.jp"),
            ("a.city.kawasaki.jp", "kawasaki.jp"),
            ("www.ck", "ck"),
            ("a.b.ck", "b.ck"),
            ("xn--55qx5d.cn", "xn--55qx5d.cn"),
            ("a.unknown", "unknown"),
            ("localhost", "localhost"),
            ("", ""),
        ] {
            assert_eq!(public_suffix(name), expected, "{name}");
        }
    }

    #[test]
    fn each_rule_agrees_with_the_psl_crate() {
        let mut rules = 0;
        for line in LIST.lines() {
            let (parent, labels) = line.split_once(' ').expect("a domain and its labels");
            for label in labels.split(' ') {
                rules += 1;
                let label = label.trim_start_matches(['!', '*']);
                let label = if label.is_empty() { "any" } else { label };
                let name = format!("{label}.{parent}");
                for prefix in ["", "a.", "b.a."] {
                    let name = format!("{prefix}{}", name.trim_end_matches('.'));
                    assert_eq!(Some(public_suffix(&name)), psl::suffix_str(&name), "{name}");
                }
            }
        }
        assert!(rules > 10_000, "{rules}");
    }
}
