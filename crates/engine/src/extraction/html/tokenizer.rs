//! The tokenizer of HTML (WHATWG HTML, "Tokenization") for a page that arrives in pieces.
//!
//! It passes on tags and text, and skips comments and declarations. Character references in text
//! are not decoded here, because most text is not needed. Pieces are read in place. Only a tag that
//! continues in the next piece is copied, and up to [`LOOKAHEAD`] bytes whose meaning depends on
//! the bytes after them.

use memchr::{memchr, memchr2};

use super::tag_name_and_rules::{TagName, TagSearchRules};
use super::tag_parser::{Tag, TagParser, is_space};
use crate::Result;
use crate::extraction::inline_memchr::find_near;

/// The number of bytes that suffice to decide the meaning of a `<` anywhere in a page. The longest
/// text to recognize is `</textarea>` or the beginning of a declaration.
const LOOKAHEAD: usize = 16;
/// The minimum number of bytes by which an unfinished tag grows before it is parsed further.
const MIN_TAG_STEP: usize = 256;

/// The receiver of the tokens of a page: tags and text.
pub(super) trait TokenSink {
    /// Returns the rules of the search for tags with this name, such as whether their attributes
    /// are needed.
    fn rules(&self, name: TagName) -> TagSearchRules;

    /// Reads markup at the beginning of `bytes` directly, i.e. without tokens, as far as the
    /// receiver supports this. Called outside of tags. Returns the number of bytes read; 0 by
    /// default. The remaining bytes must begin with a `<` or directly follow a tag, unless the
    /// number is 0.
    fn read_common_markup(&mut self, _bytes: &[u8]) -> Result<usize> {
        Ok(0)
    }

    /// Receives a start tag. Returns the syntax of the text after it.
    fn start_tag(&mut self, tag: &Tag<'_>) -> Result<TextKind>;

    /// Receives an end tag.
    fn end_tag(&mut self, tag: &Tag<'_>) -> Result<()>;

    /// Receives a piece of text. More pieces of the same text may follow before
    /// [`TokenSink::end_text`]. If `has_references` is true, the text may contain character
    /// references.
    fn text(&mut self, text: &[u8], has_references: bool) -> Result<()>;

    /// Ends the text that [`TokenSink::text`] has received in pieces, for example before a comment.
    fn end_text(&mut self) -> Result<()>;

    /// Returns true if text is needed at present. If not, the tokenizer does not pass text on.
    fn wants_text(&self) -> bool;

    /// Returns true if a CDATA section is text at this position, as in XML, SVG and MathML.
    fn allows_cdata(&self) -> bool;
}

/// The syntax of the text after a start tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TextKind {
    /// Normal text, with tags, comments and character references.
    #[default]
    Markup,
    /// Text with character references but no tags, up to the end tag of the element: `<title>`.
    References,
    /// Raw text without tags, comments and character references, up to the end tag of the element:
    /// `<style>`.
    Raw,
    /// The text of `<script>`: raw text with special rules for comments.
    Script,
    /// Text up to the end of the page: `<plaintext>`.
    Plain,
}

/// The state of the tokenizer outside tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenizerState {
    /// The tokenizer is in text of this kind.
    Text(TextKind),
    /// The tokenizer is in a `<script>`, after a `<!--`. `is_nested` is true after a further
    /// `<script` in this comment. `dashes` is the number of hyphens directly before the next byte
    /// (at most 2).
    ScriptComment {
        dashes: u8,
        is_nested: bool,
    },
    Comment(CommentState),
    /// The tokenizer is in a comment, declaration or processing instruction that the next `>` ends.
    BogusComment,
    Cdata,
}

/// The states of the tokenizer within a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommentState {
    Start,
    StartDash,
    Text,
    Dash,
    TwoDashes,
    Bang,
}

/// A tokenizer for one page.
#[derive(Debug)]
pub(super) struct Tokenizer {
    state: TokenizerState,
    /// The lower-case name of the element whose end tag ends the current text.
    text_end: Vec<u8>,
    /// The bytes at the end of the last piece whose meaning depends on the bytes that follow.
    undecided: Vec<u8>,
    /// True if `tag_bytes` contains an unfinished tag.
    is_in_tag: bool,
    tag_bytes: Vec<u8>,
    tag: TagParser,
    /// The maximum length of a tag in bytes. Attributes of a longer tag are left out.
    max_tag: usize,
}

/// The meaning of a `<` in the page.
enum MarkupKind {
    /// More bytes are needed to decide.
    Undecided,
    /// The `<` is text.
    Text,
    StartTag,
    EndTag,
    /// The `<` begins `</>`, which is dropped without a token.
    Nothing,
    Comment,
    BogusComment,
    Cdata,
}

impl Tokenizer {
    /// Makes a tokenizer. `max_tag` is the maximum length of a tag in bytes. Attributes of a longer
    /// tag are left out.
    pub(super) fn new(max_tag: usize) -> Self {
        Self {
            state: TokenizerState::Text(TextKind::Markup),
            text_end: Vec::new(),
            undecided: Vec::new(),
            is_in_tag: false,
            tag_bytes: Vec::new(),
            tag: TagParser::default(),
            max_tag,
        }
    }

    /// Discards the state, so that another page can begin.
    pub(super) fn reset(&mut self) {
        self.state = TokenizerState::Text(TextKind::Markup);
        self.undecided.clear();
        self.tag_bytes.clear();
        self.is_in_tag = false;
    }

    /// Sets the syntax of the text at the beginning of the page, as if a start tag with the name
    /// `name` preceded it. Tests use this.
    #[cfg(test)]
    pub(super) fn begin_in(&mut self, kind: TextKind, name: &str) {
        self.state = TokenizerState::Text(kind);
        self.text_end = name.as_bytes().to_vec();
    }

    /// Makes the page begin inside a CDATA section. Tests use this.
    #[cfg(test)]
    pub(super) fn begin_in_cdata(&mut self) {
        self.state = TokenizerState::Cdata;
    }

    /// Returns the number of bytes that the tokenizer has allocated for unfinished tags.
    pub(super) fn buffered_bytes(&self) -> usize {
        self.tag_bytes.capacity()
    }

    /// Reads the next piece of the page, and passes its tokens to `sink`.
    pub(super) fn push(&mut self, mut piece: &[u8], sink: &mut impl TokenSink) -> Result<()> {
        while !piece.is_empty() {
            if self.is_in_tag {
                piece = self.continue_tag(piece, sink)?;
            } else if self.undecided.is_empty() {
                let used = self.read(piece, sink)?;
                self.undecided.extend_from_slice(&piece[used..]);
                return Ok(());
            } else {
                let mut bytes = std::mem::take(&mut self.undecided);
                let before = bytes.len();
                bytes.extend_from_slice(&piece[..piece.len().min(LOOKAHEAD)]);
                let used = self.read(&bytes, sink)?;
                if used < before {
                    piece = &piece[bytes.len() - before..];
                    bytes.drain(..used);
                    self.undecided = bytes;
                } else {
                    piece = &piece[used - before..];
                    bytes.clear();
                    self.undecided = bytes;
                }
            }
        }
        Ok(())
    }

    /// Ends the page. Passes bytes whose meaning was undecided to `sink` as text.
    pub(super) fn finish(&mut self, sink: &mut impl TokenSink) -> Result<()> {
        let undecided = std::mem::take(&mut self.undecided);
        let is_text = match self.state {
            // `<!` begins a comment in any case.
            TokenizerState::Text(TextKind::Markup) => !undecided.starts_with(b"<!"),
            TokenizerState::Text(_) | TokenizerState::ScriptComment { .. } | TokenizerState::Cdata => true,
            TokenizerState::Comment(_) | TokenizerState::BogusComment => false,
        };
        if is_text && !undecided.is_empty() {
            let has_references = self.has_references();
            self.pass_text(&undecided, has_references, sink)?;
        }
        self.reset();
        Ok(())
    }

    fn has_references(&self) -> bool {
        matches!(self.state, TokenizerState::Text(TextKind::Markup | TextKind::References))
    }

    fn pass_text(&self, text: &[u8], has_references: bool, sink: &mut impl TokenSink) -> Result<()> {
        if text.is_empty() || !sink.wants_text() { Ok(()) } else { sink.text(text, has_references) }
    }

    /// Reads tokens from `bytes`, and passes them to `sink`. Returns the number of bytes read. The
    /// meaning of the remaining bytes depends on bytes that have not arrived.
    fn read(&mut self, bytes: &[u8], sink: &mut impl TokenSink) -> Result<usize> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let used = match self.state {
                TokenizerState::Text(TextKind::Markup) => match sink.read_common_markup(rest)? {
                    0 => self.read_markup(rest, sink)?,
                    used => used,
                },
                TokenizerState::Text(TextKind::Plain) => {
                    self.pass_text(rest, false, sink)?;
                    rest.len()
                }
                TokenizerState::Text(kind) => self.read_raw(rest, kind, sink)?,
                TokenizerState::ScriptComment { dashes, is_nested } => {
                    self.read_script_comment(rest, dashes, is_nested, sink)?
                }
                TokenizerState::Comment(state) => self.read_comment(rest, state),
                TokenizerState::BogusComment => match memchr(b'>', rest) {
                    Some(end) => {
                        self.state = TokenizerState::Text(TextKind::Markup);
                        end + 1
                    }
                    None => rest.len(),
                },
                TokenizerState::Cdata => self.read_cdata(rest, sink)?,
            };
            if used == 0 {
                return Ok(at);
            }
            at += used;
        }
        Ok(at)
    }

    /// Reads text up to the next tag or comment, and then that tag, or the beginning of that
    /// comment. Returns the number of bytes read; 0 if more bytes are needed.
    fn read_markup(&mut self, bytes: &[u8], sink: &mut impl TokenSink) -> Result<usize> {
        let mut from = 0;
        loop {
            let Some(at) = find_near(b'<', &bytes[from..]).map(|at| from + at) else {
                self.pass_text(bytes, true, sink)?;
                return Ok(bytes.len());
            };
            let rest = &bytes[at..];
            let opening = markup_kind(rest);
            if matches!(opening, MarkupKind::Text) {
                from = at + 1;
                continue;
            }
            if at > 0 {
                self.pass_text(&bytes[..at], true, sink)?;
            }
            return Ok(at
                + match opening {
                    MarkupKind::Undecided | MarkupKind::Text => return Ok(at),
                    MarkupKind::StartTag => self.begin_tag(rest, 1, sink)?,
                    MarkupKind::EndTag => self.begin_tag(rest, 2, sink)?,
                    MarkupKind::Nothing => 3,
                    MarkupKind::Comment => {
                        sink.end_text()?;
                        self.state = TokenizerState::Comment(CommentState::Start);
                        4
                    }
                    MarkupKind::Cdata if sink.allows_cdata() => {
                        sink.end_text()?;
                        self.state = TokenizerState::Cdata;
                        9
                    }
                    MarkupKind::BogusComment | MarkupKind::Cdata => {
                        sink.end_text()?;
                        self.state = TokenizerState::BogusComment;
                        // The `>` of `<!>` ends the comment.
                        2
                    }
                });
        }
    }

    /// Reads the tag at the beginning of `bytes`, whose name begins at the index `name`. Returns
    /// the number of bytes read. An incomplete tag is stored, and the result is the number of all
    /// bytes.
    fn begin_tag(&mut self, bytes: &[u8], name: usize, sink: &mut impl TokenSink) -> Result<usize> {
        if let Some(end) = self.tag.parse_common_tag(bytes, name, |name| sink.rules(name)) {
            self.pass_tag(&bytes[..end], sink)?;
            return Ok(end);
        }
        self.tag.begin(name);
        let Some(end) = self.tag.parse(bytes) else {
            self.tag_bytes.clear();
            self.tag_bytes.extend_from_slice(bytes);
            self.is_in_tag = true;
            return Ok(bytes.len());
        };
        self.tag.identify(bytes, |name| sink.rules(name));
        self.pass_tag(&bytes[..end], sink)?;
        Ok(end)
    }

    /// Reads more bytes of an unfinished tag. Returns the bytes of the piece after the tag.
    fn continue_tag<'p>(&mut self, piece: &'p [u8], sink: &mut impl TokenSink) -> Result<&'p [u8]> {
        let mut bytes = std::mem::take(&mut self.tag_bytes);
        let mut taken = 0;
        while taken < piece.len() {
            let more = (piece.len() - taken).min(MIN_TAG_STEP.max(bytes.len()));
            bytes.extend_from_slice(&piece[taken..taken + more]);
            taken += more;
            if let Some(end) = self.tag.parse(&bytes) {
                taken -= bytes.len() - end;
                self.is_in_tag = false;
                self.tag.identify(&bytes, |name| sink.rules(name));
                self.pass_tag(&bytes[..end], sink)?;
                bytes.clear();
                bytes.shrink_to(MIN_TAG_STEP);
                break;
            }
            if bytes.len() > self.max_tag {
                self.tag.drop_oversized(&mut bytes, self.max_tag);
            }
        }
        self.tag_bytes = bytes;
        Ok(&piece[taken..])
    }

    fn pass_tag(&mut self, bytes: &[u8], sink: &mut impl TokenSink) -> Result<()> {
        let tag = self.tag.tag(bytes);
        if bytes[1] == b'/' {
            self.state = TokenizerState::Text(TextKind::Markup);
            return sink.end_tag(&tag);
        }
        let kind = sink.start_tag(&tag)?;
        self.state = TokenizerState::Text(kind);
        if !matches!(kind, TextKind::Markup | TextKind::Plain) {
            self.text_end.clear();
            self.text_end.extend(tag.name().iter().map(u8::to_ascii_lowercase));
        }
        Ok(())
    }

    /// Reads text without tags, up to and including the end tag of its element. Returns the number
    /// of bytes read.
    fn read_raw(&mut self, bytes: &[u8], kind: TextKind, sink: &mut impl TokenSink) -> Result<usize> {
        let has_references = kind == TextKind::References;
        let mut from = 0;
        while let Some(at) = memchr(b'<', &bytes[from..]).map(|at| from + at) {
            let rest = &bytes[at..];
            let ends = is_end_tag(rest, &self.text_end);
            let begins_comment =
                kind == TextKind::Script && !ends.is_yes() && b"<!--".starts_with(&rest[..rest.len().min(4)]);
            if ends == LookaheadResult::Undecided || begins_comment && rest.len() < 4 {
                self.pass_text(&bytes[..at], has_references, sink)?;
                return Ok(at);
            }
            if ends.is_yes() {
                self.pass_text(&bytes[..at], has_references, sink)?;
                return Ok(at + self.begin_tag(rest, 2, sink)?);
            }
            if begins_comment {
                self.pass_text(&bytes[..at + 4], has_references, sink)?;
                self.state = TokenizerState::ScriptComment { dashes: 2, is_nested: false };
                return Ok(at + 4);
            }
            from = at + 1;
        }
        self.pass_text(bytes, has_references, sink)?;
        Ok(bytes.len())
    }

    /// Reads the text of a script after `<!--`, up to `-->` or the `</script>` that ends the
    /// element. In this comment, a `<script` begins a nested script: the next `</script>` ends only
    /// the nested one. `is_nested` is true in a nested script. `dashes` is the number of hyphens
    /// directly before `bytes` (at most 2), which may belong to a `-->`. Returns the number of
    /// bytes read.
    fn read_script_comment(
        &mut self,
        bytes: &[u8],
        mut dashes: u8,
        mut is_nested: bool,
        sink: &mut impl TokenSink,
    ) -> Result<usize> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'-' => dashes = (dashes + 1).min(2),
                b'>' if dashes == 2 => {
                    self.pass_text(&bytes[..=at], false, sink)?;
                    self.state = TokenizerState::Text(TextKind::Script);
                    return Ok(at + 1);
                }
                b'<' => {
                    dashes = 0;
                    let rest = &bytes[at..];
                    let ends = is_end_tag(rest, &self.text_end);
                    let begins = is_script_tag(rest);
                    if ends == LookaheadResult::Undecided || !is_nested && begins == LookaheadResult::Undecided {
                        self.pass_text(&bytes[..at], false, sink)?;
                        self.state = TokenizerState::ScriptComment { dashes, is_nested };
                        return Ok(at);
                    }
                    if ends.is_yes() && !is_nested {
                        self.pass_text(&bytes[..at], false, sink)?;
                        return Ok(at + self.begin_tag(rest, 2, sink)?);
                    }
                    is_nested = if is_nested { !ends.is_yes() } else { begins.is_yes() };
                }
                _ => {
                    dashes = 0;
                    // Skips to the next byte that matters.
                    let skipped = memchr2(b'-', b'<', &bytes[at + 1..]).unwrap_or(bytes.len() - at - 1);
                    at += skipped;
                }
            }
            at += 1;
        }
        self.pass_text(bytes, false, sink)?;
        self.state = TokenizerState::ScriptComment { dashes, is_nested };
        Ok(bytes.len())
    }

    fn read_comment(&mut self, bytes: &[u8], mut state: CommentState) -> usize {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            state = match (state, byte) {
                (
                    CommentState::Start | CommentState::StartDash | CommentState::TwoDashes | CommentState::Bang,
                    b'>',
                ) => {
                    self.state = TokenizerState::Text(TextKind::Markup);
                    return at;
                }
                (CommentState::Start, b'-') => CommentState::StartDash,
                (CommentState::StartDash | CommentState::Dash | CommentState::TwoDashes, b'-') => {
                    CommentState::TwoDashes
                }
                (CommentState::TwoDashes, b'!') => CommentState::Bang,
                (CommentState::Text | CommentState::Bang, b'-') => CommentState::Dash,
                _ => {
                    at += memchr(b'-', &bytes[at..]).unwrap_or(bytes.len() - at);
                    CommentState::Text
                }
            };
        }
        self.state = TokenizerState::Comment(state);
        at
    }

    fn read_cdata(&mut self, bytes: &[u8], sink: &mut impl TokenSink) -> Result<usize> {
        let mut from = 0;
        while let Some(at) = memchr(b']', &bytes[from..]).map(|at| from + at) {
            let rest = &bytes[at..];
            if rest.starts_with(b"]]>") {
                self.pass_text(&bytes[..at], false, sink)?;
                self.state = TokenizerState::Text(TextKind::Markup);
                return Ok(at + 3);
            }
            if b"]]>".starts_with(rest) {
                self.pass_text(&bytes[..at], false, sink)?;
                return Ok(at);
            }
            from = at + 1;
        }
        self.pass_text(bytes, false, sink)?;
        Ok(bytes.len())
    }
}

/// Returns the meaning of the `<` at the beginning of `bytes`.
fn markup_kind(bytes: &[u8]) -> MarkupKind {
    match bytes.get(1) {
        None => MarkupKind::Undecided,
        Some(byte) if byte.is_ascii_alphabetic() => MarkupKind::StartTag,
        Some(b'/') => match bytes.get(2) {
            None => MarkupKind::Undecided,
            Some(byte) if byte.is_ascii_alphabetic() => MarkupKind::EndTag,
            Some(b'>') => MarkupKind::Nothing,
            Some(_) => MarkupKind::BogusComment,
        },
        Some(b'!') => {
            if bytes.starts_with(b"<!--") {
                MarkupKind::Comment
            } else if bytes.starts_with(b"<![CDATA[") {
                MarkupKind::Cdata
            } else if b"<!--".starts_with(bytes) || b"<![CDATA[".starts_with(bytes) {
                MarkupKind::Undecided
            } else {
                MarkupKind::BogusComment
            }
        }
        Some(b'?') => MarkupKind::BogusComment,
        Some(_) => MarkupKind::Text,
    }
}

/// The result of a test whether the next bytes of the page are a certain tag or name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LookaheadResult {
    Yes,
    No,
    /// More bytes are needed to decide.
    Undecided,
}

impl LookaheadResult {
    fn is_yes(self) -> bool {
        self == Self::Yes
    }
}

/// Tests whether `bytes`, which begin with `<`, begin with the end tag of the element `name`.
fn is_end_tag(bytes: &[u8], name: &[u8]) -> LookaheadResult {
    match bytes.get(1) {
        None => LookaheadResult::Undecided,
        Some(b'/') => is_name(&bytes[2..], name),
        Some(_) => LookaheadResult::No,
    }
}

/// Tests whether `bytes`, which begin with `<`, begin with a `<script>` start tag.
fn is_script_tag(bytes: &[u8]) -> LookaheadResult {
    is_name(&bytes[1..], b"script")
}

/// Tests whether `bytes` begin with the lower-case name `name` and a byte that ends a name.
fn is_name(bytes: &[u8], name: &[u8]) -> LookaheadResult {
    let length = bytes.len().min(name.len());
    if !bytes[..length].eq_ignore_ascii_case(&name[..length]) {
        return LookaheadResult::No;
    }
    match bytes.get(name.len()) {
        None => LookaheadResult::Undecided,
        Some(&byte) if is_space(byte) || byte == b'/' || byte == b'>' => LookaheadResult::Yes,
        Some(_) => LookaheadResult::No,
    }
}
