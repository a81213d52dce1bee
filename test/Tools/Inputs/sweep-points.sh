# sweep-points.sh WORK BUDGET EVERY OPTION...: points of the curve of all budgets,
# every so many and the first with other rows of the head: a budget of a point's bytes (BUDGET is the option)
# finds that point, with its rows. "1048576 bytes, 256 rows, 0.001 s"; fails where
# they differ, or where a point is no faster than the one before.
set -eu
work=$1 budget=$2 every=$3
shift 3
mkdir -p "$work"

number() { # of the first KEY in FILE; 0 if there is none
  grep -o "\"$1\": *[0-9.e+-]*" "$2" | head -n 1 | sed 's/.*: *//' | grep . || echo 0
}

reprisec "$@" --quiet --inference=off "$budget=1048576TiB" --pareto "$work/curve.json"
tr -d '\n' <"$work/curve.json" | sed 's/.*"points": *\[//; s/\].*//' | tr '}' '\n' | grep '"peak_bytes"' >"$work/points"
last=1e99 line=0 before=
while read -r point; do
  echo "$point" >"$work/point"
  bytes=$(number peak_bytes "$work/point") rows=$(number head_rows "$work/point")
  seconds=$(number replay_seconds "$work/point") step=$(number step_seconds "$work/point")
  bound=$(number lower_bound_seconds "$work/point")
  last=$(awk -v last="$last" -v step="$step" -v seconds="$seconds" -v bound="$bound" 'BEGIN {
    if (step + seconds >= last) exit 1
    if (bound > seconds * (1 + 1e-9) + 1e-12) exit 1
    printf "%.17g", step + seconds
  }') || { echo "not faster, or below its bound: $point"; exit 1; }
  line=$((line + 1))
  [ $((line % every)) -eq 0 ] || [ "$rows" != "$before" ] || continue
  before=$rows
  reprisec "$@" --quiet --inference=off "$budget=$bytes" --pareto "$work/one.json" --save-plan "$work/plan.yaml"
  echo "$bytes bytes, $rows rows, $seconds s"
  awk -v bytes="$bytes" -v peak="$(number peak_bytes "$work/one.json")" -v seconds="$seconds" \
    -v took="$(number replay_seconds "$work/one.json")" -v rows="$rows" -v has="$(number head_rows "$work/one.json")" 'BEGIN {
      apart = seconds - took
      if (peak > bytes || rows != has || (apart < 0 ? -apart : apart) > 1e-9 * seconds) {
        print "but the budget finds " peak " bytes, " has " rows, " took " s"
        exit 1
      }
    }'
done <"$work/points"
