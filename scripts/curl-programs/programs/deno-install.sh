title="deno's install.sh"
source="git denoland/deno_install"
hosts="dl.deno.land github.com"
serve() {
    echo v2.0.0 | put dl.deno.land/release-latest.txt
    "$python" - <<'P' | put dl.deno.land/release/v2.0.0/deno-x86_64-unknown-linux-gnu.zip
import sys, zipfile, io
whole = io.BytesIO()
with zipfile.ZipFile(whole, "w") as file:
    file.writestr(zipfile.ZipInfo("deno", (1994, 11, 6, 8, 49, 36)), "#!/bin/sh\necho deno $*\n")
sys.stdout.buffer.write(whole.getvalue())
P
    mkdir -p "$site/github.com" && cp -r "$site/dl.deno.land/release" "$site/github.com/"
}
run() {
    command -v unzip >/dev/null || { printf '#!/bin/sh\npython3 -m zipfile -e "$4" "$3"\n' >/usr/local/bin/unzip; chmod 755 /usr/local/bin/unzip; }
    sh /opt/deno_install/install.sh -y 2>&1; sh /opt/deno_install/install.sh v9.9.9 2>&1
}
