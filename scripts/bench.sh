#!/bin/sh
# Runs the whole scorecard on a clean clone: builds the peers and the bindings, runs every job, and writes the documents. A missing
# peer is reported and left out. Building and measuring may take 35 minutes together; BUDGET=seconds sets the time for measuring.
# ROUNDS=n replaces the number of rounds of each job.
set -eu

cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
make=${MAKE:-make}
start=$(date +%s)

sh scripts/setup-bench.sh
# In parallel with our build, whose last part uses only one core.
mkdir -p "$target"
sh scripts/bench-peers.sh >"$target/peers.log" 2>&1 &
"$make" bindings build tools
wait
cat "$target/peers.log"
sh scripts/bench-python.sh || true

# The last rounds and the documents are not part of the budget.
left=$((35 * 60 - 90 - ($(date +%s) - start)))
[ "$left" -gt 600 ] || left=600
status=0
"$target/release/bench" all --budget "${BUDGET:-$left}" ${ROUNDS:+--rounds "$ROUNDS"} || status=$?
"$make" scorecard
exit "$status"
