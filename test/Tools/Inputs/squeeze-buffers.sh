# squeeze-buffers.sh CERTIFICATE WORK: gives each buffer of a certificate a byte
# less in turn, and nothing else, and prints how many of these files the checker
# refuses for it. A list of objects has one on each line.
certificate=$1 work=$2
count=$(sed -n '/^"buffers"/,/^"schedule"/p' "$certificate" | grep -c '"alignment"')
refused=0
for number in $(seq "$count"); do
  awk -v number="$number" '
    /^"buffers"/ { inside = 1 }
    /^"schedule"/ { inside = 0 }
    inside && /"alignment"/ && ++seen == number {
      match($0, /"bytes": [0-9]+/)
      bytes = substr($0, RSTART + 9, RLENGTH - 9)
      $0 = substr($0, 1, RSTART + 8) (bytes - 1) substr($0, RSTART + RLENGTH)
    }
    { print }' "$certificate" >"$work"
  if reprise-memplan --verify "$work" >"$work.out" 2>&1; then
    echo "buffer $((number - 1)) may have a byte less"
  elif grep -q 'error: .* bytes' "$work.out"; then
    refused=$((refused + 1))
  else
    cat "$work.out"
  fi
done
echo "$refused of $count buffers refused"
