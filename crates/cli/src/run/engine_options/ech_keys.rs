//! Converts `--ech`, the settings of Encrypted Client Hello (ECH), to the engine's.

use std::fs;

use haul::net::tls::{EchOptions, EchPolicy};
use haul::{Error, ErrorKind, Result};

use crate::plan::EchArgs;
use crate::program_persona::ProgramPersona;

/// Converts the values of `--ech` to the engine's settings of Encrypted Client Hello.
pub(super) fn options(args: &EchArgs, persona: ProgramPersona) -> Result<EchOptions> {
    let mut options = EchOptions::default();
    options.config_list = args.config_list.as_deref().map(read).transpose()?;
    let unsaid = if options.config_list.is_some() { EchPolicy::Require } else { EchPolicy::Off };
    options.policy = args.policy.unwrap_or(unsaid);
    // curl reports the keys that the server sends, and does not use them.
    options.retries = options.policy != EchPolicy::Off && !persona.is_curl();
    Ok(options)
}

/// Decodes the ECHConfigList in `text`: base64, or `@` and the name of a file with base64.
fn read(text: &str) -> Result<Vec<u8>> {
    let of_file = match text.strip_prefix('@') {
        Some(file) => Some(fs::read_to_string(file).map_err(|error| {
            Error::with_source(ErrorKind::Setup, format!("cannot read the ECHConfigList in {file}"), error)
        })?),
        None => None,
    };
    let base64 = of_file.as_deref().unwrap_or(text).trim();
    crate::base64::decode(base64)
        .ok_or_else(|| Error::new(ErrorKind::Setup, "the ECHConfigList of --ech is not base64"))
}
