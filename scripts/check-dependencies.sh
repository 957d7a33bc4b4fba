#!/bin/sh
# Checks the dependencies between the crates (docs/design/README.md) in Cargo's graph:
#
#   proto, policy   on no crate of the workspace; proto is no_std, and enables no std feature of a dependency
#   engine          on proto and policy; cli, capi and the Python module on engine, proto and policy
#   testkit         on none of them: two sides with the same HTTP machine would share its bugs
set -eu

cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
failed=0
fail() {
    echo "purity: $*" >&2
    failed=1
}

# Prints the crates of the workspace that a crate depends on, with build dependencies, without test dependencies.
ours() {
    "$cargo" tree -q -p "$1" -e normal,build --prefix none -f '{p}' |
        awk -v self="$1" '$1 != self && /\(\// { print $1 }' | sort -u | tr '\n' ' '
}
only() {
    crate=$1
    shift
    for found in $(ours "$crate"); do
        case " $* " in
            *" $found "*) ;;
            *) fail "$crate must not depend on $found" ;;
        esac
    done
}

only httphaul-proto
only httphaul-policy
only httphaul httphaul-proto httphaul-policy
only httphaul-cli httphaul httphaul-proto httphaul-policy
only httphaul-capi httphaul httphaul-proto httphaul-policy
only httphaul-curl httphaul httphaul-proto httphaul-policy
only httphaul-python httphaul httphaul-proto httphaul-policy
only testkit

lib=crates/proto/src/lib.rs
grep -qx '#!\[no_std\]' "$lib" || fail "$lib is not no_std"
for lib in crates/proto/src/lib.rs crates/policy/src/lib.rs; do
    grep -qx '#!\[forbid(unsafe_code)\]' "$lib" || fail "$lib does not forbid unsafe code"
done

# The graph of this crate alone, since other crates of the workspace may enable std.
std=$("$cargo" tree -q -p httphaul-proto -e normal,features --prefix none | grep -E 'feature "(std|use_std|default)"' |
    grep -v '^httphaul-proto ' || :)
[ -z "$std" ] || fail "httphaul-proto pulls in: $std"

[ "$failed" -eq 0 ] && echo "purity: the crates depend on each other as they should; httphaul-proto is no_std"
exit "$failed"
