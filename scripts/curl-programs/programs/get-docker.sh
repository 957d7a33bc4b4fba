title="get.docker.com"
source="git docker/docker-install"
hosts="download.docker.com"
serve() { echo key | put download.docker.com/linux/debian/gpg; }
run() {
    for tool in apt-get apt-cache systemctl; do printf '#!/bin/sh\n' >/usr/local/bin/$tool; chmod 755 /usr/local/bin/$tool; done
    rm -f /usr/local/bin/docker /usr/bin/docker
    timeout 60 sh /opt/docker-install/install.sh; cat /etc/apt/keyrings/docker.asc
}
