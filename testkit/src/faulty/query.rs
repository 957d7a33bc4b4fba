//! A plan as the query of a URL, so that any program's command line can ask for a fault.

use std::fmt::{Display, Write};
use std::str::FromStr;
use std::time::Duration;

use super::plan::{Break, Change, Etag, How, Lie, Place, Plan};

/// A break's name in a query, and what it is.
type Named = (&'static str, How, fn(u64) -> Place);

const BREAKS: [Named; 12] = [
    ("reset-at", How::Reset, Place::At),
    ("reset-after", How::Reset, Place::After),
    ("close-at", How::Close, Place::At),
    ("close-after", How::Close, Place::After),
    ("stall-at", How::Stall, Place::At),
    ("stall-after", How::Stall, Place::After),
    ("rst-at", How::Rst, Place::At),
    ("rst-after", How::Rst, Place::After),
    ("goaway-at", How::GoAway, Place::At),
    ("goaway-after", How::GoAway, Place::After),
    ("goaway-cut-at", How::GoAwayCut, Place::At),
    ("goaway-cut-after", How::GoAwayCut, Place::After),
];

impl Plan {
    /// Reads `name=value` pairs joined by `&`; the names are in the docs of the fields. A later
    /// pair wins.
    ///
    /// # Errors
    /// A message that names the malformed pair.
    pub fn parse(query: &str) -> Result<Plan, String> {
        let mut plan = Plan::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            plan.set(name, value).ok_or_else(|| format!("cannot read {pair}"))?;
        }
        Ok(plan)
    }

    /// The query that [`parse`](Plan::parse) reads as this plan; defaults are left out.
    pub fn query(&self) -> String {
        let mut out = Pairs(String::new());
        let plain = Plan::default();
        out.number("size", self.size, plain.size);
        out.number("seed", self.seed, plain.seed);
        match self.etag {
            Etag::Strong => {}
            Etag::Weak => out.pair("etag", "weak"),
            Etag::None => out.pair("etag", "none"),
        }
        out.flag("ignore-range", self.ignore_range);
        out.flag("ignore-if-range", self.ignore_if_range);
        match self.content_range {
            None => {}
            Some(Lie::Start(by)) => out.pair("range-start", by),
            Some(Lie::End(by)) => out.pair("range-end", by),
            Some(Lie::Total(by)) => out.pair("range-total", by),
            Some(Lie::Unit) => out.flag("range-unit", true),
            Some(Lie::Missing) => out.flag("range-missing", true),
        }
        out.number("short", self.short, 0);
        out.number("part-length", self.part_length, 0);
        out.number("whole-length", self.whole_length, 0);
        out.some("unasked-206", self.unasked_206);
        out.flag("chunked", self.chunked);
        out.flag("gzip", self.gzip);
        out.number("garbage", self.garbage, 0);
        match self.change {
            None => {}
            Some(Change::Bytes(bytes)) => out.pair("change-after-bytes", bytes),
            Some(Change::Requests(count)) => out.pair("change-after-requests", count),
            Some(Change::Time(time)) => out.pair("change-after-ms", time.as_millis()),
        }
        out.some("new-size", self.new_size);
        for one in &self.breaks {
            let (Place::At(number) | Place::After(number)) = one.place;
            let named = |(_, how, place): &&Named| *how == one.how && place(number) == one.place;
            let name = BREAKS.iter().find(named).map_or("", |(name, ..)| name);
            let times = one.times.map_or_else(String::new, |times| format!("x{times}"));
            out.pair(name, format_args!("{number}{times}"));
        }
        out.some("stall-ms", self.stall.map(|time| time.as_millis()));
        out.some("rate", self.rate);
        out.some("range-rate", self.range_rate);
        out.number("unavailable", self.unavailable, 0);
        out.some("retry-after", self.retry_after);
        out.number("refuse-416", self.refuse_416, 0);
        out.some("connections", self.connections);
        out.number("refuse", self.refuse, 0);
        out.0
    }

    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        if let Some((_, how, place)) = BREAKS.iter().find(|(known, ..)| *known == name) {
            let (number, times) = match value.split_once('x') {
                Some((number, times)) => (number, Some(read(times)?)),
                None => (value, None),
            };
            self.breaks.push(Break { how: *how, place: place(read(number)?), times });
            return Some(());
        }
        match name {
            "size" => self.size = read(value)?,
            "seed" => self.seed = read(value)?,
            "etag" => {
                self.etag = match value {
                    "strong" => Etag::Strong,
                    "weak" => Etag::Weak,
                    "none" => Etag::None,
                    _ => return None,
                }
            }
            "ignore-range" => self.ignore_range = set(value)?,
            "ignore-if-range" => self.ignore_if_range = set(value)?,
            "range-start" => self.content_range = Some(Lie::Start(read(value)?)),
            "range-end" => self.content_range = Some(Lie::End(read(value)?)),
            "range-total" => self.content_range = Some(Lie::Total(read(value)?)),
            "range-unit" => self.content_range = set(value)?.then_some(Lie::Unit),
            "range-missing" => self.content_range = set(value)?.then_some(Lie::Missing),
            "short" => self.short = read(value)?,
            "part-length" => self.part_length = read(value)?,
            "whole-length" => self.whole_length = read(value)?,
            "unasked-206" => self.unasked_206 = Some(read(value)?),
            "chunked" => self.chunked = set(value)?,
            "gzip" => self.gzip = set(value)?,
            "garbage" => self.garbage = read(value)?,
            "change-after-bytes" => self.change = Some(Change::Bytes(read(value)?)),
            "change-after-requests" => self.change = Some(Change::Requests(read(value)?)),
            "change-after-ms" => self.change = Some(Change::Time(Duration::from_millis(read(value)?))),
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

/// A flag has no value, or 0 or 1.
fn set(value: &str) -> Option<bool> {
    match value {
        "" | "1" => Some(true),
        "0" => Some(false),
        _ => None,
    }
}

struct Pairs(String);

impl Pairs {
    fn pair(&mut self, name: &str, value: impl Display) {
        self.flag(name, true);
        // Writing to a string does not fail.
        let _ = write!(self.0, "={value}");
    }

    fn flag(&mut self, name: &str, set: bool) {
        if !set {
            return;
        }
        if !self.0.is_empty() {
            self.0.push('&');
        }
        self.0.push_str(name);
    }

    fn number<T: Display + PartialEq>(&mut self, name: &str, value: T, default: T) {
        if value != default {
            self.pair(name, value);
        }
    }

    fn some(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.pair(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_goes_through_a_query_and_back() {
        let mut full = Plan {
            size: 1,
            seed: 2,
            etag: Etag::Weak,
            ignore_range: true,
            ignore_if_range: true,
            content_range: Some(Lie::Start(-3)),
            short: 4,
            part_length: -5,
            whole_length: 6,
            unasked_206: Some(0),
            chunked: true,
            gzip: true,
            garbage: 7,
            change: Some(Change::Bytes(8)),
            new_size: Some(9),
            breaks: vec![Break::reset_at(10), Break::stall_at(11).times(2)],
            stall: Some(Duration::from_millis(12)),
            rate: Some(13),
            range_rate: Some(14),
            unavailable: 15,
            retry_after: Some(0),
            refuse_416: 16,
            connections: Some(17),
            refuse: 18,
        };
        assert_eq!(Plan::parse(&full.query()), Ok(full.clone()));
        full.etag = Etag::None;
        let lies = [Lie::End(1), Lie::Total(-1), Lie::Unit, Lie::Missing];
        let changes = [Change::Requests(1), Change::Time(Duration::from_millis(5)), Change::Bytes(0), Change::Bytes(1)];
        for (lie, change) in lies.into_iter().zip(changes) {
            (full.content_range, full.change) = (Some(lie), Some(change));
            assert_eq!(Plan::parse(&full.query()), Ok(full.clone()));
        }
        for (name, how, place) in BREAKS {
            let plan = Plan { breaks: vec![Break { how, place: place(5), times: None }], ..Plan::default() };
            assert_eq!(plan.query(), format!("{name}=5"));
            assert_eq!(Plan::parse(&plan.query()), Ok(plan));
        }
        assert_eq!(Plan::default().query(), "");
    }

    #[test]
    fn unknown_parameters_are_named() {
        for bad in ["sise=1", "size=", "size=-1", "reset-at=1x", "reset-at=x1", "etag=strange", "gzip=2", "size"] {
            assert_eq!(Plan::parse(bad), Err(format!("cannot read {bad}")));
        }
        assert!(Plan::parse("&size=3&").is_ok());
    }
}
