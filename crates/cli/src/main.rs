//! The `haul` program: parses the command line and runs it.

#![cfg_attr(all(target_os = "linux", target_env = "gnu", not(test)), no_main)]

use std::ffi::OsString;
use std::io::Write;

use haul_cli::file_and_environment_access::SystemFilesAndEnvironment;
use haul_cli::job::{self, JobRefusal};
use haul_cli::parsed_args::InfoOption;
use haul_cli::program_persona::ProgramPersona;
use haul_cli::stderr_terminal::MessageColors;
use haul_cli::usage_error::{ArgPosition, UsageError, UsageErrorReason};
use haul_cli::{agent, apt, build_plan, doctor, ftp, help, parse, run, secret_arguments};

/// Opens `/dev/null` for each closed standard descriptor. Otherwise the first file that haul opens
/// would get the descriptor's number. Input is opened for writing and output for reading, so that
/// reading or writing fails. Standard error is opened for both, so messages are lost.
///
/// Runs before `main`, and before Rust's start-up code if the build has that code.
/// The start-up code would open `/dev/null` for both: lost output would count as written, and
/// missing input as empty.
#[cfg(target_os = "linux")]
#[used]
// SAFETY: the C library calls what stands in this section, as a function without a result, once and
// before `main`.
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = {
    extern "C" fn open_null_for_closed() {
        use std::os::fd::IntoRawFd;

        use rustix::fs::{Mode, OFlags, open};
        use rustix::stdio::{stderr, stdin, stdout};
        for (standard, access) in [(stdin(), OFlags::WRONLY), (stdout(), OFlags::RDONLY), (stderr(), OFlags::RDWR)] {
            if rustix::io::fcntl_getfd(standard).is_ok() {
                continue;
            }
            // It gets the lowest number that is free, which is the one that is closed.
            let null = open("/dev/null", access, Mode::empty());
            let Ok(null) = null.or_else(|_| open("/", OFlags::RDONLY, Mode::empty())) else { return };
            let _ = null.into_raw_fd();
        }
    }
    open_null_for_closed
};

/// Calls [`run_program`] without the start-up code of Rust's standard library. That code reads and
/// parses `/proc/self/maps`, which takes a tenth of haul's start-up time (docs/design/startup.md).
///
/// The code has three other effects: it ignores `SIGPIPE`, it opens closed descriptors, and it
/// prints a message when the stack overflows. It is not needed for the arguments, which glibc
/// passes to the standard library directly.
#[cfg(all(target_os = "linux", target_env = "gnu", not(test)))]
// SAFETY: no other function of the program has this name, and the C library calls it once.
#[unsafe(no_mangle)]
extern "C" fn main() -> std::ffi::c_int {
    use nix::sys::signal::{SigHandler, Signal, signal};

    // SAFETY: no handler of a signal is installed, and no other thread exists yet.
    let _ = unsafe { signal(Signal::SIGPIPE, SigHandler::SigIgn) };
    // The exit code after a panic is that of the standard library.
    let code = std::panic::catch_unwind(run_program).unwrap_or(101);
    // `exit` also writes out what standard output has buffered.
    std::process::exit(code.into())
}

#[cfg(not(any(windows, all(target_os = "linux", target_env = "gnu", not(test)))))]
fn main() -> std::process::ExitCode {
    run_program().into()
}

#[cfg(windows)]
fn main() -> std::process::ExitCode {
    let _console = haul_cli::Utf8Console::begin();
    run_program().into()
}

/// Runs the program: parses the command line, and prints a text or runs the transfers. Returns the
/// exit code.
fn run_program() -> u8 {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(code) = agent::serve_if_called(&words) {
        return code;
    }
    if apt::is_apt_method_call(&words) {
        return apt::run();
    }
    if job::is_called(&words) {
        return job::run(&words);
    }
    if doctor::is_doctor_command(&words) {
        return doctor::run(&words);
    }
    if let Some((program, args)) = ftp::called_program(&words) {
        return ftp::run(program, args);
    }
    let (persona, args) = ProgramPersona::from_words(words);
    if let [generate, root] = args.as_slice()
        && generate == "--generate"
    {
        return match haul_cli::generated_files::write(root.as_ref()) {
            Ok(()) => 0,
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "haul: {error}");
                1
            }
        };
    }
    match run_or_answer(persona, args) {
        Ok(code) => code,
        Err(error) => {
            if let Some(path) = error.stderr() {
                // Without the file, standard error has to do.
                let _ = run::redirect_stderr(path);
            }
            // If stderr is closed, no reader can see the message.
            let text = MessageColors::of_stderr(persona).message(&error.message_for(persona.name()));
            let _ = writeln!(std::io::stderr(), "{text}");
            error.exit_code()
        }
    }
}

fn run_or_answer(persona: ProgramPersona, args: Vec<OsString>) -> Result<u8, UsageError> {
    let is_bare = args.is_empty();
    let count = args.len();
    let mut parsed = if !persona.is_curl() && job::has_job_option(&args) {
        match job::parse(args) {
            Ok(parsed) => parsed,
            Err(JobRefusal::Usage(error)) => return Err(error),
            Err(JobRefusal::Job(error)) => {
                let code = error.exit_code();
                let _ = writeln!(std::io::stderr(), "{}: ({code}) {error}", persona.name());
                return Ok(code);
            }
        }
    } else {
        parse::parse_as(persona, args, &mut SystemFilesAndEnvironment)?
    };
    secret_arguments::blank_in_process_list(count, &parsed.secrets);
    if let Some(fault) = &parsed.curlrc_fault {
        let _ = writeln!(std::io::stderr(), "{}", fault.message_without_hint(persona.name()));
    }
    for subject in std::mem::take(&mut parsed.help_first) {
        print(&help::help(persona, subject.as_deref())?);
    }
    if let Some(command) = parsed.agent_command.filter(|_| parsed.info.is_none()) {
        return Ok(agent::status_and_stop_commands::run(persona, command, parsed.global.agent));
    }
    let text = match parsed.info {
        Some(InfoOption::Help(subject)) => help::help(persona, subject.as_deref())?,
        Some(InfoOption::Version) => help::version(persona),
        Some(InfoOption::Manual) => help::manual(persona),
        None if is_bare && persona.is_curl() && parsed.groups[0].urls.is_empty() => {
            return Err(UsageError::new(ArgPosition::Whole, UsageErrorReason::NothingAsked));
        }
        None => {
            let lacks_url = persona.is_curl() && parsed.take_group_without_url();
            let no_url = || UsageError::new(ArgPosition::Whole, UsageErrorReason::NoUrl);
            let stderr = parsed.global.stderr.clone().filter(|_| persona.is_curl());
            let fails_early = parsed.global.fail_early;
            // With -Z, curl looks at all groups before it fetches a URL.
            if lacks_url && parsed.global.parallel {
                return Err(no_url().written_to(stderr));
            }
            let code = build_plan::resolve(parsed, &mut SystemFilesAndEnvironment).map(run::run);
            let code = code.map_err(|error| error.written_to(stderr))?;
            return match lacks_url && !(fails_early && code != 0) {
                true => Err(no_url()),
                false => Ok(code),
            };
        }
    };
    print(&text);
    Ok(0)
}

/// Prints a text on standard output. Ignores errors, because the reader may have closed the output
/// early.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
