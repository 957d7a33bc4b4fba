//! The text of `%time{format}`: a time formatted as by strftime(3), in UTC and in the "C" locale.
//!
//! Text that is not a conversion stays unchanged. `%f` is the number of microseconds, as in curl.

use std::time::Duration;

use chrono::DateTime;
use chrono::format::{Item, Numeric, StrftimeItems};

/// Formats the time `now`, which is measured from the start of 1970, for `%time{format}`. Returns
/// an empty text for a time that the calendar cannot represent.
pub(super) fn format(format: &str, now: Duration) -> String {
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let Some(moment) = DateTime::from_timestamp(seconds, now.subsec_nanos()) else { return String::new() };
    let items = StrftimeItems::new_lenient(format).map(|item| match item {
        Item::Numeric(Numeric::Nanosecond, _) => Item::OwnedLiteral(format!("{:06}", now.subsec_micros()).into()),
        item => item,
    });
    moment.format_with_items(items).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64, words: &str) -> String {
        format(words, Duration::from_secs(seconds) + Duration::from_micros(1_234))
    }

    #[test]
    fn time_format_matches_strftime() {
        let all = "%a %A|%b %B|%c|%C %y|%d %e %j|%D %F|%H %I %k %l|%M %S %p|%r %R %T|%s %f|%u %w %U %W|%z %Z|%%";
        // By date(1): `date -u -d @784111777 +...`.
        let autumn = "Sun Sunday|Nov November|Sun Nov  6 08:49:37 1994|19 94|06  6 310|11/06/94 1994-11-06|08 08  8  8|\
                      49 37 AM|08:49:37 AM 08:49 08:49:37|784111777 001234|7 0 45 44|+0000 UTC|%";
        assert_eq!(at(784_111_777, all), autumn);
        let leap = "Thu Thursday|Feb February|Thu Feb 29 12:00:00 2024|20 24|29 29 060|02/29/24 2024-02-29|12 12 12 12|\
                    00 00 PM|12:00:00 PM 12:00 12:00:00|1709208000 001234|4 4 08 09|+0000 UTC|%";
        assert_eq!(at(1_709_208_000, all), leap);
        assert_eq!(at(0, "%Y%j %I%p %U"), "1970001 12AM 00");
    }

    #[test]
    fn unknown_time_conversions_stay_unchanged() {
        assert_eq!(at(0, "%Qx %é %"), "%Qx %é %");
        assert_eq!(at(0, ""), "");
    }
}
