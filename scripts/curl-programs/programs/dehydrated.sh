title="dehydrated: an account and a certificate by ACME"
source="deb dehydrated"
hosts="acme.test www.site.test site.test"
serve() { { cat "$here/acme.py"; echo "AUTHORITY = \"$work\""; } >"$site/handler.py"; }
run() {
    mkdir -p /home/user/www
    printf 'CA="https://acme.test/directory"\nWELLKNOWN=/home/user/www\nBASEDIR=/home/user\nKEY_ALGO=prime256v1\nCONTACT_EMAIL=a@site.test\n' >config
    dehydrated -f config --register --accept-terms && dehydrated -f config -c -d site.test -d www.site.test &&
        dehydrated -f config -c -d site.test -d www.site.test && dehydrated -f config --revoke /home/user/certs/site.test/fullchain.pem
    ls certs/site.test | sed 's/[0-9]\{8,\}/TIME/'
}
mask='Valid till .* GMT|"(payload|signature|protected)": "[^"]*"|\d{10}|[A-Za-z0-9_-]{40,}|[A-Za-z0-9+/=]{60,}|\{"protected.*|Content-Length: \d+'
skip_files='certs|accounts|chains|_key'
