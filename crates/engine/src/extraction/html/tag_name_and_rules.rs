//! The names of elements as numbers, and the parsing rules that HTML defines for some elements.

/// The name of an element, without regard to case, as a number. Names of up to eight bytes are
/// packed into it. Longer names are hashed. Two long names with the same hash count as the same
/// name, with one harmless effect: an end tag may close the wrong element.
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

    /// Makes the number of a name that consists of letters and digits. `packed` contains the last
    /// eight bytes of the name in lower case, and `name` all bytes in any case.
    pub(super) fn of_lower_case(packed: u64, name: &[u8]) -> Self {
        if name.len() <= 8 { Self(packed) } else { Self::new(name) }
    }

    /// Makes the number of a name of one to eight lower-case letters and digits. `packed` contains
    /// the bytes of the name, with the last byte in the lowest bits.
    pub(super) const fn of_short(packed: u64) -> Self {
        Self(packed)
    }

    /// Returns the bytes of a name of at most eight bytes as a number, in lower case and with the
    /// last byte of the name in the lowest bits. Returns `None` for a longer name.
    pub(super) fn short(self) -> Option<u64> {
        (self.0 >> 63 == 0).then_some(self.0)
    }

    /// Returns a number from 1 to 255 that is often different for different names.
    pub(super) fn bucket(self) -> u8 {
        ((self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).max(1)
    }

    /// Returns the properties of the HTML element with this name, as a bit set.
    pub(super) fn properties(self) -> u32 {
        let mut at = hash_index(self.0);
        loop {
            let (name, bits) = ELEMENT_TABLE[at];
            if name == self.0 || name == 0 {
                return bits;
            }
            at = (at + 1) % TABLE_SIZE;
        }
    }
}

/// The rules that the search of a page applies to all tags with one element name.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TagSearchRules {
    /// The properties that HTML gives to elements with this name, as a bit set of the constants
    /// below ([`IS_VOID`] and so on).
    pub(super) properties: u32,
    /// True if the attributes of these elements are needed: by the rules of HTML, by queries, or
    /// for the page's base URL.
    pub(super) needs_attributes: bool,
    /// The index, plus 1, of the query that selects the text of all elements with this name. It is
    /// 0 if there is no such query, or if other queries may also match some of these elements.
    pub(super) text_query: u8,
    /// The set of steps (compound selectors of the queries) that may match these elements.
    pub(super) steps: u64,
}

/// A hash table of the [`TagSearchRules`] by element name.
pub(super) struct TagRulesTable {
    /// The slots of the hash table: the rules for the names in [`ELEMENTS`] and in selectors. Each
    /// slot contains a name as a number ([`TagName`]), and the rules for it. In an empty slot, the
    /// number is 0.
    slots: Box<[(u64, TagSearchRules); TABLE_SIZE]>,
    /// The rules for every name that is neither in [`ELEMENTS`] nor in a selector.
    other: TagSearchRules,
}

impl TagRulesTable {
    /// Makes the table. `names` are the element names in selectors, at most 64. `rules` returns the
    /// rules for one name, or with `None`, the rules for all names that are neither in selectors
    /// nor in [`ELEMENTS`].
    pub(super) fn new(names: impl Iterator<Item = TagName>, rules: impl Fn(Option<TagName>) -> TagSearchRules) -> Self {
        let mut slots = Box::new([(0, TagSearchRules::default()); TABLE_SIZE]);
        for name in ELEMENTS.iter().map(|(name, _)| TagName::new(name.as_bytes())).chain(names) {
            let mut at = hash_index(name.0);
            while slots[at].0 != 0 && slots[at].0 != name.0 {
                at = (at + 1) % TABLE_SIZE;
            }
            slots[at] = (name.0, rules(Some(name)));
        }
        Self { slots, other: rules(None) }
    }

    /// Returns the rules for the elements with this name.
    pub(super) fn rules(&self, name: TagName) -> TagSearchRules {
        let mut at = hash_index(name.0);
        loop {
            let (other, rules) = &self.slots[at];
            if *other == 0 {
                return self.other;
            }
            if *other == name.0 {
                return *rules;
            }
            at = (at + 1) % TABLE_SIZE;
        }
    }
}

/// Property: the element has no content and no end tag.
pub(super) const IS_VOID: u32 = 1;
/// Property: the element is in HTML's category "special". An end tag with another name usually does
/// not close it.
pub(super) const IS_SPECIAL: u32 = 1 << 1;
/// Property: the element is in HTML's category "formatting". Its end tag does not close the
/// elements inside it.
pub(super) const IS_FORMATTING: u32 = 1 << 2;
/// Property: the start tag closes an open `<p>`.
pub(super) const CLOSES_P: u32 = 1 << 3;
/// Property: the element ends a search for an open element ("has an element in scope").
pub(super) const ENDS_SCOPE: u32 = 1 << 4;
/// Property: the element is a heading, `<h1>` to `<h6>`.
pub(super) const IS_HEADING: u32 = 1 << 5;
/// Property: the element separates the words of its text from the text around it. It is a block, a
/// cell or a line break.
pub(super) const SEPARATES_WORDS: u32 = 1 << 6;
/// Property: the element may be inside `<head>`.
pub(super) const MAY_BE_IN_HEAD: u32 = 1 << 7;
/// Property: the start tag ends SVG or MathML content.
pub(super) const ENDS_FOREIGN_CONTENT: u32 = 1 << 8;
/// Property: spaces in the element's text are kept.
pub(super) const IS_PREFORMATTED: u32 = 1 << 9;
/// Property: the element's text is not part of the text of the elements around it.
pub(super) const HAS_SEPARATE_TEXT: u32 = 1 << 10;
/// Property: the end tag may be missing ("generate implied end tags").
pub(super) const HAS_IMPLIED_END_TAG: u32 = 1 << 11;
/// Property: the end tag closes the element, if it is in scope, and all open elements inside it.
pub(super) const END_TAG_CLOSES_ALL_INSIDE: u32 = 1 << 12;
/// Property: the element's text is raw, i.e. not parsed for tags.
pub(super) const HAS_RAW_TEXT: u32 = 1 << 13;
/// Property: the element is a part of a table (a caption, column, row group, row or cell).
pub(super) const IS_TABLE_PART: u32 = 1 << 14;
/// Property: the start tag has special rules that the other properties do not express.
pub(super) const HAS_START_TAG_RULES: u32 = 1 << 15;
/// Property: the end tag closes the element, unless a table is open inside the element.
pub(super) const END_TAG_STOPS_AT_TABLE: u32 = 1 << 16;
/// Property: the end tag has special rules that the other properties do not express.
pub(super) const HAS_END_TAG_RULES: u32 = 1 << 17;
/// Property: the element belongs to ruby text, and its start tag closes an open ruby text element.
pub(super) const IS_RUBY_TEXT: u32 = 1 << 18;

const BLOCK_PROPERTIES: u32 = IS_SPECIAL | CLOSES_P | SEPARATES_WORDS | END_TAG_CLOSES_ALL_INSIDE;
const HEADING_PROPERTIES: u32 = IS_SPECIAL | CLOSES_P | SEPARATES_WORDS | IS_HEADING | ENDS_FOREIGN_CONTENT;
const CELL_PROPERTIES: u32 =
    IS_SPECIAL | ENDS_SCOPE | SEPARATES_WORDS | END_TAG_CLOSES_ALL_INSIDE | IS_TABLE_PART | END_TAG_STOPS_AT_TABLE;
const ROW_PROPERTIES: u32 =
    IS_SPECIAL | SEPARATES_WORDS | END_TAG_CLOSES_ALL_INSIDE | IS_TABLE_PART | END_TAG_STOPS_AT_TABLE;
const FORMATTING_PROPERTIES: u32 = IS_FORMATTING | ENDS_FOREIGN_CONTENT;
const RAW_TEXT_PROPERTIES: u32 = IS_SPECIAL | HAS_SEPARATE_TEXT | IS_PREFORMATTED | HAS_RAW_TEXT;

/// The HTML elements that the parser treats in a special way, each with its properties: a bit set
/// of the constants above ([`IS_VOID`] and so on).
const ELEMENTS: &[(&str, u32)] = &[
    ("a", IS_FORMATTING | HAS_START_TAG_RULES),
    ("address", BLOCK_PROPERTIES),
    ("applet", IS_SPECIAL | ENDS_SCOPE | END_TAG_CLOSES_ALL_INSIDE),
    ("area", IS_SPECIAL | IS_VOID),
    ("article", BLOCK_PROPERTIES),
    ("aside", BLOCK_PROPERTIES),
    ("b", FORMATTING_PROPERTIES),
    ("base", IS_SPECIAL | IS_VOID | MAY_BE_IN_HEAD),
    ("basefont", IS_SPECIAL | IS_VOID | MAY_BE_IN_HEAD),
    ("bgsound", IS_SPECIAL | IS_VOID | MAY_BE_IN_HEAD),
    ("big", FORMATTING_PROPERTIES),
    ("blockquote", BLOCK_PROPERTIES | ENDS_FOREIGN_CONTENT),
    ("body", IS_SPECIAL | SEPARATES_WORDS | ENDS_FOREIGN_CONTENT | HAS_START_TAG_RULES | HAS_END_TAG_RULES),
    ("br", IS_SPECIAL | IS_VOID | SEPARATES_WORDS | ENDS_FOREIGN_CONTENT | HAS_END_TAG_RULES),
    ("button", IS_SPECIAL | END_TAG_CLOSES_ALL_INSIDE | HAS_START_TAG_RULES),
    ("caption", CELL_PROPERTIES),
    ("center", BLOCK_PROPERTIES | ENDS_FOREIGN_CONTENT),
    ("code", FORMATTING_PROPERTIES),
    ("col", IS_SPECIAL | IS_VOID | IS_TABLE_PART),
    ("colgroup", IS_SPECIAL | IS_TABLE_PART),
    (
        "dd",
        IS_SPECIAL
            | CLOSES_P
            | SEPARATES_WORDS
            | HAS_IMPLIED_END_TAG
            | END_TAG_CLOSES_ALL_INSIDE
            | ENDS_FOREIGN_CONTENT
            | HAS_START_TAG_RULES,
    ),
    ("details", BLOCK_PROPERTIES),
    ("dialog", BLOCK_PROPERTIES),
    ("dir", BLOCK_PROPERTIES),
    ("div", BLOCK_PROPERTIES | ENDS_FOREIGN_CONTENT),
    ("dl", BLOCK_PROPERTIES | ENDS_FOREIGN_CONTENT),
    (
        "dt",
        IS_SPECIAL
            | CLOSES_P
            | SEPARATES_WORDS
            | HAS_IMPLIED_END_TAG
            | END_TAG_CLOSES_ALL_INSIDE
            | ENDS_FOREIGN_CONTENT
            | HAS_START_TAG_RULES,
    ),
    ("em", FORMATTING_PROPERTIES),
    ("embed", IS_SPECIAL | IS_VOID | ENDS_FOREIGN_CONTENT),
    ("fieldset", BLOCK_PROPERTIES),
    ("figcaption", BLOCK_PROPERTIES),
    ("figure", BLOCK_PROPERTIES),
    ("font", IS_FORMATTING),
    ("footer", BLOCK_PROPERTIES),
    ("form", IS_SPECIAL | CLOSES_P | SEPARATES_WORDS | HAS_START_TAG_RULES | HAS_END_TAG_RULES),
    ("frame", IS_SPECIAL | IS_VOID),
    ("frameset", IS_SPECIAL | HAS_START_TAG_RULES),
    ("h1", HEADING_PROPERTIES),
    ("h2", HEADING_PROPERTIES),
    ("h3", HEADING_PROPERTIES),
    ("h4", HEADING_PROPERTIES),
    ("h5", HEADING_PROPERTIES),
    ("h6", HEADING_PROPERTIES),
    ("head", IS_SPECIAL | SEPARATES_WORDS | ENDS_FOREIGN_CONTENT | HAS_START_TAG_RULES | HAS_END_TAG_RULES),
    ("header", BLOCK_PROPERTIES),
    ("hgroup", BLOCK_PROPERTIES),
    ("hr", IS_SPECIAL | IS_VOID | CLOSES_P | SEPARATES_WORDS | ENDS_FOREIGN_CONTENT),
    ("html", IS_SPECIAL | ENDS_SCOPE | SEPARATES_WORDS | HAS_START_TAG_RULES | HAS_END_TAG_RULES),
    ("i", FORMATTING_PROPERTIES),
    ("iframe", RAW_TEXT_PROPERTIES),
    ("image", HAS_START_TAG_RULES),
    ("img", IS_SPECIAL | IS_VOID | ENDS_FOREIGN_CONTENT),
    ("input", IS_SPECIAL | IS_VOID | HAS_START_TAG_RULES),
    ("keygen", IS_SPECIAL | IS_VOID),
    ("legend", SEPARATES_WORDS),
    (
        "li",
        IS_SPECIAL
            | CLOSES_P
            | SEPARATES_WORDS
            | HAS_IMPLIED_END_TAG
            | ENDS_FOREIGN_CONTENT
            | HAS_START_TAG_RULES
            | HAS_END_TAG_RULES,
    ),
    ("link", IS_SPECIAL | IS_VOID | MAY_BE_IN_HEAD),
    ("listing", BLOCK_PROPERTIES | IS_PREFORMATTED | ENDS_FOREIGN_CONTENT),
    ("main", BLOCK_PROPERTIES),
    ("marquee", IS_SPECIAL | ENDS_SCOPE | END_TAG_CLOSES_ALL_INSIDE),
    ("math", HAS_START_TAG_RULES),
    ("menu", BLOCK_PROPERTIES | ENDS_FOREIGN_CONTENT),
    ("meta", IS_SPECIAL | IS_VOID | MAY_BE_IN_HEAD | ENDS_FOREIGN_CONTENT),
    ("nav", BLOCK_PROPERTIES),
    ("nobr", FORMATTING_PROPERTIES | HAS_START_TAG_RULES),
    ("noembed", RAW_TEXT_PROPERTIES),
    ("noframes", RAW_TEXT_PROPERTIES | MAY_BE_IN_HEAD),
    ("noscript", IS_SPECIAL | MAY_BE_IN_HEAD),
    ("object", IS_SPECIAL | ENDS_SCOPE | END_TAG_CLOSES_ALL_INSIDE),
    ("ol", BLOCK_PROPERTIES | ENDS_FOREIGN_CONTENT),
    ("optgroup", SEPARATES_WORDS | HAS_IMPLIED_END_TAG | HAS_START_TAG_RULES),
    ("option", SEPARATES_WORDS | HAS_IMPLIED_END_TAG | HAS_START_TAG_RULES),
    ("p", IS_SPECIAL | CLOSES_P | SEPARATES_WORDS | HAS_IMPLIED_END_TAG | ENDS_FOREIGN_CONTENT | HAS_END_TAG_RULES),
    ("param", IS_SPECIAL | IS_VOID),
    ("plaintext", IS_SPECIAL | CLOSES_P | SEPARATES_WORDS | IS_PREFORMATTED | HAS_RAW_TEXT),
    ("pre", BLOCK_PROPERTIES | IS_PREFORMATTED | ENDS_FOREIGN_CONTENT),
    ("rb", HAS_IMPLIED_END_TAG | IS_RUBY_TEXT),
    ("rp", HAS_IMPLIED_END_TAG | IS_RUBY_TEXT),
    ("rt", HAS_IMPLIED_END_TAG | IS_RUBY_TEXT),
    ("rtc", HAS_IMPLIED_END_TAG | IS_RUBY_TEXT),
    ("ruby", ENDS_FOREIGN_CONTENT),
    ("s", FORMATTING_PROPERTIES),
    ("script", RAW_TEXT_PROPERTIES | MAY_BE_IN_HEAD),
    ("search", BLOCK_PROPERTIES),
    ("section", BLOCK_PROPERTIES),
    ("select", IS_SPECIAL | END_TAG_CLOSES_ALL_INSIDE | HAS_START_TAG_RULES),
    ("small", FORMATTING_PROPERTIES),
    ("source", IS_SPECIAL | IS_VOID),
    ("span", ENDS_FOREIGN_CONTENT),
    ("strike", FORMATTING_PROPERTIES),
    ("strong", FORMATTING_PROPERTIES),
    ("style", RAW_TEXT_PROPERTIES | MAY_BE_IN_HEAD),
    ("sub", ENDS_FOREIGN_CONTENT),
    ("summary", BLOCK_PROPERTIES),
    ("sup", ENDS_FOREIGN_CONTENT),
    ("svg", HAS_START_TAG_RULES),
    (
        "table",
        IS_SPECIAL
            | ENDS_SCOPE
            | CLOSES_P
            | SEPARATES_WORDS
            | END_TAG_CLOSES_ALL_INSIDE
            | ENDS_FOREIGN_CONTENT
            | HAS_START_TAG_RULES
            | END_TAG_STOPS_AT_TABLE,
    ),
    ("tbody", ROW_PROPERTIES),
    ("td", CELL_PROPERTIES),
    (
        "template",
        IS_SPECIAL | ENDS_SCOPE | HAS_SEPARATE_TEXT | MAY_BE_IN_HEAD | END_TAG_CLOSES_ALL_INSIDE | HAS_END_TAG_RULES,
    ),
    ("textarea", IS_SPECIAL | IS_PREFORMATTED | HAS_RAW_TEXT),
    ("tfoot", ROW_PROPERTIES),
    ("th", CELL_PROPERTIES),
    ("thead", ROW_PROPERTIES),
    ("title", IS_SPECIAL | SEPARATES_WORDS | MAY_BE_IN_HEAD | HAS_RAW_TEXT),
    ("tr", ROW_PROPERTIES),
    ("track", IS_SPECIAL | IS_VOID),
    ("tt", FORMATTING_PROPERTIES),
    ("u", FORMATTING_PROPERTIES),
    ("ul", BLOCK_PROPERTIES | ENDS_FOREIGN_CONTENT),
    ("var", ENDS_FOREIGN_CONTENT),
    ("wbr", IS_SPECIAL | IS_VOID),
    ("xmp", IS_SPECIAL | CLOSES_P | SEPARATES_WORDS | IS_PREFORMATTED | HAS_RAW_TEXT),
];

/// The number of slots in [`ELEMENT_TABLE`], a power of two. It is several times the number of
/// elements, so that few elements have the same first slot.
const TABLE_SIZE: usize = 512;

/// A hash table of [`ELEMENTS`], with open addressing. Each slot contains the name of an element as
/// a number ([`TagName`]), and the bit set of its properties. If an element's slot is taken, the
/// element uses the next free slot.
static ELEMENT_TABLE: [(u64, u32); TABLE_SIZE] = build_table();

/// Returns the index of the slot in [`ELEMENT_TABLE`] at which the search for an element begins.
/// `number` is the element's name as a number ([`TagName`]).
const fn hash_index(number: u64) -> usize {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55) as usize
}

const fn build_table() -> [(u64, u32); TABLE_SIZE] {
    let mut table = [(0, 0); TABLE_SIZE];
    let mut count = 0;
    while count < ELEMENTS.len() {
        let (name, bits) = ELEMENTS[count];
        let number = TagName::new(name.as_bytes()).0;
        let mut at = hash_index(number);
        while table[at].0 != 0 {
            at = (at + 1) % TABLE_SIZE;
        }
        table[at] = (number, bits);
        count += 1;
    }
    table
}

/// The element names that the parsing rules refer to.
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
        FONT = "font", FOREIGN_OBJECT = "foreignobject", FORM = "form", FRAMESET = "frameset", H1 = "h1",
        H2 = "h2", H3 = "h3", H4 = "h4", H5 = "h5", H6 = "h6", HEAD = "head",
        HTML = "html", IMAGE = "image", IMG = "img", INPUT = "input", LI = "li", MATH = "math", MI = "mi", MN = "mn",
        MO = "mo", MS = "ms", MTEXT = "mtext", NOBR = "nobr", OL = "ol", OPTGROUP = "optgroup", OPTION = "option",
        P = "p", PLAINTEXT = "plaintext", SCRIPT = "script", SELECT = "select", STYLE = "style", SVG = "svg",
        TABLE = "table", TBODY = "tbody", TD = "td", TEMPLATE = "template", TEXTAREA = "textarea", TFOOT = "tfoot",
        TH = "th", THEAD = "thead", TITLE = "title", TR = "tr", UL = "ul",
    }
}
