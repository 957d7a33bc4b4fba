//! Parses dates in the usual notations, for the option `-z`.
//!
//! A date consists of words in any order, as in curl: a day (`21 Oct 2015`, `Oct 21 2015`,
//! `2015-10-21`, `20151021`), a time (`07:28`, `07:28:00`), and a zone (`GMT`, `UTC`, `Z`, `+0200`,
//! `EST`). The default time is midnight, and the default zone is UTC.
//!
//! ```
//! use haul_cli::date::parse;
//!
//! assert_eq!(parse("Wed, 21 Oct 2015 07:28:00 GMT"), Some(1_445_412_480));
//! assert_eq!(parse("2015-10-21 09:28 +0200"), parse("20151021 07:28"));
//! assert_eq!(parse("yesterday"), None);
//! ```
//!
//! Not supported: abbreviations that several time zones share.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, NaiveDate, NaiveTime, SecondsFormat};

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: &[&str] = &["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// The first year that a parsed date may have. It is the first full year of the Gregorian calendar,
/// and the first that curl accepts.
const FIRST_YEAR: i32 = 1583;

/// The names of time zones and their offsets east of Greenwich in minutes: the zones of RFC 5322
/// section 4.3, the zones of Europe, and further zones that curl knows. Summer time has separate
/// names.
const ZONES: &[(&str, i64)] = &[
    ("gmt", 0),
    ("utc", 0),
    ("ut", 0),
    ("z", 0),
    ("wet", 0),
    ("bst", 60),
    ("cet", 60),
    ("met", 60),
    ("cest", 120),
    ("mest", 120),
    ("eet", 120),
    ("jst", 540),
    ("nzst", 720),
    ("nzdt", 780),
    ("hst", -600),
    ("pst", -480),
    ("pdt", -420),
    ("mst", -420),
    ("mdt", -360),
    ("cst", -360),
    ("cdt", -300),
    ("est", -300),
    ("edt", -240),
    ("ast", -240),
    ("adt", -180),
];

/// Returns a time as `2026-01-31T23:59:59.123456Z`.
pub fn iso_text(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let date = DateTime::from_timestamp(since.as_secs().cast_signed(), since.subsec_nanos()).unwrap_or_default();
    date.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// Parses a date. Returns the seconds since 1970-01-01 00:00 UTC, or `None` if the text is not a
/// date from 1970 to 9999.
pub fn parse(text: &str) -> Option<u64> {
    parse_unix_seconds(text)?.try_into().ok()
}

/// Parses a date. Returns the seconds since 1970-01-01 00:00 UTC, which are negative for earlier
/// dates. Returns `None` if the text is not a date.
fn parse_unix_seconds(text: &str) -> Option<i64> {
    let mut date = ParsedDate::default();
    let words = text.split([' ', ',', '\t']).filter(|word| !word.is_empty());
    words.into_iter().try_for_each(|word| date.apply_word(word))?;
    date.seconds()
}

/// Formats a time, given in seconds since 1970-01-01 00:00 UTC, as an HTTP date (RFC 9110 section
/// 5.6.7).
pub fn http_date(seconds: u64) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))
}

/// Parses an HTTP date, or a date in another notation that [`parse`] accepts. Returns `None` for
/// any other text.
pub fn parse_http_date(date: &[u8]) -> Option<SystemTime> {
    let date = std::str::from_utf8(date).ok()?.trim();
    // Some servers get the day of the week wrong: curl does not look at it.
    let loose = || {
        let seconds = parse_unix_seconds(date)?;
        let distance = Duration::from_secs(seconds.unsigned_abs());
        if seconds < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) }
    };
    httpdate::parse_http_date(date).ok().or_else(loose)
}

#[derive(Default)]
struct ParsedDate {
    year: Option<u64>,
    month: Option<u64>,
    day: Option<u64>,
    time: Option<u64>,
    /// The offset of the time zone east of Greenwich, in seconds.
    zone: i64,
}

impl ParsedDate {
    fn apply_word(&mut self, word: &str) -> Option<()> {
        let lower = word.to_ascii_lowercase();
        let is_letters = lower.bytes().all(|byte| byte.is_ascii_alphabetic());
        if is_letters {
            let is = |name: &str| lower.len() >= 3 && lower.starts_with(name);
            if let Some(month) = MONTHS.iter().position(|name| is(name)) {
                return set_once(&mut self.month, month as u64 + 1);
            }
            if let Some((_, minutes)) = ZONES.iter().find(|(name, _)| *name == lower) {
                self.zone = minutes * 60;
                return Some(());
            }
            return DAYS.iter().any(|name| is(name)).then_some(());
        }
        if let Some((clock, sign)) =
            word.strip_prefix('+').map(|rest| (rest, 1)).or(word.strip_prefix('-').map(|rest| (rest, -1)))
        {
            // Nothing but four digits is counted with: a server chooses them.
            let is_zone = clock.len() == 4 && clock.bytes().all(|byte| byte.is_ascii_digit()) && self.time.is_some();
            let number: i64 = clock.parse().ok().filter(|_| is_zone)?;
            self.zone = sign * (number / 100 * 3600 + number % 100 * 60);
            return Some(());
        }
        if let Some((day, time)) = word.split_once(['T', 't']).filter(|(day, _)| day.len() >= 8) {
            self.apply_word(day)?;
            return self.apply_word(time);
        }
        if word.contains(':') {
            return set_once(&mut self.time, parse_time_of_day(word.trim_end_matches(['Z', 'z']))?);
        }
        let parts: Vec<&str> = word.split('-').collect();
        match parts.as_slice() {
            [year, month, day] if year.len() == 4 => {
                set_once(&mut self.year, year.parse().ok()?)?;
                set_once(&mut self.month, month.parse().ok()?)?;
                set_once(&mut self.day, day.parse().ok()?)
            }
            [_, _, _] => parts.iter().try_for_each(|part| self.apply_word(part)),
            [digits] if digits.len() == 8 => {
                set_once(&mut self.year, digits.get(..4)?.parse().ok()?)?;
                set_once(&mut self.month, digits.get(4..6)?.parse().ok()?)?;
                set_once(&mut self.day, digits.get(6..)?.parse().ok()?)
            }
            [digits] => match (digits.parse().ok()?, self.day) {
                (day @ 1..=31, None) if digits.len() <= 2 => set_once(&mut self.day, day),
                // RFC 9110 section 5.6.7: two digits are the year of this century or the last.
                (year @ 0..=69, Some(_)) if digits.len() == 2 => set_once(&mut self.year, 2000 + year),
                (year @ 70..=99, Some(_)) if digits.len() == 2 => set_once(&mut self.year, 1900 + year),
                (year, _) => set_once(&mut self.year, year),
            },
            _ => None,
        }
    }

    fn seconds(&self) -> Option<i64> {
        let (year, month, day) = (self.year?, self.month?, self.day?);
        let year = i32::try_from(year).ok().filter(|year| (FIRST_YEAR..=9999).contains(year))?;
        let day = NaiveDate::from_ymd_opt(year, u32::try_from(month).ok()?, u32::try_from(day).ok()?)?;
        let midnight = day.and_time(NaiveTime::MIN).and_utc().timestamp();
        Some(midnight + i64::try_from(self.time.unwrap_or(0)).ok()? - self.zone)
    }
}

fn set_once(place: &mut Option<u64>, value: u64) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

/// Parses a time of day, `HH:MM` or `HH:MM:SS`. Returns the seconds since midnight, or `None` for
/// any other text.
fn parse_time_of_day(word: &str) -> Option<u64> {
    let mut parts = word.split(':').map(|part| part.parse::<u64>().ok().filter(|_| part.len() <= 2));
    let (hours, minutes) = (parts.next()??, parts.next()??);
    let seconds = parts.next().unwrap_or(Some(0))?;
    (parts.next().is_none() && hours < 24 && minutes < 60 && seconds <= 60)
        .then_some(hours * 3600 + minutes * 60 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_parts_are_accepted_in_any_order() {
        let day = 1_445_385_600;
        for text in
            ["21 Oct 2015", "Oct 21 2015", "2015-10-21", "20151021", "21-Oct-2015", "21-Oct-15", "Wed, 21 Oct 2015"]
        {
            assert_eq!(parse(text), Some(day), "{text}");
        }
        assert_eq!(parse("2015-10-21T01:00:00Z"), Some(day + 3600));
        assert_eq!(parse("21 October 2015 02:00 +0200"), Some(day));
        assert_eq!(parse("21 Oct 2015 00:00:00 -0100"), Some(day + 3600));
        assert_eq!(
            parse_http_date(b"Wed, 09 Oct 1940 16:45:49 +0100"),
            UNIX_EPOCH.checked_sub(Duration::from_secs(922_349_651))
        );
        assert_eq!(http_date(day), "Wed, 21 Oct 2015 00:00:00 GMT");
    }

    #[test]
    fn time_zone_names_of_date_are_parsed() {
        for (text, same) in [
            ("Sun Nov  6 08:49:37 CET 1994", "6 Nov 1994 07:49:37"),
            ("Sun Nov  6 08:49:37 EST 1994", "6 Nov 1994 13:49:37"),
            ("6 Jul 1994 08:49:37 PDT", "6 Jul 1994 15:49:37"),
            ("6 Jul 1994 08:49:37 BST", "6 Jul 1994 07:49:37"),
            ("6 Jul 1994 08:49:37 ut", "6 Jul 1994 08:49:37"),
        ] {
            assert_eq!(parse(text), Some(parse(same).unwrap()), "{text}");
        }
        assert_eq!(parse("Sun Nov  6 08:49:37 IST 1994"), None);
    }

    #[test]
    fn invalid_dates_are_rejected() {
        for text in [
            "",
            "x",
            "32 Oct 2015",
            "21 Oct",
            "2015",
            "31 Feb 1815",
            "25:00 1 Jan 2000",
            "1 1 1 1",
            "20151301",
            "2015-1",
            "1 Jan 2000 +0200",
            "1 Jan 2000 01:00 +9223372036854775807",
            "1 Jan 2000 01:00 --200",
            "é",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
