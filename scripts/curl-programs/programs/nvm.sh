title="nvm: its installation, and a version of Node.js"
source="git nvm-sh/nvm"
hosts="nodejs.org raw.githubusercontent.com"
serve() {
    printf 'version\tdate\tfiles\tnpm\tv8\tuv\tzlib\topenssl\tmodules\tlts\tsecurity\nv20.1.0\t2023-05-03\tlinux-x64\t9\t1\t1\t1\t1\t1\t-\tfalse\nv18.1.0\t2022-05-03\tlinux-x64\t8\t1\t1\t1\t1\t1\tHydrogen\tfalse\n' |
        put nodejs.org/dist/index.tab
    mkdir -p "$site/pack/node-v20.1.0-linux-x64/bin"
    printf '#!/bin/sh\necho v20.1.0\n' >"$site/pack/node-v20.1.0-linux-x64/bin/node"
    chmod 755 "$site/pack/node-v20.1.0-linux-x64/bin/node"
    for kind in gz xz; do
        tar cf - -C "$site/pack" --mtime=@0 node-v20.1.0-linux-x64 | if [ $kind = gz ]; then gzip -n; else xz; fi | put nodejs.org/dist/v20.1.0/node-v20.1.0-linux-x64.tar.$kind
    done
    (cd "$site/nodejs.org/dist/v20.1.0" && sha256sum *.tar.*) >"$site/sums"
    put nodejs.org/dist/v20.1.0/SHASUMS256.txt <"$site/sums"
    for file in nvm.sh nvm-exec bash_completion; do
        put raw.githubusercontent.com/nvm-sh/nvm/HEAD/$file <"$root/opt/nvm/$file"
        cat >"$site/handler.py" <<'P'
def handle(request):
    import os
    if request["host"] == "raw.githubusercontent.com":
        with open(f"{site}/raw.githubusercontent.com/nvm-sh/nvm/HEAD/{os.path.basename(request['target'])}", "rb") as file:
            return 200, [], file.read()
P
        sed -i "1i site = '$site'" "$site/handler.py"
    done
}
run() {
    export NVM_DIR=/home/user/.nvm
    rm -f /usr/bin/git /usr/bin/node /usr/local/bin/node /usr/bin/npm /usr/local/bin/npm
    METHOD=script bash /opt/nvm/install.sh 2>&1
    . "$NVM_DIR/nvm.sh"
    nvm ls-remote --no-colors; nvm install 20; nvm current; nvm install 99
}
unordered=1
