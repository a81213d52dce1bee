# sweep-stage-programs.sh WORK COUNT OPTION...: budgets of the stages of a pipeline,
# from the least that a refusal says to what its stages take when they keep all.
# Each is met by the programs, with a proof; more bytes never make a step longer,
# and no plan takes less than the least. "12 budgets from 1 to 2 bytes".
set -eu
work=$1 count=$2
shift 2
mkdir -p "$work"
most() { # bytes of the stage that takes most, of the messages on the input
  sed -n 's/^stage [0-9]* memory: [^,]*, \([0-9]*\) bytes.*/\1/p' | sort -n | tail -n 1
}
fail() {
  echo "$@"
  exit 1
}
compile() {
  reprisec "$@" --emit=rt -o "$work/program" 2>&1
}
all=$(compile "$@" | most)
least=$(compile "$@" --memory-budget=1KiB | sed -n 's/.*error: needs \([0-9]*\) bytes (.*/\1/p') || :
full=$(compile "$@" --recompute-granularity=full --recompute-method=uniform --recompute-num-layers=1 | most)
[ "$full" -ge "$least" ] || fail "full recompute takes $full bytes, but the least is $least"
last=1e99
for k in $(seq 0 "$count"); do
  budget=$((least + (all - least) * k / count))
  took=$(compile "$@" --memory-budget=$budget --certificate "$work/proof.json" | most)
  [ -n "$took" ] || fail "a budget of $budget is refused"
  [ "$took" -le "$budget" ] || fail "a budget of $budget has programs of $took bytes"
  [ "$took" -ge "$least" ] || fail "a budget of $budget has programs of $took bytes, but the least is $least"
  reprise-memplan --verify "$work/proof.json" >"$work/verified"
  span=$(sed -n 's/^"span_seconds": \([0-9.e+-]*\).*/\1/p' "$work/proof.json")
  awk -v span="$span" -v last="$last" 'BEGIN { exit span > last * (1 + 1e-12) }' ||
    fail "a budget of $budget takes $span s, but a smaller one $last s"
  last=$span
done
echo "$((count + 1)) budgets from $least to $all bytes"
