#!/bin/sh
# Checks the licences of all dependencies, on all platforms, against an allow-list, and lists crates that occur in two versions.
# `deny.toml` has the same rules for cargo-deny.
set -eu

cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
# The same names as in deny.toml.
allowed='0BSD Apache-2.0 BSD-2-Clause BSD-3-Clause CC0-1.0 ISC MIT MIT-0 Unicode-3.0 Unlicense Zlib'

graph=$(mktemp)
trap 'rm -f "$graph"' EXIT
"$cargo" tree -q --workspace --target all -e normal,build,dev --prefix none --no-dedupe -f '{p}|{l}' |
    awk -F '|' 'NF == 2 { sub(/ \(.*/, "", $1); sub(/ \(\*\)$/, "", $2); print $1 "|" $2 }' | sort -u >"$graph"

# Converts an SPDX expression into 0s and 1s, and evaluates parentheses, AND, OR.
awk -F '|' -v allowed="$allowed" '
    function folded(text,    before, inner, after) {
        while (match(text, /\([01&|]*\)/)) {
            before = substr(text, 1, RSTART - 1)
            inner = substr(text, RSTART + 1, RLENGTH - 2)
            after = substr(text, RSTART + RLENGTH)
            text = before folded(inner) after
        }
        while (sub(/1&1/, "1", text) || sub(/0&[01]/, "0", text) || sub(/1&0/, "0", text)) {}
        return text ~ /1/ ? "1" : "0"
    }
    BEGIN {
        count = split(allowed, names, " ")
        for (i = 1; i <= count; i++) known[names[i]] = 1
    }
    {
        text = $2
        gsub(/\//, " OR ", text)
        gsub(/ WITH [A-Za-z0-9.-]+/, "", text)
        gsub(/\(/, "( ", text)
        gsub(/\)/, " )", text)
        count = split(text, words, " ")
        formula = ""
        for (i = 1; i <= count; i++) {
            word = words[i]
            if (word == "AND") formula = formula "&"
            else if (word == "OR") formula = formula "|"
            else if (word == "(" || word == ")") formula = formula word
            else formula = formula (word in known ? "1" : "0")
        }
        total++
        # Its list of public suffixes is under MPL-2.0.
        if (folded(formula) != "1" && $1 !~ /^httphaul-policy /) {
            printf "licences: %s is under \"%s\"\n", $1, $2
            refused++
        }
    }
    END {
        if (total == 0) { print "licences: the graph is empty"; exit 1 }
        if (refused) exit 1
        printf "licences: %d crates, all under licences of the list\n", total
    }' "$graph"

# Not an error, but information for the author of a change.
awk -F '[ |]' '{ versions[$1] = versions[$1] " " $2; count[$1]++ }
    END { for (name in count) if (count[name] > 1) print "twice: " name versions[name] }' "$graph" | sort
