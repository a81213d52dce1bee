#!/bin/sh
# Usage: versions.sh FOLDER
# Compares the first line of --version of all programs in FOLDER, and prints how many
# there are and the line. Fails if one has another, or its --help says nothing, ends with
# an error, or has a line of more than 80 columns, but for one that is LLVM's.
fail() { echo "versions.sh: $*" >&2; exit 1; }
count=0 common=$("$1/reprisec" --version | sed 1q)
for program in "$1"/*; do
  [ -f "$program" ] && [ -x "$program" ] || continue
  name=${program##*/}
  version=$("$program" --version) || fail "$name --version fails"
  first=$(echo "$version" | sed 1q)
  [ "$first" = "$common" ] || fail "$name --version says '$first'"
  help=$("$program" --help) || fail "$name --help fails"
  [ -n "$help" ] || fail "$name --help says nothing"
  wide=$(echo "$help" | awk 'length > 80 && !/--help-list-hidden for more/ { print; exit }')
  [ -z "$wide" ] || fail "$name --help has the line '$wide'"
  count=$((count + 1))
done
echo "$count programs: $common"
