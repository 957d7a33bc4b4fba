title="sdk (SDKMAN): lists and installs a candidate"
source="git sdkman/sdkman-cli"
hosts="api.sdkman.io beta.sdkman.io broker.sdkman.io"
serve() {
    cat >"$site/handler.py" <<'P'
def handle(request):
    import io, zipfile
    target = request["target"]
    if "/healthcheck" in target:
        return 200, [], b"12345678"
    if "/validate/" in target:
        return 200, [], b"valid"
    if "/default/" in target:
        return 200, [], b"1.0"
    if "/hooks/" in target:
        return 200, [], b"#!/bin/bash\nfunction __sdkman_post_installation_hook { mv $binary_input $zip_output; }\nfunction __sdkman_pre_installation_hook { true; }\n"
    if "/download/" in target:
        return 302, [("Location", "/archive.zip"), ("X-Sdkman-Checksum-Md5", "0"), ("X-Sdkman-Archivetype", "zip")], b""
    if target.endswith(".zip"):
        whole = io.BytesIO()
        with zipfile.ZipFile(whole, "w") as file:
            file.writestr(zipfile.ZipInfo("thing-1.0/bin/thing", (1994, 11, 6, 8, 49, 36)), "thing")
        return 200, [], whole.getvalue()
    if target.startswith("/2/candidates/all"):
        return 200, [], b"thing,other"
    return 200, [], b"list of " + target.encode() + b"\n"
P
}
run() {
    export SDKMAN_DIR=/home/user/.sdkman
    mkdir -p $SDKMAN_DIR/{src,bin,ext,etc,var,candidates,tmp}
    cp /opt/sdkman-cli/src/main/bash/*.sh $SDKMAN_DIR/src; sed -i "s,@SDKMAN_CANDIDATES_API@,https://api.sdkman.io/2,g; s,@SDKMAN_BROKER_API@,https://broker.sdkman.io/2,g" $SDKMAN_DIR/src/*.sh; mv $SDKMAN_DIR/src/sdkman-init.sh $SDKMAN_DIR/bin
    echo thing,other >$SDKMAN_DIR/var/candidates; echo 5.0 >$SDKMAN_DIR/var/version; echo linuxx64 >$SDKMAN_DIR/var/platform
    printf 'sdkman_auto_answer=true\nsdkman_checksum_enable=false\nsdkman_curl_connect_timeout=7\nsdkman_curl_max_time=10\nsdkman_native_enable=false\nsdkman_colour_enable=false\nsdkman_debug_mode=false\n' >$SDKMAN_DIR/etc/config
    command -v unzip >/dev/null || { printf '#!/bin/sh\nfor last in "$@"; do :; done\npython3 -m zipfile -e "$2" "$4" 2>/dev/null || python3 -m zipfile -l "$2"\n' >/usr/local/bin/unzip; chmod 755 /usr/local/bin/unzip; }
    command -v zip >/dev/null || { printf '#!/bin/sh\nexit 0\n' >/usr/local/bin/zip; chmod 755 /usr/local/bin/zip; }
    . $SDKMAN_DIR/bin/sdkman-init.sh
    sdk list | cat; sdk list thing | cat; sdk install thing; sdk update
}
