#!/bin/sh
# Runs the test vectors of x509-limbo (C2SP) with haul's certificate verifier, which must reject all chains that the vectors reject.
#
#   LIMBO=FILE sh scripts/x509-limbo.sh
#
#   LIMBO=FILE        its limbo.json (else SUITE_DIR/limbo.json), of https://github.com/C2SP/x509-limbo
#   SUITE_DIR=DIR     the directory for suites, which is kept
#
# Most vectors have no server key, so a unit test of the engine reads them (crates/engine/src/net/tls/x509_limbo.rs).
# scripts/x509-limbo/accepted lists chains that haul accepts nevertheless, with reasons. Rejected valid chains are printed. No file of the
# suite is copied into this repository. Prints so and succeeds without limbo.json.
set -u

top=$(cd "$(dirname "$0")/.." && pwd)
limbo=${LIMBO:-${SUITE_DIR:-/nonexistent}/limbo.json}
[ -r "$limbo" ] || { echo "skipped: there is no limbo.json; LIMBO=FILE names one"; exit 0; }
limbo=$(cd "$(dirname "$limbo")" && pwd)/$(basename "$limbo")

cd "$top" || exit 2
LIMBO=$limbo LIMBO_ACCEPTED=$top/scripts/x509-limbo/accepted cargo test -q -p httphaul --lib x509_limbo -- --ignored --nocapture
