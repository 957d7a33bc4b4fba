# The tests of dist-test.sh, in its namespaces: one function for each kind of package. Not for use without it.

. packaging/common.sh
ip link set lo up
fresh_root=$work/mounted
ran=0
failed=
left_out=

: >"$work/listening"
"$ORIGIN" --pages 60 --cache --ca "$work/ca.pem" --write-answer "$work/answer" >"$work/listening" 2>"$work/origin.log" &
origin_pid=$!
trap 'kill "$origin_pid" 2>/dev/null || :' EXIT
tries=0
until grep -q '^listening ' "$work/listening"; do
    tries=$((tries + 1))
    if [ "$tries" -gt 600 ] || ! kill -0 "$origin_pid" 2>/dev/null; then
        cat "$work/origin.log" >&2
        exit 1
    fi
    sleep 0.1
done
http=$(sed -n 's/^listening http=\([^ ]*\).*/\1/p' "$work/listening")
https=$(sed -n 's/^.* https=\([^ ]*\).*/\1/p' "$work/listening")

# Mounts the clean root with a new upper layer, dist/ in it, and the origin's certificate among the trusted ones.
mount_root() {
    mkdir -p "$work/$1/upper" "$work/$1/work" "$fresh_root"
    mount -t overlay overlay -o "lowerdir=$clean_root,upperdir=$work/$1/upper,workdir=$work/$1/work" "$fresh_root"
    mount -t proc proc "$fresh_root/proc"
    mount -t tmpfs tmpfs "$fresh_root/tmp"
    mount --bind /dev "$fresh_root/dev"
    mkdir "$fresh_root/tmp/dist"
    mount --bind "$DIST" "$fresh_root/tmp/dist"
    cp "$work/ca.pem" "$work/answer" "$fresh_root/tmp"
    cp "$work/ca.pem" "$fresh_root/usr/local/share/ca-certificates/origin.crt"
    inside 'update-ca-certificates >/dev/null 2>&1'
    inside 'command -v cargo rustc' >/dev/null && echo "dist-test: the clean root has Rust" >&2
    # Everything until now is not the package's.
    list_files >"$work/$1/before"
}

unmount_root() {
    umount "$fresh_root/tmp/dist" "$fresh_root/tmp" "$fresh_root/dev" "$fresh_root/proc" "$fresh_root"
}

# Runs a command line in the mounted root, with an environment that names nothing of this machine.
inside() {
    chroot "$fresh_root" /usr/bin/env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C \
        HTTP="$http" HTTPS="$https" VERSION="$VERSION" ARCH="$arch" sh "-eu${trace:-}c" "$1"
}

# The files and directories of the mounted root with their sums, without what package managers and the loader note for themselves.
list_files() {
    (cd "$fresh_root" && find . -xdev \( -path ./var/lib/dpkg -o -path ./var/lib/rpm -o -path ./var/log -o -path ./var/cache -o \
        -path ./var/lib/apt -o -path ./etc/ld.so.cache -o -path ./root/.cache -o -name __pycache__ -o -path ./root/.rpmdb \) -prune \
        -o -type f -exec sha256sum {} + -o -printf '%y %p\n' | sort)
}

# Runs the test of a package, whose function installs it, uses it, and removes it.
check() {
    name=$1
    mount_root "$name"
    ran=$((ran + 1))
    # With a trace, so that the log of a failure ends with the command that failed. Not as the condition of an `if`, in which no
    # command would end the test.
    set +e
    (
        set -e
        trace=x
        "test_$name"
    ) >"$work/$name/log" 2>&1
    status=$?
    set -e
    if [ "$status" = 0 ]; then
        list_files >"$work/$name/after"
        if cmp -s "$work/$name/before" "$work/$name/after"; then
            echo "dist-test: $name: installed, used, removed without a rest"
        else
            failed="$failed $name"
            echo "dist-test: $name: left or changed files:" >&2
            diff "$work/$name/before" "$work/$name/after" | head -n 20 >&2 || :
        fi
    else
        failed="$failed $name"
        echo "dist-test: $name failed:" >&2
        tail -n 40 "$work/$name/log" >&2
    fi
    unmount_root
}

# The first job of the command, over HTTP and HTTPS: each page that the indexes name, and every block in them, once and sorted.
first_job='
    haul --version | grep -q "^haul $VERSION"
    cd /tmp
    for base in "http://$HTTP" "https://localhost:${HTTPS##*:}"; do
        haul -sS "$base/[1-3]" --extract "AS[0-9]{1,9}" --then "$base/{}" \
            --extract "[0-9.]{7,15}/[0-9]{1,2}" --unique --sort >found
        cmp found answer
    done
    haul "https://$HTTPS/small" -o small
    test -s small'

# A few lines for parts of the binary that the first job does not reach: decoders, exit codes, the other command lines, selection, SQLite.
smoke_tests='
    mkdir -m 700 /tmp/private
    cd /tmp/private
    haul -sS "http://$HTTP/bytes/3000000" -o plain
    test "$(wc -c <plain)" = 3000000
    haul -sS "http://$HTTP/text/90000" -H "Accept-Encoding: identity" -o text
    for coding in gzip br zstd; do
        haul -sS --compressed "http://$HTTP/$coding/90000" -o decoded
        cmp decoded text
    done
    status=0
    haul -s "http://$HTTP/status/404" -o missing || status=$?
    test "$status" = 22
    test "$(haul curl -sS -o body -w "%{http_code}" "http://$HTTP/status/404")" = 404
    haul ftp -o by-ftp "http://$HTTP/small"
    cmp by-ftp ../small
    test "$(haul -sS "http://$HTTP/api/html?total=6&size=2" --select "a.title" | wc -l)" = 2
    test "$(haul -sS "http://$HTTP/echo" --select-json "$.method")" = GET
    printf "http://$HTTP/small/%s\n" 1 2 3 >list
    haul -sS --job small.job --input-file list >>found-by-job
    test "$(wc -l <found-by-job)" = 3
    haul job status small.job | grep -q complete
    haul --help timeout | grep -q -e --max-time'

# The agent is this program once more, so qemu cannot start it.
agent_test='
    haul --agent=/tmp/private/socket -sS "http://$HTTP/small" | cmp - /tmp/small
    haul --agent=/tmp/private/socket --agent-status | grep -q .
    haul --agent=/tmp/private/socket --agent-stop'

test_tarball() {
    inside "
        tar -xzf /tmp/dist/haul-\$VERSION-\$ARCH-linux-musl.tar.gz --strip-components=1 -C /usr/local
        $first_job
        $smoke_tests
        $agent_test
        cd /usr/local
        tar -tzf /tmp/dist/haul-\$VERSION-\$ARCH-linux-musl.tar.gz | cut -d / -f 2- >/tmp/names
        grep -v '/\$' /tmp/names | xargs rm
        grep '/\$' /tmp/names | sort -r | xargs rmdir --ignore-fail-on-non-empty
        # These directories were there before, empty or missing.
        mkdir -p bin share/man"
}

# The static binary of another processor, by qemu.
test_foreign() {
    cp "$(command -v qemu-aarch64-static)" "$fresh_root/tmp/qemu"
    inside "
        tar -xzf /tmp/dist/haul-\$VERSION-aarch64-linux-musl.tar.gz --strip-components=1 -C /tmp
        haul() { /tmp/qemu /tmp/bin/haul \"\$@\"; }
        $first_job
        $smoke_tests"
}

test_deb() {
    inside "
        dpkg -i /tmp/dist/haul_\$VERSION-1_*.deb
        $first_job
        $smoke_tests
        $agent_test
        dpkg --purge haul
        dpkg -i /tmp/dist/libhaul0_\$VERSION-1_*.deb /tmp/dist/libhaul-dev_\$VERSION-1_*.deb"
    mkdir "$fresh_root/tmp/c"
    cp crates/capi/examples/*.c "$fresh_root/tmp/c"
    inside '
        cd /tmp/c
        cc get.c -o get $(pkg-config --cflags --libs haul)
        ./get "http://$HTTP/small" >/dev/null
        cc get.c -o get-static $(pkg-config --cflags haul) -Wl,-Bstatic $(pkg-config --libs haul) -Wl,-Bdynamic -lm
        ./get-static "https://$HTTPS/small" >/dev/null
        ldd get | grep -q libhaul.so.0
        if ldd get-static | grep libhaul; then exit 1; fi
        dpkg --purge libhaul-dev libhaul0'
}

# The root is Debian's, whose C library rpm does not know, so dependencies are not resolved here.
test_rpm() {
    inside "
        rpm -qp --requires /tmp/dist/haul-\$VERSION-1.*.rpm | grep -q '^libc.so.6'
        rpm -i --nodeps /tmp/dist/haul-\$VERSION-1.*.rpm /tmp/dist/libhaul-\$VERSION-1.*.rpm
        $first_job
        $smoke_tests
        $agent_test
        rpm -e --nodeps haul libhaul
        rmdir --ignore-fail-on-non-empty /usr/share/licenses"
}

# Only the wheel for glibc: Debian has no Python for musl.
test_wheel() {
    inside '
        python3 -m venv /opt/haul
        find /opt/haul -type f ! -path "*/__pycache__/*" | sort >/tmp/without
        /opt/haul/bin/pip --quiet install --no-index /tmp/dist/httphaul-$VERSION-*-manylinux*_$ARCH*.whl'
    cat >"$fresh_root/tmp/job.py" <<'END'
# The first job, over HTTP and HTTPS: each page that the indexes name, and every block in them, once and sorted.
import os
import re
import haul

with open("/tmp/answer") as file:
    answer = file.read()
port = os.environ["HTTPS"].rpartition(":")[2]
for base in (f"http://{os.environ['HTTP']}", f"https://localhost:{port}"):
    indexes = haul.fetch_many([f"{base}/{number}" for number in (1, 2, 3)])
    names = {name for index in indexes for name in re.findall(r"AS[0-9]{1,9}", index.text)}
    pages = haul.fetch_many([f"{base}/{name}" for name in names])
    blocks = {block for page in pages for block in re.findall(r"[0-9.]{7,15}/[0-9]{1,2}", page.text)}
    assert "".join(f"{block}\n" for block in sorted(blocks)) == answer, base
END
    inside '
        /opt/haul/bin/python /tmp/job.py
        /opt/haul/bin/pip --quiet uninstall --yes httphaul
        find /opt/haul -type f ! -path "*/__pycache__/*" | sort | cmp - /tmp/without
        rm -r /opt/haul'
}

# With an installed libhaul; a root without Rust cannot build the one that the distribution carries.
test_cpan() {
    inside '
        dpkg -i /tmp/dist/libhaul0_$VERSION-1_*.deb /tmp/dist/libhaul-dev_$VERSION-1_*.deb
        tar -xzf "/tmp/dist/HTTP-Haul-$VERSION.tar.gz" -C /tmp
        cd "/tmp/HTTP-Haul-$VERSION"
        # perllocal.pod is a log of what was ever installed.
        perl Makefile.PL NO_PERLLOCAL=1
        make
        make test
        find /usr/local -type d | sort >/tmp/directories
        make install
        cd /tmp
        perl -MHTTP::Haul -we "
            my \$haul = HTTP::Haul->new;
            for my \$url (\"http://\$ENV{HTTP}/small\", \"https://\$ENV{HTTPS}/small\") {
                my \$got = \$haul->get(\$url);
                die \"\$url: \$got->{status} \$got->{content}\" unless \$got->{success};
            }"
        list=$(find /usr/local/lib -path "*HTTP/Haul/.packlist")
        sed "s/ .*//" "$list" | xargs rm
        rm "$list"
        find /usr/local -type d | sort | comm -13 directories - | sort -r | xargs rmdir
        dpkg --purge libhaul-dev libhaul0'
}

# Buildah makes the image of the Dockerfile. The user and the working directory are those of the image.
test_image() {
    context=$fresh_root/tmp/context
    mkdir "$context"
    tar -xzf "$DIST/haul-$VERSION-$arch-image.tar.gz" --strip-components=1 -C "$context"
    cat "$work/ca.pem" >>"$context/ca-certificates.crt"
    storage="--root $fresh_root/tmp/storage --runroot $fresh_root/tmp/run --storage-driver vfs"
    # shellcheck disable=SC2086 # a list of arguments
    {
        buildah $storage bud --isolation chroot --tag haul "$context"
        container=$(buildah $storage from haul)
        mounted=$(buildah $storage mount "$container")
        find "$mounted" -type f | sort
        for url in "http://$http/small" "https://$https/small"; do
            chroot --userspec=65534:65534 "$mounted" /usr/bin/haul "$url" | grep -q .
        done
        buildah $storage umount "$container"
        buildah $storage rm "$container"
        buildah $storage rmi haul
    }
}

# Says why a package is not tested, and nothing if it is.
obstacle() {
    case $1 in
        tarball) set -- "$DIST/haul-$VERSION-$arch-linux-musl.tar.gz" ;;
        foreign) set -- "$DIST/haul-$VERSION-aarch64-linux-musl.tar.gz" qemu-aarch64-static ;;
        deb) set -- "$(find "$DIST" -name "haul_$VERSION-1_*.deb")" ;;
        rpm) set -- "$(find "$DIST" -name "haul-$VERSION-1.*.rpm")" ;;
        wheel) set -- "$(find "$DIST" -name "httphaul-$VERSION-*-manylinux*_$arch*.whl")" ;;
        cpan) set -- "$DIST/HTTP-Haul-$VERSION.tar.gz" ;;
        image) set -- "$DIST/haul-$VERSION-$arch-image.tar.gz" buildah ;;
    esac
    [ -n "$1" ] && [ -e "$1" ] || echo "it is not in dist/"
    [ -z "${2:-}" ] || command -v "$2" >/dev/null || echo "$2 is missing"
}

for package in $PACKAGES; do
    why=$(obstacle "$package")
    if [ -n "$why" ]; then
        echo "dist-test: $package: left out, $why"
        left_out="$left_out $package"
    else
        check "$package"
    fi
done
[ -z "$failed" ] || {
    echo "dist-test: failed:$failed" >&2
    exit 1
}
echo "dist-test: $ran packages pass${left_out:+; left out:$left_out}"
