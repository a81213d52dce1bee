#!/bin/sh
# Prints the floating-point operations of all replays of a step: those of its
# schedule, which is the file $1 in phase rt, times $2 micro-batches.
awk -v times="$2" '
function number(word,   i) {
  for (i = 1; i < NF; ++i)
    if ($i == word)
      return $(i + 1) + 0
  return 0
}
function has(text) {
  return index($0, text) > 0
}
!/remat\.replay = / { next }
/rt\.launch/ && match($0, /flops = [0-9]+/) {
  sum += substr($0, RSTART + 8, RLENGTH - 8)
}
/rt\.gemm/ {
  batch = 1
  if (match($0, /batch \[[0-9]+, [0-9]+\]/)) {
    split(substr($0, RSTART + 7, RLENGTH - 8), sizes, ", ")
    batch = sizes[1] * sizes[2]
  }
  each = 2 * number("k") + has("bias(") + has("alpha = ") + has(" accumulate ")
  sum += number("m") * number("n") * batch * each
}
END { printf "%d\n", sum * times }' "$1"
