#!/bin/sh
# Type-checks the command and libhaul for the systems that haul supports beside this one; for Windows, the crate
# httphaul and the Python module, too.
# Usage: check-targets.sh [TARGET...]
#
# The C parts of dependencies are not compiled: their build scripts get a compiler that makes empty files. So no cross compiler
# is needed, and nothing is linked. Rust's standard library for a target comes by `rustup target add`; a target that rustup cannot
# install is reported and left out. For OpenBSD, and for the BSDs on aarch64, rustup has none: Cargo compiles it from its sources, which
# needs a nightly toolchain with rust-src.
set -eu

cd "$(dirname "$0")/.."
target_dir=${CARGO_TARGET_DIR:-target}
mkdir -p "$target_dir/targets"
target_dir=$(cd "$target_dir/targets" && pwd)

cat >"$target_dir/cc" <<'END'
#!/bin/sh
# Makes the file that -o names, empty. What a build script asks about the compiler itself is answered by the one of this system.
for word; do
    case $word in
    -E | --version | -v | -dumpmachine) exec cc "$@" ;;
    esac
    [ "${before:-}" != -o ] || : >"$word"
    before=$word
done
END
cat >"$target_dir/ar" <<'END'
#!/bin/sh
# Makes the archive that is named, empty.
for word; do
    case $word in
    *.a) : >"$word" ;;
    esac
done
END
chmod +x "$target_dir/cc" "$target_dir/ar"
export TARGET_CC="$target_dir/cc" TARGET_CXX="$target_dir/cc" TARGET_AR="$target_dir/ar"

[ $# -gt 0 ] || set -- aarch64-apple-darwin x86_64-apple-darwin \
    x86_64-unknown-linux-musl aarch64-unknown-linux-gnu aarch64-unknown-linux-musl i686-unknown-linux-gnu i686-unknown-linux-musl \
    x86_64-unknown-freebsd x86_64-unknown-netbsd x86_64-unknown-openbsd \
    aarch64-unknown-freebsd aarch64-unknown-netbsd aarch64-unknown-openbsd x86_64-pc-windows-gnu
failed=
for triple; do
    toolchain=
    standard_library=
    case $triple in
    *-openbsd | aarch64-*-freebsd | aarch64-*-netbsd)
        if ! [ -e "$(rustc +nightly --print sysroot 2>/dev/null)/lib/rustlib/src/rust/library/std/Cargo.toml" ]; then
            echo "check-targets: $triple: left out, because there is no nightly toolchain with rust-src" >&2
            continue
        fi
        toolchain=+nightly
        standard_library=-Zbuild-std=std,panic_unwind
        ;;
    *)
        if ! rustup target add "$triple" >/dev/null 2>&1; then
            echo "check-targets: $triple: left out, because rustup cannot install its standard library" >&2
            continue
        fi
        ;;
    esac
    case $triple in
    *-windows-*) packages="-p httphaul -p httphaul-cli -p httphaul-capi -p httphaul-python --features httphaul/http,httphaul/old-keys" ;;
    *) packages="-p httphaul-cli -p httphaul-capi" ;;
    esac
    # shellcheck disable=SC2086 # words, or none
    if CARGO_TARGET_DIR=$target_dir "${CARGO:-cargo}" $toolchain check --quiet --locked $standard_library --target "$triple" \
        $packages; then
        echo "check-targets: $triple: passes"
    else
        failed="$failed $triple"
    fi
done
[ -z "$failed" ] || {
    echo "check-targets: these do not compile:$failed" >&2
    exit 1
}
