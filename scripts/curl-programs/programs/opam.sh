title="opam init and update, from a repository by HTTP"
source="deb opam
deb libgmp10
deb libglpk40
deb libamd2
deb libcolamd2
deb libltdl7
deb libsuitesparseconfig5"
hosts="opam.test"
serve() {
    mkdir -p "$site/pack/packages/thing/thing.1"
    printf 'opam-version: "2.0"\n' >"$site/pack/repo"
    printf 'opam-version: "2.0"\nsynopsis: "x"\nmaintainer: "a@a.test"\nurl { src: "http://opam.test/thing.tar.gz" }\n' >"$site/pack/packages/thing/thing.1/opam"
    tar cf - -C "$site/pack" --mtime=@0 repo packages | gzip -n | put opam.test/index.tar.gz
    echo x | gzip -n | put opam.test/thing.tar.gz
}
run() {
    export OPAMROOT=/home/user/.opam OPAMROOTISOK=1 OPAMYES=1 OPAMFETCH=curl
    for tool in bwrap unzip patch bzip2 rsync; do command -v $tool >/dev/null || { printf '#!/bin/sh\n' >/usr/local/bin/$tool; chmod 755 /usr/local/bin/$tool; }; done
    opam init --bare --disable-sandboxing -n http://opam.test 2>&1; opam update 2>&1; opam list -A --short 2>&1
}
skip_files='\.opam'
