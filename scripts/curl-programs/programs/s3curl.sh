title="s3curl: signed requests of each kind"
source="deb s3curl
deb libdigest-hmac-perl"
hosts="bucket.s3.amazonaws.com s3.amazonaws.com"
serve() {
    cat >"$site/handler.py" <<'P'
def handle(request):
    return 200, [("x-amz-request-id", "1")], b"<Result/>\n"
P
}
run() {
    printf '%%awsSecretAccessKeys = (me => { id => "ID", key => "KEY" });\n' >.s3curl; chmod 600 .s3curl
    echo content >file
    s3curl --id me -- -s https://bucket.s3.amazonaws.com/key; s3curl --id me --put file --calculateContentMd5 -- -s https://bucket.s3.amazonaws.com/key
    s3curl --id me --delete -- -s -i https://bucket.s3.amazonaws.com/key; s3curl --id me --head -- -s https://bucket.s3.amazonaws.com/key
    s3curl --id me --createBucket -- -s https://bucket.s3.amazonaws.com; s3curl --id me --post file --contentType text/plain -- -s 'https://bucket.s3.amazonaws.com/key?uploads'
}
mask='Date: [^\n\t]*|AWS ID:[A-Za-z0-9+/=]*'
