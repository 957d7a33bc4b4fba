# pycurl's own tests, from its source package, compiled against the header of the system's libcurl.
pycurl_version=7.49.0

prepare() {
    python_packages || { echo "the packages of $here/requirements.txt cannot be had"; return 1; }
    [ -d "$work/pycurl-$pycurl_version" ] || {
        "$work/venv/bin/python" -m pip --disable-pip-version-check --quiet download --no-deps --no-binary pycurl \
            --no-build-isolation --dest "$work" "pycurl==$pycurl_version" &&
            tar -xzf "$work/pycurl-$pycurl_version.tar.gz" -C "$work"
    } || { echo "pycurl's source package cannot be had"; return 1; }
    "$work/venv/bin/python" -c 'import pycurl' 2>/dev/null ||
        PYCURL_SSL_LIBRARY=openssl "$work/venv/bin/python" -m pip --disable-pip-version-check --quiet install --no-deps \
            --no-build-isolation "$work/pycurl-$pycurl_version" ||
        { echo "pycurl cannot be compiled: apt-get install libcurl4-openssl-dev"; return 1; }
    # The tests import the installed module, not its sources.
    rm -rf "$work/pycurl"
    mkdir "$work/pycurl"
    cp -R "$work/pycurl-$pycurl_version/tests" "$work/pycurl-$pycurl_version/pytest.ini" "$work/pycurl/"
    # A test of the file setup.py.
    rm "$work/pycurl/tests/setup_test.py"
}

run() {
    cd "$work/pycurl" || return 1
    LD_LIBRARY_PATH=$1 "$work/venv/bin/python" -m pytest -q -p no:cacheprovider --timeout 300 -m "not online and not ssh" \
        --junit-xml "$work/pycurl.xml" tests >"$work/pycurl.log${1:+.haul}" 2>&1
    "$work/venv/bin/python" - "$work/pycurl.xml" <<'PROGRAM'
import sys, xml.etree.ElementTree as tree
for case in tree.parse(sys.argv[1]).iter("testcase"):
    kinds = {part.tag for part in case}
    result = "fail" if kinds & {"failure", "error"} else "skip" if "skipped" in kinds else "pass"
    print(result, case.get("classname").removeprefix("tests.") + "." + case.get("name").replace("\n", " "))
PROGRAM
}
