//! The lines of a response head before the line that made the connection unusable.

use super::error::H1Error;
use super::framing;
use super::machine::H1Machine;
use super::parse_field_section::{self, FieldSectionScan};
use crate::response_head::ResponseHead;
use alloc::vec::Vec;
use memchr::memchr_iter;

impl H1Machine {
    /// Returns the lines of a response head before its first faulty line, as a head without the
    /// empty line at its end. `input` is the input for which [`H1Machine::step`] failed, or the
    /// unconsumed input when [`H1Machine::end_of_input`] failed. Returns `None` if the failure was
    /// not in a head, or if the status line itself is faulty.
    ///
    /// Programs that print a head line by line print these lines. Do not use them for anything
    /// else, since the rest of the head could change their meaning.
    pub fn partial_head(&self, input: &[u8]) -> Option<ResponseHead> {
        if !self.failed_in_head {
            return None;
        }
        let start = input.iter().position(|byte| !matches!(byte, b'\r' | b'\n'))?;
        let input = &input[start..input.len().min(start + self.config.limits.head_bytes)];
        let ends: Vec<usize> = memchr_iter(b'\n', input).map(|at| at + 1).collect();
        // A faulty line makes all longer prefixes faulty, too.
        let good = ends.partition_point(|&end| self.head_of_lines(&input[..end]).is_ok());
        self.head_of_lines(&input[..*ends.get(good.checked_sub(1)?)?]).ok()
    }

    /// Parses complete lines of a response head as if the head ended after them, and determines the
    /// framing.
    fn head_of_lines(&self, lines: &[u8]) -> Result<ResponseHead, H1Error> {
        let text = [lines, b"\r\n"].concat();
        parse_field_section::check_start(&text)?;
        let mut scan = FieldSectionScan::default();
        if scan.find_end(&text) != Some(text.len()) {
            return Err(H1Error::StatusLine);
        }
        let head = parse_field_section::parse_head(&text, &scan, self.config.limits.head_fields)?;
        if let Some(exchange) = self.exchanges.front()
            && head.status() >= 200
        {
            framing::response_framing(&head, exchange.facts.response_to, exchange.facts.asks_coding, &self.config)?;
        }
        Ok(head.without_last_line())
    }
}
