#!/bin/sh
# Fetches 3 index pages and 5,703 AS pages from a local server, and prints every CIDR block once, sorted.
#
#   make demo            or   sh scripts/demo.sh
#   PAGES=200 make demo  a smaller site
#
# Needs the Rust toolchain and a C compiler. Exits with 1 if the output is wrong.
set -eu

cd "$(dirname "$0")/.."
pages=${PAGES:-5703}
seed=${SEED:-1}
target=${CARGO_TARGET_DIR:-target}

# The commands of the Makefile, so that nothing is built twice.
${CARGO:-cargo} build --release -p httphaul-cli --bin haul
${CARGO:-cargo} build --release -p httphaul-bench -p testkit --bin origin

work=$(mktemp -d)
origin_pid=

# Stops the origin that this script started, and no other process.
leave() {
    if [ -n "$origin_pid" ]; then
        kill "$origin_pid" 2>/dev/null || :
        wait "$origin_pid" 2>/dev/null || :
    fi
    rm -rf "$work"
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
if ! [ -t 1 ]; then say() { printf '\n== %s\n' "$*"; }; fi

say "An origin with $pages AS pages and 3 indexes of them (seed $seed)"
# The origin writes the expected output before it listens, from its record of the generated pages.
"$target/release/origin" --seed "$seed" --pages "$pages" --cache --write-answer "$work/right" \
    >"$work/listening" 2>"$work/origin.log" &
origin_pid=$!
tries=0
until grep -q '^listening ' "$work/listening"; do
    tries=$((tries + 1))
    if [ "$tries" -gt 600 ] || ! kill -0 "$origin_pid" 2>/dev/null; then
        echo "the origin did not start:" >&2
        cat "$work/origin.log" >&2
        exit 1
    fi
    sleep 0.1
done
host=$(sed -n 's/^listening http=\([^ ]*\).*/\1/p' "$work/listening")
echo "it listens on $host; the right answer has $(wc -l <"$work/right") lines"

haul() {
    "$target/release/haul" "http://$host/[1-3]" --extract 'AS[0-9]{1,9}' \
        --then "http://$host/{}" --extract '[0-9.]{7,15}/[0-9]{1,2}' --unique --sort "$@"
}

say "Once to let the origin make its pages"
haul -s >/dev/null && echo "done"

say "haul 'http://$host/[1-3]' --extract 'AS[0-9]{1,9}' \\"
echo "       --then 'http://$host/{}' --extract '[0-9.]{7,15}/[0-9]{1,2}' --unique --sort --stats"
status=0
haul -sS --stats >"$work/answer" 2>"$work/stats" || status=$?
if [ "$status" -ne 0 ]; then
    cat "$work/stats" >&2
    echo "haul ended with $status" >&2
    exit 1
fi

echo
head -n 8 "$work/answer"
echo "..."
say "The figures"
cat "$work/stats"
say "The answer"
if cmp -s "$work/right" "$work/answer"; then
    echo "$(wc -l <"$work/answer") blocks: the same, byte for byte, as the origin's own record. Right."
else
    echo "WRONG: $(wc -l <"$work/answer") lines where $(wc -l <"$work/right") are right; the first that differ:" >&2
    diff "$work/right" "$work/answer" | head -n 10 >&2 || :
    exit 1
fi
