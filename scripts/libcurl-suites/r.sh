# The tests of R's curl package, from Debian's source package, with the installed package and httpbin on loopback.

prepare() {
    Rscript -e 'library(curl); library(testthat); library(httpuv); library(webutils); library(jsonlite)' >/dev/null 2>&1 ||
        { echo "apt-get install r-cran-curl r-cran-testthat r-cran-httpuv r-cran-webutils r-cran-jsonlite"; return 1; }
    source=$(source_of r-cran-curl) || { echo "the source package of r-cran-curl cannot be had"; return 1; }
    start_httpbin || { echo "httpbin does not start"; return 1; }
    rm -rf "$work/r"
    cp -R "$source/tests/testthat" "$work/r"
    # Looks for httpbin elsewhere.
    echo 'httpbin <- function(path) paste0(Sys.getenv("HTTPBIN"), "/", sub("^/", "", path))' >"$work/r/helper-version.R"
    address=${httpbin#http://}
    sed -i "s#http://jeroen.github.io/images/frink.png#$httpbin/image/png#; s#http://curl.se#$httpbin/html#
        s#https://cran.r-project.org/src/contrib/stringi[^']*#$httpbin/drip?numbytes=50\&duration=5#
        s#https://cloud.r-project.org/web/packages/curl/curl.pdf#$httpbin/bytes/100000#
        s#https://httpbin.org/delay#$httpbin/delay#; s#'httpbin.org/delay#'$address/delay#; s#\[httpbin.org\]#[$address]#" "$work"/r/*.R
    cat >"$work/r.R" <<'PROGRAM'
library(testthat)
filter <- commandArgs(trailingOnly = TRUE)
results <- as.data.frame(test_dir("r", filter = paste0("^", filter, "$"), package = "curl", load_package = "installed",
                                  reporter = "silent", stop_on_failure = FALSE))
kind <- ifelse(results$failed > 0 | results$error, "fail", ifelse(results$skipped, "skip", "pass"))
name <- make.unique(paste(filter, results$test, sep = "-"))
cat(paste(kind, gsub(":", "", name)), sep = "\n")
PROGRAM
}

run() {
    cd "$work" || return 1
    # A process for each file: a crash ends that file alone. R puts its own directories before those of LD_LIBRARY_PATH.
    for test in r/test-*.R; do
        name=$(basename "$test" .R)
        HTTPBIN=$httpbin R_LD_LIBRARY_PATH=${1:+$1:}$(R RHOME)/lib timeout 300 Rscript r.R "${name#test-}" 2>>"$work/r.log${1:+.haul}" |
            grep -E '^(pass|fail|skip) '
    done
}
