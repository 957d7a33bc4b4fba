# Sourced by the scripts that run curl's own tests. Sets the variables of suite-paths.sh, and defines curl_source.
#
#   SUITE_RELEASE=NAME   the Debian release whose curl is used

. "$(dirname "$0")/suite-paths.sh"

mkdir -p "$work/bin"
ln -sf "$haul" "$work/bin/curl"

# curl_source RELEASES [MEMBER]: fetches curl's source package, or only MEMBER of it, from the first available release, or from
# SUITE_RELEASE. Prints the directory.
curl_source() {
    for release in ${SUITE_RELEASE:-$1}; do
        RELEASE=$release sh "$top/scripts/debian-source.sh" curl "$work" ${2:+"$2"} && return 0
    done
    return 1
}
