title="getssl: a certificate by ACME"
source="git srvrco/getssl"
hosts="acme.test site.test"
serve() { { cat "$here/acme.py"; echo "AUTHORITY = \"$work\""; } >"$site/handler.py"; }
run() {
    printf '#!/bin/sh\necho "$1 has address 127.0.0.1"\n' >/usr/local/bin/host; chmod 755 /usr/local/bin/host
    export PATH=$PATH:/opt/getssl
    bash /opt/getssl/getssl -U -w /home/user/.getssl -c site.test >/dev/null
    printf 'CA="https://acme.test/directory"\nACCOUNT_EMAIL=a@site.test\nACCOUNT_KEY_LENGTH=2048\nACCOUNT_KEY=/home/user/account.key\nPRIVATE_KEY_ALG=prime256v1\nACL="/home/user/www/.well-known/acme-challenge"\nUSE_SINGLE_ACL=true\nSKIP_HTTP_TOKEN_CHECK=true\nCHECK_REMOTE=false\nSANS=""\nFULL_CHAIN_INCLUDE_ROOT=false\n' |
        tee .getssl/getssl.cfg >.getssl/site.test/getssl.cfg
    bash /opt/getssl/getssl -U -w /home/user/.getssl site.test 2>&1
}
mask='"(payload|signature|protected)": "[^"]*"|\d{10}|[A-Za-z0-9_-]{40,}|[A-Za-z0-9+/=]{60,}|\{"protected.*|Content-Length: \d+|\d{4}-\d\d-\d\d\S*|\d\d:\d\d:\d\d'
skip_files='\.getssl|\.key|www'
