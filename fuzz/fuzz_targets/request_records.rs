//! Fuzzes the lists of `--jsonl-in` and `--csv-in`: a list of a stranger is parsed without panics
//! and with bounds, a file that it names stays inside its directory, and no value breaks out of a
//! header.
#![no_main]

use std::path::Component;

use haul_cli::plan::HeaderArg;
use haul_cli::record_input::{CsvRows, JsonlRequest};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let record = JsonlRequest::parse(data);
    let id = JsonlRequest::parse_id(data);
    match &record {
        Ok(record) => {
            assert_eq!(record.id, id);
            if let Some(output) = &record.output {
                assert!(output.components().all(|part| matches!(part, Component::Normal(_))), "{output:?}");
            }
            for field in &record.headers {
                if let HeaderArg::Set { value, .. } = field {
                    assert!(!value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
                }
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    for delimiter in [b',', b'\t'] {
        let Ok(mut rows) = CsvRows::open(data, delimiter) else { continue };
        let mut line = 1;
        while let Ok(Some(row)) = rows.next_row() {
            assert!(row.line >= line, "lines ascend: {} after {line}", row.line);
            line = row.line;
            let bytes: usize = (0..row.len()).map(|index| row.field(index).len()).sum();
            assert!(bytes <= data.len() && row.field(row.len()).is_empty());
        }
    }
});
