//! C programs (`tests/c`), compiled against the system's `curl/curl.h`, that use the library of this
//! build.

mod common;

use std::ffi::OsStr;

use common::{BuildDirectory, origin};
use testkit::unused_port::unused_port;

#[test]
fn easy_requests_work_as_with_libcurl() {
    let Some(directory) = BuildDirectory::new() else { return };
    let (_origin, base) = origin();
    let program = directory.compile("easy");
    let closed = format!("http://127.0.0.1:{}/", unused_port());
    let files = directory.path("");
    let arguments: [&OsStr; 3] = [base.as_ref(), files.as_ref(), closed.as_ref()];
    assert_eq!(program.run_well(arguments), "as libcurl\n");
}
