title="oh-my-zsh: looks for an upgrade"
source="git ohmyzsh/ohmyzsh
deb zsh
deb zsh-common"
hosts="api.github.com"
serve() { echo '{"sha":"0000000000000000000000000000000000000000"}' | put api.github.com/repos/ohmyzsh/ohmyzsh/commits/master; }
run() {
    cd /opt/ohmyzsh && git init -q . && git add -A >/dev/null && git config user.email a@a.test && git config user.name a && git commit -q -m x
    git config remote.origin.url https://github.com/ohmyzsh/ohmyzsh.git
    git config oh-my-zsh.remote origin; git config oh-my-zsh.branch master
    cd /home/user
    ZSH=/opt/ohmyzsh zsh -f -c 'zstyle ":omz:update" mode reminder; eval "$(sed -n "/^function is_update_available/,/^}/p" $ZSH/tools/check_for_upgrade.sh)"; is_update_available; echo "available: $?"'
}
skip_files='\.git/'
