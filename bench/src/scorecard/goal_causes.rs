//! The causes of missed goals, by goal number. People write them in `bench/causes.md`.
//!
//! ```text
//! ## 3.7
//!
//! The profile, the cause, and the fix or why there is none.
//! ```

use std::collections::BTreeMap;

/// The paragraphs of `bench/causes.md` about each goal, by the goal's number.
pub(super) struct GoalCauses(BTreeMap<String, Vec<String>>);

impl GoalCauses {
    /// Parses the text of `bench/causes.md`, which has a section for each goal. Text before the
    /// first heading is a note for the editors of the file, and is ignored.
    pub(super) fn read(text: &str) -> GoalCauses {
        let mut causes: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for section in format!("\n{text}").split("\n## ").skip(1) {
            let (id, body) = section.split_once('\n').unwrap_or((section, ""));
            let paragraphs = body.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty());
            causes.insert(id.trim().to_owned(), paragraphs.map(str::to_owned).collect());
        }
        GoalCauses(causes)
    }

    /// Returns the paragraphs that explain why a goal is missed. Empty if the text about the goal
    /// has no such paragraphs.
    pub(super) fn causes_of_goal(&self, id: &str) -> &[String] {
        self.0.get(id).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cause_paragraphs_belong_to_preceding_heading() {
        let causes = GoalCauses::read("For editors.\n\n## 1.1\n\nOne.\nStill one.\n\nTwo.\n\n## 1.2\n");
        assert_eq!(causes.causes_of_goal("1.1"), ["One.\nStill one.", "Two."]);
        assert!(causes.causes_of_goal("1.2").is_empty() && causes.causes_of_goal("9").is_empty());
    }
}
