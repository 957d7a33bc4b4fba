# The programs of curl's docs/examples that use HTTP and no other library, from the sources of the suite libtests. Each is compiled with
# the URLs of the origin of testkit, and passes if it succeeds and prints what it prints over the library of those sources: the origin's
# replies contain the requests. Numbers and boundaries of forms do not count.

# Not run: those of other protocols, of other libraries, of sockets of the program, of OpenSSL's objects, those that run until a signal,
# set the clock, or expect HTTP/2 and HTTP/3 by TLS.
examples_left_out='imap-* pop3-* smtp-* ftp* sftp* rtsp-* websocket* http2-* http3* fileupload externalsocket sendrecv block_ip
    cacertinmem usercertinmem evhiperfifo ephiperfifo ghiper hiperfifo multi-event multi-uv htmltidy crawler xmlstream
    smooth-gtk-thread simplessl synctime address-scope interface sslbackend protofeats hsts-preload'

prepare() {
    . "$here/libtests.sh"
    prepare || return 1
    # The functions of this file again.
    . "$here/examples.sh"
    origin_program=${ORIGIN:-$target/release/origin}
    [ -x "$origin_program" ] || { echo "the origin is not built: make tools"; return 1; }
    start_origin || { echo "the origin does not start"; return 1; }
    rm -rf "$work/examples"
    mkdir "$work/examples"
    # A pattern in the list must not become the names of files here.
    set -f
    for source in $(find "$curl/docs/examples" -name '*.c' | sort); do
        name=$(basename "$source" .c)
        is_left_out=
        for pattern in $examples_left_out; do
            # shellcheck disable=SC2254 # a pattern
            case $name in $pattern) is_left_out=1 ;; esac
        done
        [ -z "$is_left_out" ] || continue
        # Every URL is one that replies with the request.
        sed -E "s#\"(http|https|ftp)://[^\"]*\"#\"$origin/echo\"#g" "$source" >"$work/examples/$name.c"
        cc -w -I"$curl/include" "$work/examples/$name.c" -o "$work/examples/$name" -L"$curl/lib/.libs" -lcurl -lpthread \
            2>"$work/examples/$name.build" || echo "$name cannot be compiled" >&2
    done
    set +f
}

# start_origin: starts the origin of testkit on a free port of loopback, once. Sets origin to its URL without the final slash.
start_origin() {
    [ -z "${origin:-}" ] || return 0
    "$origin_program" --pages 1 >"$work/origin.log" 2>&1 &
    servers="$servers $!"
    tries=100
    while [ $tries -gt 0 ]; do
        origin=$(sed -n 's#^listening http=\([0-9.:]*\) .*#http://\1#p' "$work/origin.log")
        [ -z "$origin" ] || return 0
        tries=$((tries - 1))
        sleep 0.1
    done
    return 1
}

# Prints the arguments of a program that needs some.
example_arguments() {
    case $1 in
    anyauthput | httpput) echo "input.txt $origin/echo" ;;
    httpput-postfields) echo "$origin/echo" ;;
    chkspeed) echo "$origin/bytes/100000" ;;
    default-scheme | url2file | htmltitle) echo "$origin/echo" ;;
    esac
}

run() {
    cd "$work/examples" || return 1
    echo 'content of the file' >input.txt
    for program in *.c; do
        name=${program%.c}
        [ -x "$name" ] || continue
        # shellcheck disable=SC2046 # words
        LD_LIBRARY_PATH=${1:-$curl/lib/.libs} timeout 60 "./$name" $(example_arguments "$name") \
            >"$name.out${1:+.haul}" 2>"$name.err${1:+.haul}" </dev/null
        code=$?
        sed -E 's/-{20,}[A-Za-z0-9]+/BOUNDARY/g; s/[0-9]+(\.[0-9]+)?/N/g' "$name.out${1:+.haul}" >"$name.text${1:+.haul}"
        if [ "$code" -eq 0 ] && cmp -s "$name.text" "$name.text${1:+.haul}"; then
            echo "pass $name"
        else
            echo "fail $name"
        fi
    done
}
