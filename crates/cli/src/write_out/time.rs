//! `%time{format}`: the time of day by strftime's conversions, in UTC and in the words of the "C" locale.
//!
//! ```text
//!  %a %A  %b %B %h  %c %x %X  %C %y %Y  %m %d %e %j  %D %F  %H %I %k %l %M %S %p  %r %R %T  %s %f  %u %w %U %W  %z %Z  %n %t %%
//! ```
//!
//! Anything else stands as it is. Left out: ISO 8601's weeks (`%G`, `%V`), flags of padding.

use std::time::Duration;

use crate::date;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// A moment in its parts.
struct Moment {
    /// Seconds since 1970.
    seconds: u64,
    micros: u32,
    year: u64,
    /// From 0, as the day of the year and that of the week are.
    month: usize,
    day: u64,
    day_of_year: u64,
    day_of_week: usize,
}

/// The moment that is so long after 1970 began, by this format; nothing for one that no HTTP date has.
pub(super) fn format(format: &str, now: Duration) -> String {
    let mut text = String::new();
    if let Some(moment) = Moment::of(now) {
        moment.write(format, &mut text);
    }
    text
}

impl Moment {
    fn of(since: Duration) -> Option<Self> {
        let seconds = since.as_secs();
        // The calendar's work is done there: "Sun, 06 Nov 1994 08:49:37 GMT".
        let text = date::http(seconds);
        let mut words = text.split(' ').skip(1);
        let day = words.next()?.parse().ok()?;
        let month = words.next()?;
        let month = MONTHS.iter().position(|name| name.starts_with(month))?;
        let year: u64 = words.next()?.parse().ok()?;
        let days = seconds / 86_400;
        let day_of_year = days - date::parse(&format!("{year}-01-01"))? / 86_400;
        // The first of January 1970 was a Thursday.
        let day_of_week = (days + 4) as usize % 7;
        Some(Self { seconds, micros: since.subsec_micros(), year, month, day, day_of_year, day_of_week })
    }

    fn write(&self, format: &str, out: &mut String) {
        let mut rest = format;
        while let Some(at) = rest.find('%') {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let Some(letter) = rest[1..].chars().next() else { break };
            let whole = 1 + letter.len_utf8();
            if !self.convert(letter, out) {
                out.push_str(&rest[..whole]);
            }
            rest = &rest[whole..];
        }
        out.push_str(rest);
    }

    /// Whether there is such a conversion.
    fn convert(&self, letter: char, out: &mut String) -> bool {
        let (hour, minute, second) = (self.seconds / 3600 % 24, self.seconds / 60 % 60, self.seconds % 60);
        let of_twelve = (hour + 11) % 12 + 1;
        let (month, weekday) = (MONTHS[self.month], DAYS[self.day_of_week]);
        let from_sunday = self.day_of_week as u64;
        let from_monday = (from_sunday + 6) % 7;
        let text = match letter {
            'a' => weekday[..3].to_owned(),
            'A' => weekday.to_owned(),
            'b' | 'h' => month[..3].to_owned(),
            'B' => month.to_owned(),
            'C' => format!("{:02}", self.year / 100),
            'd' => format!("{:02}", self.day),
            'e' => format!("{:2}", self.day),
            'f' => format!("{:06}", self.micros),
            'H' => format!("{hour:02}"),
            'I' => format!("{of_twelve:02}"),
            'j' => format!("{:03}", self.day_of_year + 1),
            'k' => format!("{hour:2}"),
            'l' => format!("{of_twelve:2}"),
            'm' => format!("{:02}", self.month + 1),
            'M' => format!("{minute:02}"),
            'n' => "\n".to_owned(),
            'p' => if hour < 12 { "AM" } else { "PM" }.to_owned(),
            's' => self.seconds.to_string(),
            'S' => format!("{second:02}"),
            't' => "\t".to_owned(),
            'u' => (from_monday + 1).to_string(),
            'U' => format!("{:02}", (self.day_of_year + 7 - from_sunday) / 7),
            'w' => from_sunday.to_string(),
            'W' => format!("{:02}", (self.day_of_year + 7 - from_monday) / 7),
            'y' => format!("{:02}", self.year % 100),
            'Y' => self.year.to_string(),
            'z' => "+0000".to_owned(),
            'Z' => "UTC".to_owned(),
            '%' => "%".to_owned(),
            _ => {
                let whole = match letter {
                    'c' => "%a %b %e %T %Y",
                    'D' | 'x' => "%m/%d/%y",
                    'F' => "%Y-%m-%d",
                    'r' => "%I:%M:%S %p",
                    'R' => "%H:%M",
                    'T' | 'X' => "%H:%M:%S",
                    _ => return false,
                };
                self.write(whole, out);
                return true;
            }
        };
        out.push_str(&text);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64, words: &str) -> String {
        format(words, Duration::from_secs(seconds) + Duration::from_micros(1_234))
    }

    #[test]
    fn moments_are_written_as_by_strftime() {
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
    fn what_is_no_conversion_stands() {
        assert_eq!(at(0, "%Qx %é %"), "%Qx %é %");
        assert_eq!(at(0, ""), "");
    }
}
