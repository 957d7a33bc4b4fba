//! Script, style and template elements inside selected elements, whose text is kept apart.

/// The text of a script, style or template element: a range of `PageParserState::text` that does
/// not belong to the text of the elements around it.
pub(super) struct ScriptOrStyleRange {
    /// The index in `PageParserState::waiting` of the first value that began inside this element.
    /// The values before it do not include this range.
    pub(super) first_inside: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A script, style or template element that is open inside a selected element.
pub(super) struct OpenScriptOrStyle {
    pub(super) depth: usize,
    pub(super) first_inside: usize,
    pub(super) start: usize,
    /// True if the element itself or an element inside it is selected, so that its text is needed.
    pub(super) is_needed: bool,
    /// True if white space preceded the element's start tag.
    pub(super) was_separated: bool,
}
