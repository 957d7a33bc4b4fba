# Settings and functions of the scripts in this directory. They source it from the root of the source tree.
#
#   VERSION            the version of the workspace
#   SOURCE_DATE_EPOCH  the time of every file in every package: that of the newest commit, or of CHANGELOG.md without git
#   DIST               the directory of the finished packages: dist/
#   BUILD              Cargo's target directory for packages, and the work directory: target/dist
#   ARCHES             the processors for which there are binaries: x86_64

set -eu
umask 022
export LC_ALL=C TZ=UTC0 PERL_HASH_SEED=0 PYTHONHASHSEED=0

ROOT=$PWD
VERSION=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
DIST=${DIST:-$ROOT/dist}
BUILD=${BUILD:-${CARGO_TARGET_DIR:-$ROOT/target}/dist}
ARCHES=${ARCHES:-x86_64}
TOOLS=${TOOLS:-$BUILD/tools}
CARGO=${CARGO:-cargo}
CARGO_HOME=${CARGO_HOME:-$HOME/.cargo}
HOST=$(rustc -vV | sed -n 's/^host: //p')
export VERSION SOURCE_DATE_EPOCH DIST BUILD ARCHES TOOLS CARGO

# Compiles for packages: neither names nor paths of this machine in the result, no debug information, and the versions of Cargo.lock.
# The standard library's own paths are those of its release, also if its sources are installed. The time is the same for every commit,
# because crates with C parts are compiled again when it changes, and so is all that depends on them.
for_packages() {
    commit=$(rustc -vV | sed -n 's/^commit-hash: //p')
    library=$(rustc --print sysroot)/lib/rustlib/src/rust
    export CARGO_TARGET_DIR="$BUILD" CARGO_INCREMENTAL=0 SOURCE_DATE_EPOCH=315532800
    export CARGO_PROFILE_RELEASE_DEBUG=false CARGO_PROFILE_RELEASE_STRIP=symbols
    # The last prefix that fits is used, and BUILD is usually below ROOT. The name of a registry's directory depends on where it is.
    RUSTFLAGS="--remap-path-prefix=$library=/rustc/$commit --remap-path-prefix=$CARGO_HOME=/cargo"
    for registry in "$CARGO_HOME"/registry/src/*; do
        RUSTFLAGS="$RUSTFLAGS --remap-path-prefix=$registry=/cargo"
    done
    RUSTFLAGS="$RUSTFLAGS --remap-path-prefix=$ROOT=/haul --remap-path-prefix=$BUILD=/build"
    CFLAGS="-g0 -fno-asynchronous-unwind-tables -ffile-prefix-map=$CARGO_HOME=/cargo"
    CFLAGS="$CFLAGS -ffile-prefix-map=$ROOT=/haul -ffile-prefix-map=$BUILD=/build"
    CXXFLAGS=$CFLAGS
    export RUSTFLAGS CFLAGS CXXFLAGS
}

# Installs the tools of requirements.txt into a virtual environment, once, and puts it first in PATH.
with_tools() {
    stamp=$(cksum <packaging/requirements.txt)
    if [ "$(cat "$TOOLS/requirements" 2>/dev/null)" != "$stamp" ]; then
        rm -rf "$TOOLS"
        "${PYTHON:-python3}" -m venv "$TOOLS"
        "$TOOLS/bin/python" -m pip --disable-pip-version-check --quiet install --requirement packaging/requirements.txt
        printf '%s' "$stamp" >"$TOOLS/requirements"
    fi
    PATH=$TOOLS/bin:$PATH
    export PATH
}

# Makes sure that Rust's standard library for a target is there. A toolchain without rustup has to bring it along.
with_target() {
    [ -d "$(rustc --print sysroot)/lib/rustlib/$1/lib" ] || rustup target add "$1" >/dev/null 2>&1 || {
        echo "dist: Rust's standard library for $1 is not installed: rustup target add $1" >&2
        return 1
    }
}

# Removes from Cargo.toml in the directory $1 the profiles of packages that its Cargo.lock does not name, of which Cargo warns.
without_absent_profiles() {
    awk -F '"' 'NR == FNR { if (/^name = /) there[$2] = 1; next }
        /^\[/ { name = $0; skip = sub(/^\[profile\.release\.package\./, "", name) && sub(/\]$/, "", name) && !(name in there) }
        !skip' "$1/Cargo.lock" "$1/Cargo.toml" >"$1/Cargo.toml.new"
    mv "$1/Cargo.toml.new" "$1/Cargo.toml"
}

# Packs the directory $2, below the directory $1, into the file $3 (.tar.gz).
pack() {
    tar -C "$1" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --mode=u+rw,go+r-w,a+X \
        --format=gnu -cf - "$2" | gzip -n -9 >"$3"
}

# An empty work directory below BUILD.
fresh() {
    rm -rf "${BUILD:?}/$1"
    mkdir -p "$BUILD/$1"
    printf '%s\n' "$BUILD/$1"
}
