title="acme.sh: registers and issues by ACME"
source="git acmesh-official/acme.sh"
hosts="acme.test site.test"
serve() { { cat "$here/acme.py"; echo "AUTHORITY = \"$work\""; } >"$site/handler.py"; }
run() {
    cd /opt/acme.sh
    for step in "--register-account -m a@site.test" "--issue -d site.test -w /home/user --keylength ec-256" "--revoke -d site.test --ecc"; do
        bash ./acme.sh --home /home/user/.acme.sh --server https://acme.test/directory --ca-bundle /etc/ssl/certs/ca-certificates.crt $step
    done 2>&1 | sed 's/^\[[^]]*\]//' | grep -v -e '^[A-Za-z0-9+/=]*$'
    USE_WGET=0 bash ./acme.sh --home /home/user/.acme.sh --server https://localhost:444/directory --register-account -m a@site.test 2>&1 | sed 's/^\[[^]]*\]//'
}
mask='"(payload|signature|protected)": "[^"]*"|\d{10}|[A-Za-z0-9_-]{40,}|[A-Za-z0-9+/=]{60,}|\{"protected.*|Content-Length: \d+|\d{4}-\d\d-\d\d\S*'
skip_files='\.acme\.sh|opt/'
