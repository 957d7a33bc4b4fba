title="nquire (Entrez Direct): queries by GET and POST"
source="deb ncbi-entrez-direct"
hosts="eutils.ncbi.nlm.nih.gov ftp.ncbi.nlm.nih.gov"
serve() {
    cat >"$site/handler.py" <<'P'
def handle(request):
    return 200, [("Content-Type", "text/xml")], b"<eSearchResult><Count>1</Count><IdList><Id>1</Id></IdList></eSearchResult>\n"
P
}
run() {
    nquire -curl -url https://eutils.ncbi.nlm.nih.gov/entrez/eutils/esearch.fcgi -db pubmed -term 'a b&c'
    nquire -curl -get https://eutils.ncbi.nlm.nih.gov/entrez/eutils/einfo.fcgi -db pubmed
    nquire -curl -lst https://ftp.ncbi.nlm.nih.gov pub 2>&1 | head -n 3
}
