# Sourced by the scripts that run test suites of other projects. Sets top, haul (the program) and work (the directory for the suite).
#
#   HAUL=PATH            the program (target/release/haul, else target/debug/haul)
#   SUITE_DIR=DIR        the directory for the suite, which is kept (default: a temporary directory)

top=$(cd "$(dirname "$0")/.." && pwd)
target=${CARGO_TARGET_DIR:-$top/target}
haul=${HAUL:-$target/release/haul}
[ -x "$haul" ] || haul=$target/debug/haul
[ -x "$haul" ] || { echo "haul is not built: cargo build --release -p httphaul-cli"; exit 2; }
haul=$(cd "$(dirname "$haul")" && pwd)/$(basename "$haul")

if [ -n "${SUITE_DIR:-}" ]; then
    mkdir -p "$SUITE_DIR"
    work=$(cd "$SUITE_DIR" && pwd)
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi
