#!/bin/sh
# end-a-rank.sh SIGNAL PROGRAM [option]...: runs the program, or a launcher of it,
# sends the signal to one of its ranks once it trains, or TERM to whoever watches
# one, or with MEMORY asks for a save when one has no more memory, and shows its
# status, in how many seconds it has ended, and how many processes are left of all
# that it has started. Ends with the program's status, but for 4, which is good.
signal=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT

. "$(dirname "$0")/processes.sh"

"$@" >"$log" 2>&1 &
program=$!
until grep -q '^step *3/' "$log" || ! kill -0 $program 2>/dev/null; do
  sleep 0.05
done
all=$(below $program)
ranks=$(for each in $all; do ! is_rank "$each" || echo "$each"; done)
begin=$(date +%s%3N)
last=$(echo "$ranks" | tail -1)
case $signal in
TERM) kill -TERM "$(parent_of "$last")" ;;
MEMORY) # But for what a stack may grow by.
  used=$(awk '/^VmSize:/ { print $2 * 1024 }' /proc/"$last"/status)
  prlimit --pid "$last" --as=$((used + (1 << 20)))
  kill -USR1 "$(parent_of "$last")"
  ;;
*) kill -"$signal" "$last" ;;
esac
wait $program
status=$?
milliseconds=$(($(date +%s%3N) - begin))
# A launcher may put what is said into a line of the log that has not ended.
sed -e 's/^step.*\(two: error: \)/\1/' -e '/^step/d' "$log"
echo "status $status"
echo "seconds $(((milliseconds + 999) / 1000))"
left=0
for each in $all; do
  ! is_alive "$each" || left=$((left + 1))
done
echo "ranks left: $left"
[ $status -ne 4 ] || status=0
exit $status
