# carry-plans.sh WORK LABEL OPTION... <MESHES: a plan of LABEL, options with blanks
# between them, is saved on each mesh, which is a line of options, and read on all.
# Each time it takes the bytes within a step that LABEL takes there, and warns of
# nothing but moves that are not there. "9 plans are read as they are meant".
set -eu
work=$1 label=$2
shift 2
mkdir -p "$work"
cat >"$work/meshes"
within() { sed -n 's/^\(stage [0-9]* \)*memory: .* \([0-9]*\) of them.*/\2/p'; }
fail() {
  echo "$@"
  exit 1
}
meshes=0 plans=0
while IFS= read -r mesh; do
  reprisec "$@" $mesh $label --save-plan "$work/$meshes.yaml" --emit=rt -o "$work/out" 2>&1 |
    within >"$work/$meshes.bytes"
  [ -s "$work/$meshes.bytes" ] || fail "'$label' is refused on '$mesh'"
  meshes=$((meshes + 1))
done <"$work/meshes"
to=0
while IFS= read -r mesh; do
  for from in $(seq 0 $((meshes - 1))); do
    reprisec "$@" $mesh --recompute-plan="$work/$from.yaml" --emit=rt -o "$work/out" \
      >"$work/log" 2>&1 || fail "plan $from is refused on '$mesh'"
    took=$(within <"$work/log")
    [ "$took" = "$(cat "$work/$to.bytes")" ] ||
      fail "plan $from takes $took bytes on '$mesh', and '$label' $(cat "$work/$to.bytes")"
    ! grep warning: "$work/log" | grep -v "between ranks, which this program does not" ||
      fail "plan $from on '$mesh'"
    plans=$((plans + 1))
  done
  to=$((to + 1))
done <"$work/meshes"
echo "$plans plans are read as they are meant"
