#!/bin/sh
# Links the command for FreeBSD and macOS, on Linux.
# Usage: link-targets.sh [TARGET...]
#
# `make check-targets` compiles no C and links nothing. This script does both with zig, which has the C libraries of these systems. The
# frameworks of macOS belong to Apple's SDK: they are replaced by text stubs that name each function which the bindings declare. So a
# missing function of a C library fails here; a wrong declaration of a framework's function does not. rustc warns that there is no SDK.
# The results are not run. Windows is left out: zig exports each symbol of a DLL, and the Python module has too many for one.
# Rust's standard library for a target comes by `rustup target add`, zig from PyPI (packaging/requirements.txt).
set -eu

cd "$(dirname "$0")/.."
. packaging/common.sh
with_tools
target_dir=$BUILD/linked
stubs=$target_dir/frameworks

# Writes the stub of the framework $1, with the functions and constants that the crate $2 declares.
write_framework_stub() {
    sources=$("$CARGO" metadata --locked --format-version 1 --filter-platform aarch64-apple-darwin | tr ',' '\n' |
        sed -n "s|.*\"manifest_path\":\"\\(.*/$2-[0-9][^/]*\\)/Cargo.toml\".*|\\1/src|p")
    mkdir -p "$stubs/$1.framework"
    {
        printf -- '--- !tapi-tbd\ntbd-version: 4\ntargets: [ x86_64-macos, arm64-macos ]\n'
        printf "install-name: '/System/Library/Frameworks/%s.framework/Versions/A/%s'\nexports:\n" "$1" "$1"
        printf '  - targets: [ x86_64-macos, arm64-macos ]\n    symbols: [ '
        grep -rhoE 'pub (fn|static) (mut )?[A-Za-z_0-9]+' "$sources" | sed 's/.* /_/' | sort -u | paste -s -d , -
        printf ' ]\n...\n'
    } >"$stubs/$1.framework/$1.tbd"
}

[ $# -gt 0 ] || set -- x86_64-unknown-freebsd x86_64-apple-darwin aarch64-apple-darwin
failed=
for triple; do
    with_target "$triple"
    flags=
    case $triple in
        x86_64-unknown-freebsd) format='ELF 64-bit .*x86-64.*FreeBSD' ;;
        x86_64-apple-darwin) format='Mach-O 64-bit .*x86_64' ;;
        aarch64-apple-darwin) format='Mach-O 64-bit .*arm64' ;;
        *)
            echo "link-targets: $triple is none of the targets of this script" >&2
            exit 2
            ;;
    esac
    case $triple in
        *-apple-darwin)
            write_framework_stub CoreFoundation core-foundation-sys
            write_framework_stub Security security-framework-sys
            flags="-L framework=$stubs"
            ;;
    esac
    # Quick to compile, since the results are not run.
    if RUSTFLAGS=$flags CARGO_TARGET_DIR=$target_dir CARGO_PROFILE_DEV_DEBUG=false \
        "$CARGO" zigbuild --quiet --locked --target "$triple" -p httphaul-cli --bin haul &&
        file "$target_dir/$triple/debug/haul" | grep -q "$format"; then
        echo "link-targets: $triple: links"
    else
        failed="$failed $triple"
    fi
done
[ -z "$failed" ] || {
    echo "link-targets: these do not link:$failed" >&2
    exit 1
}
