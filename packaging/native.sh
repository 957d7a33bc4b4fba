# Builds the command and libhaul for this system's C library, for .deb and .rpm. Sourced after common.sh. Sets NATIVE, their directory;
# where it is set already, its files are taken.

if [ -z "${NATIVE:-}" ]; then
    NATIVE=$BUILD/$HOST/release
    (
        for_packages
        "$CARGO" build --locked --release --target "$HOST" -p httphaul-cli --bin haul
        "$CARGO" rustc --locked --release --target "$HOST" -p httphaul-capi --lib --crate-type cdylib --crate-type staticlib
    )
fi
