//! The tokenizer of HTML (WHATWG HTML, "Tokenization") for a page that arrives in pieces.
//!
//! The tokenizer passes tags and text to a [`TokenSink`], and skips comments and declarations.
//! Character references in text are not decoded, because most text is not needed. Pieces are read
//! in place: only a tag that continues in the next piece is copied, and up to [`LOOKAHEAD`] bytes
//! whose meaning depends on the bytes after them.

use memchr::{memchr, memchr2};

use super::tag_name_and_rules::{TagName, TagSearchRules};
use super::tag_parser::{Tag, TagParser, is_space};
use crate::Result;
use crate::extraction::inline_memchr::find_near;

/// The number of bytes after which the tokenizer can always decide what a `<` begins. The longest
/// text to recognize is `</textarea>` with the byte after it.
const LOOKAHEAD: usize = 16;
/// The minimum number of bytes that are added to an unfinished tag before it is parsed further.
const MIN_TAG_STEP: usize = 256;

/// Receives the tokens of a page, i.e. tags and text, from the [`Tokenizer`].
pub(super) trait TokenSink {
    /// Returns the rules for tags with this name, such as whether their attributes are needed.
    fn rules(&self, name: TagName) -> TagSearchRules;

    /// Reads text and tags at the beginning of `bytes` without the tokenizer, as far as the sink
    /// can. The tokenizer calls this function only outside of tags. Returns the number of bytes
    /// read; 0 by default. The bytes read must end before a `<` or after a tag, not within a text.
    fn read_common_markup(&mut self, _bytes: &[u8]) -> Result<usize> {
        Ok(0)
    }

    /// Receives a start tag. Returns the state of the tokenizer for the text after the tag.
    fn start_tag(&mut self, tag: &Tag<'_>) -> Result<TextState>;

    /// Receives an end tag.
    fn end_tag(&mut self, tag: &Tag<'_>) -> Result<()>;

    /// Receives a part of a text. More parts of it may follow before [`TokenSink::end_text`]. If
    /// `has_references` is true, the text may contain character references such as `&amp;`.
    fn text(&mut self, text: &[u8], has_references: bool) -> Result<()>;

    /// Ends the text that [`TokenSink::text`] has received in parts. Called before a comment, for
    /// example.
    fn end_text(&mut self) -> Result<()>;

    /// Returns true if the sink needs the next text. Otherwise, the tokenizer does not pass it on.
    fn wants_text(&self) -> bool;

    /// Returns true if `<![CDATA[` begins a CDATA section at this position, as in XML, SVG and
    /// MathML. In HTML, it begins a comment.
    fn allows_cdata(&self) -> bool;
}

/// The state of the tokenizer in the text of an element. It depends on the element's start tag. The
/// names are those of WHATWG HTML, "Tokenization".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TextState {
    /// The data state: text with tags, comments and character references.
    #[default]
    Data,
    /// The RCDATA state: text with character references but no tags, up to the end tag of the
    /// element, such as `<title>`.
    Rcdata,
    /// The RAWTEXT state: text without tags, comments and character references, up to the end tag
    /// of the element, such as `<style>`.
    RawText,
    /// The script data state: raw text of a `<script>`, in which comments have special rules.
    ScriptData,
    /// The PLAINTEXT state: all bytes up to the end of the page are text, after `<plaintext>`.
    PlainText,
}

/// The state of the tokenizer outside of tags (WHATWG HTML, "Tokenization").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenizerState {
    /// In the text of an element.
    Text(TextState),
    /// In a `<script>` after a `<!--`, up to the `-->`: a script data escaped state. After a
    /// further `<script` in it, `is_double_escaped` is true (a script data double escaped state).
    /// `hyphens` is the number of hyphens directly before the next byte (at most 2).
    ScriptDataEscaped { hyphens: u8, is_double_escaped: bool },
    /// In a comment.
    Comment(CommentState),
    /// In a declaration, a processing instruction or malformed markup, which the next `>` ends.
    BogusComment,
    /// In a CDATA section, up to its `]]>`.
    CdataSection,
}

/// The state of the tokenizer in a comment. The names are those of WHATWG HTML, "Tokenization",
/// such as "comment start dash state".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommentState {
    Start,
    StartDash,
    Comment,
    EndDash,
    End,
    EndBang,
}

/// The tokenizer of a page. It splits the bytes of the page into tags and text.
#[derive(Debug)]
pub(super) struct Tokenizer {
    state: TokenizerState,
    /// The lower-case name of the last start tag after which only its own end tag ends the text,
    /// such as `script`.
    last_start_tag: Vec<u8>,
    /// The bytes at the end of the last piece whose meaning depends on the next piece, such as `<`
    /// or `</scr`; at most [`LOOKAHEAD`].
    undecided: Vec<u8>,
    /// True if `tag_bytes` contains an unfinished tag.
    is_in_tag: bool,
    /// The bytes of a tag that continues in the next piece, from its `<` on.
    tag_bytes: Vec<u8>,
    /// The parser of the current tag.
    tag: TagParser,
    /// The maximum length of a tag in bytes. Attributes of a longer tag are dropped.
    max_tag: usize,
}

/// The kind of markup that a `<` in the page begins.
enum MarkupKind {
    /// The next piece of the page is needed to decide.
    Undecided,
    /// The `<` is text.
    Text,
    StartTag,
    EndTag,
    /// `</>`, which is dropped without a token.
    MissingEndTagName,
    Comment,
    BogusComment,
    CdataSection,
}

impl Tokenizer {
    /// Makes a tokenizer for tags of at most `max_tag` bytes. Attributes of a longer tag are
    /// dropped.
    pub(super) fn new(max_tag: usize) -> Self {
        Self {
            state: TokenizerState::Text(TextState::Data),
            last_start_tag: Vec::new(),
            undecided: Vec::new(),
            is_in_tag: false,
            tag_bytes: Vec::new(),
            tag: TagParser::default(),
            max_tag,
        }
    }

    /// Discards the state, so that another page can begin.
    pub(super) fn reset(&mut self) {
        self.state = TokenizerState::Text(TextState::Data);
        self.undecided.clear();
        self.tag_bytes.clear();
        self.is_in_tag = false;
    }

    /// Makes the page begin in this state, as if the start tag `name` preceded it. Tests use this.
    #[cfg(test)]
    pub(super) fn begin_in_state(&mut self, state: TextState, name: &str) {
        self.state = TokenizerState::Text(state);
        self.last_start_tag = name.as_bytes().to_vec();
    }

    /// Makes the page begin inside a CDATA section. Tests use this.
    #[cfg(test)]
    pub(super) fn begin_in_cdata_section(&mut self) {
        self.state = TokenizerState::CdataSection;
    }

    /// Returns the number of bytes that the tokenizer has allocated for an unfinished tag.
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
            TokenizerState::Text(TextState::Data) => !undecided.starts_with(b"<!"),
            TokenizerState::Text(_) | TokenizerState::ScriptDataEscaped { .. } | TokenizerState::CdataSection => true,
            TokenizerState::Comment(_) | TokenizerState::BogusComment => false,
        };
        if is_text && !undecided.is_empty() {
            let has_references = self.has_references();
            self.pass_text(&undecided, has_references, sink)?;
        }
        self.reset();
        Ok(())
    }

    /// Returns true if the current text may contain character references, such as `&amp;`.
    fn has_references(&self) -> bool {
        matches!(self.state, TokenizerState::Text(TextState::Data | TextState::Rcdata))
    }

    /// Passes a part of a text to `sink`, unless it is empty or the sink needs no text.
    fn pass_text(&self, text: &[u8], has_references: bool, sink: &mut impl TokenSink) -> Result<()> {
        if text.is_empty() || !sink.wants_text() { Ok(()) } else { sink.text(text, has_references) }
    }

    /// Reads `bytes`, and passes their tokens to `sink`. Returns the number of bytes read. The
    /// meaning of the remaining bytes depends on the next piece of the page.
    fn read(&mut self, bytes: &[u8], sink: &mut impl TokenSink) -> Result<usize> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let used = match self.state {
                TokenizerState::Text(TextState::Data) => match sink.read_common_markup(rest)? {
                    0 => self.read_markup(rest, sink)?,
                    used => used,
                },
                TokenizerState::Text(TextState::PlainText) => {
                    self.pass_text(rest, false, sink)?;
                    rest.len()
                }
                TokenizerState::Text(state) => self.read_text_up_to_end_tag(rest, state, sink)?,
                TokenizerState::ScriptDataEscaped { hyphens, is_double_escaped } => {
                    self.read_script_data_escaped(rest, hyphens, is_double_escaped, sink)?
                }
                TokenizerState::Comment(state) => self.read_comment(rest, state),
                TokenizerState::BogusComment => match memchr(b'>', rest) {
                    Some(end) => {
                        self.state = TokenizerState::Text(TextState::Data);
                        end + 1
                    }
                    None => rest.len(),
                },
                TokenizerState::CdataSection => self.read_cdata_section(rest, sink)?,
            };
            if used == 0 {
                return Ok(at);
            }
            at += used;
        }
        Ok(at)
    }

    /// Reads text in the data state, up to the next tag or comment, and then that tag, or the
    /// `<!--` of that comment. Returns the number of bytes read; 0 if the next piece of the page is
    /// needed.
    fn read_markup(&mut self, bytes: &[u8], sink: &mut impl TokenSink) -> Result<usize> {
        let mut from = 0;
        loop {
            let Some(at) = find_near(b'<', &bytes[from..]).map(|at| from + at) else {
                self.pass_text(bytes, true, sink)?;
                return Ok(bytes.len());
            };
            let rest = &bytes[at..];
            let kind = markup_kind(rest);
            if matches!(kind, MarkupKind::Text) {
                from = at + 1;
                continue;
            }
            if at > 0 {
                self.pass_text(&bytes[..at], true, sink)?;
            }
            return Ok(at
                + match kind {
                    MarkupKind::Undecided | MarkupKind::Text => return Ok(at),
                    MarkupKind::StartTag => self.begin_tag(rest, 1, sink)?,
                    MarkupKind::EndTag => self.begin_tag(rest, 2, sink)?,
                    MarkupKind::MissingEndTagName => 3,
                    MarkupKind::Comment => {
                        sink.end_text()?;
                        self.state = TokenizerState::Comment(CommentState::Start);
                        4
                    }
                    MarkupKind::CdataSection if sink.allows_cdata() => {
                        sink.end_text()?;
                        self.state = TokenizerState::CdataSection;
                        9
                    }
                    MarkupKind::BogusComment | MarkupKind::CdataSection => {
                        sink.end_text()?;
                        self.state = TokenizerState::BogusComment;
                        // The `>` of `<!>` ends the comment.
                        2
                    }
                });
        }
    }

    /// Reads the tag at the beginning of `bytes`. Its name begins at the index `name`: 1 in a start
    /// tag, 2 in an end tag. Returns the number of bytes read. An incomplete tag is stored until
    /// the next piece arrives; all bytes are then read.
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

    /// Reads more bytes of a tag that began in an earlier piece. Returns the part of `piece` after
    /// the tag.
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

    /// Passes the complete tag in `bytes` to `sink`, and enters the state for the text after it.
    fn pass_tag(&mut self, bytes: &[u8], sink: &mut impl TokenSink) -> Result<()> {
        let tag = self.tag.tag(bytes);
        if bytes[1] == b'/' {
            self.state = TokenizerState::Text(TextState::Data);
            return sink.end_tag(&tag);
        }
        let state = sink.start_tag(&tag)?;
        self.state = TokenizerState::Text(state);
        if !matches!(state, TextState::Data | TextState::PlainText) {
            self.last_start_tag.clear();
            self.last_start_tag.extend(tag.name().iter().map(u8::to_ascii_lowercase));
        }
        Ok(())
    }

    /// Reads text without tags (in the RCDATA, RAWTEXT or script data state), up to and including
    /// the end tag of its element. Returns the number of bytes read.
    fn read_text_up_to_end_tag(&mut self, bytes: &[u8], state: TextState, sink: &mut impl TokenSink) -> Result<usize> {
        let has_references = state == TextState::Rcdata;
        let mut from = 0;
        while let Some(at) = memchr(b'<', &bytes[from..]).map(|at| from + at) {
            let rest = &bytes[at..];
            let ends = is_end_tag(rest, &self.last_start_tag);
            let begins_comment =
                state == TextState::ScriptData && !ends.is_yes() && b"<!--".starts_with(&rest[..rest.len().min(4)]);
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
                self.state = TokenizerState::ScriptDataEscaped { hyphens: 2, is_double_escaped: false };
                return Ok(at + 4);
            }
            from = at + 1;
        }
        self.pass_text(bytes, has_references, sink)?;
        Ok(bytes.len())
    }

    /// Reads the text of a script after `<!--`, up to `-->` or the `</script>` that ends the
    /// element. In this comment, a `<script` begins a nested script: the next `</script>` ends only
    /// the nested one. `is_double_escaped` is true in a nested script. `hyphens` is the number of
    /// hyphens directly before `bytes` (at most 2), which may belong to a `-->`. Returns the number
    /// of bytes read.
    fn read_script_data_escaped(
        &mut self,
        bytes: &[u8],
        mut hyphens: u8,
        mut is_double_escaped: bool,
        sink: &mut impl TokenSink,
    ) -> Result<usize> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'-' => hyphens = (hyphens + 1).min(2),
                b'>' if hyphens == 2 => {
                    self.pass_text(&bytes[..=at], false, sink)?;
                    self.state = TokenizerState::Text(TextState::ScriptData);
                    return Ok(at + 1);
                }
                b'<' => {
                    hyphens = 0;
                    let rest = &bytes[at..];
                    let ends = is_end_tag(rest, &self.last_start_tag);
                    let begins = is_script_tag(rest);
                    if ends == LookaheadResult::Undecided || !is_double_escaped && begins == LookaheadResult::Undecided
                    {
                        self.pass_text(&bytes[..at], false, sink)?;
                        self.state = TokenizerState::ScriptDataEscaped { hyphens, is_double_escaped };
                        return Ok(at);
                    }
                    if ends.is_yes() && !is_double_escaped {
                        self.pass_text(&bytes[..at], false, sink)?;
                        return Ok(at + self.begin_tag(rest, 2, sink)?);
                    }
                    is_double_escaped = if is_double_escaped { !ends.is_yes() } else { begins.is_yes() };
                }
                _ => {
                    hyphens = 0;
                    // Skips to the next byte that matters.
                    let skipped = memchr2(b'-', b'<', &bytes[at + 1..]).unwrap_or(bytes.len() - at - 1);
                    at += skipped;
                }
            }
            at += 1;
        }
        self.pass_text(bytes, false, sink)?;
        self.state = TokenizerState::ScriptDataEscaped { hyphens, is_double_escaped };
        Ok(bytes.len())
    }

    /// Reads a part of a comment, whose state is `state`, up to its end or the end of `bytes`.
    /// Returns the number of bytes read.
    fn read_comment(&mut self, bytes: &[u8], mut state: CommentState) -> usize {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            state = match (state, byte) {
                (CommentState::Start | CommentState::StartDash | CommentState::End | CommentState::EndBang, b'>') => {
                    self.state = TokenizerState::Text(TextState::Data);
                    return at;
                }
                (CommentState::Start, b'-') => CommentState::StartDash,
                (CommentState::StartDash | CommentState::EndDash | CommentState::End, b'-') => CommentState::End,
                (CommentState::End, b'!') => CommentState::EndBang,
                (CommentState::Comment | CommentState::EndBang, b'-') => CommentState::EndDash,
                _ => {
                    at += memchr(b'-', &bytes[at..]).unwrap_or(bytes.len() - at);
                    CommentState::Comment
                }
            };
        }
        self.state = TokenizerState::Comment(state);
        at
    }

    /// Reads the text of a CDATA section, up to and including the `]]>`. Returns the number of
    /// bytes read.
    fn read_cdata_section(&mut self, bytes: &[u8], sink: &mut impl TokenSink) -> Result<usize> {
        let mut from = 0;
        while let Some(at) = memchr(b']', &bytes[from..]).map(|at| from + at) {
            let rest = &bytes[at..];
            if rest.starts_with(b"]]>") {
                self.pass_text(&bytes[..at], false, sink)?;
                self.state = TokenizerState::Text(TextState::Data);
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

/// Returns the kind of markup that the `<` at the beginning of `bytes` begins (the tag open state
/// and the markup declaration open state of WHATWG HTML).
fn markup_kind(bytes: &[u8]) -> MarkupKind {
    match bytes.get(1) {
        None => MarkupKind::Undecided,
        Some(byte) if byte.is_ascii_alphabetic() => MarkupKind::StartTag,
        Some(b'/') => match bytes.get(2) {
            None => MarkupKind::Undecided,
            Some(byte) if byte.is_ascii_alphabetic() => MarkupKind::EndTag,
            Some(b'>') => MarkupKind::MissingEndTagName,
            Some(_) => MarkupKind::BogusComment,
        },
        Some(b'!') => {
            if bytes.starts_with(b"<!--") {
                MarkupKind::Comment
            } else if bytes.starts_with(b"<![CDATA[") {
                MarkupKind::CdataSection
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

/// The answer to a question about the next bytes of the page, such as whether they are `</script>`.
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

/// Tests whether `bytes`, which begin with `<`, are the end tag of the element `name`, such as
/// `</script>` or `</script `.
fn is_end_tag(bytes: &[u8], name: &[u8]) -> LookaheadResult {
    match bytes.get(1) {
        None => LookaheadResult::Undecided,
        Some(b'/') => is_name(&bytes[2..], name),
        Some(_) => LookaheadResult::No,
    }
}

/// Tests whether `bytes`, which begin with `<`, are a `<script>` start tag.
fn is_script_tag(bytes: &[u8]) -> LookaheadResult {
    is_name(&bytes[1..], b"script")
}

/// Tests whether `bytes` begin with the lower-case name `name` in any case, and a byte that ends a
/// name.
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
