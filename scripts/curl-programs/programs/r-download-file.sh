title="R: download.file(method = \"curl\")"
source="installed Rscript"
hosts="files.test"
serve() { echo 'a,b' | put files.test/a.csv; }
run() {
    Rscript -e 'download.file("https://files.test/a.csv", "a.csv", method = "curl", quiet = TRUE); print(readLines("a.csv"))
        print(download.file("http://files.test/a.csv", "b.csv", method = "curl", extra = "--compressed", headers = c(A = "b")))
        r <- try(download.file("http://files.test/none", "c", method = "curl", quiet = TRUE), silent = TRUE); print(r)' 2>&1
}
