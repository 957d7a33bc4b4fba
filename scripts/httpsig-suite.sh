#!/bin/sh
# Signs requests by RFC 9421 (--httpsig-*), and has them verified by the Python package that requirements.txt names.
#
#   sh scripts/httpsig-suite.sh [HAUL]     HAUL is target/release/haul unless given
#
# Prints a line for each case, and the counts. Needs Python 3.10 with venv, and packages from PyPI.
set -eu

cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
haul=${1:-$target/release/haul}
suite=scripts/httpsig-suite
venv=$target/httpsig
stamp=$(cksum <"$suite/requirements.txt")
if [ "$(cat "$venv/requirements" 2>/dev/null)" != "$stamp" ]; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/python" -m pip --disable-pip-version-check --quiet install --requirement "$suite/requirements.txt"
    printf '%s' "$stamp" >"$venv/requirements"
fi
"$venv/bin/python" "$suite/verify.py" "$haul"
