#!/bin/sh
# Usage: kills.sh TIMES SEED INTERVAL STEPS COMMAND...
# Kills a run at random moments, as often as TIMES says, and lets it go on each
# time, in the folder `killed`; COMMAND trains, on one's own data. Of a run of
# several ranks one process is killed, in turns: the one that watches, each rank. A run saves
# every INTERVAL steps. A kill may cost the steps since the last save: INTERVAL
# with `--save-from arena`. While a copy is still being written it may cost as
# many again: twice INTERVAL. In the end all STEPS are done, and every checkpoint that there is
# has the bits of a run that nobody has killed, in `whole`.
times=$1 seed=$2 interval=$3 steps=$4
shift 4
. "$(dirname "$0")/processes.sh"
fail() { echo "kills.sh: $*" >&2; exit 1; }
# Milliseconds since some moment.
clock() { awk '{ printf "%d\n", $1 * 1000 }' /proc/uptime; }
# Kills one of the processes behind the number, in turns.
victim() {
  shift $(($1 % ($# - 1) + 1))
  kill -9 "$1" 2> /dev/null
}
newest() { ls killed 2> /dev/null | sed -n 's/^step-0*\([0-9][0-9]*\)$/\1/p' | tail -1; }
last() { sed -n 's/^{"step":\([0-9]*\),"loss".*/\1/p; s/^{"event":"resumed".*"step":\([0-9]*\),.*/\1/p' log | tail -1; }
case " $* " in
*" --save-from arena "*) allowed=$interval ;;
*) allowed=$((2 * interval)) ;;
esac
options="--steps $steps --save-interval $interval --log-format json"

rm -rf killed whole
begin=$(clock)
"$@" $options --save whole > log || fail "the run that nobody kills fails"
all=$(($(clock) - begin))

# A run that comes to its end before it is killed begins anew.
most=0 sum=0 i=0 kills=0
while [ $kills -lt "$times" ]; do
  i=$((i + 1))
  "$@" $options --save killed --resume auto > log 2> errors &
  pid=$!
  sleep "$(awk -v seed="$((seed + i))" -v all=$all 'BEGIN { srand(seed); printf "%.3f", rand() * all / 1000 }')"
  ranks=
  read -r ranks 2> /dev/null < /proc/$pid/task/$pid/children
  # shellcheck disable=SC2086 # A word for each.
  victim $kills $pid $ranks
  wait $pid 2> /dev/null
  status=$?
  for each in $ranks; do
    while is_alive "$each"; do sleep 0.01; done
  done
  [ $status = 137 ] || [ $status = 0 ] || grep -q "error: rank .*: ended by signal 9 (Killed)" errors || fail "after $kills kills: $(cat errors)"
  done=$(last) kept=$(newest)
  lost=$((${done:-0} - ${kept:-0}))
  [ $lost -le $allowed ] || fail "after $kills kills: step $done was done, but step ${kept:-0} is kept"
  [ $lost -gt $most ] && most=$lost
  sum=$((sum + lost))
  for folder in killed/step-*; do
    case $folder in *.tmp | *.old | killed/step-\*) continue ;; esac
    diff -r "$folder" "whole/${folder#killed/}" > log || fail "after $kills kills: $(cat log)"
  done
  if [ $status = 0 ]; then
    rm -rf killed
  else
    kills=$((kills + 1))
  fi
done
"$@" $options --save killed --resume auto > log || fail "the last run fails"
diff -r "killed/step-$(printf %08d "$steps")" "whole/step-$(printf %08d "$steps")" > log || fail "$(cat log)"
echo "killed $kills times: at most $most steps lost, $sum in all, one save every $interval"
