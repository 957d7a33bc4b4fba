title="due: the catalogue of a Docker registry"
source="deb due"
hosts="registry.test"
ports="5000"
serve() { echo '{"repositories":["due-debian"]}' | put registry.test/v2/_catalog; }
run() {
    printf '#!/bin/sh\n' >/usr/local/bin/docker; chmod 755 /usr/local/bin/docker
    bash -c ". /usr/lib/libdue; $(grep -o "^function [a-zA-Z]*" /usr/lib/libdue | sed -n "s/function //p" | grep -i browse | head -n 1) registry.test:5000"
}
