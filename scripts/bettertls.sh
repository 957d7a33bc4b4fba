#!/bin/sh
# Runs BetterTLS (Netflix) with haul instead of curl: about 9,500 servers with valid and invalid certificate chains. haul has to accept
# or refuse each: name constraints, expired or malformed authorities, several chains of which one is valid.
#
#   sh scripts/bettertls.sh                                  all of it (half a minute after the build)
#   sh scripts/bettertls.sh --suite pathbuilding             arguments for its runner
#
#   HAUL=PATH         the program (target/release/haul, else target/debug/haul)
#   SUITE_DIR=DIR     the directory for the suite, which is kept (default: a temporary directory)
#
# Fails if a case fails. Prints so and succeeds if Go or the module is missing.
set -u

. "$(dirname "$0")/suite-paths.sh"

version=v0.0.0-20250909192348-e1e99e353074
if [ ! -x "$work/bettertls" ]; then
    command -v go >/dev/null 2>&1 || { echo "skipped: there is no Go to build the suite with"; exit 0; }
    GOBIN=$work go install "github.com/Netflix/bettertls/test-suites/cmd/bettertls@$version" >"$work/build.log" 2>&1 ||
        { echo "skipped: the suite could not be built: $(tail -n 1 "$work/build.log")"; exit 0; }
fi

# The runner starts the first curl in PATH.
mkdir -p "$work/bin"
ln -sf "$haul" "$work/bin/curl"
cd "$work" || exit 2
PATH=$work/bin:$PATH ./bettertls run-tests --implementation curl "$@" 2>progress | tee results
awk '/Passed:/ { passed += $2 } /Failures:/ { failed += $2 }
    END { printf "%d cases passed, %d failed\n", passed, failed; exit !(passed > 0 && failed == 0) }' results
