//! A JSON parser whose values take a limited amount of memory. A short text such as `[{},{},{}]`
//! can need many times its size as values.

use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Deserializer, Map, Number, Value};

use super::document_memory_budget::{DocumentMemoryBudget, ObjectHashSlotCount, OutOfBudget, longest_number};

/// The reason why a JSON text cannot be parsed.
#[derive(Debug)]
pub(crate) enum ParseFailure {
    /// The values of the document need more memory than allowed.
    TooLarge,
    /// The text is not JSON. Line and column count from 1.
    Invalid { cause: String, line: usize, column: usize },
}

/// A parsed JSON document, with the memory budget that remains for it.
pub(super) struct BoundedDocument {
    // Dropped before the budget, which may lock other threads out.
    pub(super) value: Value,
    pub(super) budget: DocumentMemoryBudget,
    pub(super) shape: DocumentValueCountAndDepth,
}

/// The number of values in a document, its nesting depth, and whether an object in it has two
/// members with the same name.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DocumentValueCountAndDepth {
    /// The number of values in the document, including the document itself.
    pub(super) values: usize,
    /// The nesting depth: the number of objects and arrays around the innermost value.
    pub(super) depth: usize,
    /// True if some object contains the same name twice. The last value with the name is used.
    pub(super) has_repeated_names: bool,
}

/// Parses a JSON text whose values take at most `memory` bytes.
pub(super) fn parse(text: &[u8], memory: usize) -> Result<BoundedDocument, ParseFailure> {
    let mut parser =
        ValueParser { budget: DocumentMemoryBudget::new(memory), shape: DocumentValueCountAndDepth::default() };
    parser.budget.reserve_parser_copy(longest_number(text)).map_err(|_| ParseFailure::TooLarge)?;
    let mut deserializer = Deserializer::from_slice(text);
    let value = BoundedValueSeed { parser: &mut parser, depth: 0 }.deserialize(&mut deserializer);
    let ended = value.and_then(|value| deserializer.end().map(|()| value));
    let ValueParser { mut budget, shape } = parser;
    match ended {
        Ok(value) => {
            budget.end_parsing();
            Ok(BoundedDocument { value, budget, shape })
        }
        Err(_) if budget.is_exceeded() => Err(ParseFailure::TooLarge),
        Err(error) => {
            let text = error.to_string();
            let cause = text.rsplit_once(" at line ").map_or(&*text, |(cause, _)| cause).to_owned();
            Err(ParseFailure::Invalid { cause, line: error.line(), column: error.column() })
        }
    }
}

/// The state of the parser of one document: its memory budget, and the number and the nesting depth
/// of its values.
struct ValueParser {
    budget: DocumentMemoryBudget,
    shape: DocumentValueCountAndDepth,
}

fn too_large<E: Error>(_: OutOfBudget) -> E {
    E::custom("the values take too much memory")
}

impl ValueParser {
    fn text<E: Error>(&mut self, text: &str, is_copied: bool) -> Result<String, E> {
        let copied = if is_copied { text.len() } else { 0 };
        self.budget
            .reserve_parser_copy(copied)
            .and_then(|()| self.budget.reserve_string(text.len()))
            .map_err(too_large)?;
        Ok(text.to_owned())
    }
}

/// The parser of one JSON value, whose memory counts towards the budget of its document.
struct BoundedValueSeed<'p> {
    parser: &'p mut ValueParser,
    /// The number of objects and arrays that contain the value.
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for BoundedValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let shape = &mut self.parser.shape;
        shape.values += 1;
        shape.depth = shape.depth.max(self.depth);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for BoundedValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<Value, E> {
        self.parser.text(value, false).map(Value::String)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.parser.text(value, true).map(Value::String)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let Self { parser, depth } = self;
        let mut list = Vec::new();
        while let Some(value) = elements.next_element_seed(BoundedValueSeed { parser, depth: depth + 1 })? {
            if list.len() == list.capacity() {
                parser.budget.push_reserved(&mut list).map_err(too_large)?;
            }
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let Self { parser, depth } = self;
        let (mut object, mut capacity) = (Map::new(), ObjectHashSlotCount::default());
        while let Some(name) = members.next_key_seed(MemberNameSeed { parser })? {
            let value = members.next_value_seed(BoundedValueSeed { parser, depth: depth + 1 })?;
            // A name that is known takes no place.
            let grows = object.len() == capacity.members() && !object.contains_key(&name);
            if grows {
                parser.budget.reserve(capacity.grown().memory()).map_err(too_large)?;
            }
            parser.shape.has_repeated_names |= object.insert(name, value).is_some();
            if grows {
                parser.budget.release(capacity.memory());
                capacity = capacity.grown();
            }
        }
        Ok(Value::Object(object))
    }
}

/// The parser of the name of a JSON object's member.
struct MemberNameSeed<'p> {
    parser: &'p mut ValueParser,
}

impl<'de> DeserializeSeed<'de> for MemberNameSeed<'_> {
    type Value = String;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for MemberNameSeed<'_> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<String, E> {
        self.parser.text(name, false)
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<String, E> {
        self.parser.text(name, true)
    }
}
