# On how many stages the second of two programs for a pipeline needs fewer bytes.
# usage: fewer-bytes.sh PROGRAM PROGRAM
for program; do
  "$program" --describe | tr -d ' \n' | sed 's/.*"planned_bytes_of_stages":\[\([0-9,]*\)\].*/\1/' |
    tr ',' '\n' >"$program.stages"
  echo >>"$program.stages"
done
paste "$1.stages" "$2.stages" | awk '
  NF == 2 { ++count; fewer += $2 < $1; more += $2 > $1 }
  END { print more ? "more on a stage" : "fewer on " fewer " of " count " stages" }'
