title="gwhois: a registry that answers over HTTP"
source="deb gwhois
deb libnet-libidn-perl
deb libidn12
deb libwww-perl
deb libencode-locale-perl
deb liburi-perl"
hosts="registry.test"
serve() { echo '<pre>domain: x</pre>' | put registry.test/index; }
run() {
    mkdir -p /etc/gwhois
    printf ':cgihttps|https://registry.test/?q=\nxyzzy\n' >/etc/gwhois/pattern
    printf '#!/bin/sh\ncat\n' >/usr/local/bin/lynx; chmod 755 /usr/local/bin/lynx
    gwhois xyzzy
}
