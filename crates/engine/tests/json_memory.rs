//! Tests of the memory budget for the values of a JSON document. They compare it with the
//! allocations during a search: the budget never counts less than was allocated, and not much more.
#![cfg(feature = "select")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use haul::extraction::{JsonPathQuery, PageQuery, PageSearch};

/// The system's allocator, which also records the allocated bytes of each thread.
struct MeasuringAllocator;

thread_local! {
    static USED: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// Returns the number of bytes that a typical allocator takes for a block: a header, rounded up to
/// a multiple of 16 bytes.
fn block(size: usize) -> usize {
    (size + 8).next_multiple_of(16).max(32)
}

fn count(size: usize) {
    USED.set(USED.get() + block(size));
    PEAK.set(PEAK.get().max(USED.get()));
}

// SAFETY: every call goes to the system's allocator with the same arguments; the counts are outside
// its memory.
unsafe impl GlobalAlloc for MeasuringAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        USED.set(USED.get().saturating_sub(block(layout.size())));
        // SAFETY: the caller keeps the contract of `dealloc`, and `place` came from the system's
        // allocator.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // As if the block was copied.
        count(size);
        USED.set(USED.get().saturating_sub(block(layout.size())));
        // SAFETY: the caller keeps the contract of `realloc`, and `place` came from the system's
        // allocator.
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: MeasuringAllocator = MeasuringAllocator;

/// Searches a document with a memory limit of `memory` bytes for its text. Returns whether the
/// limit was sufficient, and the peak of the allocated bytes.
fn search(document: &str, memory: usize) -> (bool, usize) {
    let query = PageQuery::json_path(&[JsonPathQuery::new("$.none").unwrap()]);
    let mut search = PageSearch::with_memory(query, memory as u64);
    let before = USED.get();
    PEAK.set(before);
    let outcome = search.push(document.as_bytes(), &mut |_, _| Ok(()));
    (outcome.is_ok(), PEAK.get() - before)
}

/// Returns the number of bytes that a JSON search counts for the values of a document. Searches the
/// document with different memory limits to find the smallest sufficient one. The limit is for the
/// text, and the values may take three times as much, so the result is three times this limit.
fn counted(document: &str) -> usize {
    let (mut refused, mut accepted) = (0_usize, 256 << 20);
    while accepted - refused > 16 {
        let middle = refused.midpoint(accepted);
        if search(document, middle).0 { accepted = middle } else { refused = middle }
    }
    3 * accepted
}

fn list(element: &str, times: usize) -> String {
    format!("[{}]", vec![element; times].join(","))
}

fn object(members: usize, name: impl Fn(usize) -> String) -> String {
    let members: Vec<String> = (0..members).map(|number| format!("\"{}\":{number}", name(number))).collect();
    format!("{{{}}}", members.join(","))
}

#[test]
fn json_budget_agrees_with_allocations() {
    let deep_list = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let deep_object = format!("{}1{}", "{\"a\":".repeat(100), "}".repeat(100));
    let mixed = r#"{"id":1,"name":"a name","tags":["x","y"],"price":1.50,"of":{"a":null}}"#;
    for (shape, document) in [
        ("empty objects", list("{}", 10_000)),
        ("empty lists", list("[]", 10_000)),
        ("objects of 1 member", list("{\"a\":1}", 5_000)),
        ("objects of 3 members", list(&object(3, |n| n.to_string()), 2_000)),
        ("objects of 4 members", list(&object(4, |n| n.to_string()), 2_000)),
        ("objects of 8 members", list(&object(8, |n| n.to_string()), 1_000)),
        ("objects of 15 members", list(&object(15, |n| n.to_string()), 500)),
        ("lists of 1", list("[1]", 10_000)),
        ("lists of 5", list(&list("1", 5), 5_000)),
        ("lists in lists", list(&deep_list, 100)),
        ("objects in objects", list(&deep_object, 50)),
        ("one object", object(20_000, |n| n.to_string())),
        ("long names", object(5_000, |n| format!("{}{n}", "n".repeat(100)))),
        ("escaped names", object(5_000, |n| format!("\\n{n}"))),
        ("integers", list("1", 50_000)),
        ("decimals", list("1.50", 50_000)),
        ("short strings", list("\"a\"", 20_000)),
        ("escaped strings", list("\"\\u0061\\n\"", 20_000)),
        ("one string", list(&format!("\"{}\"", "s".repeat(300_000)), 1)),
        ("different values", list(mixed, 2_000)),
    ] {
        let counted = counted(&document);
        let (is_enough, peak) = search(&document, counted / 3);
        assert!(is_enough && peak <= counted + 2048, "{shape}: {peak} bytes for {counted}");
        assert!(counted <= peak + peak / 3 + 2048, "{shape}: {counted} counted for {peak} bytes");
        eprintln!("{shape}: {} bytes of text, {counted} counted, {peak} allocated", document.len());
    }
}

/// Tests documents for which the budget counts more than is allocated, because the parser copies
/// texts or drops values.
#[test]
fn json_budget_includes_parser_copies() {
    for (shape, document) in [
        ("one escaped string", list(&format!("\"\\n{}\"", "s".repeat(300_000)), 1)),
        ("escapes in one string", list(&format!("\"{}\"", "s\\n".repeat(100_000)), 1)),
        ("one long number", list(&format!("0.{}", "1234567890".repeat(30_000)), 1)),
        ("long numbers", list(&format!("{}.5", "1234567890".repeat(20)), 500)),
        ("a repeated name", format!("{{{}}}", vec!["\"a\":[1,{}]"; 5_000].join(","))),
    ] {
        let counted = counted(&document);
        let (is_enough, peak) = search(&document, counted / 3);
        assert!(is_enough && peak <= counted + 2048, "{shape}: {peak} bytes for {counted}");
    }
}
