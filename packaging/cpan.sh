#!/bin/sh
# The CPAN distribution HTTP-Haul, with the sources of libhaul in libhaul/, for systems without an installed libhaul.
set -eu

cd "$(dirname "$0")/.."
. packaging/common.sh

work=$(fresh cpan)
cp -R bindings/perl "$work/perl"
cd "$work/perl"
# Makefile.PL looks for a library, which `make distdir` does not use.
: >"$work/libhaul.a"
perl Makefile.PL "HAUL_LIB=$work/libhaul.a" "HAUL_INCLUDE=$ROOT/crates/capi/include" >/dev/null
name=HTTP-Haul-$(sed -n 's/^VERSION = //p' Makefile)
case $name in
    *-"$VERSION") ;;
    *)
        echo "dist: bindings/perl has another version: $name" >&2
        exit 1
        ;;
esac
make -s distdir >/dev/null
cd "$ROOT"

# The workspace without what libhaul does not need.
carried=$work/perl/$name/libhaul
mkdir -p "$carried/crates" "$carried/.cargo"
cp .cargo/config.toml "$carried/.cargo"
cp LICENSE-MIT LICENSE-APACHE Cargo.lock "$carried"
sed -e 's/^members = .*/members = ["crates\/proto", "crates\/policy", "crates\/engine", "crates\/capi"]/' -e '/^exclude = /d' \
    -e '/^testkit = /d' Cargo.toml >"$carried/Cargo.toml"
for crate in proto policy engine capi; do
    mkdir "$carried/crates/$crate"
    for entry in Cargo.toml build.rs build_script_linking.rs src include haul.pc.in; do
        [ ! -e "crates/$crate/$entry" ] || cp -RL "crates/$crate/$entry" "$carried/crates/$crate/$entry"
    done
    # Tests are not carried, nor what only tests depend on.
    awk '/^\[/ { skip = ($0 == "[dev-dependencies]") } !skip' "crates/$crate/Cargo.toml" |
        sed '/^readme = /d' >"$carried/crates/$crate/Cargo.toml"
done
# Leaves in Cargo.lock what is needed, in the same versions.
"$CARGO" metadata --offline --format-version 1 --manifest-path "$carried/Cargo.toml" >/dev/null
without_absent_profiles "$carried"
(cd "$work/perl/$name" && find libhaul -type f | sort >>MANIFEST)
pack "$work/perl" "$name" "$DIST/$name.tar.gz"
