title="telegram.sh: messages and files"
source="git fabianonline/telegram.sh"
hosts="api.telegram.org"
serve() {
    cat >"$site/handler.py" <<'P'
def handle(request):
    return 200, [("Content-Type", "application/json")], b'{"ok":true,"result":[{"message":{"chat":{"id":1,"first_name":"A","type":"private"},"text":"x"}}]}'
P
}
run() {
    echo content >file
    for arguments in "hello" "-M *bold*" "-f file text" "-i file" "-l"; do
        bash /opt/telegram.sh/telegram -t 1:TOKEN -c 1 $arguments
    done
    echo from stdin | bash /opt/telegram.sh/telegram -t 1:TOKEN -c 1 -C -
}
