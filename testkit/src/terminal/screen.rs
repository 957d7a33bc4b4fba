//! The contents of a terminal's screen.

use vt100::Color;

/// The contents of a terminal's screen at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScreenSnapshot {
    pub(super) rows: Vec<Vec<TextRun>>,
}

/// Adjacent characters of one row with the same style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextRun {
    pub(super) text: String,
    pub(super) style: TextStyle,
}

/// The style of a character: its colour and emphasis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TextStyle {
    /// The number of the colour among the sixteen colours of a terminal; `None` for the default
    /// colour.
    pub(super) color: Option<u8>,
    pub(super) is_bold: bool,
}

/// The names of a terminal's first eight colours.
const NAMES: [&str; 8] = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

impl ScreenSnapshot {
    pub(super) fn from_vt100(screen: &vt100::Screen) -> ScreenSnapshot {
        let (height, columns) = screen.size();
        let (height, columns) = (height.get(), columns.get());
        let mut rows: Vec<Vec<TextRun>> = (0..height).map(|row| runs(screen, row, columns)).collect();
        while rows.last().is_some_and(Vec::is_empty) {
            rows.pop();
        }
        ScreenSnapshot { rows }
    }

    /// Returns the text of the screen, without trailing blanks in lines and without empty lines at
    /// the end.
    pub fn text(&self) -> String {
        self.lines(|run| run.text.clone())
    }

    /// Returns the text of the screen with marks: `{red}` before characters in that colour, and
    /// `{}` after them.
    pub fn marked_text(&self) -> String {
        self.lines(|run| match run.style.color {
            Some(color) => format!("{{{}}}{}{{}}", NAMES[usize::from(color % 8)], run.text),
            None => run.text.clone(),
        })
    }

    fn lines(&self, text: impl Fn(&TextRun) -> String) -> String {
        let lines = self.rows.iter().map(|row| row.iter().map(&text).collect::<String>().trim_end().to_owned());
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Returns the text runs of a row up to its last character that is not blank.
fn runs(screen: &vt100::Screen, row: u16, columns: u16) -> Vec<TextRun> {
    let mut runs: Vec<TextRun> = Vec::new();
    for column in 0..columns {
        let Some(cell) = screen.cell(row, column).filter(|cell| !cell.is_wide_continuation()) else { continue };
        let color = match cell.fgcolor() {
            Color::Idx(color) if color < 16 => Some(color),
            _ => None,
        };
        let style = TextStyle { color, is_bold: cell.bold() };
        let text = if cell.has_contents() { cell.contents() } else { " " };
        match runs.last_mut().filter(|run| run.style == style) {
            Some(run) => run.text.push_str(text),
            None => runs.push(TextRun { text: text.to_owned(), style }),
        }
    }
    while runs.last().is_some_and(|run| run.text.trim_end().is_empty()) {
        runs.pop();
    }
    if let Some(last) = runs.last_mut() {
        last.text.truncate(last.text.trim_end().len());
    }
    runs
}
