# sweep-curve-programs.sh WORK OPTION...: the points of the curve of a pipeline,
# asked for alone, each compiled to a plan with its bytes as the budget. That
# takes no more, and its replays as long as the point says. "12 points".
set -eu
work=$1
shift
mkdir -p "$work"
number() { # of the first KEY in FILE
  grep -o "\"$1\": *[0-9.e+-]*" "$2" | head -n 1 | sed 's/.*: *//'
}
reprisec "$@" --quiet --pareto "$work/curve.json"
grep -q '"kind": "memory"' "$work/curve.json"
tr -d '\n' <"$work/curve.json" | sed 's/.*"points": *\[//; s/\].*//' | tr '}' '\n' | grep '"peak_bytes"' >"$work/points"
while read -r point; do
  echo "$point" >"$work/point"
  bytes=$(number peak_bytes "$work/point") seconds=$(number replay_seconds "$work/point")
  took=$(reprisec "$@" --memory-budget="$bytes" --pareto "$work/one.json" --emit=rt -o "$work/rt.mlir" 2>&1 |
    sed -n 's/^stage [0-9]* memory: [^,]*, \([0-9]*\) bytes.*/\1/p' | sort -n | tail -n 1)
  awk -v bytes="$bytes" -v seconds="$seconds" -v took="$took" \
    -v replays="$(number replay_seconds "$work/one.json")" 'BEGIN {
      apart = seconds - replays
      if (took > bytes || took <= 0 || (apart < 0 ? -apart : apart) > 1e-9 * seconds + 1e-12) {
        print bytes " bytes, " seconds " s; but its program takes " took " bytes, " replays " s"
        exit 1
      }
    }'
done <"$work/points"
echo "$(wc -l <"$work/points") points"
