# compare-rivals.sh DESCRIPTION BUDGET OPTION...: of each of Megatron's options
# that are listed beside a budget, peak and replays as listed and as reported of
# that option alone: "full block 2: 1048576 bytes, 0.001 s". Fails where they
# differ, the seconds in more than the order of a sum.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
model=$1 budget=$2
shift 2

number() { # of the first KEY in FILE
  grep -o "\"$1\": *[0-9.e+-]*" "$2" | head -n 1 | sed 's/.*: *//'
}

reprisec "$model" --quiet --inference=off "$@" "$budget" --pareto "$work/curve.json"
tr -d '\n' <"$work/curve.json" | sed 's/.*"megatron"//' | tr '}' '\n' | grep '"recompute"' >"$work/rivals"
while read -r rival; do
  echo "$rival" >"$work/rival"
  name=$(sed 's/.*"recompute": *"\([^"]*\)".*/\1/' "$work/rival")
  bytes=$(number peak_bytes "$work/rival")
  seconds=$(number replay_seconds "$work/rival")
  options="--recompute-granularity="
  case $name in
  selective*) options="--recompute-granularity=selective --recompute-modules=${name#* }" ;;
  full*) options="--recompute-granularity=full --recompute-method=$(echo "$name" | cut -d' ' -f2) --recompute-num-layers=${name##* }" ;;
  esac
  reprisec "$model" --quiet --inference=off "$@" $options --plan-json "$work/alone.json" 2>"$work/warnings"
  case $budget in
  --memory-budget*) alone=$(number peak_bytes "$work/alone.json") ;;
  *) alone=$(number activations "$work/alone.json") ;;
  esac
  awk -v name="$name" -v bytes="$bytes" -v alone="$alone" -v seconds="$seconds" \
    -v took="$(number replay_seconds "$work/alone.json")" 'BEGIN {
      print name ": " bytes " bytes, " seconds " s"
      apart = seconds - took
      if (bytes != alone || (apart < 0 ? -apart : apart) > 1e-9 * seconds) {
        print "but alone: " alone " bytes, " took " s"
        exit 1
      }
    }'
done <"$work/rivals"
