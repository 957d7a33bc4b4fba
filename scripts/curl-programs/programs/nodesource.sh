title="NodeSource's setup script"
source="git nodesource/distributions"
hosts="deb.nodesource.com"
serve() { printf 'key\n' | put deb.nodesource.com/gpgkey/nodesource-repo.gpg.key; }
run() {
    for tool in apt-get apt gpg; do printf '#!/bin/sh\n[ -t 0 ] || cat >/dev/null\n' >/usr/local/bin/$tool; chmod 755 /usr/local/bin/$tool; done
    s=$(find /opt/distributions/scripts/deb -name 'setup_20*' | head -n 1)
    bash "$s" 2>&1
}
mask='\d{4}-\d\d-\d\d \d\d:\d\d:\d\d'
