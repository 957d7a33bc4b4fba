title="wnpp-check and wnpp-alert: packages that need help"
source="deb devscripts"
hosts="www.debian.org"
serve() {
    for page in being_packaged requested; do
        echo '<li><a href="https://bugs.debian.org/123456">hello: a greeting</a>' | put www.debian.org/devel/wnpp/$page
    done
    for page in orphaned rfa_bypackage help_requested; do
        echo '<li><a href="https://bugs.debian.org/123457">bash: a shell</a>' | put www.debian.org/devel/wnpp/$page
    done
}
run() { wnpp-check hello; wnpp-alert bash; }
