//! Script, style and template elements inside selected elements, whose text is kept apart.

/// The range in `PageParserState::text` of the text of a script, style or template element. This
/// text is not part of the text of the elements around it.
pub(super) struct ScriptOrStyleRange {
    /// The index in `PageParserState::waiting` of the first value that began inside this element.
    /// The text of this element is not part of the values before that index.
    pub(super) first_inside: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A script, style or template element that is open inside an element whose text a query selects.
pub(super) struct OpenScriptOrStyle {
    pub(super) depth: usize,
    pub(super) first_inside: usize,
    pub(super) start: usize,
    /// True if a query selects the text of this element or of an element inside it, so that its
    /// text must be collected.
    pub(super) is_needed: bool,
    /// True if white space preceded the element's start tag. The text after the element continues
    /// with that state.
    pub(super) was_separated: bool,
}
