title="update-ieee-data: the lists of MAC addresses"
source="deb ieee-data"
hosts="standards-oui.ieee.org"
serve() {
    for path in oui/oui.txt oui/oui.csv oui28/mam.txt oui28/mam.csv oui36/oui36.txt oui36/oui36.csv iab/iab.txt iab/iab.csv; do
        case $path in *csv) echo "Registry,Assignment,Organization Name,Organization Address" ;; *) echo "OUI/MA-L  Organization Organization Address" ;; esac | put standards-oui.ieee.org/$path
    done
}
run() { rm -f /usr/bin/lwp-request; update-ieee-data -f; }
skip_files='lastupdate'
