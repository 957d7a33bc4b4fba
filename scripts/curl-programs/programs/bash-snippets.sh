title="Bash-Snippets: transfer, short, weather, cheat, crypt, currency, newton"
source="git alexanderepstein/Bash-Snippets"
hosts="transfer.sh www.github.com github.com google.com tinyurl.com api.exchangeratesapi.io wttr.in cheat.sh newton.now.sh api.fixer.io ipinfo.io qrenco.de api.github.com raw.githubusercontent.com"
serve() {
    cat >"$site/handler.py" <<'P'
def handle(request):
    if request["method"] == "PUT":
        return 200, [], b"https://transfer.sh/abc/file\n"
    return 200, [], b'{"rates": {"USD": 1.1}, "result": "4", "loc": "46,7", "ip": "192.0.2.1"}\n'
P
}
run() {
    echo content >file
    s=/opt/Bash-Snippets
    bash $s/transfer/transfer file; bash $s/transfer/transfer -d . abc file
    bash $s/weather/weather Bern; bash $s/cheat/cheat ls; bash $s/newton/newton simplify 2+2; bash $s/geo/geo -w; bash $s/short/short https://a.test
    bash $s/qrify/qrify hello; printf 'EUR\nUSD\n1\n' | bash $s/currency/currency
}
