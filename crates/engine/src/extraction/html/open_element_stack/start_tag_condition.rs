//! The conditions under which a start tag only opens its element, so that the fast path can read
//! it.

use super::super::tag_name_and_rules::{self as properties, TagName, names};
use super::{IS_HTML, IS_LIST, IS_NEVER_SET, IS_NO_HEADING, IS_ROW_GROUP_IN_TABLE, IS_ROW_IN_TABLE, UNUSED_BUCKET};

/// The condition under which a start tag in the body only opens its element: it closes no other
/// element, and no parent element is missing. The fast path can then read the tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::extraction::html) enum FastPathTagCondition {
    /// No condition: such a tag, like `<span>`, never affects another element.
    None,
    /// For a block such as `<div>`: no `<p>` is open.
    Block,
    /// For `<td>` and `<th>`: the innermost element is a row of a table.
    Cell,
    /// For `<tr>`: the innermost element is a row group of a table, such as `<tbody>`.
    Row,
    /// For `<a>`: no `<a>` is open.
    Anchor,
    /// For `<li>`: no `<p>` is open, and the innermost element is a list, or no `<li>` is open.
    ListItem,
    /// For `<h1>` to `<h6>`: no `<p>` is open, and the innermost element is no heading.
    Heading,
    /// Never met: the tree builder must read the tag, because HTML has special rules for it.
    #[default]
    Other,
}

impl FastPathTagCondition {
    /// Returns the condition for the start tag of an HTML element with the name `name`.
    /// `properties` is the bit set of the name's properties, such as [`properties::CLOSES_P`].
    #[inline]
    pub(in crate::extraction::html) fn new(name: TagName, properties: u32) -> Self {
        const RULES: u32 = properties::HAS_START_TAG_RULES
            | properties::HAS_SEPARATE_TEXT
            | properties::IS_TABLE_PART
            | properties::IS_RUBY_TEXT
            | properties::CLOSES_P
            | properties::IS_HEADING;
        const ITEM_RULES: u32 = properties::HAS_START_TAG_RULES | properties::CLOSES_P;
        const HEADING_RULES: u32 = properties::IS_HEADING | properties::CLOSES_P;
        match (properties & RULES, name) {
            (0, _) => Self::None,
            (properties::CLOSES_P, _) => Self::Block,
            (properties::IS_TABLE_PART, names::TD | names::TH) => Self::Cell,
            (properties::IS_TABLE_PART, names::TR) => Self::Row,
            (properties::HAS_START_TAG_RULES, names::A) => Self::Anchor,
            (ITEM_RULES, names::LI) => Self::ListItem,
            (HEADING_RULES, _) => Self::Heading,
            _ => Self::Other,
        }
    }
}

/// A quick test that shows, for most start tags, that their [`FastPathTagCondition`] is met. If a
/// tag fails the quick test, the condition itself must be checked.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::extraction::html) struct StartTagQuickTest {
    /// The flags that the innermost open element must have, such as [`IS_HTML`].
    pub(super) flags: u16,
    /// The [`TagName::bucket`] (a hash) of a name, such as `p`. The test fails if an element whose
    /// name has this bucket is open. [`UNUSED_BUCKET`] if the condition forbids no name.
    pub(super) empty_bucket: u8,
}

impl StartTagQuickTest {
    /// Makes the quick test for this condition.
    pub(in crate::extraction::html) fn new(condition: FastPathTagCondition) -> Self {
        let (flags, empty_bucket) = match condition {
            FastPathTagCondition::None => (IS_HTML, UNUSED_BUCKET),
            FastPathTagCondition::Block => (IS_HTML, names::P.bucket()),
            FastPathTagCondition::Cell => (IS_ROW_IN_TABLE, UNUSED_BUCKET),
            FastPathTagCondition::Row => (IS_ROW_GROUP_IN_TABLE, UNUSED_BUCKET),
            FastPathTagCondition::Anchor => (IS_HTML, names::A.bucket()),
            FastPathTagCondition::ListItem => (IS_LIST, names::P.bucket()),
            FastPathTagCondition::Heading => (IS_HTML | IS_NO_HEADING, names::P.bucket()),
            FastPathTagCondition::Other => (IS_NEVER_SET, UNUSED_BUCKET),
        };
        Self { flags, empty_bucket }
    }
}
