# to-the-byte.sh WORK BUDGET OPTION...: the arena of a plan for a budget, which a
# budget of as many bytes finds again, and one of a byte less does not.
set -eu
work=$1 budget=$2
shift 2
mkdir -p "$work"
plan() { # the arena of a budget
  reprisec "$@" --quiet --emit=rt -o "$work/planned.mlir" --certificate "$work/proof.json"
  grep -o 'device, bytes = [0-9]*' "$work/planned.mlir" | sed 's/.* //'
}
arena=$(plan "$@" --memory-budget="$budget")
reprise-memplan --verify "$work/proof.json" | grep -o "peak $arena of"
again=$(plan "$@" --memory-budget="$arena")
less=$(plan "$@" --memory-budget=$((arena - 1)))
[ "$again" -eq "$arena" ] && [ "$less" -lt "$arena" ] && echo "found again, and not with a byte less"
