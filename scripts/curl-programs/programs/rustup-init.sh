title="rustup-init.sh"
source="git rust-lang/rustup"
hosts="static.rust-lang.org"
serve() {
    printf '#!/bin/sh\necho "installed $*"\n' | put static.rust-lang.org/rustup/dist/x86_64-unknown-linux-gnu/rustup-init
}
run() {
    sh /opt/rustup/rustup-init.sh -y --no-modify-path
    RUSTUP_UPDATE_ROOT=https://static.rust-lang.org/none sh /opt/rustup/rustup-init.sh -y -v
}
