#!/bin/sh
# beside.sh: of a schedule with what ranks begin, on the standard input, says how many
# exchanges of rows are begun, and beside how many of them a GEMM stands before
# their wait.
awk '
/rt\.(send|return)_rows.*rt\.begun = / {
  number = $0
  sub(/.*rt\.begun = /, "", number)
  sub(/[^0-9].*/, "", number)
  going[number] = 1
  begun++
}
/rt\.gemm / {
  for (number in going)
    if (going[number] == 1) {
      going[number] = 2
      beside++
    }
}
/rt\.wait / {
  number = $0
  sub(/.*rt\.wait /, "", number)
  sub(/[^0-9].*/, "", number)
  delete going[number]
}
END { print begun + 0, "begun,", beside + 0, "beside GEMMs" }
'
