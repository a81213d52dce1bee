# check-curve.sh CURVE: of the curve of a pipeline, that bytes grow and times fall,
# that bounds fall too and are above no time, and that none of Megatron's options
# is faster than the curve with as many bytes. "12 points; none: 0 s, 12345 bytes".
set -eu
tr -d '\n' <"$1" | sed 's/"megatron"/\n&/' | tr '}' '\n' | awk '
  function number(key) {
    if (!match($0, "\"" key "\": *[0-9.e+-]+")) { print "no " key " in " $0; failed = 1; exit 1 }
    text = substr($0, RSTART, RLENGTH)
    sub(/.*: */, "", text)
    return text + 0
  }
  /"recompute"/ {
    match($0, /"recompute": *"[^"]*"/)
    name = substr($0, RSTART, RLENGTH)
    sub(/.*: *"/, "", name)
    sub(/"$/, "", name)
    bytes = number("peak_bytes")
    seconds = number("replay_seconds")
    if (!count++) printf "%d points;", points
    printf " %s: %.4g s, %d bytes;", name, seconds, bytes
    for (k = points; k > 0 && peaks[k] > bytes; --k) continue
    if (k > 0 && times[k] > seconds * (1 + 1e-9) + 1e-12) {
      print " faster than the curve, " times[k] " s"
      failed = 1
      exit 1
    }
    next
  }
  /"lower_bound_seconds"/ && /"peak_bytes"/ {
    sub(/.*"points"/, "")
    peaks[++points] = number("peak_bytes")
    times[points] = number("replay_seconds")
    bounds[points] = number("lower_bound_seconds")
    if (bounds[points] > times[points] * (1 + 1e-9) + 1e-12) { print "above the time: " $0; failed = 1; exit 1 }
    if (points > 1 && (peaks[points] <= peaks[points - 1] || times[points] >= times[points - 1] || bounds[points] > bounds[points - 1])) {
      print "does not fall: " $0
      failed = 1
      exit 1
    }
    proven += bounds[points] > 0
  }
  END {
    if (failed) exit 1
    print " bounds above 0: " proven
  }'
