#!/bin/sh
# x509-limbo (C2SP): test vectors for chains of certificates, put to haul's own verifier: no chain may be accepted that they say to reject.
#
#   LIMBO=FILE sh scripts/x509-limbo.sh
#
#   LIMBO=FILE        its limbo.json (else SUITE_DIR/limbo.json), of https://github.com/C2SP/x509-limbo
#   SUITE_DIR=DIR     where suites are kept from one run to the next
#
# Most vectors come without the server's key, so no server can be made of them: a test within the engine reads them
# (crates/engine/src/net/tls/limbo.rs). What haul accepts nevertheless stands in scripts/x509-limbo/accepted with its reason. Chains that
# are rejected though they are good are listed. Nothing of the suite's comes into this repository, and no package has it: passes, and
# says so, where there is no limbo.json.
set -u

top=$(cd "$(dirname "$0")/.." && pwd)
limbo=${LIMBO:-${SUITE_DIR:-/nonexistent}/limbo.json}
[ -r "$limbo" ] || { echo "skipped: there is no limbo.json; LIMBO=FILE names one"; exit 0; }
limbo=$(cd "$(dirname "$limbo")" && pwd)/$(basename "$limbo")

cd "$top" || exit 2
LIMBO=$limbo LIMBO_ACCEPTED=$top/scripts/x509-limbo/accepted cargo test -q -p httphaul --lib x509_limbo -- --ignored --nocapture
