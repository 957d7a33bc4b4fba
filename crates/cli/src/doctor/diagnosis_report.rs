//! The report of `haul doctor`: sections of facts, and the problems with their remedies.

use serde_json::{Map, Value};

/// The report of `haul doctor`, with the results of all probes (test requests).
#[derive(Debug, Default)]
pub(super) struct DiagnosisReport {
    sections: Vec<DiagnosisSection>,
    problems: Vec<String>,
    /// The exit code that haul would have after fetching the URL.
    pub(super) exit_code: u8,
}

/// A section of the report of `haul doctor`: a title and facts.
#[derive(Debug)]
pub(super) struct DiagnosisSection {
    /// The key of the section in the JSON report, such as `http_versions`.
    key: &'static str,
    title: &'static str,
    facts: Vec<DiagnosisFact>,
}

/// A fact in the report of `haul doctor`, or one row of a list of facts.
#[derive(Debug)]
struct DiagnosisFact {
    key: String,
    /// The label of the fact in the text report.
    label: String,
    text: String,
    value: Value,
    /// True if the fact is a row: its value is then an item of the list `key` in the JSON report.
    is_row: bool,
}

impl DiagnosisSection {
    pub(super) fn new(key: &'static str, title: &'static str) -> Self {
        Self { key, title, facts: Vec::new() }
    }

    /// Adds a fact whose text is also its value in the JSON report.
    pub(super) fn add_fact(&mut self, key: &str, text: impl Into<String>) {
        let text = text.into();
        let value = Value::String(text.clone());
        self.add_fact_with_value(key, text, value);
    }

    /// Adds a fact whose value in the JSON report differs from its text.
    pub(super) fn add_fact_with_value(&mut self, key: &str, text: impl Into<String>, value: impl Into<Value>) {
        let label = key.replace('_', " ");
        self.facts.push(DiagnosisFact {
            key: key.to_owned(),
            label,
            text: remove_control_characters(text.into()),
            value: value.into(),
            is_row: false,
        });
    }

    /// Adds a row to a list of facts. The text report shows `label` and `text`; the JSON report has
    /// `value` as an item of the list `key`.
    pub(super) fn add_row(&mut self, key: &str, label: impl Into<String>, text: impl Into<String>, value: Value) {
        let (label, text) = (remove_control_characters(label.into()), remove_control_characters(text.into()));
        self.facts.push(DiagnosisFact { key: key.to_owned(), label, text, value, is_row: true });
    }

    fn to_json(&self) -> Value {
        let mut object = Map::new();
        for fact in &self.facts {
            if !fact.is_row {
                object.insert(fact.key.clone(), fact.value.clone());
            } else if let Value::Array(rows) = object.entry(&fact.key).or_insert_with(|| Value::Array(Vec::new())) {
                rows.push(fact.value.clone());
            }
        }
        Value::Object(object)
    }
}

impl DiagnosisReport {
    pub(super) fn add(&mut self, section: DiagnosisSection) {
        self.sections.push(section);
    }

    /// Adds a problem to the report. The text includes the remedy if there is one. A text that was
    /// added before is ignored.
    pub(super) fn add_problem(&mut self, text: impl Into<String>) {
        let text = remove_control_characters(text.into());
        if !self.problems.contains(&text) {
            self.problems.push(text);
        }
    }

    /// Returns the report as text.
    pub(super) fn to_text(&self) -> String {
        let width = self.sections.iter().flat_map(|section| &section.facts).map(|fact| fact.label.len()).max();
        let width = width.unwrap_or(0).clamp(16, 40);
        let mut text = String::new();
        for section in &self.sections {
            text.push_str(&format!("{}\n", section.title));
            for DiagnosisFact { label, text: fact, .. } in &section.facts {
                text.push_str(format!("  {label:width$}  {fact}").trim_end());
                text.push('\n');
            }
        }
        text.push_str("Problems\n");
        if self.problems.is_empty() {
            text.push_str("  none\n");
        }
        for problem in &self.problems {
            text.push_str(&format!("  * {problem}\n"));
        }
        text
    }

    /// Returns the report as a JSON object.
    pub(super) fn to_json(&self) -> Value {
        let mut object: Map<String, Value> =
            self.sections.iter().map(|section| (section.key.to_owned(), section.to_json())).collect();
        object.insert("problems".to_owned(), self.problems.clone().into());
        object.insert("exit_code".to_owned(), self.exit_code.into());
        Value::Object(object)
    }
}

/// Removes the characters that would control a terminal, such as escape sequences, from a text.
fn remove_control_characters(text: String) -> String {
    crate::usage_error::remove_control_characters(&text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn doctor_text_and_json_report_the_same_facts() {
        let mut section = DiagnosisSection::new("dns", "Name lookup");
        section.add_fact_with_value("time", "0.010 s", 0.01);
        section.add_row("addresses", "127.0.0.1", "answers", json!({"address": "127.0.0.1"}));
        section.add_row("addresses", "::1", "\x1b[31mrefused", json!({"address": "::1"}));
        let mut report = DiagnosisReport { exit_code: 7, ..DiagnosisReport::default() };
        assert!(report.to_text().ends_with("Problems\n  none\n"));
        report.add(section);
        report.add_problem("it is broken; repair it");
        report.add_problem("it is broken; repair it");
        let text = report.to_text();
        assert!(text.starts_with("Name lookup\n  time              0.010 s\n  127.0.0.1         answers\n"), "{text}");
        assert!(text.ends_with("Problems\n  * it is broken; repair it\n") && !text.contains('\x1b'), "{text}");
        assert_eq!(
            report.to_json(),
            json!({
                "dns": {"time": 0.01, "addresses": [{"address": "127.0.0.1"}, {"address": "::1"}]},
                "problems": ["it is broken; repair it"],
                "exit_code": 7,
            })
        );
    }
}
