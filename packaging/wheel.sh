#!/bin/sh
# The Python distribution: a wheel for each processor and C library (glibc 2.17 and musl 1.2, or newer), for Python 3.10 and
# newer, and the source distribution.
set -eu

cd "$(dirname "$0")/.."
. packaging/common.sh
with_tools
work=$(fresh wheel)

# Links with zig, so that nothing newer than the named C library is used. The target directory is another one than that of deb.sh: the
# C parts of the crates are compiled for another C library, and each would make Cargo compile those of the other again.
build_wheel() {
    target=$1
    compatibility=$2
    with_target "$target"
    (
        for_packages
        CARGO_TARGET_DIR=$BUILD/wheels
        maturin build --quiet --release --locked --zig --target "$target" --compatibility "$compatibility" \
            --manifest-path bindings/python/Cargo.toml --out "$work/wheels"
    )
}

for arch in $ARCHES; do
    build_wheel "$arch-unknown-linux-gnu" manylinux_2_17
    build_wheel "$arch-unknown-linux-musl" musllinux_1_2
done
# Every package names the licences of the crates in it.
for wheel in "$work"/wheels/*.whl; do
    rm -rf "$work/unpacked"
    wheel unpack --dest "$work/unpacked" "$wheel" >/dev/null
    tree=$work/unpacked/httphaul-$VERSION
    metadata=$tree/httphaul-$VERSION.dist-info
    install -m 644 "$BUILD/NOTICES" "$metadata/licenses/NOTICES"
    sed -i '/^License-File: LICENSE-MIT$/a License-File: NOTICES' "$metadata/METADATA"
    # maturin's SBOM names the crates of the workspace by their directories.
    sed -i "s|$ROOT|/haul|g" "$metadata"/sboms/*.json
    wheel pack --dest-dir "$DIST" "$tree" >/dev/null
done

# The settings of .cargo hold for the C parts of the crates, so the sources need them too.
maturin sdist --manifest-path bindings/python/Cargo.toml --out "$work" >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    exit 1
}
name=httphaul-$VERSION
tar -xzf "$work/$name.tar.gz" -C "$work"
mkdir "$work/$name/.cargo"
cp .cargo/config.toml "$work/$name/.cargo"
# Leaves in Cargo.lock what is needed, in the same versions.
"$CARGO" metadata --offline --format-version 1 --manifest-path "$work/$name/Cargo.toml" >/dev/null
without_absent_profiles "$work/$name"
pack "$work" "$name" "$DIST/$name.tar.gz"
