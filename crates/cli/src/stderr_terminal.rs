//! The terminal of standard error: its size, its capabilities, and the colours of messages.

use std::io::IsTerminal;

use crate::program_persona::ProgramPersona;
use crate::system::terminal;
pub(crate) use crate::system::terminal::{can_redraw, is_in_background};

/// The size of the terminal, in columns and rows, that is assumed if the real size is unknown.
const DEFAULT_SIZE: (usize, usize) = (80, 24);

/// Returns the size of the terminal of standard error in columns and rows.
pub(crate) fn size() -> (usize, usize) {
    let size = terminal::size_of_stderr().filter(|&(columns, rows)| columns > 0 && rows > 0);
    size.unwrap_or(DEFAULT_SIZE)
}

/// The colours in which messages are printed on the terminal of standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageColors {
    is_on: bool,
}

impl MessageColors {
    /// Returns the colours for standard error: none if it is not a terminal, if `NO_COLOR` is set,
    /// or if the program acts as curl.
    pub fn of_stderr(persona: ProgramPersona) -> Self {
        let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { is_on: !persona.is_curl() && !is_refused && std::io::stderr().is_terminal() && can_redraw() }
    }

    /// Returns a message in which the first word, such as `haul:` or `Warning:`, is coloured.
    pub fn message(self, text: &str) -> String {
        let Some(at) = text.find(": ").filter(|_| self.is_on) else { return text.to_owned() };
        let (first, rest) = text.split_at(at + 1);
        let code = if first == "haul:" { "1;31" } else { "1;33" };
        format!("{}{rest}", self.styled(code, first))
    }

    /// Returns the text of an error's remedy, coloured as a remedy.
    pub(crate) fn remedy(self, text: &str) -> String {
        self.styled("36", text)
    }

    fn styled(self, code: &str, text: &str) -> String {
        match self.is_on && !text.is_empty() {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_colors_surround_text_if_on() {
        let on = MessageColors { is_on: true };
        assert_eq!(on.message("haul: (6) x: y"), "\x1b[1;31mhaul:\x1b[0m (6) x: y");
        assert_eq!(on.message("Warning: x"), "\x1b[1;33mWarning:\x1b[0m x");
        assert_eq!(on.remedy(""), "");
        assert_eq!(MessageColors { is_on: false }.message("haul: x"), "haul: x");
    }

    #[test]
    fn curl_persona_has_no_colors() {
        assert_eq!(MessageColors::of_stderr(ProgramPersona::Curl), MessageColors { is_on: false });
    }
}
