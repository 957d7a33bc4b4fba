//! Compares the project's goals with the results of a run.

use super::project_goals::{GoalProof, ProjectGoal, ProjectGoalBound};
use crate::bench_results_file::{BenchRunResults, PartResult, ProgramRuns, median};
use crate::compared_programs_and_goals::{MetricKind, WorkPerRun};

/// A goal and its result, as text for a table row.
#[derive(Debug, PartialEq)]
pub(super) struct GoalTableRow {
    pub(super) id: &'static str,
    pub(super) goal: &'static str,
    pub(super) best_peer: String,
    pub(super) limit: String,
    pub(super) haul: String,
    pub(super) end: GoalStatus,
}

/// The outcome of the comparison of a result with a goal.
#[derive(Debug, PartialEq)]
pub(super) enum GoalStatus {
    /// The median meets the goal. The fields are the number of rounds that meet it, and the number
    /// of all rounds.
    Met(usize, usize),
    Missed(usize, usize),
    /// The goal is checked by tests. The text names these tests.
    Tested(&'static str),
    /// The run has no result for this goal, for this reason.
    Unmeasured(String),
}

impl GoalTableRow {
    /// Compares a goal with the results of a run of the bench.
    pub(super) fn new(anchor: &ProjectGoal, record: &BenchRunResults) -> GoalTableRow {
        let mut verdict = GoalTableRow {
            id: anchor.id,
            goal: anchor.goal,
            best_peer: "–".to_owned(),
            limit: "–".to_owned(),
            haul: "–".to_owned(),
            end: GoalStatus::Unmeasured("not measured".to_owned()),
        };
        match &anchor.proof {
            GoalProof::Tests(tests) => verdict.end = GoalStatus::Tested(tests),
            GoalProof::Figure { part, of, what, bound } => match record.part(part) {
                Some(part_result) => verdict.set_results(part_result, of, *what, bound),
                None => {
                    let job = part.split(':').next().unwrap_or_default();
                    if let Some(why) = record.skipped.get(job) {
                        verdict.end = GoalStatus::Unmeasured(format!("not measured: {why}"));
                    }
                }
            },
        }
        verdict
    }

    fn set_results(&mut self, part_result: &PartResult, of: &str, what: MetricKind, bound: &ProjectGoalBound) {
        let shown =
            |entry: &ProgramRuns| entry.median(what).map(|value| result_text(value, what, part_result.unit, bound));
        let Some(haul) = part_result.bench_program(of) else { return };
        // Peers are found by name; there is only one limit.
        if let Some(best) = part_result.best_peer(what) {
            self.best_peer = format!("{}: {}", best.name, shown(best).unwrap_or_default());
        }
        let limit = part_result.limit.as_deref().and_then(|limit| part_result.bench_program(limit));
        // A limit without a reader has no separate result for its client. In that case its total is
        // used.
        let limit_figure = limit.and_then(|limit| limit.median(what).or_else(|| limit.median(MetricKind::Cpu)));
        if let Some(value) = limit_figure.filter(|_| !matches!(what, MetricKind::Rss | MetricKind::FirstByte)) {
            self.limit = result_text(value, what, part_result.unit, bound);
        }
        let Some(figure) = shown(haul) else {
            self.end = GoalStatus::Unmeasured(haul.fault().unwrap_or("not measured").to_owned());
            return;
        };
        let against = match bound {
            ProjectGoalBound::RatioTo(name, _) => Some(*name),
            ProjectGoalBound::RatioToBestPeer(_) => part_result.best_peer(what).map(|entry| entry.name.as_str()),
            _ => None,
        };
        let Some((rounds, most)) = results_and_maximum(part_result, haul, what, bound, against) else {
            let whom = against.unwrap_or("a peer");
            self.haul = figure;
            self.end = GoalStatus::Unmeasured(format!("no right answer of {whom} to compare with"));
            return;
        };
        let held = rounds.iter().filter(|figure| **figure <= most).count();
        let middle = median(rounds.clone()).unwrap_or(f64::NAN);
        self.haul = match against {
            Some(name) => format!("{figure} = {middle:.2} × {name}"),
            None => figure,
        };
        self.end =
            if middle <= most { GoalStatus::Met(held, rounds.len()) } else { GoalStatus::Missed(held, rounds.len()) };
    }
}

/// Returns the result that the program `haul` reached in each round (repetition of the
/// measurement), and the maximum that the goal `bound` allows, both in the unit of the goal.
/// Returns `None` if a result is missing, or if the part of the job has no results in this unit.
fn results_and_maximum(
    part_result: &PartResult,
    haul: &ProgramRuns,
    what: MetricKind,
    bound: &ProjectGoalBound,
    against: Option<&str>,
) -> Option<(Vec<f64>, f64)> {
    let each = |factor: f64| -> Option<Vec<f64>> {
        haul.runs.iter().map(|run| Some(what.metric_of_run(run.figures.as_ref()?)? * factor)).collect()
    };
    Some(match (bound, part_result.unit) {
        (ProjectGoalBound::RatioTo(_, most) | ProjectGoalBound::RatioToBestPeer(most), _) => {
            (part_result.ratios(what, &haul.name, against?)?, *most)
        }
        (ProjectGoalBound::AtMost(most), unit) => (each(what.in_readable_unit(1.0, unit).0)?, *most),
        (ProjectGoalBound::Micros(most), WorkPerRun::Requests(requests)) => (each(1e6 / requests as f64)?, *most),
        // A minimum rate is a maximum time.
        (ProjectGoalBound::Speed(least), WorkPerRun::Bytes(bytes)) => (each(1.0)?, bytes as f64 / (least * 1e6)),
        _ => return None,
    })
}

/// Returns a result as text, in the unit of the goal.
fn result_text(value: f64, what: MetricKind, unit: WorkPerRun, bound: &ProjectGoalBound) -> String {
    match (bound, unit) {
        (ProjectGoalBound::Micros(_), WorkPerRun::Requests(requests)) => {
            format!("{:.1} µs", value * 1e6 / requests as f64)
        }
        (ProjectGoalBound::Speed(_), WorkPerRun::Bytes(bytes)) => format!("{:.1} MB/s", bytes as f64 / value / 1e6),
        _ => what.to_text(value, unit),
    }
}

impl GoalStatus {
    /// Returns the status in a few words.
    pub(super) fn to_text(&self) -> String {
        match self {
            GoalStatus::Met(held, rounds) => format!("**met** in {held} of {rounds}"),
            GoalStatus::Missed(held, rounds) => format!("**missed**, met in {held} of {rounds}"),
            GoalStatus::Tested(tests) => format!("by tests: {tests}"),
            GoalStatus::Unmeasured(why) => why.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench_results_file::tests::{entry, figures, part_result, record};
    use crate::measure::RunMetrics;

    fn runs(walls: &[f64]) -> Vec<Result<RunMetrics, String>> {
        walls.iter().map(|wall| Ok(figures(*wall))).collect()
    }

    fn anchor(what: MetricKind, bound: ProjectGoalBound) -> ProjectGoal {
        ProjectGoal { id: "9.9", goal: "a goal", proof: GoalProof::Figure { part: "job", of: "haul", what, bound } }
    }

    fn judged(what: MetricKind, bound: ProjectGoalBound) -> GoalTableRow {
        let mut part_result = part_result(vec![
            entry("haul", runs(&[1.0, 2.0, 3.0])),
            entry("curl", runs(&[4.0, 4.0, 4.0])),
            entry("wrong", vec![Err("wrong answer".to_owned())]),
            entry("limit: least", runs(&[0.5, 0.5, 0.5])),
        ]);
        part_result.limit = Some("limit: least".to_owned());
        GoalTableRow::new(&anchor(what, bound), &record(vec![part_result]))
    }

    #[test]
    fn ratio_goal_is_judged_by_the_median() {
        let verdict = judged(MetricKind::Wall, ProjectGoalBound::RatioToBestPeer(0.5));
        assert_eq!(verdict.best_peer, "curl: 4.000 s");
        assert_eq!(verdict.limit, "0.500 s");
        assert_eq!(verdict.haul, "2.000 s = 0.50 × curl");
        assert_eq!(verdict.end, GoalStatus::Met(2, 3));
        assert_eq!(judged(MetricKind::Wall, ProjectGoalBound::RatioTo("curl", 0.4)).end, GoalStatus::Missed(1, 3));
        // A goal without a program to compare with is neither met nor missed.
        for bound in [
            ProjectGoalBound::RatioTo("wrong", 1.0),
            ProjectGoalBound::RatioTo("absent", 1.0),
            ProjectGoalBound::Micros(1.0),
        ] {
            assert!(matches!(judged(MetricKind::Wall, bound).end, GoalStatus::Unmeasured(_)));
        }
    }

    #[test]
    fn absolute_goal_is_judged_by_the_median() {
        assert_eq!(judged(MetricKind::Cpu, ProjectGoalBound::AtMost(2.0)).haul, "2.000 s/GB");
        assert_eq!(judged(MetricKind::Cpu, ProjectGoalBound::AtMost(2.0)).end, GoalStatus::Met(2, 3));
        assert_eq!(judged(MetricKind::Rss, ProjectGoalBound::AtMost(1.0)).end, GoalStatus::Missed(0, 3));
        let speed = judged(MetricKind::Wall, ProjectGoalBound::Speed(250.0));
        assert_eq!((speed.haul.as_str(), speed.end), ("250.0 MB/s", GoalStatus::Met(2, 3)));
        assert_eq!(
            judged(MetricKind::FirstByte, ProjectGoalBound::AtMost(1.0)).end,
            GoalStatus::Unmeasured("not measured".to_owned())
        );
    }

    #[test]
    fn verdict_of_skipped_job_says_why() {
        let mut record = record(Vec::new());
        record.skipped.insert("job".to_owned(), "no compiler".to_owned());
        let verdict = GoalTableRow::new(&anchor(MetricKind::Wall, ProjectGoalBound::AtMost(1.0)), &record);
        assert_eq!(verdict.end, GoalStatus::Unmeasured("not measured: no compiler".to_owned()));
    }
}
