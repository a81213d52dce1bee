#!/bin/sh
# Usage: in-group.sh BYTES COMMAND...
# Runs a command in a memory control group that may have so many bytes, of
# version 1 or 2, below the one that this is in or below the topmost, and ends
# with its status: 137 if the kernel has ended it. 125, with the reason, if there
# is no such group to be had, as where one may not make any. At the end it says
# on standard error what the most was that the group had.
bytes=$1
shift
mount=/sys/fs/cgroup
own() { sed -n "s/^[0-9]*:$1://p" /proc/self/cgroup | head -1; }
refuse() { echo "in-group.sh: $*" >&2; exit 125; }

if [ -d $mount/memory ]; then
  limit=memory.limit_in_bytes peak=memory.max_usage_in_bytes
  places="$mount/memory$(own memory) $mount/memory"
elif grep -qw memory $mount/cgroup.controllers 2> /dev/null; then
  limit=memory.max peak=memory.peak
  places="$mount$(own '') $mount"
else
  refuse "no memory control groups in $mount"
fi
group=
for place in $places; do
  # Of version 2 a group has the controller only if the one above it says so.
  [ $limit = memory.max ] && ! grep -qw memory "$place/cgroup.subtree_control" &&
    ! (echo +memory > "$place/cgroup.subtree_control") 2> /dev/null && continue
  if mkdir "$place/reprise-$$" 2> /dev/null; then
    group=$place/reprise-$$
    (echo "$bytes" > "$group/$limit") 2> /dev/null && break
    rmdir "$group"
    group=
  fi
done
[ "$group" ] || refuse "may not make a memory control group in $places"
trap 'rmdir "$group"' EXIT
sh -c 'echo $$ > "$0/cgroup.procs" && exec "$@"' "$group" "$@"
status=$?
[ -r "$group/$peak" ] &&
  echo "in-group.sh: at most $(cat "$group/$peak") of $bytes bytes" >&2
exit $status
