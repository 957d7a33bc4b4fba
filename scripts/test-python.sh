#!/bin/sh
# Builds the Python module, installs it in a virtual environment, target/py, and tests it there.
#
#   sh scripts/test-python.sh build   only builds and installs it: make bindings
#   sh scripts/test-python.sh         also runs its tests, and requests' own tests with HaulAdapter
#
# Needs Python 3.10 or newer, and packages from PyPI, pinned in bindings/python/requirements.txt; the examples need those of
# bindings/python/examples/requirements.txt, too. Prints so and succeeds without Python, its venv module or a network.
set -eu

cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
target=$(cd "$target" && pwd)
venv=$target/py
here=bindings/python
requests=2.34.2

skip() {
    echo "python: skipped: $1"
    exit 0
}

python=
for name in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python3.10; do
    if command -v "$name" >/dev/null 2>&1 &&
        "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
        python=$name
        break
    fi
done
[ -n "$python" ] || skip "there is no Python 3.10 or newer with venv (Debian: python3-venv)"

pip() {
    "$venv/bin/python" -m pip --disable-pip-version-check --quiet "$@"
}

# The environment is recreated only if Python or the requirements have changed.
stamp=$(cksum <"$here/requirements.txt")-$("$python" -c 'import sys; print(sys.version, sys.base_prefix)' | cksum)
if [ "$(cat "$venv/requirements" 2>/dev/null)" != "$stamp" ]; then
    rm -rf "$venv"
    "$python" -m venv "$venv"
    pip install --requirement "$here/requirements.txt" || skip "the packages of $here/requirements.txt cannot be had"
    printf '%s' "$stamp" >"$venv/requirements"
fi

rm -rf "$target/wheels"
"$venv/bin/maturin" build --release ${CI:+--locked} --quiet --manifest-path "$here/Cargo.toml" \
    --interpreter "$venv/bin/python" --target-dir "$target" --out "$target/wheels"
pip install --force-reinstall --no-deps "$target"/wheels/httphaul-*.whl
"$venv/bin/python" -c 'import haul; print("python: haul", haul.__version__, "in", haul.__path__[0])'
[ "${1:-}" != build ] || exit 0

# The examples need more packages than the tests. Without them, their tests are skipped.
examples=$(cksum <"$here/examples/requirements.txt")
if [ "$(cat "$venv/examples" 2>/dev/null)" != "$examples" ]; then
    if pip install --constraint "$here/requirements.txt" --requirement "$here/examples/requirements.txt"; then
        printf '%s' "$examples" >"$venv/examples"
    else
        echo "python: the packages of $here/examples/requirements.txt cannot be had; some examples are skipped"
    fi
fi

# Tests the installed wheel, not the sources.
"$venv/bin/python" -m pytest "$here/tests" --rootdir "$here" -p no:cacheprovider

# requests' own tests, with HaulAdapter in every session. docs/python.md lists the differences.
if [ ! -d "$venv/requests-$requests/tests" ]; then
    if ! pip download --no-deps --no-binary requests --no-build-isolation --dest "$venv" "requests==$requests"; then
        skip "requests' own tests cannot be had"
    fi
    tar -xzf "$venv/requests-$requests.tar.gz" -C "$venv"
fi
deselect=$(sed -n 's/^\(tests[^ ]*\).*/--deselect \1/p' "$here/tests/requests-deviations.txt" | tr '\n' ' ')
plugins=$PWD/$here/tests/plugins
cd "$venv/requests-$requests"
# shellcheck disable=SC2086 # a list of arguments
PYTHONPATH=$plugins "$venv/bin/python" -m pytest -p over_haul -p no:cacheprovider -q -W ignore --override-ini addopts= \
    tests/test_requests.py tests/test_lowlevel.py $deselect
