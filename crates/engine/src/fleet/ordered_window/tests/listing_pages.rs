//! Tests of listings, whose pages share one slot of the window.

use super::*;

#[test]
fn restarted_page_keeps_the_earlier_pages() {
    let (window, seen) = window(DeliveryOrder::Input, 10_000, 2);
    put(&window, 1, "b1 ");
    window.end_page(1);
    put(&window, 1, "lost");
    assert!(window.restart_slot(1));
    put(&window, 1, "b2 ");
    window.end_page(1);
    put(&window, 0, "a1 ");
    window.end_page(0);
    // The page before it has left, but nothing of this page.
    assert!(window.restart_slot(0));
    put(&window, 0, "a2 ");
    assert!(!window.restart_slot(0));
    window.finish_slot(0).unwrap();
    assert_eq!(seen.text(), "a1 a2 b1 b2 ");
    // All kept pages have left, and the next one not yet.
    assert!(window.restart_slot(1));
    put(&window, 1, "b3");
    assert!(!window.restart_slot(1));
    window.finish_slot(1).unwrap();
    assert_eq!(seen.text(), "a1 a2 b1 b2 b3");
    assert!(window.is_empty());
}

#[test]
fn partly_delivered_page_cannot_restart() {
    let (window, seen) = window(DeliveryOrder::Input, 10_000, 2);
    put(&window, 1, "b1");
    window.end_page(1);
    put(&window, 1, "b2");
    window.finish_slot(0).unwrap();
    assert_eq!(seen.text(), "b1b2");
    assert!(!window.restart_slot(1));
}

#[test]
fn complete_page_in_pieces_survives_a_restart() {
    let (window, seen) = window(DeliveryOrder::Input, 10_000, 2);
    window.set_record(1, pieces(&["p1 ", "p2 "])).unwrap();
    window.end_page(1);
    put(&window, 1, "lost");
    put(&window, 0, "a ");
    seen.fill(true);
    window.flush().unwrap();
    window.finish_slot(0).unwrap();
    assert_eq!(seen.text(), "a ");
    assert!(window.restart_slot(1), "the page before it is complete");
    put(&window, 1, "new");
    seen.fill(false);
    window.flush().unwrap();
    assert_eq!(seen.text(), "a p1 p2 new");
    window.finish_slot(1).unwrap();
    assert!(window.is_empty() && window.state.lock().unwrap().held == 0);
}

/// Makes a window whose second slot has a complete page in two pieces, and the beginning of the next
/// page. The sink has become full after the first piece.
fn window_with_a_partly_written_page() -> (OrderedWindow, CollectingSink) {
    let (window, seen) = window(DeliveryOrder::Input, 10_000, 2);
    window.set_record(1, pieces(&["p1 ", "p2 "])).unwrap();
    window.end_page(1);
    put(&window, 1, "lost");
    seen.fill(true);
    window.finish_slot(0).unwrap();
    assert_eq!(seen.text(), "p1 ");
    (window, seen)
}

#[test]
fn partly_written_complete_page_survives_a_restart() {
    let (window, seen) = window_with_a_partly_written_page();
    assert!(window.restart_slot(1), "nothing of the next page has left");
    put(&window, 1, "new");
    seen.fill(false);
    window.flush().unwrap();
    assert_eq!(seen.text(), "p1 p2 new");
    window.finish_slot(1).unwrap();
    assert!(window.is_empty() && window.state.lock().unwrap().held == 0);
}

#[test]
fn interrupted_stage_completes_a_partly_written_page() {
    let (window, seen) = window_with_a_partly_written_page();
    window.finish_stage().unwrap();
    assert_eq!(seen.text(), "p1 p2 ");
}
