#!/bin/sh
# no-larger.sh PLANNED OTHER: whether of a planned program, each of its stages,
# the most bytes that are alive at one time are no more than of another one.
exec awk '
  match($0, /rt\.plan = .* bound = [0-9]+/) {
    bytes = substr($0, RSTART, RLENGTH)
    sub(/.* /, "", bytes)
    if (FILENAME == ARGV[1]) {
      planned[++count] = bytes
      next
    }
    print planned[++number] " bytes, and " bytes
    larger += planned[number] + 0 > bytes + 0
  }
  END { exit count == 0 || number != count || larger > 0 }' "$1" "$2"
