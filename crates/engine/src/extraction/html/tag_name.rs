//! The names of elements as numbers, and the properties that HTML gives to some of them.

use std::cmp::Ordering;

/// The name of an element without regard to case. Names of up to eight bytes are packed, others
/// hashed: two long names with one hash only misplace an end tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::extraction) struct TagName(u64);

impl TagName {
    pub(in crate::extraction) const fn new(name: &[u8]) -> Self {
        let mut at = 0;
        if name.len() <= 8 {
            let mut packed = 0;
            while at < name.len() {
                packed = packed << 8 | name[at].to_ascii_lowercase() as u64;
                at += 1;
            }
            return Self(packed);
        }
        // FNV-1a.
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        while at < name.len() {
            hash = (hash ^ name[at].to_ascii_lowercase() as u64).wrapping_mul(0x0100_0000_01b3);
            at += 1;
        }
        Self(hash | 1 << 63)
    }

    /// Returns a number below 256 that is often different for different names.
    pub(super) fn bucket(self) -> usize {
        (self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize
    }

    /// Returns the properties of the HTML element with this name, as bits.
    pub(super) fn properties(self) -> u32 {
        let at = TABLE.binary_search_by(|(name, _)| if *name < self.0 { Ordering::Less } else { name.cmp(&self.0) });
        at.map_or(0, |at| TABLE[at].1)
    }
}

/// Has no content and no end tag.
pub(super) const VOID: u32 = 1;
/// Is in the category "special" of HTML: an unrelated end tag inside it does not close it.
pub(super) const SPECIAL: u32 = 1 << 1;
/// Is in the category "formatting": its end tag does not close the elements inside it.
pub(super) const FORMATTING: u32 = 1 << 2;
/// The start tag closes an open `<p>`.
pub(super) const CLOSES_P: u32 = 1 << 3;
/// Ends a search for an open element ("has an element in scope").
pub(super) const SCOPE: u32 = 1 << 4;
/// Is a heading `<h1>` to `<h6>`.
pub(super) const HEADING: u32 = 1 << 5;
/// Separates words in text: a block, a cell, a line break.
pub(super) const BREAKS: u32 = 1 << 6;
/// May stand in `<head>`.
pub(super) const IN_HEAD: u32 = 1 << 7;
/// The start tag ends SVG and MathML.
pub(super) const LEAVES_FOREIGN: u32 = 1 << 8;
/// Blanks in the element's text are kept.
pub(super) const PREFORMATTED: u32 = 1 << 9;
/// The text does not belong to the text of the elements around it.
pub(super) const MUTED: u32 = 1 << 10;
/// The end tag may be missing ("generate implied end tags").
pub(super) const IMPLIED_END: u32 = 1 << 11;
/// The end tag closes the element, if it is in scope, and all that is open inside.
pub(super) const CLOSES_ALL: u32 = 1 << 12;

const BLOCK: u32 = SPECIAL | CLOSES_P | BREAKS | CLOSES_ALL;
const HEADING_BITS: u32 = SPECIAL | CLOSES_P | BREAKS | HEADING | LEAVES_FOREIGN;
const CELL: u32 = SPECIAL | SCOPE | BREAKS | CLOSES_ALL;
const ROWS: u32 = SPECIAL | BREAKS | CLOSES_ALL;
const FORMAT: u32 = FORMATTING | LEAVES_FOREIGN;
const RAW: u32 = SPECIAL | MUTED | PREFORMATTED;

/// The HTML elements that have properties.
const ELEMENTS: &[(&str, u32)] = &[
    ("a", FORMATTING),
    ("address", BLOCK),
    ("applet", SPECIAL | SCOPE | CLOSES_ALL),
    ("area", SPECIAL | VOID),
    ("article", BLOCK),
    ("aside", BLOCK),
    ("b", FORMAT),
    ("base", SPECIAL | VOID | IN_HEAD),
    ("basefont", SPECIAL | VOID | IN_HEAD),
    ("bgsound", SPECIAL | VOID | IN_HEAD),
    ("big", FORMAT),
    ("blockquote", BLOCK | LEAVES_FOREIGN),
    ("body", SPECIAL | BREAKS | LEAVES_FOREIGN),
    ("br", SPECIAL | VOID | BREAKS | LEAVES_FOREIGN),
    ("button", SPECIAL | CLOSES_ALL),
    ("caption", CELL),
    ("center", BLOCK | LEAVES_FOREIGN),
    ("code", FORMAT),
    ("col", SPECIAL | VOID),
    ("colgroup", SPECIAL),
    ("dd", SPECIAL | CLOSES_P | BREAKS | IMPLIED_END | CLOSES_ALL | LEAVES_FOREIGN),
    ("details", BLOCK),
    ("dialog", BLOCK),
    ("dir", BLOCK),
    ("div", BLOCK | LEAVES_FOREIGN),
    ("dl", BLOCK | LEAVES_FOREIGN),
    ("dt", SPECIAL | CLOSES_P | BREAKS | IMPLIED_END | CLOSES_ALL | LEAVES_FOREIGN),
    ("em", FORMAT),
    ("embed", SPECIAL | VOID | LEAVES_FOREIGN),
    ("fieldset", BLOCK),
    ("figcaption", BLOCK),
    ("figure", BLOCK),
    ("font", FORMATTING),
    ("footer", BLOCK),
    ("form", SPECIAL | CLOSES_P | BREAKS),
    ("frame", SPECIAL | VOID),
    ("frameset", SPECIAL),
    ("h1", HEADING_BITS),
    ("h2", HEADING_BITS),
    ("h3", HEADING_BITS),
    ("h4", HEADING_BITS),
    ("h5", HEADING_BITS),
    ("h6", HEADING_BITS),
    ("head", SPECIAL | BREAKS | LEAVES_FOREIGN),
    ("header", BLOCK),
    ("hgroup", BLOCK),
    ("hr", SPECIAL | VOID | CLOSES_P | BREAKS | LEAVES_FOREIGN),
    ("html", SPECIAL | SCOPE | BREAKS),
    ("i", FORMAT),
    ("iframe", RAW),
    ("img", SPECIAL | VOID | LEAVES_FOREIGN),
    ("input", SPECIAL | VOID),
    ("keygen", SPECIAL | VOID),
    ("legend", BREAKS),
    ("li", SPECIAL | CLOSES_P | BREAKS | IMPLIED_END | LEAVES_FOREIGN),
    ("link", SPECIAL | VOID | IN_HEAD),
    ("listing", BLOCK | PREFORMATTED | LEAVES_FOREIGN),
    ("main", BLOCK),
    ("marquee", SPECIAL | SCOPE | CLOSES_ALL),
    ("menu", BLOCK | LEAVES_FOREIGN),
    ("meta", SPECIAL | VOID | IN_HEAD | LEAVES_FOREIGN),
    ("nav", BLOCK),
    ("nobr", FORMAT),
    ("noembed", RAW),
    ("noframes", RAW | IN_HEAD),
    ("noscript", SPECIAL | IN_HEAD),
    ("object", SPECIAL | SCOPE | CLOSES_ALL),
    ("ol", BLOCK | LEAVES_FOREIGN),
    ("optgroup", BREAKS | IMPLIED_END),
    ("option", BREAKS | IMPLIED_END),
    ("p", SPECIAL | CLOSES_P | BREAKS | IMPLIED_END | LEAVES_FOREIGN),
    ("param", SPECIAL | VOID),
    ("plaintext", SPECIAL | CLOSES_P | BREAKS | PREFORMATTED),
    ("pre", BLOCK | PREFORMATTED | LEAVES_FOREIGN),
    ("rb", IMPLIED_END),
    ("rp", IMPLIED_END),
    ("rt", IMPLIED_END),
    ("rtc", IMPLIED_END),
    ("ruby", LEAVES_FOREIGN),
    ("s", FORMAT),
    ("script", RAW | IN_HEAD),
    ("search", BLOCK),
    ("section", BLOCK),
    ("select", SPECIAL | CLOSES_ALL),
    ("small", FORMAT),
    ("source", SPECIAL | VOID),
    ("span", LEAVES_FOREIGN),
    ("strike", FORMAT),
    ("strong", FORMAT),
    ("style", RAW | IN_HEAD),
    ("sub", LEAVES_FOREIGN),
    ("summary", BLOCK),
    ("sup", LEAVES_FOREIGN),
    ("table", SPECIAL | SCOPE | CLOSES_P | BREAKS | CLOSES_ALL | LEAVES_FOREIGN),
    ("tbody", ROWS),
    ("td", CELL),
    ("template", SPECIAL | SCOPE | MUTED | IN_HEAD | CLOSES_ALL),
    ("textarea", SPECIAL | PREFORMATTED),
    ("tfoot", ROWS),
    ("th", CELL),
    ("thead", ROWS),
    ("title", SPECIAL | BREAKS | IN_HEAD),
    ("tr", ROWS),
    ("track", SPECIAL | VOID),
    ("tt", FORMAT),
    ("u", FORMAT),
    ("ul", BLOCK | LEAVES_FOREIGN),
    ("var", LEAVES_FOREIGN),
    ("wbr", SPECIAL | VOID),
    ("xmp", SPECIAL | CLOSES_P | BREAKS | PREFORMATTED),
];

/// [`ELEMENTS`] by number, in ascending order.
static TABLE: [(u64, u32); ELEMENTS.len()] = sorted();

const fn sorted() -> [(u64, u32); ELEMENTS.len()] {
    let mut table = [(0, 0); ELEMENTS.len()];
    let mut count = 0;
    while count < ELEMENTS.len() {
        let entry = (TagName::new(ELEMENTS[count].0.as_bytes()).0, ELEMENTS[count].1);
        let mut at = count;
        while at > 0 && table[at - 1].0 > entry.0 {
            table[at] = table[at - 1];
            at -= 1;
        }
        table[at] = entry;
        count += 1;
    }
    table
}

/// The names to which the rules for open elements refer.
pub(super) mod names {
    use super::TagName;

    macro_rules! names {
        ($($constant:ident = $name:literal),* $(,)?) => {
            $(pub(in crate::extraction::html) const $constant: TagName = TagName::new($name.as_bytes());)*
        };
    }

    names! {
        A = "a", ADDRESS = "address", ANNOTATION_XML = "annotation-xml", BASE = "base", BODY = "body", BR = "br",
        BUTTON = "button", CAPTION = "caption", COL = "col", COLGROUP = "colgroup", DD = "dd", DESC = "desc",
        DIV = "div", DT = "dt", FONT = "font", FOREIGN_OBJECT = "foreignobject", FORM = "form", FRAMESET = "frameset",
        HEAD = "head", HTML = "html", IFRAME = "iframe", IMAGE = "image", IMG = "img", INPUT = "input", LI = "li", MATH = "math", MI = "mi", MN = "mn", MO = "mo",
        MS = "ms", MTEXT = "mtext", NOBR = "nobr", NOEMBED = "noembed", NOFRAMES = "noframes", OL = "ol",
        OPTGROUP = "optgroup", OPTION = "option", P = "p", PLAINTEXT = "plaintext", SCRIPT = "script",
        SELECT = "select", STYLE = "style", SVG = "svg", TABLE = "table", TBODY = "tbody", TD = "td", TEMPLATE = "template",
        TEXTAREA = "textarea", TFOOT = "tfoot", TH = "th", THEAD = "thead", TITLE = "title", TR = "tr", UL = "ul",
        XMP = "xmp",
    }
}
