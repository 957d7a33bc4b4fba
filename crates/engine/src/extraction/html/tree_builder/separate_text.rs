//! Script, style and template elements inside selected elements, whose text is kept apart.

/// The range of a script's, style's or template's text in the collected text of a page. This text
/// is not part of the values of the elements around it.
pub(super) struct SeparateTextRange {
    /// The length of `PageParserState::deferred` when this element begins. Values with a lower
    /// index belong to elements around or before this one, and leave out this text. Values from
    /// this index on keep it.
    pub(super) first_inside: usize,
    /// The index in the collected text at which this text begins.
    pub(super) start: usize,
    /// The index in the collected text after this text.
    pub(super) end: usize,
}

/// A script, style or template element that is open inside an element whose text a query selects.
pub(super) struct OpenSeparateTextElement {
    /// The depth of the element in the stack of open elements, counted from 1.
    pub(super) depth: usize,
    pub(super) first_inside: usize,
    pub(super) start: usize,
    /// True if a query selects the text of this element or of an element inside it. Only then is
    /// its text collected.
    pub(super) is_needed: bool,
    /// True if, when this element began, the collected text needed a space before its next word.
    /// The end of the element restores this state, because the surrounding text continues as if the
    /// element were not there.
    pub(super) was_separated: bool,
}
