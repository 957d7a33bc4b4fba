#!/bin/sh
# Runs a seeded share of the mutants of an area: scripts/mutants.sh AREA SEED SHARE [OPTIONS].
# AREA is proto, policy, or a part of the engine: tls, split, window,
# transfer, or all four: engine. SHARE is a fraction, 1/50.
#
# cargo-mutants lists the mutants. scripts/mutants/switches.py compiles all of the share into one copy of the crate, where
# an environment variable chooses one; a first run records which test evaluates which mutant, so that only those tests
# run. Mutants that cannot be switched (in constants, or refused by the type checker) are compiled one by one.
# Outcomes are kept below the target directory, and a second call goes on with the mutants that have none. The figures
# are written to docs/design/scores.json. Mutants that change nothing are listed in scripts/mutants/equivalent.toml, with
# the reason, and are left out.
#
#   --minutes N    stop after N minutes
#   --again        run only the missed mutants, once more, after new tests
#   --pause FILE   wait while FILE exists
set -eu

cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
work=$target/mutants
area=$1 seed=$2 share=$3
shift 3
mkdir -p "$work"
program=$(command -v cargo-mutants || echo "$work/bin/cargo-mutants")
if [ ! -x "$program" ]; then
    "${CARGO:-cargo}" install --quiet --locked --root "$work" cargo-mutants
fi
if [ ! -x "$work/venv/bin/python" ]; then
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet --requirement scripts/mutants/requirements.txt
fi
# The copy shares the dependencies' builds with the other targets.
export CARGO_TARGET_DIR="$target"
exec "$work/venv/bin/python" scripts/mutants/run.py "$area" "$seed" "$share" \
    --root "$PWD" --work "$work" --mutants "$program" "$@"
