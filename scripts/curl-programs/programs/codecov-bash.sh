title="codecov's bash uploader"
source="git codecov/codecov-bash"
hosts="codecov.io storage.test"
serve() {
    cat >"$site/handler.py" <<'P'
def handle(request):
    if request["method"] == "POST":
        return 200, [], b"https://codecov.io/report\nhttps://storage.test/put?key=1\n"
    return 200, [], b"ok\n"
P
}
run() {
    git init -q . && git config user.email a@a.test && git config user.name a
    echo 'TN:' >coverage.lcov
    GIT_AUTHOR_DATE='2020-01-01 00:00:00 +0000' GIT_COMMITTER_DATE='2020-01-01 00:00:00 +0000' git commit -q --allow-empty -m x
    CODECOV_TOKEN=token bash /opt/codecov-bash/codecov -f coverage.lcov -Z
}
skip_files='\.git/'
mask='curl/VERSION \((x86_64|Linux).*|Protocols:.*|Features:.*|Release-Date:.*'
