#!/bin/sh
# Requests with Negotiate (RFC 4559) against servers that nobody here wrote: a key distribution center of MIT Kerberos, apache2 with
# mod_auth_gssapi, a SOCKS proxy over the system's GSS-API library (negotiate-suite/socks_server.py), and Debian's curl, whose exit codes, replies and lines of -v haul has to match. All servers listen on loopback, and
# their files are in a directory that is removed at the end. Needs root or the packages; installs them as scripts/setup-tests.sh does.
#
#   sh scripts/negotiate-suite.sh              target/debug/haul, which it builds
#   HAUL=/path/to/haul sh scripts/negotiate-suite.sh
set -u

cd "$(dirname "$0")/.." || exit 1
PATH=$PATH:/usr/sbin:/usr/local/sbin
export PATH LC_ALL=C

packages="krb5-kdc krb5-admin-server krb5-user apache2-bin libapache2-mod-auth-gssapi python3-gssapi curl"
is_complete() {
    for program in krb5kdc kdb5_util kadmin.local kinit apache2 curl; do
        command -v "$program" >/dev/null 2>&1 || return 1
    done
    [ -e /usr/lib/apache2/modules/mod_auth_gssapi.so ] && /usr/bin/python3 -c 'import gssapi' 2>/dev/null
}
if ! is_complete && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
    # shellcheck disable=SC2086 # a list of packages
    apt-get install -y -q --no-install-recommends $packages >/dev/null 2>&1 ||
        { apt-get update -q >/dev/null 2>&1 && apt-get install -y -q --no-install-recommends $packages >/dev/null 2>&1; }
fi
if ! is_complete; then
    echo "negotiate-suite: skipped: not all of these are installed: $packages"
    exit 0
fi
if [ -z "${HAUL:-}" ]; then
    "${CARGO:-cargo}" build -q -p httphaul-cli || exit 1
    HAUL=${CARGO_TARGET_DIR:-target}/debug/haul
fi
HAUL=$(realpath "$HAUL")

work=$(mktemp -d)
pids=
finish() {
    for pid in $pids; do
        kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    done
    [ -s "$work/httpd.pid" ] && kill "$(cat "$work/httpd.pid")" 2>/dev/null
    [ -n "${KEEP:-}" ] || rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM
chmod 755 "$work"

# A port that nothing listens on.
free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
kdc_port=$(free_port)
http_port=$(free_port)
proxy_port=$(free_port)
socks_port=$(free_port)
nec_port=$(free_port)
strict_port=$(free_port)
realm=HAUL.TEST

# The realm. Names are not looked up in DNS, and the key distribution center is asked by TCP alone.
cat >"$work/krb5.conf" <<EOF
[libdefaults]
    default_realm = $realm
    dns_lookup_kdc = false
    dns_lookup_realm = false
    dns_canonicalize_hostname = false
    rdns = false
    udp_preference_limit = 1
    forwardable = true
[realms]
    $realm = {
        kdc = 127.0.0.1:$kdc_port
    }
[domain_realm]
    localhost = $realm
EOF
cat >"$work/kdc.conf" <<EOF
[kdcdefaults]
    kdc_listen = 127.0.0.1:$kdc_port
    kdc_tcp_listen = 127.0.0.1:$kdc_port
[realms]
    $realm = {
        database_name = $work/principal
        key_stash_file = $work/stash
        acl_file = $work/acl
        max_life = 1h
    }
EOF
export KRB5_CONFIG="$work/krb5.conf" KRB5_KDC_PROFILE="$work/kdc.conf" KRB5CCNAME="FILE:$work/ticket"
export KRB5RCACHENAME="dfl:" KRB5RCACHEDIR="$work/cache"
kdb5_util create -s -P master -r "$realm" >"$work/kdb.log" 2>&1 || { cat "$work/kdb.log"; exit 1; }
for principal in me other rcmd/localhost socks/localhost HTTP/localhost web/localhost HTTP/127.0.0.1; do
    kadmin.local -q "addprinc -pw secret-$principal $principal@$realm" >>"$work/kdb.log" 2>&1
done
# The keys of the two services of the server. Of HTTP/127.0.0.1 it has a wrong key.
kadmin.local -q "ktadd -k $work/keytab HTTP/localhost web/localhost rcmd/localhost socks/localhost" >>"$work/kdb.log" 2>&1
kadmin.local -q "ktadd -k $work/wrong.keytab HTTP/127.0.0.1" >>"$work/kdb.log" 2>&1
kadmin.local -q "modprinc +ok_as_delegate web/localhost" >>"$work/kdb.log" 2>&1
chmod 644 "$work/keytab" "$work/wrong.keytab"
krb5kdc -n >"$work/kdc.log" 2>&1 &
pids="$pids $!"

mkdir "$work/www" "$work/delegated" "$work/cache"
chmod 777 "$work/delegated" "$work/cache"
echo "the page" >"$work/www/page"
for folder in negotiate mixed basic both keys; do
    mkdir "$work/www/$folder"
    echo "for the user" >"$work/www/$folder/page"
done
cat >"$work/www/show.sh" <<'EOF'
#!/bin/sh
printf 'Content-Type: text/plain\r\n\r\n%s %s %s\n' "$REMOTE_USER" "${KRB5CCNAME:+delegated}" "$REQUEST_METHOD"
cat
EOF
chmod 755 "$work/www/show.sh"
cp "$work/www/show.sh" "$work/www/negotiate/show.sh"
# Basic with the user me and the password secret-basic.
printf 'me:{SHA}%s\n' "$(printf secret-basic | openssl dgst -sha1 -binary | openssl base64)" >"$work/passwords"
cat >"$work/httpd.conf" <<EOF
ServerRoot $work
ServerName localhost
PidFile $work/httpd.pid
Listen 127.0.0.1:$http_port
Listen 127.0.0.1:$proxy_port
LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so
LoadModule authn_core_module /usr/lib/apache2/modules/mod_authn_core.so
LoadModule authn_file_module /usr/lib/apache2/modules/mod_authn_file.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule authz_user_module /usr/lib/apache2/modules/mod_authz_user.so
LoadModule auth_basic_module /usr/lib/apache2/modules/mod_auth_basic.so
LoadModule auth_gssapi_module /usr/lib/apache2/modules/mod_auth_gssapi.so
LoadModule env_module /usr/lib/apache2/modules/mod_env.so
LoadModule mime_module /usr/lib/apache2/modules/mod_mime.so
TypesConfig /dev/null
LoadModule cgi_module /usr/lib/apache2/modules/mod_cgi.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
LoadModule proxy_connect_module /usr/lib/apache2/modules/mod_proxy_connect.so
User $(if [ "$(id -u)" -eq 0 ]; then echo nobody; else id -un; fi)
Group $(if [ "$(id -u)" -eq 0 ]; then echo nogroup; else id -gn; fi)
ErrorLog $work/error.log
StartServers 2
DocumentRoot $work/www
<Directory $work/www>
    Options +ExecCGI
    AddHandler cgi-script .sh
    Require all granted
</Directory>
<Directory $work/www/negotiate>
    AuthType GSSAPI
    AuthName realm
    GssapiCredStore keytab:$work/keytab
    GssapiDelegCcacheDir $work/delegated
    GssapiConnectionBound Off
    Require valid-user
</Directory>
<Directory $work/www/mixed>
    AuthType GSSAPI
    AuthName realm
    GssapiCredStore keytab:$work/keytab
    GssapiConnectionBound On
    Require valid-user
</Directory>
<Directory $work/www/both>
    AuthType GSSAPI
    AuthName realm
    GssapiCredStore keytab:$work/keytab
    GssapiBasicAuth On
    Require valid-user
</Directory>
<Directory $work/www/keys>
    AuthType GSSAPI
    AuthName realm
    GssapiCredStore keytab:$work/wrong.keytab
    Require valid-user
</Directory>
<Directory $work/www/basic>
    AuthType Basic
    AuthName realm
    AuthUserFile $work/passwords
    Require valid-user
</Directory>
<VirtualHost 127.0.0.1:$proxy_port>
    ProxyRequests On
    AllowCONNECT $http_port
    <Proxy *>
        AuthType GSSAPI
        AuthName realm
        GssapiCredStore keytab:$work/keytab
        Require valid-user
    </Proxy>
</VirtualHost>
EOF
# SOCKS proxies that accept tickets alone. One agrees on the level without protection, one chooses to protect each message.
for kind in "$socks_port rcmd@localhost" "$nec_port rcmd@localhost nec" "$strict_port socks@localhost 2"; do
    # shellcheck disable=SC2086 # words
    KRB5_KTNAME="$work/keytab" /usr/bin/python3 scripts/negotiate-suite/socks_server.py $kind >>"$work/socks.log" 2>&1 &
    pids="$pids $!"
done

apache2 -f "$work/httpd.conf" -DFOREGROUND >"$work/httpd.log" 2>&1 &
pids="$pids $!"

# Waits until both servers answer, or have failed to start.
waited=0
until curl -s -o /dev/null "http://127.0.0.1:$http_port/page" &&
    echo secret-me | kinit me >/dev/null 2>&1; do
    waited=$((waited + 1))
    if [ "$waited" -gt 100 ]; then
        cat "$work/httpd.log" "$work/error.log" "$work/kdc.log"
        exit 1
    fi
    sleep 0.1
done

passed=0
failed=0
ok() {
    passed=$((passed + 1))
    echo "ok      $1"
}
bad() {
    failed=$((failed + 1))
    echo "FAILED  $1"
    shift
    for text; do printf '        %s\n' "$text"; done
}

# Prints the lines of -v that are about authentication with the server, without values. curl repeats some for its second try.
lines() {
    grep -E '^(\* Server auth using Negotiate|\* gss_init|< HTTP|> Authorization)' "$1" |
        sed 's/\r$//; s/uthorization: .*/uthorization/; s/^< \(HTTP[^ ]* [0-9]*\).*/< \1/; s/ *$//' | grep -v '^< HTTP/1.1 100' |
        awk '!/^\*/ || !seen[$0]++'
}

# Runs curl and haul in curl's place with the same arguments, and compares exit code, output and lines. The second argument is the
# expected exit code (or those of curl and haul, where curl 8.22 differs from Debian's), the third a word that the output has to have.
same() {
    name=$1 expected=$2 word=$3
    shift 3
    for program in curl haul; do
        if [ "$program" = curl ]; then set -- curl "$@"; else set -- "$HAUL" "$@"; fi
        if [ "$program" = haul ]; then
            shift
            set -- "$HAUL" curl "$@"
        fi
        "$@" -sv >"$work/$program.out" 2>"$work/$program.err" </dev/null
        echo $? >"$work/$program.code"
        if [ "$program" = haul ]; then shift 2; else shift; fi
        lines "$work/$program.err" >"$work/$program.lines"
        sed -i 's/^\(Date:\|WWW-Authenticate: Negotiate\) .*/\1/' "$work/$program.out"
    done
    codes="$(cat "$work/curl.code") $(cat "$work/haul.code")"
    case $expected in *' '*) ;; *) expected="$expected $expected" ;; esac
    if [ "$codes" != "$expected" ]; then
        bad "$name" "exit codes $codes, not $expected" "$(tail -n 3 "$work/haul.err")"
    elif ! cmp -s "$work/curl.out" "$work/haul.out"; then
        bad "$name" "curl: $(head -c 300 "$work/curl.out")" "haul: $(head -c 300 "$work/haul.out")"
    elif [ -n "$word" ] && ! grep -q -- "$word" "$work/haul.out"; then
        bad "$name" "no $word in: $(head -c 300 "$work/haul.out")"
    elif [ "${name#*proxy}" = "$name" ] && ! cmp -s "$work/curl.lines" "$work/haul.lines"; then
        bad "$name" "curl: $(tr '\n' '|' <"$work/curl.lines")" "haul: $(tr '\n' '|' <"$work/haul.lines")"
    else
        ok "$name"
    fi
}

# Runs haul under its own name. The second argument is the expected exit code, the third a word of output or message.
own() {
    name=$1 expected=$2 word=$3
    shift 3
    "$HAUL" "$@" >"$work/own.out" 2>&1 </dev/null
    code=$?
    if [ "$code" -ne "$expected" ]; then
        bad "$name" "exit code $code, not $expected" "$(tail -n 3 "$work/own.out")"
    elif ! grep -q -- "$word" "$work/own.out"; then
        bad "$name" "no $word in: $(head -c 400 "$work/own.out")"
    else
        ok "$name"
    fi
}

site=http://localhost:$http_port
echo "for the server" >"$work/body"

same "GET" 0 "for the user" --negotiate -u : "$site/negotiate/page"
same "the user that the server sees" 0 "me@$realm" --negotiate -u : "$site/negotiate/show.sh"
same "POST with a body" 0 "for the server" --negotiate -u : --data-binary "@$work/body" "$site/negotiate/show.sh"
same "upload from standard input" 0 "PUT" --negotiate -u : -T - "$site/negotiate/show.sh"
same "two URLs on one connection" 0 "for the user" --negotiate -u : "$site/negotiate/page" "$site/negotiate/page"
same "connection that the server binds to the user" 0 "for the user" --negotiate -u : "$site/mixed/page"
same "--anyauth" 0 "for the user" --anyauth -u : "$site/negotiate/page"
same "--anyauth with Basic alone" 0 "for the user" --anyauth -u me:secret-basic "$site/basic/page"
same "POST with --anyauth" 0 "for the server" --anyauth -u : --data-binary "@$work/body" "$site/negotiate/show.sh"
same "HEAD" 0 "200 OK" --negotiate -u : -I "$site/negotiate/page"
same "--service-name" 0 "me@$realm" --negotiate -u : --service-name web "$site/negotiate/show.sh"
same "--service-name of no server" 22 "" --negotiate -u : --service-name none -f "$site/negotiate/page"
same "no delegation" 0 "me@$realm  GET" --negotiate -u : --delegation none "$site/negotiate/show.sh"
same "delegation" 0 "me@$realm delegated GET" --negotiate -u : --delegation always "$site/negotiate/show.sh"
same "delegation by policy to a server without the flag" 0 "me@$realm  GET" --negotiate -u : --delegation policy "$site/negotiate/show.sh"
same "delegation by policy" 0 "me@$realm delegated GET" --negotiate -u : --service-name web --delegation policy \
    "$site/negotiate/show.sh"
same "server with the key of another service" 0 "401" --negotiate -u : "$site/keys/page"
same "the same with -f" 22 "" --negotiate -u : -f "$site/keys/page"
same "host that has no key" 22 "" --negotiate -u : -f "http://localhost.localdomain:$http_port/negotiate/page" \
    --resolve "localhost.localdomain:$http_port:127.0.0.1"
same "redirect to another origin" 22 "" --negotiate -u : -f -L --connect-to "other.test:80:localhost:$http_port" \
    --location --request-target /negotiate/page "http://other.test/negotiate/page"
same "HTTP proxy" 0 "the page" --proxy-negotiate -U : -x "http://localhost:$proxy_port" "$site/page"
same "tunnel through a proxy" 0 "the page" --proxy-negotiate -U : -p -x "http://localhost:$proxy_port" "$site/page"
same "--proxy-service-name" 0 "the page" --proxy-negotiate --proxy-service-name web -U : -p -x "http://localhost:$proxy_port" "$site/page"
same "proxy and server" 0 "for the user" --proxy-negotiate -U : --negotiate -u : -p -x "http://localhost:$proxy_port" \
    "$site/negotiate/page"

same "HTTP proxy with --proxy-anyauth" 0 "the page" --proxy-anyauth -U : -x "http://localhost:$proxy_port" "$site/page"
same "tunnel through a proxy with --proxy-anyauth" 0 "the page" --proxy-anyauth -U : -p -x "http://localhost:$proxy_port" "$site/page"

# Debian's curl 7.88 ends with 97 once the proxy has accepted its ticket, so there is nothing to compare with.
own "SOCKS proxy" 0 "the page" -s --socks5-gssapi --socks5 "localhost:$socks_port" "$site/page"
own "SOCKS proxy that resolves names" 0 "the page" curl -s --socks5-gssapi --socks5-hostname "localhost:$socks_port" "$site/page"
own "SOCKS proxy, twice on one connection" 0 "the page" -s --socks5-gssapi --socks5 "localhost:$socks_port" "$site/page" "$site/page"
own "SOCKS proxy with --socks5-gssapi-nec" 0 "the page" -s --socks5-gssapi --socks5-gssapi-nec --socks5 "localhost:$nec_port" "$site/page"
own "SOCKS proxy that protects messages" 97 "protection of each message" --socks5-gssapi --socks5-gssapi-service socks \
    --socks5 "localhost:$strict_port" "$site/page"
own "SOCKS proxy without the key of the service" 97 "GSS-API\|gss_init" --socks5-gssapi --socks5-gssapi-service none \
    --socks5 "localhost:$socks_port" "$site/page"
if [ "$(grep -c "^user me@$realm asks for 0" "$work/socks.log")" -ge 3 ]; then
    ok "the user that the SOCKS proxies see"
else
    bad "the user that the SOCKS proxies see" "$(tail -n 8 "$work/socks.log")"
fi

# curl 8.22 needs no -u either, but Debian's does.
own "haul: GET" 0 "for the user" -s --negotiate "$site/negotiate/page"
own "haul: list on shared connections" 0 "for the user" -s --negotiate "$site/negotiate/page?[1-30]"
own "haul: no secret in -v" 0 "Authorization: \[redacted\]" -v --negotiate "$site/negotiate/page"
if grep -q "Negotiate YII" "$work/own.out"; then bad "haul: no token in -v" "$(grep YII "$work/own.out")"; else ok "haul: no token in -v"; fi

kdestroy >/dev/null 2>&1
same "no ticket" 0 "401" --negotiate -u : "$site/negotiate/page"
same "no ticket, with -f" 22 "" --negotiate -u : -f "$site/negotiate/page"
same "no ticket, with --anyauth" 0 "401" --anyauth -u : "$site/negotiate/page"
same "no ticket for a proxy" "56 7" "" --proxy-negotiate -U : -p -x "http://localhost:$proxy_port" "$site/page"
own "haul: no ticket" 94 "kinit" --negotiate "$site/negotiate/page"
own "haul: --anyauth without a ticket uses Basic" 0 "for the user" -s --anyauth -u me:secret-me "$site/both/page"
own "haul: --anyauth without ticket and user" 22 "-u USER" --anyauth "$site/negotiate/page"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
