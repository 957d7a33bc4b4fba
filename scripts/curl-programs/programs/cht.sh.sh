title="cht.sh: answers of cheat.sh"
source="git chubin/cheat.sh"
hosts="cht.sh cheat.sh"
serve() {
    cat >"$site/handler.py" <<'P'
def handle(request):
    return 200, [], b"answer to " + request["target"].encode() + b"\n"
P
}
run() {
    s=$(find /opt/cheat.sh -name cht.sh.txt | head -n 1)
    mkdir -p .cht.sh; printf 'CHTSH_URL=https://cht.sh\nCHTSH_QUERY_OPTIONS=T\n' >.cht.sh/cht.sh.conf
    for question in "go reverse a list" ":help" "tar"; do bash "$s" $question; done
}
