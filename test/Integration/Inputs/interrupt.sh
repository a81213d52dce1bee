#!/bin/sh
# Usage: interrupt.sh LOG PATTERN COMMAND...
# Runs a command with its output in LOG, interrupts it once a line of LOG matches
# PATTERN, and ends with the command's status: when it is interrupted depends on
# what it has said, not on how fast the machine is. The shell ignores the key in
# what it runs beside, and env does not unless KEY is `ignore`.
log=$1
pattern=$2
shift 2
: > "$log"
env --${KEY:-default}-signal=INT "$@" > "$log" &
process=$!
until grep -q "$pattern" "$log"; do
  kill -0 $process 2> "$log.gone" || break
  sleep 0.1
done
kill -INT $process
wait $process
