# Prints parameters and moments: states.sh RT IMAGE, where IMAGE is what the
# memory of a plan holds (REPRISE_STANDIN_IMAGE), and RT the module with the plan.
set -eu
bytes() { sed -n "s/.*rt\.plan = [^]]*<$1, \([0-9]*\)>.*/\1/p" "$2"; }
parameters=$(bytes parameters "$1")
gradients=$(bytes gradients "$1")
moments=$(bytes optimizer_state "$1")
head -c "$parameters" "$2"
tail -c +$((parameters + gradients + 1)) "$2" | head -c "$moments"
