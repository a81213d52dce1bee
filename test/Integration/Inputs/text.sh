#!/bin/sh
# Writes about $1 bytes of words with some sense to them, the same every time.
awk -v bytes="$1" 'BEGIN {
  split("the a small large old new cat dog bird tree house river sees finds likes hears near behind under over and then while .", w, " ")
  x = 12345
  while (n < bytes) {
    x = (x * 1103515245 + 12345) % 2147483648
    word = w[int(x / 65536) % 24 + 1] " "
    printf "%s", word
    n += length(word)
  }
}'
