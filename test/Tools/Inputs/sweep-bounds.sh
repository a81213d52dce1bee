# sweep-bounds.sh WORK BUDGETS OPTION...: the bound on the schedule of a pipeline,
# which a larger one of the budgets does not raise.
set -eu
work=$1 budgets=$2
shift 2
mkdir -p "$work"
last=1e99
for budget in $budgets; do
  reprisec "$@" --quiet --emit=remat -o "$work/remat.mlir" --activation-budget=$budget \
    --certificate "$work/proof.json" 2>"$work/errors"
  reprise-memplan --verify "$work/proof.json" >"$work/verified"
  bound=$(sed -n 's/^ *"lower_bound_seconds": *\([0-9.e+-]*\).*/\1/p' "$work/proof.json" | head -n 1)
  awk -v budget=$budget -v bound="$bound" -v last="$last" 'BEGIN {
    print "budget " budget ": bound " bound " s"
    exit bound > last * (1 + 1e-12)
  }'
  last=$bound
done
