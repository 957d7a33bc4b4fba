use haul::Target;
use haul::transfer::TransferOutcome;
use haul::{Error, ErrorKind};

use super::*;

/// Returns a progress reporter that behaves as on a terminal, without a thread that draws.
fn shown() -> ProgressReporter {
    ProgressReporter { wanted: true, folds: true, ..ProgressReporter::with_terminal(&GlobalArgs::default(), true) }
}

fn view(progress: &ProgressReporter) -> Option<ProgressView> {
    progress.progress_view(&mut progress.lock_state(), Instant::now())
}

fn body(progress: &ProgressReporter) -> BodyFigures {
    match view(progress) {
        Some(ProgressView::Body(body)) => body,
        other => panic!("{other:?}"),
    }
}

/// Reports the end of a transfer with this number of body bytes, and with an error if `fails` is
/// true. Returns true if the error line is to be printed.
fn end(progress: &ProgressReporter, bytes: u64, fails: bool) -> bool {
    let target = Target::parse("http://h/").expect("a URL");
    let mut outcome = TransferOutcome::unsent(target, Error::new(ErrorKind::Connect, "refused"), Instant::now());
    outcome.facts.body_bytes = bytes;
    if !fails {
        outcome.result = Ok(());
    }
    let outcome = &outcome;
    let report =
        TransferReport { url: "http://h/", number: 0, stage: 0, method: "GET", file: None, outcome, settings: None };
    progress.transfer_over(&report, true)
}

#[test]
fn progress_of_resumed_body_starts_at_its_offset() {
    let progress = shown();
    progress.transfer_begins(false);
    progress.body_begins(Some(400), 600);
    assert_eq!((body(&progress).received_bytes(), body(&progress).percent()), (600, Some(60)));
    assert_eq!(body(&progress).rate, 0, "what was there before has no rate");
    progress.body_bytes(100);
    assert_eq!((body(&progress).received_bytes(), body(&progress).percent()), (700, Some(70)));
    // A second try begins at 650 of the same body: nothing is counted twice.
    progress.body_begins(Some(350), 650);
    assert_eq!((body(&progress).received_bytes(), body(&progress).percent()), (650, Some(65)));
    progress.body_begins(None, 650);
    assert_eq!((body(&progress).received_bytes(), body(&progress).percent()), (650, None));
}

#[test]
fn body_bytes_are_not_counted_again_at_end() {
    let progress = shown();
    progress.transfer_begins(false);
    progress.body_begins(None, 0);
    progress.body_bytes(70);
    end(&progress, 70, false);
    end(&progress, 30, true);
    let Some(ProgressView::Many(many)) = view(&progress) else { panic!("no transfer runs") };
    assert_eq!((many.counts.bytes, many.counts.done, many.counts.failed), (100, 1, 1));
    assert_eq!(many.stages, [StageFigures { done: 1, failed: 1, bytes: 100, total: None }]);
}

#[test]
fn retry_pause_is_shown_until_the_body_begins() {
    let progress = shown();
    progress.transfer_begins(false);
    assert_eq!(view(&progress), None, "a short wait is not worth a word");
    let wait = Duration::from_secs(3600);
    progress.lock_state().pauses.push(ShownPause {
        until: Instant::now() + wait,
        cause: "x".into(),
        retry: 1,
        most: 3,
    });
    let Some(ProgressView::Pause(pause)) = view(&progress) else { panic!("it waits") };
    assert_eq!((pause.retry, pause.most, pause.cause.as_str()), (1, 3, "x"));
    assert!(pause.left <= wait);
    progress.body_begins(None, 0);
    assert!(matches!(view(&progress), Some(ProgressView::Body(_))));
}

#[test]
fn progress_line_is_hidden_during_terminal_output() {
    let progress = shown();
    progress.group_begins(OutputBesideProgress::Texts, 1);
    assert!(!progress.is_drawn());
    progress.group_begins(OutputBesideProgress::Body, 1);
    assert!(progress.is_drawn());
    progress.transfer_begins(false);
    progress.body_begins(None, 0);
    assert!(!progress.is_drawn(), "the body is on the terminal now");
    progress.group_begins(OutputBesideProgress::None, 1);
    assert!(progress.is_drawn());
}

#[test]
fn silent_or_disabled_progress_is_not_drawn() {
    for global in
        [GlobalArgs { silent: true, ..GlobalArgs::default() }, GlobalArgs { progress: false, ..GlobalArgs::default() }]
    {
        let progress = ProgressReporter::with_terminal(&global, true);
        assert!(!progress.wanted && progress.summary == Some(false));
    }
    assert!(!ProgressReporter::with_terminal(&GlobalArgs::default(), false).wanted);
    let asked = GlobalArgs { summary: Some(true), silent: true, ..GlobalArgs::default() };
    assert_eq!(ProgressReporter::with_terminal(&asked, false).summary, Some(true));
}

#[test]
fn equal_errors_are_folded_on_terminals_only() {
    let progress = shown();
    let printed: Vec<bool> = (0..5).map(|_| end(&progress, 0, true)).collect();
    assert_eq!(printed, [true, true, true, false, false]);
    let piped = ProgressReporter { folds: false, ..shown() };
    assert!((0..5).all(|_| end(&piped, 0, true)));
}

#[test]
fn no_line_follows_body_with_bar_on_terminal() {
    let mut progress = shown();
    progress.bar = Some(Mutex::default());
    progress.group_begins(OutputBesideProgress::Body, 1);
    progress.bar().expect("a bar").transfer_begins(true);
    assert!(progress.is_drawn(), "the wait for the body is shown");
    progress.body_begins(Some(6), 0);
    progress.body_bytes(6);
    end(&progress, 6, false);
    assert!(!progress.is_drawn());
}
