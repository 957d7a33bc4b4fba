#!/bin/sh
# Runs httpx' own tests, from its source package on PyPI, with haul's transports in the place of its own. They run with asyncio and
# with trio.
#
#   sh scripts/httpx-suite.sh
#
# The last lines are the numbers of tests and of the requests that haul made. docs/python.md explains which tests are left out. Needs
# the wheel of `make python`, and packages from PyPI.
set -eu

cd "$(dirname "$0")/.."
here=$PWD/scripts/httpx-suite
target=${CARGO_TARGET_DIR:-target}
target=$(cd "$target" && pwd)
[ -x "$target/py/bin/python" ] || { echo "the Python module is not built: make python"; exit 2; }
version=$(sed -n 's/^httpx.*==//p' "$here/requirements.txt")
venv=$target/py-httpx

pip() {
    "$venv/bin/python" -m pip --disable-pip-version-check --quiet "$@"
}

[ -d "$venv" ] || "$target/py/bin/python" -m venv "$venv"
pip install --requirement "$here/requirements.txt" || {
    echo "skipped: the packages of $here/requirements.txt cannot be had"
    exit 0
}
pip install --force-reinstall --no-deps "$target"/wheels/httphaul-*.whl
if [ ! -d "$venv/httpx-$version/tests" ]; then
    pip download --no-deps --no-binary httpx --no-build-isolation --dest "$venv" "httpx==$version" || {
        echo "skipped: httpx' source package cannot be had"
        exit 0
    }
    tar -xzf "$venv/httpx-$version.tar.gz" -C "$venv"
fi
deselect=$(sed -n 's/^\(tests[^ ]*\).*/--deselect \1/p' "$here/excluded" | tr '\n' ' ')
cd "$venv/httpx-$version"
# The tests import the installed httpx, not its sources.
rm -rf httpx
# shellcheck disable=SC2086 # a list of arguments
PYTHONPATH=$here "$venv/bin/python" -m pytest -p over_haul_httpx -p no:cacheprovider -q --override-ini addopts= -m "not network" \
    $deselect tests
