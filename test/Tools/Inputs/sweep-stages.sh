# sweep-stages.sh WORK OPTION...: budgets of the stages of a pipeline, one after
# the other: each is verified and kept, and more bytes never make a step longer.
set -eu
work=$1
shift
mkdir -p "$work"
number() { # of the first KEY in the curve
  grep -o "\"$1\": *[0-9.e+-]*" "$work/curve.json" | head -n 1 | sed 's/.*: *//'
}
last=1e99
for budget in 6000000 8000000 9000000 10000000 11000000 12500000 14000000 15600000; do
  reprisec "$@" --quiet --emit=remat -o "$work/remat.mlir" --activation-budget=$budget \
    --certificate "$work/proof.json" --pareto "$work/curve.json" 2>"$work/errors" || continue
  reprise-memplan --verify "$work/proof.json" >"$work/verified"
  awk -v budget=$budget -v peak="$(number peak_bytes)" -v seconds="$(number replay_seconds)" -v last="$last" 'BEGIN {
    print "budget " budget ": peak " peak ", replays " seconds " s"
    exit peak > budget || seconds > last + 1e-12
  }'
  last=$(number replay_seconds)
done
