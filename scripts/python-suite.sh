# Sourced by the scripts that run tests of other Python projects with haul in their place. Before, the script sets `suite`: the name of
# its directory below scripts/, which has requirements.txt, and in `excluded` the tests that are left out. Sets:
#
#   here, target    that directory, and the directory of build results
#   venv            an environment with these requirements and the wheel of `make python`
#   deselect        the options by which pytest leaves out the tests of `excluded`
#
# Needs the wheel of `make python`, and packages from PyPI. Ends the script with 0 if they cannot be had.

cd "$(dirname "$0")/.."
here=$PWD/scripts/$suite
target=${CARGO_TARGET_DIR:-target}
target=$(cd "$target" && pwd)
[ -x "$target/py/bin/python" ] || { echo "the Python module is not built: make python"; exit 2; }
venv=$target/py-${suite%-suite}

skip() {
    echo "skipped: $1"
    exit 0
}

pip() {
    "$venv/bin/python" -m pip --disable-pip-version-check --quiet "$@"
}

# Prints the version of a package in requirements.txt.
version_of() {
    sed -n "s/^$1\(\[.*\]\)\{0,1\}==//p" "$here/requirements.txt"
}

# Unpacks the source package of a project in $venv, unless that was done before.
#
#   source_package httpx 0.28.1    $venv/httpx-0.28.1
source_package() {
    if [ ! -d "$venv/$1-$2/tests" ]; then
        pip download --no-deps --no-binary "$1" --no-build-isolation --dest "$venv" "$1==$2" || skip "the source package of $1 cannot be had"
        tar -xzf "$venv/$1-$2.tar.gz" -C "$venv"
    fi
}

[ -d "$venv" ] || "$target/py/bin/python" -m venv "$venv"
pip install --requirement "$here/requirements.txt" || skip "the packages of $here/requirements.txt cannot be had"
pip install --force-reinstall --no-deps "$target"/wheels/httphaul-*.whl
deselect=$(sed -n 's/^\([^# ][^ ]*\).*/--deselect \1/p' "$here/excluded" | tr '\n' ' ')
