//! The `haul` program: parses the command line and carries the plan out.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use haul_cli::args::Special;
use haul_cli::files::SystemFiles;
use haul_cli::persona::Persona;
use haul_cli::usage::UsageError;
use haul_cli::{help, parse, resolve, run};

fn main() -> ExitCode {
    let (persona, args) = Persona::called(std::env::args_os());
    if let [generate, root] = args.as_slice()
        && generate == "--generate"
    {
        return match haul_cli::generated::write(root.as_ref()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "haul: {error}");
                ExitCode::FAILURE
            }
        };
    }
    match answer(persona, args) {
        Ok(code) => code,
        Err(error) => {
            // Nobody is left to tell when stderr is closed.
            let _ = writeln!(std::io::stderr(), "{}", error.told_by(persona.name()));
            ExitCode::from(error.exit_code())
        }
    }
}

fn answer(persona: Persona, args: Vec<OsString>) -> Result<ExitCode, UsageError> {
    let low = parse::parse_as(persona, args, &mut SystemFiles)?;
    let text = match low.special {
        Some(Special::Help(subject)) => help::help(persona, subject.as_deref())?,
        Some(Special::Version) => help::version(persona),
        Some(Special::Manual) => help::manual(persona),
        None => return Ok(ExitCode::from(run::run(resolve::resolve(low, &mut SystemFiles)?))),
    };
    // A reader that has seen enough of the help is no failure.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}
