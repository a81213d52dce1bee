# Compares what two plans keep: the second one shares inputs of layers among $1
# ranks, the first one keeps them whole. All else is alike. Prints by how many
# bytes of how many inputs they differ.
# usage: shared-bytes.sh RANKS WHOLE.json SHARED.json
for plan in "$2" "$3"; do
  grep -o '"saved":\[[^]]*\]' "$plan" | grep -o '"name":"[^"]*","bytes":[0-9]*' |
    sed 's/"name":"\([^"]*\)","bytes":/\1 /' >"$plan.kept"
done
paste -d ' ' "$2.kept" "$3.kept" | awk -v ranks="$1" '
  $1 != $3 { print "other values: " $0; exit }
  $2 != $4 {
    if ($1 != "x0" || $2 != ranks * $4)
      print "no part: " $0
    ++count
    whole += $2
    saved += $2 - $4
  }
  END {
    if (saved * ranks == whole * (ranks - 1))
      print count " inputs, " saved " of " whole " bytes less"
  }'
