//! Parses the usual format of an HTTP-date, such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110
//! §5.6.7).
//!
//! The crate httpdate parses all three formats, but formats each date again to check it. The two
//! dates of a response without an entity-tag took 4 % of the instructions of a run of small
//! replies. This parser takes a tenth of that, and leaves everything else to httpdate.

const WEEKDAYS: [[u8; 3]; 7] = [*b"Sun", *b"Mon", *b"Tue", *b"Wed", *b"Thu", *b"Fri", *b"Sat"];
const MONTHS: [[u8; 3]; 12] =
    [*b"Jan", *b"Feb", *b"Mar", *b"Apr", *b"May", *b"Jun", *b"Jul", *b"Aug", *b"Sep", *b"Oct", *b"Nov", *b"Dec"];
/// The number of days before each month of a common year, and of the whole year.
const DAYS_BEFORE: [u64; 13] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];
/// The number of days from 1 January of the year 1 to 1 January 1970.
const DAYS_BEFORE_1970: u64 = 719_162;

/// Returns the Unix time of a valid IMF-fixdate from 1970 on, and `None` for other text.
pub(super) fn parse(value: &[u8]) -> Option<u64> {
    let value: &[u8; 29] = value.try_into().ok()?;
    let &[w0, w1, w2, b',', b' ', d0, d1, b' ', m0, m1, m2, b' ', y0, y1, y2, y3, b' ', ref time @ ..] = value else {
        return None;
    };
    let &[h0, h1, b':', n0, n1, b':', s0, s1, b' ', b'G', b'M', b'T'] = time else { return None };
    let two = |high: u8, low: u8| {
        let is_number = high.is_ascii_digit() && low.is_ascii_digit();
        is_number.then(|| u64::from(high - b'0') * 10 + u64::from(low - b'0'))
    };
    let year = two(y0, y1)? * 100 + two(y2, y3)?;
    let month = MONTHS.iter().position(|name| *name == [m0, m1, m2])?;
    let (day, hour, minute, second) = (two(d0, d1)?, two(h0, h1)?, two(n0, n1)?, two(s0, s1)?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_of_month = DAYS_BEFORE[month + 1] - DAYS_BEFORE[month] + u64::from(is_leap && month == 1);
    if year < 1970 || day == 0 || day > days_of_month || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let before = year - 1;
    let days_before_year = before * 365 + before / 4 - before / 100 + before / 400 - DAYS_BEFORE_1970;
    let days = days_before_year + DAYS_BEFORE[month] + u64::from(is_leap && month > 1) + day - 1;
    // 1 January 1970 was a Thursday.
    let weekday = WEEKDAYS[(days as usize + 4) % 7];
    (weekday == [w0, w1, w2]).then_some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::{Duration, UNIX_EPOCH};

    /// The last second of the year 9999.
    const LAST: u64 = 253_402_300_799;

    fn by_httpdate(text: &[u8]) -> Option<u64> {
        let at = httpdate::parse_http_date(std::str::from_utf8(text).ok()?).ok()?;
        Some(at.duration_since(UNIX_EPOCH).unwrap().as_secs())
    }

    #[test]
    fn date_at_each_edge_of_a_month_is_parsed() {
        for seconds in [0, 951_782_399, 951_782_400, 951_868_800, 4_107_542_400, LAST] {
            let text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds));
            assert_eq!(parse(text.as_bytes()), Some(seconds), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_date_is_parsed_like_by_httpdate(seconds in 0..=LAST) {
            let text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds));
            prop_assert_eq!(parse(text.as_bytes()), Some(seconds));
        }

        #[test]
        fn changed_date_is_parsed_like_by_httpdate(
            seconds in 0..=LAST,
            at in 0..29usize,
            byte in prop_oneof![b'0'..=b'9', any::<u8>()],
        ) {
            let mut text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds)).into_bytes();
            text[at] = byte;
            prop_assert_eq!(parse(&text), by_httpdate(&text));
        }

        #[test]
        fn numbers_in_a_date_are_checked_like_by_httpdate(
            day in 0..40u8, month in 0..12usize, year in 1960..2110u16, hour in 0..30u8, minute in 0..70u8,
            second in 0..70u8, weekday in 0..7usize,
        ) {
            let (month, weekday) = (MONTHS[month], WEEKDAYS[weekday]);
            let [month, weekday] = [month, weekday].map(|name| String::from_utf8(name.to_vec()).unwrap());
            let text = format!("{weekday}, {day:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT");
            prop_assert_eq!(parse(text.as_bytes()), by_httpdate(text.as_bytes()));
        }
    }
}
