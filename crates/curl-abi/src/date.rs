//! `curl_getdate`: parses dates in common notations.
//!
//! A date consists of words in any order: a day (`6 Nov 1994`, `1994-11-06`, `19941106`), a time
//! (`08:49:37`) and a zone (`GMT`, `+0100`, `EST`). The default time is midnight, and the default
//! zone is UTC.

use std::ffi::c_char;

use chrono::{NaiveDate, NaiveTime};

use crate::c_strings;
use crate::handle_table::catch_panic;

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
/// Names of time zones, with their offsets east of Greenwich in minutes.
const ZONES: [(&str, i64); 30] = [
    ("gmt", 0),
    ("ut", 0),
    ("utc", 0),
    ("z", 0),
    ("wet", 0),
    ("bst", 60),
    ("wat", -60),
    ("ast", -240),
    ("adt", -180),
    ("est", -300),
    ("edt", -240),
    ("cst", -360),
    ("cdt", -300),
    ("mst", -420),
    ("mdt", -360),
    ("pst", -480),
    ("pdt", -420),
    ("yst", -540),
    ("hst", -600),
    ("cet", 60),
    ("met", 60),
    ("mewt", 60),
    ("cest", 120),
    ("mest", 120),
    ("mesz", 120),
    ("eet", 120),
    ("wast", 420),
    ("jst", 540),
    ("nzst", 720),
    ("nzdt", 780),
];
/// The first year that a date may have, as in libcurl.
const FIRST_YEAR: u32 = 1583;

/// The parts of a date that were found so far.
#[derive(Default)]
struct FoundDate {
    year: Option<u32>,
    month: Option<u32>,
    day: Option<u32>,
    time: Option<i64>,
    zone: i64,
}

impl FoundDate {
    /// Parses one word of the date, and stores its value. Returns `None` if the word is not a part
    /// of a date.
    fn apply_word(&mut self, word: &str) -> Option<()> {
        let lower = word.to_ascii_lowercase();
        if lower.bytes().all(|b| b.is_ascii_alphabetic()) {
            return self.apply_name(&lower);
        }
        if let (Some(digits), true) = (word.strip_prefix(['+', '-']), self.time.is_some()) {
            let number: i64 = digits.parse().ok().filter(|_| digits.len() == 4)?;
            let offset = number / 100 * 3600 + number % 100 * 60;
            self.zone = if word.starts_with('-') { -offset } else { offset };
            return Some(());
        }
        if word.contains(':') {
            return set_once(&mut self.time, time_of_day(word)?);
        }
        match word.split('-').collect::<Vec<_>>().as_slice() {
            [year, month, day] if year.len() == 4 => self.apply_day(year, month, day),
            parts @ [_, _, _] => parts.iter().try_for_each(|part| self.apply_word(part)),
            [digits] if digits.len() == 8 => self.apply_day(digits.get(..4)?, digits.get(4..6)?, digits.get(6..)?),
            [digits] => {
                let number: u32 = digits.parse().ok()?;
                match (number, self.day) {
                    (1..=31, None) if digits.len() <= 2 => set_once(&mut self.day, number),
                    (70..=99, _) if digits.len() == 2 => set_once(&mut self.year, 1900 + number),
                    (0..=69, _) if digits.len() == 2 => set_once(&mut self.year, 2000 + number),
                    _ => set_once(&mut self.year, number),
                }
            }
            _ => None,
        }
    }

    fn apply_name(&mut self, lower: &str) -> Option<()> {
        let begins = |name: &&str| lower.len() >= 3 && lower.starts_with(*name);
        if let Some((_, minutes)) = ZONES.iter().find(|(name, _)| *name == lower) {
            self.zone = minutes * 60;
            return Some(());
        }
        if let Some(month) = MONTHS.iter().position(&begins) {
            return set_once(&mut self.month, u32::try_from(month).ok()? + 1);
        }
        DAYS.iter().any(begins).then_some(())
    }

    fn apply_day(&mut self, year: &str, month: &str, day: &str) -> Option<()> {
        set_once(&mut self.year, year.parse().ok()?)?;
        set_once(&mut self.month, month.parse().ok()?)?;
        set_once(&mut self.day, day.parse().ok()?)
    }

    fn seconds(&self) -> Option<i64> {
        let year = self.year.filter(|year| (FIRST_YEAR..=9999).contains(year))?;
        let day = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, self.month?, self.day?)?;
        Some(day.and_time(NaiveTime::MIN).and_utc().timestamp() + self.time.unwrap_or(0) - self.zone)
    }
}

fn set_once<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

/// Parses a time of day, `HH:MM` or `HH:MM:SS`. Returns the seconds since midnight, or `None` for
/// any other text.
fn time_of_day(word: &str) -> Option<i64> {
    let parts: Vec<i64> = word
        .split(':')
        .map(|part| part.parse().ok().filter(|_| part.len() <= 2 && part.bytes().all(|b| b.is_ascii_digit())))
        .collect::<Option<_>>()?;
    let (hours, minutes, seconds) = match parts[..] {
        [hours, minutes] => (hours, minutes, 0),
        [hours, minutes, seconds] => (hours, minutes, seconds),
        _ => return None,
    };
    (hours < 24 && minutes < 60 && seconds <= 60).then_some(hours * 3600 + minutes * 60 + seconds)
}

/// Parses a date. Returns the seconds since 1970-01-01 00:00 UTC, or `None` for any other text.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let mut found = FoundDate::default();
    text.split([' ', ',', '\t']).filter(|word| !word.is_empty()).try_for_each(|word| found.apply_word(word))?;
    found.seconds()
}

/// Parses a date. Returns the seconds since 1970-01-01 00:00 UTC, or -1 for any other text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curl_getdate(text: *const c_char, _now: *const libc::time_t) -> libc::time_t {
    catch_panic(-1, || {
        // SAFETY: libcurl's contract.
        let text = unsafe { c_strings::c_string_bytes(text) }.and_then(|text| std::str::from_utf8(text).ok());
        text.and_then(parse).map_or(-1, |seconds| if seconds == -1 { 0 } else { seconds })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_in_all_notations_are_parsed() {
        let day = 784_080_000;
        for (text, seconds) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", day + 31_777),
            ("Sunday, 06-Nov-94 08:49:37 GMT", day + 31_777),
            ("Sun Nov  6 08:49:37 1994", day + 31_777),
            ("Nov 6 1994", day),
            ("1994-11-06", day),
            ("19941106 08:49:37 +0100", day + 31_777 - 3600),
            ("06 Nov 1994 08:49:37 EST", day + 31_777 + 18_000),
            ("Thu, 01-Jan-1970 00:59:58 GMT", 3598),
            ("1 Jan 1960", -315_619_200),
        ] {
            assert_eq!(parse(text), Some(seconds), "{text}");
        }
    }

    #[test]
    fn texts_that_are_not_dates_are_refused() {
        for text in ["", "x", "32 Oct 2015", "21 Oct", "25:00 1 Jan 2000", "1 1 1 1", "1 Jan 1500", "é", "1-2-3-4"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
