#!/bin/sh
# rename.sh EXPRESSION FILE: writes a .safetensors file whose header was changed
# by an expression of sed. The tensors stay where they are, so the header's
# length is the only thing that changes with it.
set -eu
export LC_ALL=C
length=$(od -A n -t u4 -N 4 "$2" | tr -d ' ')
header=$(tail -c +9 "$2" | head -c "$length" | sed "$1")
size=$(printf %s "$header" | wc -c)
for _ in 1 2 3 4 5 6 7 8; do
  printf "\\$(printf %o $((size & 255)))"
  size=$((size >> 8))
done
printf %s "$header"
tail -c +$((9 + length)) "$2"
