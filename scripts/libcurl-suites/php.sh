# The tests of PHP's curl extension, from Debian's source package, with the installed php and its extension. Those of other hosts and of
# a caddy on port 443 skip themselves.

prepare() {
    php -m 2>/dev/null | grep -q '^curl$' || { echo "apt-get install php-cli php-curl"; return 1; }
    version=$(php -r 'echo PHP_MAJOR_VERSION, ".", PHP_MINOR_VERSION;')
    source=$(source_of "php$version") || { echo "the source package of php$version cannot be had"; return 1; }
    rm -rf "$work/php"
    mkdir -p "$work/php/ext/curl"
    cp "$source/run-tests.php" "$work/php/"
    cp -R "$source/ext/curl/tests" "$work/php/ext/curl/"
}

run() {
    cd "$work/php" || return 1
    NO_INTERACTION=1 SKIP_ONLINE_TESTS=1 TEST_PHP_EXECUTABLE=$(command -v php) LD_LIBRARY_PATH=$1 \
        php run-tests.php -q -W "$work/php.results" ext/curl/tests >"$work/php.log${1:+.haul}" 2>&1
    awk '{ sub(".*/tests/", "", $2); print ($1 ~ /^PASS/ ? "pass" : $1 ~ /^SKIP/ ? "skip" : "fail"), $2 }' "$work/php.results"
}
