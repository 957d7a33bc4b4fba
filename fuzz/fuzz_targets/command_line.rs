//! Fuzzes command lines, one word a line, of haul, curl, fetch and ftp: none causes a panic, and
//! every error has a message and an exit code.
//!
//! The first byte selects the program. Files that options name are empty or contain the input
//! itself, so a line may also be part of a config file.
#![no_main]

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use haul_cli::build_plan::resolve;
use haul_cli::file_and_environment_access::FilesAndEnvironment;
use haul_cli::ftp::{freebsd_fetch_args, ftp_command_args};
use haul_cli::parse::parse_as;
use haul_cli::program_persona::ProgramPersona;
use libfuzzer_sys::fuzz_target;

struct InputAsFiles<'a>(&'a [u8]);

impl FilesAndEnvironment for InputAsFiles<'_> {
    fn open(&mut self, path: &Path) -> io::Result<Box<dyn Read>> {
        match path.as_os_str().len() {
            1 => Ok(Box::new(io::Cursor::new(self.0.to_vec()))),
            2 => Ok(Box::new(io::empty())),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&pick, text)) = data.split_first() else { return };
    let words = text.split(|byte| *byte == b'\n').map(|word| OsString::from_vec(word.to_vec()));
    let persona = match pick % 4 {
        0 => ProgramPersona::Haul,
        1 => ProgramPersona::Curl,
        2 => return drop(ftp_command_args::FtpArgs::parse(words)),
        _ => return drop(freebsd_fetch_args::parse(words)),
    };
    let mut files = InputAsFiles(text);
    match parse_as(persona, words, &mut files) {
        Err(error) => assert!(!error.to_string().is_empty() && error.exit_code() != 0),
        Ok(parsed) if parsed.info.is_some() => {}
        Ok(parsed) => match resolve(parsed, &mut files) {
            Err(error) => assert!(!error.to_string().is_empty() && error.exit_code() != 0),
            Ok(plan) => assert!(plan.groups.iter().all(|group| !group.stages.is_empty())),
        },
    }
});
