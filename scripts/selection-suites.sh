#!/bin/sh
# Runs the suites of others against --select and --select-json: the tokenizer tests of html5lib, at several splits of each page, and
# the compliance suite of JSONPath (RFC 9535). Prints how many tests ran.
#
#   sh scripts/selection-suites.sh              fetches both suites with git, at fixed commits, into bench/work/suites
#   sh scripts/selection-suites.sh HTML JSON    checkouts of html5lib-tests and jsonpath-compliance-test-suite
set -eu

cd "$(dirname "$0")/.."
suites=$PWD/bench/work/suites

# fetch NAME URL COMMIT: prints the directory of a checkout.
fetch() {
    if [ "$(git -C "$suites/$1" rev-parse HEAD 2>/dev/null)" != "$3" ]; then
        rm -rf "${suites:?}/$1"
        git init -q "$suites/$1" && git -C "$suites/$1" fetch -q --depth 1 "$2" "$3" &&
            git -C "$suites/$1" checkout -q FETCH_HEAD || return 1
    fi
    echo "$suites/$1"
}

html=${1:-} json=${2:-}
if [ -z "$html" ]; then
    html=$(fetch html5lib-tests https://github.com/html5lib/html5lib-tests 224991ec10db04f056a89eed8b0bd8695fd2950e) &&
        json=$(fetch jsonpath-compliance-test-suite https://github.com/jsonpath-standard/jsonpath-compliance-test-suite \
            7be7c1fc28057c91e8eefaf197060fba7ed43acd) || {
        echo "skipped: the suites could not be fetched"
        exit 0
    }
fi
html=$(realpath "$html/tokenizer")
json=$(realpath "$json/cts.json")
export HTML5LIB_TESTS="$html" JSONPATH_TESTS="$json"
exec "${CARGO:-cargo}" test ${LOCKED:-} -p httphaul --features select --lib -- --nocapture --test-threads 1 \
    tokens_agree_with_html5lib values_agree_with_jsonpath_compliance_suite
