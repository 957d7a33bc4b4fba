title="Homebrew's install.sh: its choice of curl"
source="git Homebrew/install"
hosts="github.com"
run() {
    id nobody >/dev/null
    chown nobody /home/user
    rm -f /usr/bin/git
    NONINTERACTIVE=1 bash -c 'eval "$(sed -n "/^REQUIRED_CURL_VERSION/p; /^abort()/,/^}/p; /^major_minor()/,/^}/p; /^version_g[te]()/,/^}/p; /^version_gt()/,/^}/p; /^test_curl()/,/^}/p; /^which()/,/^}/p; /^find_tool()/,/^}/p" /opt/install/install.sh)"
        warn() { echo "warning: $*"; }; test_curl /usr/bin/curl && echo usable; find_tool curl'
}
