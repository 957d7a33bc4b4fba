//! `curl_getdate`: parses dates in common notations.
//!
//! A date consists of words in any order: a day (`6 Nov 1994`, `19941106`), a time
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
/// The maximum number of parts of a date. As in libcurl, later text is ignored.
const MAX_PARTS: usize = 6;

/// The parts of a date that were found so far.
#[derive(Default)]
struct FoundDate {
    year: Option<u32>,
    month: Option<u32>,
    day: Option<u32>,
    weekday: Option<usize>,
    time: Option<i64>,
    zone: Option<i64>,
    /// True if the next number is rather the year than the day.
    expects_year: bool,
}

impl FoundDate {
    /// Stores the value of a name: a weekday, a month or a zone. Returns `None` for any other word.
    fn apply_name(&mut self, word: &str) -> Option<()> {
        let lower = word.to_ascii_lowercase();
        let is_day = |name: &str| if lower.len() > 3 { lower == full_day(name) } else { lower == name };
        if let Some(day) = DAYS.iter().position(|name| is_day(name)).filter(|_| self.weekday.is_none()) {
            return set_once(&mut self.weekday, day);
        }
        if let Some(month) = MONTHS.iter().position(|name| *name == lower).filter(|_| self.month.is_none()) {
            return set_once(&mut self.month, u32::try_from(month).ok()? + 1);
        }
        set_once(&mut self.zone, zone_seconds(&lower)?)
    }

    /// Stores the value of a number with `digits` after the byte `before`: a zone, a day or a year.
    /// Returns `None` if nothing of this is missing.
    fn apply_number(&mut self, digits: &str, before: u8) -> Option<()> {
        let number: u32 = digits.parse().ok()?;
        if self.zone.is_none() && digits.len() == 4 && number <= MAX_ZONE && matches!(before, b'+' | b'-') {
            let seconds = i64::from(number / 100 * 3600 + number % 100 * 60);
            return set_once(&mut self.zone, if before == b'-' { -seconds } else { seconds });
        }
        if digits.len() == 8 && self.year.is_none() && self.month.is_none() && self.day.is_none() {
            (self.year, self.month, self.day) = (Some(number / 10_000), Some(number / 100 % 100), Some(number % 100));
            return Some(());
        }
        if !self.expects_year && self.day.is_none() {
            self.expects_year = true;
            if (1..=31).contains(&number) {
                return set_once(&mut self.day, number);
            }
        }
        if self.expects_year && self.year.is_none() {
            self.expects_year = self.day.is_some();
            return set_once(&mut self.year, number + if number > 99 { 0 } else { century_of(number) });
        }
        None
    }

    fn seconds(&self) -> Option<i64> {
        let year = self.year.filter(|year| (FIRST_YEAR..=9999).contains(year))?;
        let first = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, self.month?, 1)?;
        // As in libcurl, a day after the end of a month is one of the next month.
        let days = i64::from(self.day.filter(|day| (1..=31).contains(day))?) - 1;
        let first = first.and_time(NaiveTime::MIN).and_utc().timestamp();
        Some(first + days * 86400 + self.time.unwrap_or(0) - self.zone.unwrap_or(0))
    }
}

/// The greatest zone, in hours and minutes, that a date may have, as in libcurl.
const MAX_ZONE: u32 = 1400;

/// Returns the century of a year of two digits, as in libcurl.
fn century_of(year: u32) -> u32 {
    if year > 70 { 1900 } else { 2000 }
}

/// Returns the full name of a weekday.
fn full_day(name: &str) -> &'static str {
    const FULL: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    FULL.into_iter().find(|full| full.starts_with(name)).unwrap_or_default()
}

/// Returns the offset of a zone east of Greenwich in seconds: a name, or a letter of the military
/// zones (RFC 822).
fn zone_seconds(lower: &str) -> Option<i64> {
    if let Some((_, minutes)) = ZONES.iter().find(|(name, _)| *name == lower) {
        return Some(minutes * 60);
    }
    let [letter] = lower.as_bytes() else { return None };
    let hours = match letter {
        b'a'..=b'i' => i64::from(letter - b'a') + 1,
        b'k'..=b'm' => i64::from(letter - b'k') + 10,
        b'n'..=b'y' => -i64::from(letter - b'n') - 1,
        _ => return None,
    };
    Some(hours * 3600)
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
    let mut rest = text;
    let mut before = b' ';
    for _ in 0..MAX_PARTS {
        let Some(start) = rest.find(|c: char| c.is_ascii_alphanumeric()) else { break };
        if start > 0 {
            before = rest.as_bytes()[start - 1];
        }
        rest = &rest[start..];
        let is_name = rest.starts_with(|c: char| c.is_ascii_alphabetic());
        let is_part = |c: char| match c {
            _ if is_name => c.is_ascii_alphabetic(),
            ':' => found.time.is_none(),
            _ => c.is_ascii_digit(),
        };
        let (word, after) = rest.split_at(rest.find(|c| !is_part(c)).unwrap_or(rest.len()));
        match word {
            _ if is_name => found.apply_name(word)?,
            _ if word.contains(':') => set_once(&mut found.time, time_of_day(word)?)?,
            _ => found.apply_number(word, before)?,
        }
        before = word.as_bytes()[word.len() - 1];
        rest = after;
    }
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
            ("19941106 08:49:37 +0100", day + 31_777 - 3600),
            ("06 Nov 1994 08:49:37 EST", day + 31_777 + 18_000),
            ("Thu, 01-Jan-1970 00:59:58 GMT", 3598),
            ("1 Jan 1960", -315_619_200),
            ("1994.Nov.6", day),
            ("Sun/Nov/6/94/GMT", day),
            ("6 Nov 1994 08:49:37Z", day + 31_777),
            ("6 Nov 1994 08:49:37 A", day + 31_777 - 3600),
            ("6 Nov 1994 08:49:37 Y", day + 31_777 + 12 * 3600),
            ("6 Nov 1994 08:49:37 +1400", day + 31_777 - 14 * 3600),
            ("20040911 +0200", 1_094_853_600),
            ("29 Feb 2023", 1_677_628_800),
            ("Tue, 25-Dec-2012 10:10:10 GMT; path", 1_356_430_210),
            ("6 Nov 70", 3_182_457_600),
            ("6 Nov 71", 58_233_600),
        ] {
            assert_eq!(parse(text), Some(seconds), "{text}");
        }
    }

    #[test]
    fn texts_that_are_not_dates_are_refused() {
        for text in [
            "",
            "x",
            "32 Oct 2015",
            "21 Oct",
            "25:00 1 Jan 2000",
            "1 1 1 1",
            "1 Jan 1500",
            "é",
            "1-2-3-4",
            "1994-11-06",
            "1994-11-06T08:49:37Z",
            "6 November 1994",
            "Sund, 6 Nov 1994",
            "6 Nov 1994 08:49:37 J",
            "6 Nov 1994 08:49:37 +1500",
            "6 Nov 1994 08:49:37 +9999",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
