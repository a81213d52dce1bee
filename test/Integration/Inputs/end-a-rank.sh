#!/bin/sh
# end-a-rank.sh SIGNAL PROGRAM [option]...: runs the program, sends the signal to
# one of its ranks once it trains, or TERM to the program itself, and shows its
# status and how many of its ranks are left. Ends with the program's status, but
# for 4, which is good.
signal=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$@" >"$log" 2>&1 &
program=$!
until grep -q '^step *3/' "$log" || ! kill -0 $program 2>/dev/null; do
  sleep 0.05
done
ranks=$(sed "s, *$,," /proc/$program/task/$program/children)
if [ "$signal" = TERM ]; then
  kill -TERM $program
else
  kill -"$signal" "${ranks##* }"
fi
wait $program
status=$?
grep -v '^step' "$log"
echo "status $status"
left=0
for rank in $ranks; do
  ! kill -0 "$rank" 2>/dev/null || left=$((left + 1))
done
echo "ranks left: $left"
[ $status -ne 4 ] || status=0
exit $status
