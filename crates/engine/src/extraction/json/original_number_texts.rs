//! The original texts of the numbers of a JSON document, such as `12.50`, `1e3` or an identifier of
//! 30 digits. A [`Value`] contains only the nearest 64-bit integer or IEEE double.
//!
//! A document is parsed without the texts of its numbers, because most selected values are not
//! decimal numbers. The texts are looked up when the first decimal number is output: the numbers in
//! the text correspond one by one to the numbers in the value, in document order.

use std::ops::Range;

use memchr::memchr2;
use serde_json::{Number, Value};

use super::document_memory_budget::{DocumentMemoryBudget, OutOfBudget};

/// The original texts of the numbers in one JSON document.
#[derive(Debug)]
pub(super) struct NumberTexts<'d> {
    text: &'d [u8],
    root: &'d Value,
    /// The numbers whose original text differs from the serialized [`Number`], sorted by the
    /// address of the [`Number`] in memory. Each entry is this address, and the range of the
    /// original text in `text`. `None` until the first decimal number is written, because the
    /// search for them takes time.
    places: Option<Vec<(usize, Range<usize>)>>,
}

impl<'d> NumberTexts<'d> {
    /// Makes the texts for a document with the value `root`. `has_repeated_names` is true if an
    /// object in it contains a name twice. The value then lacks some numbers of the text, so that
    /// texts and numbers cannot be matched. In this case, numbers are output as doubles.
    pub(super) fn new(text: &'d [u8], root: &'d Value, has_repeated_names: bool) -> Self {
        Self { text, root, places: has_repeated_names.then(Vec::new) }
    }

    /// Appends `value`, a part of the document, to `output` as compact JSON text.
    pub(super) fn write(
        &mut self,
        value: &Value,
        budget: &mut DocumentMemoryBudget,
        output: &mut Vec<u8>,
    ) -> Result<(), OutOfBudget> {
        match value {
            Value::Number(number) if number.is_f64() => match self.original_text(number, budget)? {
                Some(text) => output.extend_from_slice(text),
                None => append(value, output),
            },
            Value::Array(elements) => {
                output.push(b'[');
                for (at, element) in elements.iter().enumerate() {
                    if at > 0 {
                        output.push(b',');
                    }
                    self.write(element, budget, output)?;
                }
                output.push(b']');
            }
            Value::Object(members) => {
                output.push(b'{');
                for (at, (name, member)) in members.iter().enumerate() {
                    if at > 0 {
                        output.push(b',');
                    }
                    append(name, output);
                    output.push(b':');
                    self.write(member, budget, output)?;
                }
                output.push(b'}');
            }
            _ => append(value, output),
        }
        Ok(())
    }

    /// Returns the original text of a number if it differs from the serialized number; otherwise
    /// `None`.
    fn original_text(
        &mut self,
        number: &Number,
        budget: &mut DocumentMemoryBudget,
    ) -> Result<Option<&'d [u8]>, OutOfBudget> {
        let places = match &mut self.places {
            Some(places) => places,
            none => none.insert(find_all(self.text, self.root, budget)?),
        };
        let address = std::ptr::from_ref(number).addr();
        let found = places.binary_search_by_key(&address, |(address, _)| *address).ok();
        Ok(found.and_then(|found| self.text.get(places[found].1.clone())))
    }
}

/// Appends a string, number or other scalar value as JSON text.
fn append(value: &impl serde::Serialize, output: &mut Vec<u8>) {
    serde_json::to_writer(output, value).expect("memory takes any text");
}

/// Finds the numbers in `root` whose original texts differ from their serialized form. Returns the
/// memory address of each of these numbers, with the range of its original text in `text`, sorted
/// by address.
fn find_all(
    text: &[u8],
    root: &Value,
    budget: &mut DocumentMemoryBudget,
) -> Result<Vec<(usize, Range<usize>)>, OutOfBudget> {
    let mut texts = NumberScanner { text, at: 0 };
    let (mut places, mut printed) = (Vec::new(), Vec::new());
    for_each_number(root, &mut |number| {
        let Some(place) = texts.next() else { return Ok(()) };
        if !number.is_f64() {
            return Ok(());
        }
        printed.clear();
        append(number, &mut printed);
        if text[place.clone()] != printed[..] {
            if places.len() == places.capacity() {
                budget.push_reserved(&mut places)?;
            }
            places.push((std::ptr::from_ref(number).addr(), place));
        }
        Ok(())
    })?;
    places.sort_unstable_by_key(|(address, _)| *address);
    Ok(places)
}

/// Calls `on_number` with the numbers in a value, in document order.
fn for_each_number<'v>(
    value: &'v Value,
    on_number: &mut dyn FnMut(&'v Number) -> Result<(), OutOfBudget>,
) -> Result<(), OutOfBudget> {
    match value {
        Value::Number(number) => on_number(number),
        Value::Array(elements) => elements.iter().try_for_each(|element| for_each_number(element, on_number)),
        Value::Object(members) => members.values().try_for_each(|member| for_each_number(member, on_number)),
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}

/// A scanner that finds the positions of the numbers in a valid JSON text, in order.
struct NumberScanner<'t> {
    text: &'t [u8],
    at: usize,
}

impl NumberScanner<'_> {
    fn rest(&self) -> &[u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Skips the rest of a string, from the byte after its opening quotation mark on.
    fn pass_string(&mut self) {
        while let Some(found) = memchr2(b'"', b'\\', self.rest()) {
            let is_end = self.rest()[found] == b'"';
            self.at += found + if is_end { 1 } else { 2 };
            if is_end {
                break;
            }
        }
    }
}

impl Iterator for NumberScanner<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        loop {
            let start = self.at;
            self.at += 1;
            match self.text.get(start)? {
                b'"' => self.pass_string(),
                b'-' | b'0'..=b'9' => {
                    let length = self.rest().iter().take_while(|byte| is_part(byte)).count();
                    self.at += length;
                    return Some(start..self.at);
                }
                _ => {}
            }
        }
    }
}
