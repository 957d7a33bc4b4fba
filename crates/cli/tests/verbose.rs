//! What `-v`, `--trace-ascii` and `-#` say, for the programs that read it.

mod common;

use common::{page, run_haul};

#[test]
fn lines_of_heads_end_as_on_the_wire() {
    let peer = page("hello\n");
    let ran = run_haul(["-s", "-v", "-o", "/dev/null", &peer.url("/")]);
    let heads: Vec<&str> = ran.stderr.split_inclusive('\n').filter(|line| line.starts_with(['>', '<'])).collect();
    assert!(heads.contains(&"> GET / HTTP/1.1\r\n") && heads.contains(&"< HTTP/1.1 200 OK\r\n"), "{heads:?}");
    assert!(heads.contains(&"> \r\n") && heads.contains(&"< \r\n"), "{heads:?}");
    assert!(heads.iter().all(|line| line.ends_with("\r\n")), "{heads:?}");
    assert!(ran.stderr.lines().any(|line| line.starts_with("* ") && !line.contains('\r')), "{}", ran.stderr);
}

#[test]
fn a_trace_has_a_block_for_each_line_of_a_head_that_came() {
    let peer = page("hello\n");
    let trace = run_haul(["-s", "--trace-ascii", "-", "-o", "/dev/null", &peer.url("/")]).text();
    assert!(trace.contains("<= Recv header, 17 bytes (0x11)\n0000: HTTP/1.1 200 OK\n"), "{trace}");
    assert!(trace.contains("<= Recv header, 19 bytes (0x13)\n0000: Content-Length: 6\n"), "{trace}");
    assert!(trace.contains("<= Recv header, 2 bytes (0x2)\n0000: \n<= Recv data, 6 bytes"), "{trace}");
    assert_eq!(trace.matches("=> Send header").count(), 1, "{trace}");
}
