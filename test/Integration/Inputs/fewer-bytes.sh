# Whether the second of two programs for a pipeline needs fewer bytes on each stage.
# usage: fewer-bytes.sh PROGRAM PROGRAM
for program; do
  "$program" --describe | tr -d ' \n' | sed 's/.*"planned_bytes_of_stages":\[\([0-9,]*\)\].*/\1/' |
    tr ',' '\n' >"$program.stages"
  echo >>"$program.stages"
done
paste "$1.stages" "$2.stages" | awk '
  NF == 2 { ++count; fewer += $2 < $1 }
  END { print fewer == count ? "fewer on each of " count " stages" : "more on a stage" }'
