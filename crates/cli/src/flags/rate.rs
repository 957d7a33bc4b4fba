//! The option `--rate`: limits how often transfers begin.

use super::prelude::*;
use std::time::Duration;

pub(super) struct RateFlag;

impl FlagDefinition for RateFlag {
    fn spec(&self) -> FlagSpec {
        FlagSpec {
            long: "rate",
            short: None,
            syntax: FlagSyntax::Value("rate"),
            category: HelpCategory::Limits,
            important: false,
            help: "Maximum rate at which transfers start",
            doc: "Starts at most N transfers in a period: \"2/s\", \"3/m\", \"5/h\", \"1/d\", also \"3/10s\". It \
                  holds over the whole run: lists, stages and groups, in parallel or not. A retry counts, a redirect \
                  does not. In curl's place it has no effect on URLs with --parallel, as in curl.",
            example: "haul --rate 2/s 'https://example.com/[1-9]'",
            see_also: "rate-host limit-rate parallel",
        }
    }

    fn update(&self, value: FlagValue<'_>, args: &mut ParsedArgs) -> Result<(), UsageErrorReason> {
        args.global.pace = Some(parse_interval(value.content()?)?);
        Ok(())
    }
}

/// Parses `N[/[M]UNIT]`, such as `5/2m` for 5 transfers in 2 minutes. The default unit is one hour.
/// Returns the minimum time between the beginnings of two transfers.
pub(super) fn parse_interval(text: &str) -> Result<Duration, UsageErrorReason> {
    let bad = || UsageErrorReason::bad_use("expected N/UNIT, with s, m, h or d");
    let (count, unit) = text.split_once('/').unwrap_or((text, "h"));
    let count: u64 = count.parse().map_err(|_| bad())?;
    let digits = unit.len() - unit.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let times: u64 = if digits == 0 { 1 } else { unit[..digits].parse().map_err(|_| bad())? };
    let seconds: u64 = match &unit[digits..] {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(bad()),
    };
    let nanos = times.checked_mul(seconds * 1000).ok_or(UsageErrorReason::TooLarge)?.saturating_mul(1_000_000);
    if times == 0 {
        return Err(bad());
    }
    nanos.checked_div(count).map(Duration::from_nanos).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_converted_to_an_interval() {
        assert_eq!(parse_interval("2/s"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_interval("3/m"), Ok(Duration::from_secs(20)));
        assert_eq!(parse_interval("5/10s"), Ok(Duration::from_secs(2)));
        assert_eq!(parse_interval("60"), Ok(Duration::from_secs(60)));
        // Not rounded to whole milliseconds: that would be 333 or none.
        assert_eq!(parse_interval("300/s"), Ok(Duration::from_nanos(3_333_333)));
        assert_eq!(parse_interval("2000/s"), Ok(Duration::from_micros(500)));
        for bad in ["", "0/s", "x/s", "1/w", "1/", "-1/s", "1/s/s", "1/0s", "1/0h", "99999999999999999999/s"] {
            assert!(parse_interval(bad).is_err(), "{bad}");
        }
    }
}
