//! Compares HTTP/2 flow control with a model of the peer, which counts the windows from the
//! client's frames alone.

use super::peer::{
    DATA, END, HEADERS, SETTINGS, WINDOW_UPDATE, answer, asked, data, get, headers, padded, sent, settings,
    settings_ack, window_update, with,
};
use haul_proto::h2::{BodyLength, ErrorCode, H2Config, H2Event, H2Machine, RequestId};
use haul_proto::time::MonotonicTimestamp;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug)]
enum WindowOp {
    Ask,
    /// Sends DATA on a stream. The values are a number that selects the stream, the fraction (in
    /// 255ths) of the bytes that its windows allow, and whether the frame is padded.
    Send(u8, u8, bool),
    End(u8),
    /// Releases received bytes of a stream. The values are a number that selects the stream, and
    /// the fraction (in 255ths) of its unreleased bytes.
    Release(u8, u8),
    Cancel(u8),
    Later(u16),
    /// Raises the initial receive window of streams to this size.
    Widen(u32),
}

fn op() -> impl Strategy<Value = WindowOp> {
    let part = || prop_oneof![Just(255u8), any::<u8>()];
    prop_oneof![
        2 => Just(WindowOp::Ask),
        6 => (any::<u8>(), part(), any::<bool>()).prop_map(|(which, part, pad)| WindowOp::Send(which, part, pad)),
        1 => any::<u8>().prop_map(WindowOp::End),
        5 => (any::<u8>(), part()).prop_map(|(which, part)| WindowOp::Release(which, part)),
        1 => any::<u8>().prop_map(WindowOp::Cancel),
        1 => any::<u16>().prop_map(WindowOp::Later),
        1 => (1u32..100_000).prop_map(WindowOp::Widen),
    ]
}

struct WindowModel {
    conn: H2Machine,
    config: H2Config,
    now: MonotonicTimestamp,
    /// The initial window of streams, from the client's SETTINGS that the model received.
    initial: i64,
    /// The flow-control window of the connection: the number of bytes that the peer may send.
    window: i64,
    windows: BTreeMap<u32, i64>,
    /// For each stream, open or ended, the number of bytes that were delivered to the client and
    /// not released.
    held: BTreeMap<u32, u64>,
}

fn pick(windows: &BTreeMap<u32, i64>, which: u8) -> Option<u32> {
    let count = windows.len();
    windows.keys().nth(usize::from(which) % count.max(1)).copied()
}

impl WindowModel {
    fn new(mut config: H2Config) -> WindowModel {
        // As the machine does it.
        config.stream_window = config.stream_window.min(config.connection_window);
        let mut model = WindowModel {
            conn: H2Machine::new(config),
            config,
            now: MonotonicTimestamp(1_000),
            initial: 65_535,
            window: 65_535,
            windows: BTreeMap::new(),
            held: BTreeMap::new(),
        };
        model.hear();
        model
    }

    /// Reads the frames that the client sends, and updates the model's windows.
    fn hear(&mut self) {
        for (kind, _, stream, payload) in sent(&mut self.conn) {
            match kind {
                HEADERS => {
                    self.windows.insert(stream, self.initial);
                }
                WINDOW_UPDATE => {
                    let increment = i64::from(u32::from_be_bytes(payload.try_into().expect("four bytes")));
                    assert!(increment > 0);
                    let window = if stream == 0 {
                        &mut self.window
                    } else {
                        self.windows.get_mut(&stream).expect("an update for an open stream")
                    };
                    *window += increment;
                    assert!(*window <= 0x7fff_ffff);
                }
                SETTINGS => {
                    for entry in payload.chunks_exact(6).filter(|entry| entry[..2] == [0, 4]) {
                        let initial = i64::from(u32::from_be_bytes(entry[2..].try_into().expect("four bytes")));
                        self.windows.values_mut().for_each(|window| *window += initial - self.initial);
                        self.initial = initial;
                    }
                }
                3 => {}
                other => panic!("frame {other}"),
            }
        }
    }

    /// Passes a frame of the peer to the client.
    fn say(&mut self, mut wire: Vec<u8>) {
        let mut at = 0;
        loop {
            let step = self.conn.step(self.now, &mut wire[at..]).expect("a peer that keeps to the rules");
            at += step.consumed;
            match step.event {
                H2Event::NeedInput => break,
                H2Event::Body { id, range } => *self.held.entry(id.0 as u32).or_default() += range.len() as u64,
                _ => {}
            }
        }
        self.hear();
    }

    fn release(&mut self, stream: u32, bytes: u64) {
        *self.held.get_mut(&stream).expect("a stream that holds") -= bytes;
        self.conn.release(self.now, RequestId(u64::from(stream)), bytes);
        self.hear();
    }

    fn apply(&mut self, op: WindowOp) {
        match op {
            WindowOp::Ask => {
                if self.conn.can_enqueue() {
                    let id = self.conn.enqueue(self.now, &get()).expect("valid").0 as u32;
                    self.hear();
                    self.say(headers(id, 0, &[(":status", "200")]));
                }
            }
            WindowOp::Send(which, part, pad) => {
                let Some(id) = pick(&self.windows, which) else { return };
                let room = self.windows[&id].min(self.window).clamp(0, 16_384) as usize;
                let length = room * usize::from(part) / 255;
                let padding = if pad && length > 8 { (length / 2).min(200) as u8 } else { 0 };
                let frame = match padding {
                    0 => data(id, 0, &vec![7; length]),
                    _ => padded(id, 0, &vec![7; length - 1 - usize::from(padding)], padding),
                };
                self.window -= length as i64;
                *self.windows.get_mut(&id).expect("open") -= length as i64;
                self.say(frame);
            }
            WindowOp::End(which) => {
                let Some(id) = pick(&self.windows, which) else { return };
                self.windows.remove(&id);
                self.say(data(id, END, b""));
            }
            WindowOp::Release(which, part) => {
                let count = self.held.len();
                let Some((&id, &held)) = self.held.iter().nth(usize::from(which) % count.max(1)) else { return };
                self.release(id, held * u64::from(part) / 255);
            }
            WindowOp::Cancel(which) => {
                let Some(id) = pick(&self.windows, which) else { return };
                self.windows.remove(&id);
                assert!(self.conn.reset(RequestId(u64::from(id)), ErrorCode::CANCEL));
                self.hear();
            }
            WindowOp::Later(nanos) => self.now = MonotonicTimestamp(self.now.0 + u64::from(nanos)),
            WindowOp::Widen(window) => {
                self.conn.raise_stream_window(window);
                self.hear();
            }
        }
        self.check();
    }

    fn check(&self) {
        let held: u64 = self.held.values().sum();
        let total = u64::from(self.config.connection_window);
        assert!(held + self.window.max(0) as u64 <= total, "{held} held and {} on its way", self.window);
        let window = self.window.max(0) as u64;
        assert!(window + 4_096 >= (total - held) / 2, "{window} where {} could be", total - held);
        for (id, window) in &self.windows {
            let own = self.held.get(id).copied().unwrap_or(0);
            assert!(own + (*window).max(0) as u64 <= total);
            if own == 0 {
                assert!(self.window > 0 && *window > 0, "{id} holds nothing and cannot go on: others hold {held}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Checks three rules. The client never allows the peer to send more than the memory budget.
    /// Unreleased bytes of one stream do not stop other streams. All streams continue once all
    /// bytes are released.
    #[test]
    fn receive_windows_bound_memory_without_stalling_streams(
        ops in prop::collection::vec(op(), 0..150),
        stream_window in 1u32..70_000,
        connection_window in 65_535u32..300_000,
        measured in any::<bool>(),
    ) {
        let mut model = WindowModel::new(H2Config { stream_window, connection_window, ..H2Config::default() });
        model.say(settings(&[]));
        model.apply(WindowOp::Ask);
        if measured {
            model.now = MonotonicTimestamp(2_000);
            model.say(settings_ack());
        }
        for op in ops {
            model.apply(op);
        }
        let holding: Vec<(u32, u64)> = model.held.iter().map(|(&id, &held)| (id, held)).collect();
        for (id, held) in holding {
            model.release(id, held);
        }
        model.check();
    }

    /// Checks that request bodies never exceed the peer's flow-control windows, and that every body
    /// is sent completely once the windows are open.
    #[test]
    fn request_bodies_respect_the_peers_windows(
        lengths in prop::collection::vec(0u64..150_000, 1..5),
        steps in prop::collection::vec((0usize..5, 1u32..40_000, any::<bool>(), 0u32..70_000), 0..60),
    ) {
        let mut conn = H2Machine::new(H2Config::default());
        conn.step(MonotonicTimestamp(0), &mut settings(&[])).expect("settings");
        let ids: Vec<RequestId> = lengths
            .iter()
            .map(|&length| conn.enqueue(MonotonicTimestamp(0), &with("POST", BodyLength::Known(length))).expect("valid"))
            .collect();
        let (mut initial, mut window) = (65_535i64, 65_535i64);
        let mut windows: BTreeMap<u32, i64> = ids.iter().map(|id| (id.0 as u32, initial)).collect();
        let mut got: BTreeMap<u32, u64> = BTreeMap::new();
        let mut ended = 0;
        let last = steps.len();
        let rounds = steps.into_iter().chain(std::iter::repeat_n((0, 1_000_000, false, 70_000), 20)).enumerate();
        for (round, (which, bytes, shift, value)) in rounds {
            let which = which % ids.len();
            let wire = if shift {
                windows.values_mut().for_each(|window| *window += i64::from(value) - initial);
                initial = i64::from(value);
                settings(&[(4, value)])
            } else if round >= last {
                windows.values_mut().for_each(|window| *window += i64::from(bytes));
                window += i64::from(bytes);
                let each = ids.iter().flat_map(|id| window_update(id.0 as u32, bytes));
                each.chain(window_update(0, bytes)).collect()
            } else {
                window += i64::from(bytes);
                window_update(0, bytes)
            };
            let mut wire = wire;
            let mut at = 0;
            loop {
                let step = conn.step(MonotonicTimestamp(0), &mut wire[at..]).expect("valid");
                at += step.consumed;
                if step.event == H2Event::NeedInput {
                    break;
                }
            }
            let given = if round >= last { 0..ids.len() } else { which..which + 1 };
            for which in given {
                let left = lengths[which] - got.get(&(ids[which].0 as u32)).copied().unwrap_or(0);
                if let Some(credit) = conn.body_credit(ids[which]) {
                    let offer = vec![1; left.min(u64::from(bytes)) as usize];
                    let taken = conn.send_body(ids[which], &offer).expect("a body is expected");
                    prop_assert_eq!(taken as u64, credit.min(offer.len() as u64));
                }
                for (kind, flags, stream, payload) in sent(&mut conn) {
                    if kind == DATA {
                        let length = payload.len() as i64;
                        window -= length;
                        *windows.get_mut(&stream).expect("open") -= length;
                        prop_assert!(window >= 0 && windows[&stream] >= 0 && length > 0);
                        *got.entry(stream).or_default() += payload.len() as u64;
                        ended += usize::from(flags & END);
                    } else if kind == HEADERS {
                        ended += usize::from(flags & END);
                    }
                }
            }
        }
        prop_assert_eq!(ended, ids.len(), "every body got to its end");
    }
}

/// Receives a thousand responses whose bodies are never released, and checks that the buffered
/// bytes stay within the window.
#[test]
fn unreleased_response_bodies_stay_within_the_window() {
    let total = 4 << 20;
    let config = H2Config { connection_window: total, stream_window: 4_096, ..H2Config::default() };
    let mut model = WindowModel::new(config);
    model.say([settings(&[(3, 5_000)]), settings_ack()].concat());
    for _ in 0..1_000 {
        model.apply(WindowOp::Ask);
    }
    assert_eq!(model.windows.len(), 1_000);
    for _ in 0..3 {
        for which in 0..1_000 {
            let id = 2 * which + 1;
            let room = model.windows[&id].min(model.window).min(16_384);
            model.window -= room;
            *model.windows.get_mut(&id).expect("open") -= room;
            model.say(data(id, 0, &vec![7; room as usize]));
        }
    }
    assert_eq!(model.held.values().sum::<u64>(), 1_000 * 4_096);
    assert!(model.window > 0);
}

#[test]
fn padding_is_released_before_the_body() {
    let mut conn = asked(H2Config { stream_window: 65_535, ..H2Config::default() }, &get(), 1);
    let mut frames = vec![headers(1, 0, &[(":status", "200")])];
    frames.extend(std::iter::repeat_n(padded(1, 0, b"x", 255), 130));
    answer(&mut conn, &frames);
    let updates = sent(&mut conn).into_iter().filter(|(kind, _, stream, _)| (*kind, *stream) == (WINDOW_UPDATE, 1));
    assert_eq!(updates.count(), 1);
}

#[test]
fn remaining_body_within_the_window_needs_no_update() {
    for (length, is_updated) in [("40000", false), ("70000", true)] {
        let mut conn = asked(H2Config { stream_window: 65_535, ..H2Config::default() }, &get(), 1);
        let mut frames = vec![headers(1, 0, &[(":status", "200"), ("content-length", length)])];
        frames.extend(std::iter::repeat_n(data(1, 0, &[7; 11_000]), 3));
        answer(&mut conn, &frames);
        let mut updates = sent(&mut conn).into_iter().filter(|(kind, ..)| *kind == WINDOW_UPDATE);
        assert_eq!(updates.any(|(_, _, stream, _)| stream == 1), is_updated, "{length}");
    }
}

#[test]
fn request_is_sent_from_its_first_byte() {
    let mut conn = H2Machine::new(H2Config::default());
    let before = conn.output().len();
    let id = conn.enqueue(MonotonicTimestamp(0), &get()).expect("a valid request");
    conn.advance_output(before);
    assert!(!conn.has_sent_any_of(id));
    conn.advance_output(1);
    assert!(conn.has_sent_any_of(id));
}
