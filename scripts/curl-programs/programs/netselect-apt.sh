title="netselect-apt: tests the mirrors that it chose"
source="deb netselect-apt"
hosts="www.debian.org mirror.test"
serve() { echo 'Debian mirror' | put mirror.test/debian/index; echo 'Origin: Debian' | put mirror.test/debian/dists/stable/Release; }
run() {
    bash -c 'eval "$(sed -n "/^test_host()/,/^}/p; /^select_valid_host()/,/^}/p; /^log()/,/^}/p" /usr/bin/netselect-apt)"
        test_file=dists/stable/Release; log() { echo "$*"; }; DEBUG=1
        for host in http://mirror.test/debian/ http://nowhere.test/; do test_host "$host"; echo "$host $?"; done'
}
