# Runs one program of scripts/curl-programs.sh, in new namespaces for network, mounts and processes: `inside.sh NAME curl|haul`.
set -eu

name=$1 kind=$2
results=$work/results/$name
title='' source='' hosts='' ports='' mask='' unordered='' skip_files=''
serve() { :; }
# put HOST/PATH: its content is the standard input.
put() { mkdir -p "$(dirname "$site/$1")" && cat >"$site/$1"; }
. "$here/programs/$name.sh"

# A file system of its own, because a layer may not lie inside another.
mount --make-rprivate /
base=$(mktemp -d /tmp/curl-programs.XXXXXX)
trap 'cd /; umount -R "$base" 2>/dev/null; rmdir "$base"' EXIT
mount -t tmpfs -o size=2g none "$base"
mkdir -p "$base/layer/etc/ssl/certs" "$base/layer/opt/called" "$base/layer/usr/bin" "$base/upper" "$base/work" "$base/root" "$base/site"
while read -r layer; do
    [ -z "$layer" ] || cp -a "$layer/." "$base/layer"
done <"$results/layers"

# `curl` notes the command line and runs the program under that name.
program=$curl
[ "$kind" = curl ] || program=$haul
cp "$program" "$base/layer/opt/called/curl"
cat >"$base/layer/usr/bin/curl" <<'CALL'
#!/bin/sh
{ printf '%s' "$#"; printf '\t%s' "$@"; echo; } >>/var/tmp/calls
exec /opt/called/curl "$@"
CALL
chmod 755 "$base/layer/usr/bin/curl"
{ echo "127.0.0.1 localhost"; for host in $hosts; do echo "127.0.0.1 $host"; done; } >"$base/layer/etc/hosts"
echo "hosts: files" >"$base/layer/etc/nsswitch.conf"
printf '%s\n' 'passwd: files' 'group: files' 'services: files' 'protocols: files' >>"$base/layer/etc/nsswitch.conf"
: >"$base/layer/etc/resolv.conf"
cat /etc/ssl/certs/ca-certificates.crt "$work/ca.pem" >"$base/layer/etc/ssl/certs/ca-certificates.crt" 2>/dev/null ||
    cp "$work/ca.pem" "$base/layer/etc/ssl/certs/ca-certificates.crt"

ip link set lo up
mount -t overlay none -o "lowerdir=$base/layer:/,upperdir=$base/upper,workdir=$base/work" "$base/root"
mount -t proc none "$base/root/proc"
mount --rbind /dev "$base/root/dev"
mount -t tmpfs none "$base/root/tmp"
mkdir -p "$base/root/var/tmp" "$base/root/home/user"
rm -f "$base/root/var/tmp/calls"
# Many programs prefer these to curl.
rm -f "$base/root/usr/bin/wget" "$base/root/usr/bin/aria2c"
: >"$base/root/var/tmp/calls"
chmod 666 "$base/root/var/tmp/calls"

site=$base/site root=$base/root
export site root
(serve)
"$python" "$here/server.py" "$site" "$results" "$results/$kind/requests" 80 443 $ports &
server=$!
tries=100
while [ ! -e "$results/$kind/requests" ] && [ $tries -gt 0 ]; do sleep 0.05; tries=$((tries - 1)); done

cp "$here/programs/$name.sh" "$base/root/var/tmp/program"
code=0
env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/home/user LANG=C.UTF-8 TERM=dumb USER=root SHELL=/bin/bash \
    chroot "$base/root" /bin/bash -c 'cd /home/user && . /var/tmp/program && run' \
    </dev/null >"$results/$kind/stdout" 2>"$results/$kind/stderr" || code=$?
echo "$code" >"$results/$kind/exit"
kill "$server"
wait "$server" 2>/dev/null || true
cp "$base/root/var/tmp/calls" "$results/$kind/calls"
rm -rf "$base/upper/var/tmp" "$base/upper/var/cache" "$base/upper/root/.cache"
mkdir -p "$results/$kind/files"
cp -a "$base/upper/." "$results/$kind/files"
