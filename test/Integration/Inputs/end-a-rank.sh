#!/bin/sh
# end-a-rank.sh SIGNAL PROGRAM [option]...: runs the program, or a launcher of it,
# sends the signal to one of its ranks once it trains, or TERM to whoever watches
# one, and shows its status and how many processes are left of all that
# it has started. Ends with the program's status, but for 4, which is good.
signal=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# The processes below one, in the order in which they were started.
below() {
  cat /proc/[0-9]*/stat 2>/dev/null | sed 's/ .*) . / /' | awk -v root="$1" '
    { parent[$1] = $2 }
    END {
      for (each in parent) {
        for (up = parent[each]; up in parent && up != root;)
          up = parent[up]
        if (up == root)
          print each
      }
    }' | sort -n
}
parent_of() { sed 's/.*) . //; s/ .*//' /proc/"$1"/stat; }
# A rank is forked by a process of the same program.
is_rank() { [ /proc/"$1"/exe -ef /proc/"$(parent_of "$1")"/exe ]; }

"$@" >"$log" 2>&1 &
program=$!
until grep -q '^step *3/' "$log" || ! kill -0 $program 2>/dev/null; do
  sleep 0.05
done
all=$(below $program)
ranks=$(for each in $all; do ! is_rank "$each" || echo "$each"; done)
if [ "$signal" = TERM ]; then
  kill -TERM "$(parent_of "$(echo "$ranks" | tail -1)")"
else
  kill -"$signal" "$(echo "$ranks" | tail -1)"
fi
wait $program
status=$?
grep -v '^step' "$log"
echo "status $status"
left=0
for each in $all; do # One that has ended, and that nobody has waited for, is none.
  ! grep -q '^State:[[:space:]]*[^ZX[:space:]]' /proc/"$each"/status 2>/dev/null || left=$((left + 1))
done
echo "ranks left: $left"
[ $status -ne 4 ] || status=0
exit $status
