# Read by the scripts that run curl's own tests: haul in curl's place, and curl's source. Sets what suite-place.sh sets.
#
#   SUITE_RELEASE=NAME   Debian's release whose curl it is

. "$(dirname "$0")/suite-place.sh"

mkdir -p "$work/bin"
ln -sf "$haul" "$work/bin/curl"

# curl_source RELEASES [MEMBER]: curl's source package, or only MEMBER of it, from the first of these releases that can be had, unless
# SUITE_RELEASE names one. Prints where it is.
curl_source() {
    for release in ${SUITE_RELEASE:-$1}; do
        RELEASE=$release sh "$top/scripts/debian-source.sh" curl "$work" ${2:+"$2"} && return 0
    done
    return 1
}
