//! Script, style and template elements inside selected elements, whose text is kept apart.

/// The range in `PageParserState::text` of the text of a script, style or template element. This
/// text is not part of the text of the elements around it.
pub(super) struct ScriptOrStyleRange {
    /// The index in `PageParserState::waiting` of the first value (text or attribute value that a
    /// query selects) of this element or of an element inside it. The values before that index
    /// began earlier, and leave out the text of this element.
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
    /// True if a space was due before the next word when this element began. Restored at the
    /// element's end, because the text around the element continues as if the element were not
    /// there.
    pub(super) was_separated: bool,
}
