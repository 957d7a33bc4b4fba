//! Parses JSON into values that take a limited amount of memory. A text of a few bytes a value, such
//! as `[{},{},{}]`, gives values many times its size.

use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Deserializer, Map, Number, Value};

/// The memory for a value in an array that may have grown to twice its size.
const ELEMENT: usize = 2 * size_of::<Value>();
/// The memory for a member of an object: its entry and its place in the index, both at twice their
/// size.
const MEMBER: usize = 2 * (size_of::<(u64, String, Value)>() + 16);
/// The memory for the smallest object or array.
const CONTAINER: usize = 4 * MEMBER;
/// The memory that the allocator adds to a string.
const ALLOCATION: usize = 16;

/// The reason why a text gives no value.
#[derive(Debug)]
pub(crate) enum ParseFailure {
    /// The values take more memory than allowed.
    TooLarge,
    /// The text is not JSON. Line and column count from 1.
    Invalid { cause: String, line: usize, column: usize },
}

/// Parses a JSON text whose values take at most about `memory` bytes.
pub(super) fn parse(text: &[u8], memory: usize) -> Result<Value, ParseFailure> {
    let mut budget = ValueBudget { left: memory, is_exceeded: false };
    let mut deserializer = Deserializer::from_slice(text);
    let value = BoundedValue { budget: &mut budget }.deserialize(&mut deserializer);
    let ended = value.and_then(|value| deserializer.end().map(|()| value));
    ended.map_err(|error| {
        if budget.is_exceeded {
            return ParseFailure::TooLarge;
        }
        let text = error.to_string();
        let cause = text.rsplit_once(" at line ").map_or(&*text, |(cause, _)| cause).to_owned();
        ParseFailure::Invalid { cause, line: error.line(), column: error.column() }
    })
}

/// The memory that values may still take.
struct ValueBudget {
    left: usize,
    is_exceeded: bool,
}

impl ValueBudget {
    fn take<E: serde::de::Error>(&mut self, bytes: usize) -> Result<(), E> {
        let Some(left) = self.left.checked_sub(bytes) else {
            self.is_exceeded = true;
            return Err(E::custom("the values take too much memory"));
        };
        self.left = left;
        Ok(())
    }
}

/// The parser of one value within a budget.
struct BoundedValue<'b> {
    budget: &'b mut ValueBudget,
}

impl<'de> DeserializeSeed<'de> for BoundedValue<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for BoundedValue<'_> {
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

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.budget.take(value.len() + ALLOCATION)?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = elements.next_element_seed(BoundedValue { budget: self.budget })? {
            // The first elements share one allocation.
            self.budget.take(if list.is_empty() { CONTAINER } else { ELEMENT })?;
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let first = if object.is_empty() { CONTAINER } else { 0 };
            self.budget.take(first + MEMBER + name.len() + ALLOCATION)?;
            let value = members.next_value_seed(BoundedValue { budget: self.budget })?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}
