title="get-helm-3"
source="git helm/helm"
hosts="get.helm.sh"
serve() {
    echo v3.15.0 | put get.helm.sh/helm3-latest-version
    echo v3.15.0 | put get.helm.sh/helm-latest-version
    mkdir -p "$site/pack/linux-amd64"
    printf '#!/bin/sh\necho v3.15.0\n' >"$site/pack/linux-amd64/helm"
    chmod 755 "$site/pack/linux-amd64/helm"
    tar cf - -C "$site/pack" --mtime=@0 linux-amd64 | gzip -n | put get.helm.sh/helm-v3.15.0-linux-amd64.tar.gz
    echo "$(sha256sum <"$site/get.helm.sh/helm-v3.15.0-linux-amd64.tar.gz" | cut -c1-64)" | put get.helm.sh/helm-v3.15.0-linux-amd64.tar.gz.sha256
}
run() { bash /opt/helm/scripts/get-helm-3 --no-sudo; helm; bash /opt/helm/scripts/get-helm-3 --no-sudo --version v9.9.9; }
mask='ts=\d+|helm-installer-\w+'
