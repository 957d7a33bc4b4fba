//! Calendar dates and seconds since 1970, without leap seconds (POSIX), for the dates in cookies
//! and state files.
//!
//! Rejected: a calendar crate, for two functions of integer arithmetic. `httpdate` reads only the
//! three formats of HTTP dates.

/// A date and time in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CalendarTime {
    pub(crate) year: u64,
    pub(crate) month: u64,
    pub(crate) day: u64,
    pub(crate) hour: u64,
    pub(crate) minute: u64,
    pub(crate) second: u64,
}

const SECONDS_PER_DAY: u64 = 86_400;
/// The number of days from 0000-03-01 of the proleptic Gregorian calendar to 1970-01-01. Years are
/// counted from March, so that a leap day is the last day of its year.
const DAYS_TO_1970: u64 = 719_468;
const DAYS_IN_400_YEARS: u64 = 146_097;
/// The last second of the year 9999, in seconds since 1970. Later times cannot be written, because
/// the date formats in this crate have four digits for the year.
pub(crate) const LAST_UNIX_SECOND: u64 = 253_402_300_799;

impl CalendarTime {
    /// Returns the seconds since 1970; `None` before 1970, after 9999, and for dates that do not
    /// exist.
    pub(crate) fn to_unix(self) -> Option<u64> {
        let CalendarTime { year, month, day, hour, minute, second } = self;
        let valid =
            (1970..=9999).contains(&year) && (1..=12).contains(&month) && hour < 24 && minute < 60 && second < 60;
        if !valid || day < 1 || day > days_in(year, month) {
            return None;
        }
        // Years begin in March, so that the leap day is the last of its year.
        let (year, from_march) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
        let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * from_march + 2) / 5 + day - 1;
        Some((days - DAYS_TO_1970) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second)
    }

    /// Returns the date that is `unix` seconds after the start of 1970. Dates after 9999 become the
    /// last second of 9999.
    pub(crate) fn from_unix(unix: u64) -> CalendarTime {
        let unix = unix.min(LAST_UNIX_SECOND);
        let days = unix / SECONDS_PER_DAY + DAYS_TO_1970;
        let (era, of_era) = (days / DAYS_IN_400_YEARS, days % DAYS_IN_400_YEARS);
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * of_year + 2) / 153;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        CalendarTime {
            year: era * 400 + year_of_era + u64::from(month < 3),
            month,
            day: of_year - (153 * from_march + 2) / 5 + 1,
            hour: unix % SECONDS_PER_DAY / 3600,
            minute: unix % 3600 / 60,
            second: unix % 60,
        }
    }

    /// Returns the time as `20260131T235959Z`, the basic format of ISO 8601.
    pub(crate) fn to_iso_basic(self) -> String {
        let CalendarTime { year, month, day, hour, minute, second } = self;
        format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
    }

    /// Returns the time as `20260131 23:59:59`, the format of curl's HSTS and Alt-Svc files.
    pub(crate) fn to_compact_digits(self) -> String {
        let CalendarTime { year, month, day, hour, minute, second } = self;
        format!("{year:04}{month:02}{day:02} {hour:02}:{minute:02}:{second:02}")
    }

    /// Parses `20260131 23:59:59`, the format of curl's HSTS and Alt-Svc files, or the format of
    /// LWP's cookie files, which has dashes in the date. Ignores a `Z` at the end. Returns `None`
    /// for other text. Does not check that the date exists.
    pub(crate) fn parse(text: &str) -> Option<CalendarTime> {
        let mut digits = [0; 14];
        let mut count = 0;
        for b in text.trim_end_matches('Z').bytes() {
            match b {
                b'0'..=b'9' => {
                    *digits.get_mut(count)? = u64::from(b - b'0');
                    count += 1;
                }
                b' ' | b':' | b'-' => {}
                _ => return None,
            }
        }
        let number = |range: core::ops::Range<usize>| digits[range].iter().fold(0, |sum, digit| sum * 10 + digit);
        (count == 14).then(|| CalendarTime {
            year: number(0..4),
            month: number(4..6),
            day: number(6..8),
            hour: number(8..10),
            minute: number(10..12),
            second: number(12..14),
        })
    }
}

fn days_in(year: u64, month: u64) -> u64 {
    let leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    match month {
        2 => 28 + u64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use chrono::{Datelike, Timelike};

    use super::*;

    #[test]
    fn dates_convert_to_seconds_and_back() {
        for (text, unix) in [
            ("19700101 00:00:00", 0),
            ("20000229 12:00:00", 951_825_600),
            ("20380119 03:14:07", i32::MAX as u64),
            ("21000301 00:00:00", 4_107_542_400),
            ("99991231 23:59:59", LAST_UNIX_SECOND),
        ] {
            let civil = CalendarTime::parse(text).unwrap();
            assert_eq!(civil.to_unix(), Some(unix), "{text}");
            assert_eq!(CalendarTime::from_unix(unix).to_compact_digits(), text);
        }
        for day in 0..LAST_UNIX_SECOND / SECONDS_PER_DAY {
            let unix = day * SECONDS_PER_DAY + day % SECONDS_PER_DAY;
            assert_eq!(CalendarTime::from_unix(unix).to_unix(), Some(unix));
        }
        assert_eq!(CalendarTime::from_unix(u64::MAX).to_unix(), Some(LAST_UNIX_SECOND));
    }

    #[test]
    fn dates_agree_with_chrono() {
        for day in 0..=LAST_UNIX_SECOND / SECONDS_PER_DAY {
            let unix = day * SECONDS_PER_DAY + day * 7919 % SECONDS_PER_DAY;
            let theirs = chrono::DateTime::from_timestamp(unix.cast_signed(), 0).unwrap();
            let ours = CalendarTime::from_unix(unix);
            assert_eq!(
                (ours.year, ours.month, ours.day),
                (u64::try_from(theirs.year()).unwrap(), theirs.month().into(), theirs.day().into())
            );
            assert_eq!(
                (ours.hour, ours.minute, ours.second),
                (theirs.hour().into(), theirs.minute().into(), theirs.second().into())
            );
            assert_eq!(ours.to_unix(), Some(unix));
        }
    }

    #[test]
    fn impossible_dates_are_refused() {
        for text in
            ["20260229 00:00:00", "21000229 00:00:00", "20261301 00:00:00", "20260100 00:00:00", "19691231 23:59:59"]
        {
            assert_eq!(CalendarTime::parse(text).unwrap().to_unix(), None, "{text}");
        }
        for text in ["", "2026", "20260101 00:00:0", "20260101 00:00:000", "x0260101 00:00:00"] {
            assert_eq!(CalendarTime::parse(text), None, "{text}");
        }
    }
}
