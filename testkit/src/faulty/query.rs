//! Converts a fault plan to the query of a URL and back, so that a test can request a fault on any
//! program's command line.

use std::fmt::{Display, Write};
use std::str::FromStr;
use std::time::Duration;

use super::plan::{
    BodyBreak, BodyBreakOffset, BreakKind, ContentChangeTrigger, EtagKind, FaultPlan, WrongContentRange,
};

/// The name of a query parameter that requests a break (an early end or a stall of a body), such as
/// `reset-at`; the kind of this break; and the function that converts the parameter's number into
/// an offset.
type NamedBreak = (&'static str, BreakKind, fn(u64) -> BodyBreakOffset);

const BREAKS: [NamedBreak; 12] = [
    ("reset-at", BreakKind::Reset, BodyBreakOffset::At),
    ("reset-after", BreakKind::Reset, BodyBreakOffset::After),
    ("close-at", BreakKind::Close, BodyBreakOffset::At),
    ("close-after", BreakKind::Close, BodyBreakOffset::After),
    ("stall-at", BreakKind::Stall, BodyBreakOffset::At),
    ("stall-after", BreakKind::Stall, BodyBreakOffset::After),
    ("rst-at", BreakKind::Rst, BodyBreakOffset::At),
    ("rst-after", BreakKind::Rst, BodyBreakOffset::After),
    ("goaway-at", BreakKind::GoAway, BodyBreakOffset::At),
    ("goaway-after", BreakKind::GoAway, BodyBreakOffset::After),
    ("goaway-cut-at", BreakKind::GoAwayCut, BodyBreakOffset::At),
    ("goaway-cut-after", BreakKind::GoAwayCut, BodyBreakOffset::After),
];

impl FaultPlan {
    /// Parses a query: `name=value` pairs joined by `&`. The comments of the fields of
    /// [`FaultPlan`] contain the names. If a name is repeated, the last value counts.
    ///
    /// # Errors
    /// If a pair is malformed; the message names it.
    pub fn parse(query: &str) -> Result<FaultPlan, String> {
        let mut plan = FaultPlan::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            plan.set(name, value).ok_or_else(|| format!("cannot read {pair}"))?;
        }
        Ok(plan)
    }

    /// Returns the query that [`parse`](FaultPlan::parse) converts to this plan. Fields with their
    /// default value are left out.
    pub fn query(&self) -> String {
        let mut out = QueryWriter(String::new());
        let plain = FaultPlan::default();
        out.push_unless_default("size", self.size, plain.size);
        out.push_unless_default("seed", self.seed, plain.seed);
        match self.etag {
            EtagKind::Strong => {}
            EtagKind::Weak => out.push_pair("etag", "weak"),
            EtagKind::None => out.push_pair("etag", "none"),
        }
        out.push_flag("ignore-range", self.ignore_range);
        out.push_flag("ignore-if-range", self.ignore_if_range);
        match self.content_range {
            None => {}
            Some(WrongContentRange::Start(by)) => out.push_pair("range-start", by),
            Some(WrongContentRange::End(by)) => out.push_pair("range-end", by),
            Some(WrongContentRange::Total(by)) => out.push_pair("range-total", by),
            Some(WrongContentRange::Unit) => out.push_flag("range-unit", true),
            Some(WrongContentRange::Missing) => out.push_flag("range-missing", true),
        }
        out.push_unless_default("short", self.short, 0);
        out.push_unless_default("part-length", self.part_length, 0);
        out.push_unless_default("whole-length", self.whole_length, 0);
        out.push_optional("unasked-206", self.unasked_206);
        out.push_flag("chunked", self.chunked);
        out.push_flag("gzip", self.gzip);
        out.push_unless_default("garbage", self.garbage, 0);
        match self.change {
            None => {}
            Some(ContentChangeTrigger::Bytes(bytes)) => out.push_pair("change-after-bytes", bytes),
            Some(ContentChangeTrigger::Requests(count)) => out.push_pair("change-after-requests", count),
            Some(ContentChangeTrigger::Time(time)) => out.push_pair("change-after-ms", time.as_millis()),
        }
        out.push_optional("new-size", self.new_size);
        for one in &self.breaks {
            let (BodyBreakOffset::At(number) | BodyBreakOffset::After(number)) = one.place;
            let named = |(_, how, place): &&NamedBreak| *how == one.how && place(number) == one.place;
            let name = BREAKS.iter().find(named).map_or("", |(name, ..)| name);
            let times = one.times.map_or_else(String::new, |times| format!("x{times}"));
            out.push_pair(name, format_args!("{number}{times}"));
        }
        out.push_optional("stall-ms", self.stall.map(|time| time.as_millis()));
        out.push_optional("rate", self.rate);
        out.push_optional("range-rate", self.range_rate);
        out.push_unless_default("unavailable", self.unavailable, 0);
        out.push_optional("retry-after", self.retry_after);
        out.push_unless_default("refuse-416", self.refuse_416, 0);
        out.push_optional("connections", self.connections);
        out.push_unless_default("refuse", self.refuse, 0);
        out.0
    }

    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        if let Some((_, how, place)) = BREAKS.iter().find(|(known, ..)| *known == name) {
            let (number, times) = match value.split_once('x') {
                Some((number, times)) => (number, Some(read(times)?)),
                None => (value, None),
            };
            self.breaks.push(BodyBreak { how: *how, place: place(read(number)?), times });
            return Some(());
        }
        match name {
            "size" => self.size = read(value)?,
            "seed" => self.seed = read(value)?,
            "etag" => {
                self.etag = match value {
                    "strong" => EtagKind::Strong,
                    "weak" => EtagKind::Weak,
                    "none" => EtagKind::None,
                    _ => return None,
                }
            }
            "ignore-range" => self.ignore_range = set(value)?,
            "ignore-if-range" => self.ignore_if_range = set(value)?,
            "range-start" => self.content_range = Some(WrongContentRange::Start(read(value)?)),
            "range-end" => self.content_range = Some(WrongContentRange::End(read(value)?)),
            "range-total" => self.content_range = Some(WrongContentRange::Total(read(value)?)),
            "range-unit" => self.content_range = set(value)?.then_some(WrongContentRange::Unit),
            "range-missing" => self.content_range = set(value)?.then_some(WrongContentRange::Missing),
            "short" => self.short = read(value)?,
            "part-length" => self.part_length = read(value)?,
            "whole-length" => self.whole_length = read(value)?,
            "unasked-206" => self.unasked_206 = Some(read(value)?),
            "chunked" => self.chunked = set(value)?,
            "gzip" => self.gzip = set(value)?,
            "garbage" => self.garbage = read(value)?,
            "change-after-bytes" => self.change = Some(ContentChangeTrigger::Bytes(read(value)?)),
            "change-after-requests" => self.change = Some(ContentChangeTrigger::Requests(read(value)?)),
            "change-after-ms" => self.change = Some(ContentChangeTrigger::Time(Duration::from_millis(read(value)?))),
            "new-size" => self.new_size = Some(read(value)?),
            "stall-ms" => self.stall = Some(Duration::from_millis(read(value)?)),
            "rate" => self.rate = Some(read(value)?),
            "range-rate" => self.range_rate = Some(read(value)?),
            "unavailable" => self.unavailable = read(value)?,
            "retry-after" => self.retry_after = Some(read(value)?),
            "refuse-416" => self.refuse_416 = read(value)?,
            "connections" => self.connections = Some(read(value)?),
            "refuse" => self.refuse = read(value)?,
            _ => return None,
        }
        Some(())
    }
}

fn read<T: FromStr>(value: &str) -> Option<T> {
    value.parse().ok()
}

/// Parses the value of an on/off parameter of the query. An empty value or `1` is true, `0` is
/// false, anything else is `None`.
fn set(value: &str) -> Option<bool> {
    match value {
        "" | "1" => Some(true),
        "0" => Some(false),
        _ => None,
    }
}

struct QueryWriter(String);

impl QueryWriter {
    fn push_pair(&mut self, name: &str, value: impl Display) {
        self.push_flag(name, true);
        // Writing to a string does not fail.
        let _ = write!(self.0, "={value}");
    }

    fn push_flag(&mut self, name: &str, set: bool) {
        if !set {
            return;
        }
        if !self.0.is_empty() {
            self.0.push('&');
        }
        self.0.push_str(name);
    }

    fn push_unless_default<T: Display + PartialEq>(&mut self, name: &str, value: T, default: T) {
        if value != default {
            self.push_pair(name, value);
        }
    }

    fn push_optional(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.push_pair(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_field_survives_a_query_round_trip() {
        let mut full = FaultPlan {
            size: 1,
            seed: 2,
            etag: EtagKind::Weak,
            ignore_range: true,
            ignore_if_range: true,
            content_range: Some(WrongContentRange::Start(-3)),
            short: 4,
            part_length: -5,
            whole_length: 6,
            unasked_206: Some(0),
            chunked: true,
            gzip: true,
            garbage: 7,
            change: Some(ContentChangeTrigger::Bytes(8)),
            new_size: Some(9),
            breaks: vec![BodyBreak::reset_at(10), BodyBreak::stall_at(11).times(2)],
            stall: Some(Duration::from_millis(12)),
            rate: Some(13),
            range_rate: Some(14),
            unavailable: 15,
            retry_after: Some(0),
            refuse_416: 16,
            connections: Some(17),
            refuse: 18,
        };
        assert_eq!(FaultPlan::parse(&full.query()), Ok(full.clone()));
        full.etag = EtagKind::None;
        let lies = [
            WrongContentRange::End(1),
            WrongContentRange::Total(-1),
            WrongContentRange::Unit,
            WrongContentRange::Missing,
        ];
        let changes = [
            ContentChangeTrigger::Requests(1),
            ContentChangeTrigger::Time(Duration::from_millis(5)),
            ContentChangeTrigger::Bytes(0),
            ContentChangeTrigger::Bytes(1),
        ];
        for (lie, change) in lies.into_iter().zip(changes) {
            (full.content_range, full.change) = (Some(lie), Some(change));
            assert_eq!(FaultPlan::parse(&full.query()), Ok(full.clone()));
        }
        for (name, how, place) in BREAKS {
            let plan =
                FaultPlan { breaks: vec![BodyBreak { how, place: place(5), times: None }], ..FaultPlan::default() };
            assert_eq!(plan.query(), format!("{name}=5"));
            assert_eq!(FaultPlan::parse(&plan.query()), Ok(plan));
        }
        assert_eq!(FaultPlan::default().query(), "");
    }

    #[test]
    fn error_names_the_malformed_query_parameter() {
        for bad in ["sise=1", "size=", "size=-1", "reset-at=1x", "reset-at=x1", "etag=strange", "gzip=2", "size"] {
            assert_eq!(FaultPlan::parse(bad), Err(format!("cannot read {bad}")));
        }
        assert!(FaultPlan::parse("&size=3&").is_ok());
    }
}
