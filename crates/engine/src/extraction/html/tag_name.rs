//! The names of elements as numbers, and the properties that HTML gives to some of them.

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

    /// Makes the name of lower-case letters and digits. `packed` has the last eight of them, and `name`
    /// has all of them in any case.
    pub(super) fn of_lower_case(packed: u64, name: &[u8]) -> Self {
        if name.len() <= 8 { Self(packed) } else { Self::new(name) }
    }

    /// Returns a number below 256 that is often different for different names.
    pub(super) fn bucket(self) -> usize {
        (self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize
    }

    /// Returns the properties of the HTML element with this name, as bits.
    pub(super) fn properties(self) -> u32 {
        let mut at = place(self.0);
        loop {
            let (name, bits) = TABLE[at];
            if name == self.0 || name == 0 {
                return bits;
            }
            at = (at + 1) % PLACES;
        }
    }
}

/// The element has no content and no end tag.
pub(super) const VOID: u32 = 1;
/// The element is in the category "special" of HTML: an unrelated end tag inside it does not close
/// it.
pub(super) const SPECIAL: u32 = 1 << 1;
/// The element is in the category "formatting": its end tag does not close the elements inside it.
pub(super) const FORMATTING: u32 = 1 << 2;
/// The start tag closes an open `<p>`.
pub(super) const CLOSES_P: u32 = 1 << 3;
/// The element ends a search for an open element ("has an element in scope").
pub(super) const SCOPE: u32 = 1 << 4;
/// The element is a heading, `<h1>` to `<h6>`.
pub(super) const HEADING: u32 = 1 << 5;
/// The element separates words in text: a block, a cell, a line break.
pub(super) const BREAKS: u32 = 1 << 6;
/// The element may stand in `<head>`.
pub(super) const IN_HEAD: u32 = 1 << 7;
/// The start tag ends SVG and MathML.
pub(super) const LEAVES_FOREIGN: u32 = 1 << 8;
/// Blanks in the element's text are kept.
pub(super) const PREFORMATTED: u32 = 1 << 9;
/// The element's text does not belong to the text of the elements around it.
pub(super) const MUTED: u32 = 1 << 10;
/// The end tag may be missing ("generate implied end tags").
pub(super) const IMPLIED_END: u32 = 1 << 11;
/// The end tag closes the element, if it is in scope, and all that is open inside.
pub(super) const CLOSES_ALL: u32 = 1 << 12;
/// The element's text is not read as markup.
pub(super) const READS_TEXT: u32 = 1 << 13;
/// The element is a part of a table: a caption, column, group of rows, row or cell.
pub(super) const TABLE_PART: u32 = 1 << 14;
/// The start tag has special rules besides the other properties.
pub(super) const START_RULES: u32 = 1 << 15;
/// The end tag closes the element up to the next table.
pub(super) const ENDS_IN_TABLE: u32 = 1 << 16;
/// The end tag has special rules besides the other properties.
pub(super) const END_RULES: u32 = 1 << 17;
/// The element belongs to ruby text, and its start tag closes another such element.
pub(super) const RUBY: u32 = 1 << 18;

const BLOCK: u32 = SPECIAL | CLOSES_P | BREAKS | CLOSES_ALL;
const HEADING_BITS: u32 = SPECIAL | CLOSES_P | BREAKS | HEADING | LEAVES_FOREIGN;
const CELL: u32 = SPECIAL | SCOPE | BREAKS | CLOSES_ALL | TABLE_PART | ENDS_IN_TABLE;
const ROWS: u32 = SPECIAL | BREAKS | CLOSES_ALL | TABLE_PART | ENDS_IN_TABLE;
const FORMAT: u32 = FORMATTING | LEAVES_FOREIGN;
const RAW: u32 = SPECIAL | MUTED | PREFORMATTED | READS_TEXT;

/// The HTML elements that have properties.
const ELEMENTS: &[(&str, u32)] = &[
    ("a", FORMATTING | START_RULES),
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
    ("body", SPECIAL | BREAKS | LEAVES_FOREIGN | START_RULES | END_RULES),
    ("br", SPECIAL | VOID | BREAKS | LEAVES_FOREIGN | END_RULES),
    ("button", SPECIAL | CLOSES_ALL | START_RULES),
    ("caption", CELL),
    ("center", BLOCK | LEAVES_FOREIGN),
    ("code", FORMAT),
    ("col", SPECIAL | VOID | TABLE_PART),
    ("colgroup", SPECIAL | TABLE_PART),
    ("dd", SPECIAL | CLOSES_P | BREAKS | IMPLIED_END | CLOSES_ALL | LEAVES_FOREIGN | START_RULES),
    ("details", BLOCK),
    ("dialog", BLOCK),
    ("dir", BLOCK),
    ("div", BLOCK | LEAVES_FOREIGN),
    ("dl", BLOCK | LEAVES_FOREIGN),
    ("dt", SPECIAL | CLOSES_P | BREAKS | IMPLIED_END | CLOSES_ALL | LEAVES_FOREIGN | START_RULES),
    ("em", FORMAT),
    ("embed", SPECIAL | VOID | LEAVES_FOREIGN),
    ("fieldset", BLOCK),
    ("figcaption", BLOCK),
    ("figure", BLOCK),
    ("font", FORMATTING),
    ("footer", BLOCK),
    ("form", SPECIAL | CLOSES_P | BREAKS | START_RULES | END_RULES),
    ("frame", SPECIAL | VOID),
    ("frameset", SPECIAL | START_RULES),
    ("h1", HEADING_BITS),
    ("h2", HEADING_BITS),
    ("h3", HEADING_BITS),
    ("h4", HEADING_BITS),
    ("h5", HEADING_BITS),
    ("h6", HEADING_BITS),
    ("head", SPECIAL | BREAKS | LEAVES_FOREIGN | START_RULES | END_RULES),
    ("header", BLOCK),
    ("hgroup", BLOCK),
    ("hr", SPECIAL | VOID | CLOSES_P | BREAKS | LEAVES_FOREIGN),
    ("html", SPECIAL | SCOPE | BREAKS | START_RULES | END_RULES),
    ("i", FORMAT),
    ("iframe", RAW),
    ("image", START_RULES),
    ("img", SPECIAL | VOID | LEAVES_FOREIGN),
    ("input", SPECIAL | VOID | START_RULES),
    ("keygen", SPECIAL | VOID),
    ("legend", BREAKS),
    ("li", SPECIAL | CLOSES_P | BREAKS | IMPLIED_END | LEAVES_FOREIGN | START_RULES | END_RULES),
    ("link", SPECIAL | VOID | IN_HEAD),
    ("listing", BLOCK | PREFORMATTED | LEAVES_FOREIGN),
    ("main", BLOCK),
    ("marquee", SPECIAL | SCOPE | CLOSES_ALL),
    ("math", START_RULES),
    ("menu", BLOCK | LEAVES_FOREIGN),
    ("meta", SPECIAL | VOID | IN_HEAD | LEAVES_FOREIGN),
    ("nav", BLOCK),
    ("nobr", FORMAT | START_RULES),
    ("noembed", RAW),
    ("noframes", RAW | IN_HEAD),
    ("noscript", SPECIAL | IN_HEAD),
    ("object", SPECIAL | SCOPE | CLOSES_ALL),
    ("ol", BLOCK | LEAVES_FOREIGN),
    ("optgroup", BREAKS | IMPLIED_END | START_RULES),
    ("option", BREAKS | IMPLIED_END | START_RULES),
    ("p", SPECIAL | CLOSES_P | BREAKS | IMPLIED_END | LEAVES_FOREIGN | END_RULES),
    ("param", SPECIAL | VOID),
    ("plaintext", SPECIAL | CLOSES_P | BREAKS | PREFORMATTED | READS_TEXT),
    ("pre", BLOCK | PREFORMATTED | LEAVES_FOREIGN),
    ("rb", IMPLIED_END | RUBY),
    ("rp", IMPLIED_END | RUBY),
    ("rt", IMPLIED_END | RUBY),
    ("rtc", IMPLIED_END | RUBY),
    ("ruby", LEAVES_FOREIGN),
    ("s", FORMAT),
    ("script", RAW | IN_HEAD),
    ("search", BLOCK),
    ("section", BLOCK),
    ("select", SPECIAL | CLOSES_ALL | START_RULES),
    ("small", FORMAT),
    ("source", SPECIAL | VOID),
    ("span", LEAVES_FOREIGN),
    ("strike", FORMAT),
    ("strong", FORMAT),
    ("style", RAW | IN_HEAD),
    ("sub", LEAVES_FOREIGN),
    ("summary", BLOCK),
    ("sup", LEAVES_FOREIGN),
    ("svg", START_RULES),
    ("table", SPECIAL | SCOPE | CLOSES_P | BREAKS | CLOSES_ALL | LEAVES_FOREIGN | START_RULES | ENDS_IN_TABLE),
    ("tbody", ROWS),
    ("td", CELL),
    ("template", SPECIAL | SCOPE | MUTED | IN_HEAD | CLOSES_ALL | END_RULES),
    ("textarea", SPECIAL | PREFORMATTED | READS_TEXT),
    ("tfoot", ROWS),
    ("th", CELL),
    ("thead", ROWS),
    ("title", SPECIAL | BREAKS | IN_HEAD | READS_TEXT),
    ("tr", ROWS),
    ("track", SPECIAL | VOID),
    ("tt", FORMAT),
    ("u", FORMAT),
    ("ul", BLOCK | LEAVES_FOREIGN),
    ("var", LEAVES_FOREIGN),
    ("wbr", SPECIAL | VOID),
    ("xmp", SPECIAL | CLOSES_P | BREAKS | PREFORMATTED | READS_TEXT),
];

/// The number of places in [`TABLE`]: several for each element, so that most elements have their own.
const PLACES: usize = 512;

/// A hash table of [`ELEMENTS`] by number. An element whose place is taken has the next free one.
static TABLE: [(u64, u32); PLACES] = table();

/// Returns the place in [`TABLE`] where the search for a number begins.
const fn place(number: u64) -> usize {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55) as usize
}

const fn table() -> [(u64, u32); PLACES] {
    let mut table = [(0, 0); PLACES];
    let mut count = 0;
    while count < ELEMENTS.len() {
        let (name, bits) = ELEMENTS[count];
        let number = TagName::new(name.as_bytes()).0;
        let mut at = place(number);
        while table[at].0 != 0 {
            at = (at + 1) % PLACES;
        }
        table[at] = (number, bits);
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
        BUTTON = "button", COL = "col", COLGROUP = "colgroup", DD = "dd", DESC = "desc", DIV = "div", DT = "dt",
        FONT = "font", FOREIGN_OBJECT = "foreignobject", FORM = "form", FRAMESET = "frameset", HEAD = "head",
        HTML = "html", IMAGE = "image", IMG = "img", INPUT = "input", LI = "li", MATH = "math", MI = "mi", MN = "mn",
        MO = "mo", MS = "ms", MTEXT = "mtext", NOBR = "nobr", OL = "ol", OPTGROUP = "optgroup", OPTION = "option",
        P = "p", PLAINTEXT = "plaintext", SCRIPT = "script", SELECT = "select", STYLE = "style", SVG = "svg",
        TABLE = "table", TBODY = "tbody", TD = "td", TEMPLATE = "template", TEXTAREA = "textarea", TFOOT = "tfoot",
        TH = "th", THEAD = "thead", TITLE = "title", TR = "tr", UL = "ul",
    }
}
