#!/bin/sh
# Makes crates/policy/src/cookie/public_suffixes.txt from the rules in the sources of the crate psl, in the version of Cargo.lock.
# Run it after `cargo update -p psl` (needs Python). With --check, it only compares the file with those rules.
#
# Each line is a domain and the labels below it that are public suffixes, separated by spaces. Lines and labels are sorted by bytes.
# `*` stands for any label, `!label` for one that `*` does not cover. The first line has the top-level domains, below no domain.
# Names are in ASCII, as in URLs.
set -eu

cd "$(dirname "$0")/.."
manifest=$("${CARGO:-cargo}" metadata --locked --format-version 1 | tr ',' '\n' |
    sed -n 's|.*"manifest_path":"\(.*/psl-[0-9][^/]*\)/Cargo.toml".*|\1|p')
list=crates/policy/src/cookie/public_suffixes.txt
made=$list
if [ "${1:-}" = --check ]; then
    made=$(mktemp)
    trap 'rm -f "$made"' EXIT
fi
python3 - "$manifest/data/rules.txt" "$made" <<'END'
import sys

labels = {}
for rule in open(sys.argv[1], encoding="utf-8").read().split():
    exception = rule.startswith("!")
    parts = [
        part if part.isascii() else "xn--" + part.encode("punycode").decode() for part in rule.lstrip("!").split(".")
    ]
    if "*" in parts[1:]:
        sys.exit(f"public-suffixes: a label after the first is '*': {rule}")
    labels.setdefault(".".join(parts[1:]), set()).add("!" * exception + parts[0])
with open(sys.argv[2], "w", encoding="ascii") as output:
    for domain, below in sorted(labels.items()):
        output.write(" ".join([domain, *sorted(below)]) + "\n")
END
cmp -s "$made" "$list" || {
    echo "public-suffixes: $list is not that of the crate psl: run make public-suffixes" >&2
    exit 1
}
