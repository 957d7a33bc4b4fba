//! Parses dates of the Expires attribute (RFC 6265bis §5.1.1): time, day, month and year in any
//! order, with any text between them.

use crate::calendar::CalendarTime;

const MONTHS: [&[u8; 3]; 12] =
    [b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec"];

/// Parses a date and returns it in seconds since 1970, or `None` if it is malformed. Returns 0 for
/// a date before 1970, which deletes the cookie.
pub(crate) fn parse(text: &[u8]) -> Option<u64> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for token in text.split(|b| is_delimiter(*b)).filter(|token| !token.is_empty()) {
        // The first of each kind counts, tried in this order.
        if time.is_none()
            && let Some(found) = parse_time(token)
        {
            time = Some(found);
        } else if day.is_none()
            && let Some(found) = parse_number(token, 1, 2)
        {
            day = Some(found);
        } else if month.is_none()
            && let Some(found) = parse_month(token)
        {
            month = Some(found);
        } else if year.is_none() {
            year = parse_number(token, 2, 4);
        }
    }
    let ((hour, minute, second), day, month) = (time?, day?, month?);
    let year = match year? {
        short @ 70..=99 => 1900 + short,
        short @ 0..=69 => 2000 + short,
        full => full,
    };
    if year < 1601 {
        return None;
    }
    // The year only decides whether the day exists.
    let moment = |year| CalendarTime { year, month, day, hour, minute, second }.to_unix();
    if year < 1970 { moment(year + 400).map(|_| 0) } else { moment(year) }
}

fn is_delimiter(b: u8) -> bool {
    matches!(b, b'\t' | b' '..=b'/' | b';'..=b'@' | b'['..=b'`' | b'{'..=b'~')
}

/// Parses the number of `min` to `max` digits at the start of a token of a cookie date. Returns
/// `None` if there are fewer or more digits.
fn parse_number(token: &[u8], min: usize, max: usize) -> Option<u64> {
    let digits = token.iter().take_while(|b| b.is_ascii_digit()).count();
    (min..=max).contains(&digits).then(|| token[..digits].iter().fold(0, |sum, b| sum * 10 + u64::from(b - b'0')))
}

fn parse_time(token: &[u8]) -> Option<(u64, u64, u64)> {
    let mut fields = token.splitn(3, |b| *b == b':');
    // Only digits before a colon; anything but a digit after the seconds.
    let mut exact =
        || fields.next().filter(|field| field.iter().all(u8::is_ascii_digit)).and_then(|f| parse_number(f, 1, 2));
    let (hour, minute) = (exact()?, exact()?);
    Some((hour, minute, parse_number(fields.next()?, 1, 2)?))
}

fn parse_month(token: &[u8]) -> Option<u64> {
    let name = token.get(..3)?;
    MONTHS.iter().position(|month| name.eq_ignore_ascii_case(*month)).map(|index| index as u64 + 1)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn cookie_dates_of_real_servers_are_parsed() {
        let same = 784_111_777;
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun, 06-Nov-1994 08:49:37 GMT",
            "6 nov 1994 8:49:37",
            "08:49:37 Nov-6-94",
            "1994 Nov 06 08:49:37", // four digits are no day
            "Sun, 06 November 1994 08:49:37.123 +0000",
        ] {
            assert_eq!(parse(text.as_bytes()), Some(same), "{text}");
        }
        assert_eq!(parse(b"Thu, 01-Jan-1970 00:00:00 GMT"), Some(0));
        assert_eq!(parse(b"Mon, 01 Jan 1601 00:00:00 GMT"), Some(0));
        assert_eq!(parse(b"Tue, 29 Feb 2028 00:00:00 GMT"), Some(1_835_395_200));
    }

    #[test]
    fn malformed_cookie_dates_are_refused() {
        for text in [
            "",
            "0",
            "Sun, 06 Nov 1994",
            "06 Nov 08:49:37",
            "31 Feb 2026 00:00:00",
            "32 Jan 2026 00:00:00",
            "01 Jan 2026 24:00:00",
            "01 Jan 2026 00:60:00",
            "01 Jan 2026 00:00:60",
            "01 Jan 1600 00:00:00",
            "01 Jan 12345 00:00:00",
            "01 Foo 2026 00:00:00",
            "01 Jan 2026 00:00",
            "01 Jan 2026 a0:00:00",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn dates_of_1970_are_not_before_it() {
        assert_eq!(parse(b"Fri, 02 Jan 1970 00:00:01 GMT"), Some(86_401));
        assert_eq!(parse(b"Wed, 31 Dec 1969 23:59:59 GMT"), Some(0));
    }

    #[test]
    fn months_have_their_days() {
        let last_days = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        for (month, last) in
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"].iter().zip(last_days)
        {
            assert!(parse(format!("{last} {month} 2026 00:00:00").as_bytes()).is_some(), "{last} {month}");
            assert_eq!(parse(format!("{} {month} 2026 00:00:00", last + 1).as_bytes()), None, "{month}");
        }
    }

    #[test]
    fn years_of_two_digits_lie_between_1970_and_2069() {
        for (short, full) in [("70", "1970"), ("99", "1999"), ("00", "2000"), ("69", "2069"), ("1601", "1601")] {
            let [short, full] = [short, full].map(|year| parse(format!("02 Jan {year} 00:00:00").as_bytes()));
            assert!(short.is_some());
            assert_eq!(short, full);
        }
        assert!(parse(b"02 Jan 2000 00:00:00") < parse(b"02 Jan 69 00:00:00"));
    }
}
