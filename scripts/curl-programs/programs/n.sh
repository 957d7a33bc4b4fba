title="n: installs a version of Node.js"
source="npm n@9.2.3"
hosts="nodejs.org"
serve() {
    printf 'version\tdate\tfiles\tnpm\tv8\tuv\tzlib\topenssl\tmodules\tlts\tsecurity\nv20.1.0\t2023-05-03\tlinux-x64\t9\t1\t1\t1\t1\t1\t-\tfalse\n' | put nodejs.org/dist/index.tab
    mkdir -p "$site/pack/node-v20.1.0-linux-x64/bin"
    printf '#!/bin/sh\necho v20.1.0\n' >"$site/pack/node-v20.1.0-linux-x64/bin/node"; chmod 755 "$site/pack/node-v20.1.0-linux-x64/bin/node"
    tar cf - -C "$site/pack" --mtime=@0 node-v20.1.0-linux-x64 | gzip -n | put nodejs.org/dist/v20.1.0/node-v20.1.0-linux-x64.tar.gz
    tar cf - -C "$site/pack" --mtime=@0 node-v20.1.0-linux-x64 | xz | put nodejs.org/dist/v20.1.0/node-v20.1.0-linux-x64.tar.xz
}
run() { export N_PREFIX=/home/user/n; bash /opt/n/bin/n ls-remote; bash /opt/n/bin/n 20.1.0; bash /opt/n/bin/n 99; n/bin/node; }
