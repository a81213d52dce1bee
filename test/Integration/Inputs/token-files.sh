#!/bin/sh
# Writes the bytes of text $1 (one line, at most 65535 bytes) as tokens, once in
# each format that --data reads, into the folder $2:
#
#   u16.bin u32.bin        llm.c's, with a header
#   part-{1,2,3}.bin       the first one in shards of a third each
#   automodel.bin         NeMo Automodel's, with a header, u32
#   u16.npy i64.npy       NumPy's; far.npy: one with tokens from 307 on
#   plain8.bin plain16.bin plain32.bin   nanoGPT's, without a header
#   mark                  the text behind a byte order mark
#   megatron.bin megatron.idx   five sequences in three documents, one empty
#   gaps.bin gaps.idx      two sequences of i32, the second one first
set -eu
export LC_ALL=C
text=$1
out=$2
size=$(($(wc -c <"$text")))

# le BYTES NUMBER...: the numbers, little-endian.
le() {
  bytes=$1
  shift
  for number; do
    for _ in $(seq "$bytes"); do
      printf "\\$(printf %o $((number & 255)))"
      number=$((number >> 8))
    done
  done
}

wide() { sed 's/./&\x00/g'; }
wider() { sed 's/./&\x00\x00\x00/g'; }

# llmc MAGIC VERSION COUNT: a header of 1024 bytes.
llmc() {
  le 4 "$1" "$2" "$3"
  head -c 1012 /dev/zero
}

{ llmc 20240520 1 $size && wide <"$text"; } >"$out/u16.bin"
{ llmc 20240801 7 $size && wider <"$text"; } >"$out/u32.bin"
{
  le 4 278895051 1 $size 4
  head -c 1008 /dev/zero
  wider <"$text"
} >"$out/automodel.bin"

# npy TYPE COUNT: a header of 128 bytes.
npy() {
  printf '\223NUMPY\1\0'
  le 2 118
  printf '%-117s\n' "{'descr': '$1', 'fortran_order': False, 'shape': ($2,), }"
}

{ npy '<u2' $size && wide <"$text"; } >"$out/u16.npy"
{ npy '<i8' $size && sed 's/./&\x00\x00\x00\x00\x00\x00\x00/g' <"$text"; } >"$out/i64.npy"
{ npy '<i4' 100 && le 4 $(seq 307 406); } >"$out/far.npy"

{ printf '\357\273\277' && cat "$text"; } >"$out/mark"
cat "$text" >"$out/plain8.bin"
wide <"$text" >"$out/plain16.bin"
wider <"$text" >"$out/plain32.bin"

third=$((size / 3))
for part in 1 2 3; do
  from=$(((part - 1) * third + 1))
  last=$((part == 3 ? size : part * third))
  {
    llmc 20240520 1 $((last - from + 1))
    tail -c +$from "$text" | head -c $((last - from + 1)) | wide
  } >"$out/part-$part.bin"
done

# idx TYPE S D: the part before the arrays.
idx() {
  printf 'MMIDIDX\0\0'
  le 8 1
  le 1 "$1"
  le 8 "$2" "$3"
}

wide <"$text" >"$out/megatron.bin"
{
  idx 8 5 4
  le 4 1000 0 1 500 $((size - 1501))
  le 8 0 2000 2000 2002 3002
  le 8 0 2 2 5
} >"$out/megatron.idx"

{
  tail -c +1001 "$text" | wider
  printf 'a gap'
  head -c 1000 "$text" | wider
} >"$out/gaps.bin"
{
  idx 4 2 2
  le 4 1000 $((size - 1000))
  le 8 $((4 * (size - 1000) + 5)) 0
  le 8 0 2
} >"$out/gaps.idx"
