#!/bin/sh
# Mixed load for MINUTES=10 against servers with faults: scripts/soak.sh MINUTES SEED [OPTIONS of soak.py].
# Fails if memory, descriptors or threads of haul's processes grow; writes bench/results/soak-DATE.json.
set -eu

cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
target=$(cd "$target" && pwd)
minutes=$1 seed=$2
shift 2
python=
[ ! -x "$target/py/bin/python" ] || python=$target/py/bin/python
exec python3 scripts/soak.py --minutes "$minutes" --seed "$seed" --haul "${HAUL:-$target/release/haul}" \
    --servers "${SERVERS:-$target/release}" ${python:+--python "$python"} \
    --result "bench/results/soak-$(date +%F).json" "$@"
