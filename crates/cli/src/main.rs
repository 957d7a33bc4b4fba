//! The `haul` program: parses the command line and carries the plan out.

use std::io::Write;
use std::process::ExitCode;

use haul_cli::args::Special;
use haul_cli::files::SystemFiles;
use haul_cli::usage::UsageError;
use haul_cli::{help, parse, resolve};

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            // Nobody is left to tell when stderr is closed.
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run() -> Result<ExitCode, UsageError> {
    let low = parse::parse(std::env::args_os().skip(1), &mut SystemFiles)?;
    let text = match low.special {
        Some(Special::Help(subject)) => help::help(subject.as_deref())?,
        Some(Special::Version) => help::version(),
        None => {
            let plan = resolve::resolve(low, &mut SystemFiles)?;
            if !plan.global.silent {
                for warning in &plan.warnings {
                    let _ = writeln!(std::io::stderr(), "Warning: {warning}");
                }
            }
            format!("{plan:#?}\n")
        }
    };
    // A reader that has seen enough of the help is no failure.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}
