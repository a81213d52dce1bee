# Prints the rules of a plan that gives each subset of labels a layer of its own: layers
# from FIRST on, the first of them without a label.
# Usage: subsets.sh FIRST LABEL...

first=$1
shift
count=$((1 << $#))
subset=1
while [ "$subset" -lt "$count" ]; do
  labels= bit=1
  for label; do
    [ $((subset & bit)) = 0 ] || labels="$labels${labels:+, }$label"
    bit=$((bit * 2))
  done
  echo "- {layers: $((first + subset)), recompute: [$labels]}"
  subset=$((subset + 1))
done
