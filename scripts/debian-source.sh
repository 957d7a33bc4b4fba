#!/bin/sh
# Downloads and unpacks a Debian source package, for the scripts that run test suites of other projects.
#
#   sh scripts/debian-source.sh PACKAGE DIR [MEMBER]    into DIR; of its archive only MEMBER, if given
#
# RELEASE names a Debian release; the default is that of the system. The package comes from the system's mirror, through a temporary
# source list and cache, so that the system's own are unchanged. Prints the directory. Exits with 1 if the package is not available.
set -u

package=$1
into=$2
member=${3:-}
release=${RELEASE:-$(. /etc/os-release 2>/dev/null && echo "${VERSION_CODENAME:-stable}")}
command -v apt-get >/dev/null 2>&1 || exit 1
mkdir -p "$into/apt/lists/partial" "$into/apt/cache/archives/partial"
mirror=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 2>/dev/null | sed -n 's/^Debian Debian //p' | head -n 1)
[ -n "$mirror" ] || exit 1
echo "deb-src $mirror $release main" > "$into/apt/sources.list"
apt="-o Dir::Etc::sourcelist=$into/apt/sources.list -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists=$into/apt/lists
    -o Dir::Cache=$into/apt/cache -o APT::Sandbox::User="
cd "$into" || exit 1
# shellcheck disable=SC2086 # words
apt-get $apt update -q >apt.log 2>&1 && apt-get $apt source -q --tar-only --only-source "$package" >>apt.log 2>&1 || exit 1
# The first archive of the original counts; there may be further ones (-NAME.tar). A native package has one archive without `orig`.
archive=$(find . -maxdepth 1 -name "${package}_*.orig.tar.*" ! -name '*.asc' | head -n 1)
[ -n "$archive" ] || archive=$(find . -maxdepth 1 -name "${package}_*.tar.*" ! -name '*.debian.tar.*' | head -n 1)
[ -n "$archive" ] || exit 1
top=$(tar tf "$archive" | head -n 1 | cut -d/ -f1)
# shellcheck disable=SC2086 # nothing, or one word
tar xf "$archive" ${member:+"$top/$member"} && rm -f "$archive" && echo "$into/$top${member:+/$member}"
