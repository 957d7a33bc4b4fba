#!/bin/sh
# Runs every test that the tables of docs/design/faults.md name, and prints for each fault the number of its tests, and how many passed.
# Fails if a test failed, or if a named test did not run.
set -eu

cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Prints «fault | test test …» for each row of the table. A word in backquotes without slash, glob and blank is a test.
table() {
    awk -F '|' '
        /^## / { is_on = /^## Faults:/ }
        is_on && NF > 5 && $2 !~ /^ *(fault|-+) *$/ {
            names = ""
            n = split($5, words, "`")
            for (i = 2; i <= n; i += 2) if (words[i] ~ /^[a-z][a-z0-9_]+$/) names = names " " words[i]
            gsub(/^ +| +$/, "", $2)
            print $2 "|" names
        }' docs/design/faults.md
}

# shellcheck disable=SC2046 # a list of words
"${CARGO:-cargo}" test -p httphaul -p httphaul-cli -p httphaul-policy --lib --tests --no-fail-fast -- \
    $(table | cut -d '|' -f 2) >"$log" 2>&1 || true

table | awk -F '|' -v log_file="$log" '
    BEGIN {
        while ((getline line < log_file) > 0)
            if (match(line, /^test [^ ]+ \.\.\. /)) {
                split(line, words, " ")
                name = words[2]
                sub(/.*::/, "", name)
                outcome[name] = (words[4] == "ok" && outcome[name] != "failed") ? "ok" : "failed"
            }
        printf "%-55s %5s  %6s  %s\n", "fault", "tests", "passed", "not passed"
    }
    {
        n = split($2, names, " ")
        passed = 0
        others = ""
        for (i = 1; i <= n; i++) if (outcome[names[i]] == "ok") passed++; else others = others " " names[i]
        if (others != "") is_false = 1
        printf "%-55s %5d  %6d %s\n", $1, n, passed, others
    }
    END {
        print is_false ? "FALSE" : "all true"
        exit is_false
    }' || { cat "$log"; exit 1; }
