# The tests of Perl's WWW::Curl, from Debian's source package, with the installed module, which needs libcurl-gnutls.so.4. Each assertion
# is a test here, except that the names of constants are one.

prepare() {
    perl -MWWW::Curl::Easy -e1 2>/dev/null || { echo "apt-get install libwww-curl-perl"; return 1; }
    source=$(source_of libwww-curl-perl) || { echo "the source package of libwww-curl-perl cannot be had"; return 1; }
    start_httpbin || { echo "httpbin does not start"; return 1; }
    rm -rf "$work/www-curl"
    mkdir "$work/www-curl"
    cp -R "$source/t" "$source/inc" "$work/www-curl/"
    # Tests of the package, and one of FTP.
    (cd "$work/www-curl/t" && rm -f 07ftp-upload.t meta.t pod.t pod-coverage.t)
    # Files that are skipped because not every server takes POST and PUT; httpbin does.
    sed -i "s/skip_all => \"Not performing[^;]*;/'no_plan';/" "$work/www-curl"/t/*.t
}

run() {
    cd "$work/www-curl" || return 1
    for test in t/*.t; do
        url=$httpbin/html
        grep -q 'CURLOPT_UPLOAD\|HTTPPOST\|POSTFIELDS' "$test" && url=$httpbin/anything
        CURL_TEST_URL=$url LD_LIBRARY_PATH=$1 timeout 120 perl "$test" >"$work/www-curl.out" 2>&1
        code=$?
        name=$(basename "$test" .t)
        awk -v name="$name" -v code="$code" '
            /^(not )?ok / {
                result = /^ok/ ? "pass" : "fail"
                number = /^ok/ ? $2 : $3
                if (name ~ /constants/) { bad += result == "fail"; seen++ } else print result, name "-" number
            }
            END {
                if (name ~ /constants/) print seen && !bad ? "pass" : "fail", name
                print code == 0 ? "pass" : "fail", name "-exit"
            }' "$work/www-curl.out"
    done
}
