#!/bin/sh
# not-begun.sh: of a planned program on the standard input, the one whose ranks
# meet where they begin to: what a wait has made are the buffers that it is for.
exec awk '
  function list(text,   from) {
    from = index($0, text "(") + length(text) + 1
    return substr($0, from, index(substr($0, from), ")") - 1)
  }
  / rt\.wait / {
    count = split(list(" for"), made, ", ")
    split(list(" to"), outputs, ", ")
    for (i = 1; i <= count; ++i)
      is[outputs[i]] = made[i]
    next
  }
  {
    sub(/rt\.begun = [0-9]* : i64, /, "")
    rest = $0
    line = ""
    while (match(rest, /%[0-9]+/)) {
      name = substr(rest, RSTART, RLENGTH)
      line = line substr(rest, 1, RSTART - 1) (name in is ? is[name] : name)
      rest = substr(rest, RSTART + RLENGTH)
    }
    print line rest
  }'
