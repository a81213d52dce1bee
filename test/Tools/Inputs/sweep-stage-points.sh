# sweep-stage-points.sh WORK FIRST LAST OPTION...: neighbouring points of the curve
# of a pipeline, each run again with its bytes as the budget: that finds the
# point's plan, and so no run is slower than one with less. "16 points of 120".
set -eu
work=$1 first=$2 last=$3
shift 3
mkdir -p "$work"
number() { # of the first KEY in FILE
  grep -o "\"$1\": *[0-9.e+-]*" "$2" | head -n 1 | sed 's/.*: *//'
}
reprisec "$@" --quiet --emit=remat -o "$work/remat.mlir" --activation-budget=1048576TiB --pareto "$work/curve.json"
tr -d '\n' <"$work/curve.json" | sed 's/.*"points": *\[//; s/\].*//' | tr '}' '\n' | grep '"peak_bytes"' >"$work/points"
sed -n "$first,${last}p" "$work/points" >"$work/some"
before=1e99
while read -r point; do
  echo "$point" >"$work/point"
  bytes=$(number peak_bytes "$work/point") seconds=$(number replay_seconds "$work/point")
  reprisec "$@" --quiet --emit=remat -o "$work/remat.mlir" --activation-budget="$bytes" --pareto "$work/one.json"
  awk -v bytes="$bytes" -v seconds="$seconds" -v before="$before" \
    -v peak="$(number peak_bytes "$work/one.json")" -v took="$(number replay_seconds "$work/one.json")" 'BEGIN {
      apart = seconds - took
      if (peak > bytes || took > before || (apart < 0 ? -apart : apart) > 1e-9 * seconds + 1e-12) {
        print bytes " bytes, " seconds " s; but the budget finds " peak " bytes, " took " s, after " before " s"
        exit 1
      }
    }'
  before=$seconds
done <"$work/some"
echo "$(wc -l <"$work/some") points of $(wc -l <"$work/points")"
