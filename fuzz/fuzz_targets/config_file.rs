//! Fuzzes config files: the entries do not depend on how many bytes each read returns.
#![no_main]

use std::io::Read;

use haul_cli::config_file::ConfigFileReader;
use libfuzzer_sys::fuzz_target;

type ConfigEntryTuple = (Vec<u8>, Option<Vec<u8>>, u64);

/// A reader that returns at most this many bytes at a time, as a pipe may do.
struct ShortReads<'a>(&'a [u8], usize);

impl Read for ShortReads<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = self.1.min(buffer.len());
        self.0.read(&mut buffer[..len])
    }
}

/// Returns the entries up to the first error, and whether there was an error.
fn entries(source: impl Read) -> (Vec<ConfigEntryTuple>, bool) {
    let mut reader = ConfigFileReader::new(source);
    let mut found = Vec::new();
    loop {
        match reader.next_entry() {
            Ok(Some(entry)) => found.push((entry.option.to_vec(), entry.value.map(<[u8]>::to_vec), entry.line)),
            Ok(None) => return (found, false),
            Err(_) => return (found, true),
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&step, text)) = data.split_first() else { return };
    assert_eq!(entries(text), entries(ShortReads(text, usize::from(step).max(1))));
});
