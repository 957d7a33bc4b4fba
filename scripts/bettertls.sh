#!/bin/sh
# BetterTLS (Netflix), with haul in curl's place: some 9,500 servers with good and bad chains of certificates. Each has to be reached or
# refused: constraints on names, expired or wrongly made authorities, several chains of which one is good.
#
#   sh scripts/bettertls.sh                                  all of it (half a minute once it is built)
#   sh scripts/bettertls.sh --suite pathbuilding             words for its runner
#
#   HAUL=PATH         the program (target/release/haul, else target/debug/haul)
#   SUITE_DIR=DIR     where the suite is kept from one run to the next (a temporary directory otherwise)
#
# Fails when a case does; passes, and says so, where there is no Go or the module cannot be had.
set -u

. "$(dirname "$0")/suite-place.sh"

version=v0.0.0-20250909192348-e1e99e353074
if [ ! -x "$work/bettertls" ]; then
    command -v go >/dev/null 2>&1 || { echo "skipped: there is no Go to build the suite with"; exit 0; }
    GOBIN=$work go install "github.com/Netflix/bettertls/test-suites/cmd/bettertls@$version" >"$work/build.log" 2>&1 ||
        { echo "skipped: the suite could not be built: $(tail -n 1 "$work/build.log")"; exit 0; }
fi

# Its harness starts the curl that it finds first.
mkdir -p "$work/bin"
ln -sf "$haul" "$work/bin/curl"
cd "$work" || exit 2
PATH=$work/bin:$PATH ./bettertls run-tests --implementation curl "$@" 2>progress | tee results
awk '/Passed:/ { passed += $2 } /Failures:/ { failed += $2 }
    END { printf "%d cases passed, %d failed\n", passed, failed; exit !(passed > 0 && failed == 0) }' results
