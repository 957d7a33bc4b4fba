//! Runs a command on a terminal, and writes a picture of the terminal as SVG.
//!
//! ```text
//! terminal --size 96x12 --title "haul" --animate --out picture.svg -- sh scene.sh
//! ```

use std::error::Error;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use lexopt::ValueExt;
use lexopt::prelude::{Long, Short, Value};
use testkit::terminal::{TerminalSession, TimedScreen, animation, picture};

const USAGE: &str = "\
terminal [options] -- COMMAND [ARGUMENTS]: runs a command on a terminal, and writes a picture of it

  --size COLUMNSxROWS size of the terminal (default 80x24)
  --title TEXT        title of the picture
  --out FILE          the picture, as SVG
  --animate           the screens of the whole run, not only the last one
";

/// The time between two screens of an animation.
const INTERVAL: Duration = Duration::from_millis(200);

/// The time for which an animation shows the last screen.
const LAST: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn Error>> {
    let (mut size, mut title, mut out, mut is_animated) = ((80, 24), String::new(), None, false);
    let mut words: Vec<OsString> = Vec::new();
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("size") => size = parser.value()?.parse_with(parsed_size)?,
            Long("title") => title = parser.value()?.string()?,
            Long("out") => out = Some(PathBuf::from(parser.value()?)),
            Long("animate") => is_animated = true,
            Long("help") | Short('h') => {
                print!("{USAGE}");
                return Ok(());
            }
            Value(word) => words.push(word),
            other => return Err(other.unexpected().into()),
        }
    }
    let (Some((program, arguments)), Some(out)) = (words.split_first(), out) else {
        return Err("a command and --out FILE are needed; see --help".into());
    };
    let mut command = Command::new(program);
    command.args(arguments);
    let mut session = TerminalSession::start(command, size)?;
    let mut screens = Vec::new();
    while is_animated && session.is_running() {
        let screen = session.screen();
        match screens.last_mut() {
            Some(TimedScreen { screen: last, time }) if *last == screen => *time += INTERVAL,
            _ => screens.push(TimedScreen { screen, time: INTERVAL }),
        }
        std::thread::sleep(INTERVAL);
    }
    let (code, screen) = session.end();
    if code != Some(0) {
        return Err(format!("the command failed:\n{}", screen.text()).into());
    }
    let svg = match is_animated {
        true => {
            screens.push(TimedScreen { screen, time: LAST });
            animation(&title, &screens)
        }
        false => picture(&title, &screen),
    };
    std::fs::write(out, svg)?;
    Ok(())
}

fn parsed_size(text: &str) -> Result<(u16, u16), Box<dyn Error + Send + Sync>> {
    let (columns, rows) = text.split_once('x').ok_or("the size is COLUMNSxROWS")?;
    Ok((columns.parse()?, rows.parse()?))
}
