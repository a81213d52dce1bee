# Draws the bytes that are alive at each launch of a step, a curve for each file:
#
#   reprisec MODEL.yaml --emit=rt -o none.mlir          # and so on, for each plan
#   awk -f memory-over-a-step.awk none.mlir selective.mlir full.mlir >memory-over-a-step.svg
#
# A buffer is alive from the first launch that names it to the last; buffers that
# share bytes count once. What lives from step to step (parameters, gradients,
# moments, inputs) is left out, and so is the update; and gradients that the step
# writes, which lie among activations, with what is added to one in its place. The
# highest point of each curve must be the plan's peak; if it is not, there is an
# error and no picture.

BEGIN {
  left = 58; top = 92; width = 700; height = 240
  gridMiB = 20; topMiB = 80; MiB = 1048576
  split("a b c", classes, " ")
}

FNR == 1 { finishPlan(); plans++; inStep = launches = buffers = loss = 0; split("", begin); split("", states); split("", first); split("", last) }

/rt\.plan = / {
  names[plans] = after("recompute = \""); sub(/".*/, "", names[plans])
  peaks[plans] = after("peak = ") + 0
  base = after("begin = ") + 0
}
/func\.func @step/ { inStep = 1 }
/rt\.update/ { inStep = 0 }

inStep && / = rt\.buffer at / {
  begin[$1] = after("at <device, ") + 0
  if (/rt\.state/) states[$1] = 1
  rank = split(after("memref<"), dims, "x")
  end[$1] = begin[$1] + 4
  if (rank > 1) {
    size = 4
    for (i = 1; i < rank; i++) size *= dims[i]
    end[$1] = begin[$1] + size
  }
}

inStep && /^ *rt\.(launch|gemm) / {
  launches++
  if (/rt\.name = "loss\.loss"/) loss = launches
  operands = $0; sub(/ : \(.*/, "", operands)
  split("", held)
  while (match(operands, /%[0-9]+/)) {
    value = substr(operands, RSTART, RLENGTH)
    operands = substr(operands, RSTART + RLENGTH)
    if (begin[value] < base) continue
    # What a launch makes where it reads a state is that state.
    if ((value in states) || (begin[value] in held)) { states[value] = held[begin[value]] = 1; continue }
    if (!(value in first)) { first[value] = launches; order[++buffers] = value }
    last[value] = launches
  }
}

END {
  finishPlan()
  if (!failed) draw()
}

function after(word,    at) {
  at = index($0, word)
  return at ? substr($0, at + length(word)) : ""
}

# Bytes alive at launch `t`: the union of the live buffers' ranges.
function liveAt(t,    count, i, j, low, high, from, total, reached) {
  for (i = 1; i <= buffers; i++) {
    if (t < first[order[i]] || last[order[i]] < t) continue
    low = begin[order[i]]; high = end[order[i]]
    for (j = count++; j > 0 && lows[j] > low; j--) { lows[j + 1] = lows[j]; highs[j + 1] = highs[j] }
    lows[j + 1] = low; highs[j + 1] = high
  }
  for (i = 1; i <= count; i++) {
    from = lows[i] > reached ? lows[i] : reached
    if (highs[i] > from) { total += highs[i] - from; reached = highs[i] }
  }
  return total + 0
}

function finishPlan(    t, live, highest) {
  if (!plans) return
  for (t = 1; t <= launches; t++) {
    live[t] = liveAt(t)
    if (live[t] > highest) highest = live[t]
    alive[plans, t] = live[t]
  }
  lengths[plans] = launches
  losses[plans] = loss
  if (launches > longest) longest = launches
  if (highest != peaks[plans]) {
    print "error: " names[plans] ": needs a highest point of " peaks[plans] " bytes, but got " highest >"/dev/stderr"
    failed = 1
    exit 1
  }
}

function x(launch) { return sprintf("%.1f", left + width * launch / longest) + 0 }
function y(bytes) { return sprintf("%.1f", top + height * (1 - bytes / (topMiB * MiB))) + 0 }

function draw(    p, t, path, g, row) {
  print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 800 390\" font-family=\"sans-serif\" font-size=\"13\">"
  print "<title>Bytes alive at each launch of a training step, under three recompute plans</title>"
  print "<style>"
  print ".card{fill:#fff;stroke:#d0d7de}text{fill:#1f2328}.dim{fill:#59636e}.grid{stroke:#d0d7de}path{fill:none;stroke-width:1.8}"
  print ".a{stroke:#b3341f}.b{stroke:#0b6bcb}.c{stroke:#1a7f37}"
  print "@media (prefers-color-scheme:dark){.card{fill:#0d1117;stroke:#30363d}text{fill:#e6edf3}.dim{fill:#9198a1}.grid{stroke:#30363d}"
  print ".a{stroke:#ff8f73}.b{stroke:#6cb6ff}.c{stroke:#57d364}}"
  print "</style>"
  print "<rect class=\"card\" x=\".5\" y=\".5\" width=\"799\" height=\"389\" rx=\"8\"/>"
  for (p = 1; p <= plans; p++) {
    row = 4 + 22 * p
    printf "<path class=\"%s\" d=\"M%d %dh26\"/><text x=\"%d\" y=\"%d\">%s</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">at most %.1f MiB</text>\n",
           classes[p], left, row - 4, left + 36, row, names[p], left + 320, row, peaks[p] / MiB
  }
  for (g = 0; g <= topMiB; g += gridMiB)
    printf "<path class=\"grid\" style=\"stroke-width:1\" d=\"M%d %sh%d\"/><text class=\"dim\" x=\"%d\" y=\"%s\" text-anchor=\"end\">%d</text>\n",
           left, y(g * MiB), width, left - 8, y(g * MiB) + 4, g
  printf "<text class=\"dim\" x=\"%d\" y=\"%d\" text-anchor=\"end\">activations alive, MiB</text>\n", left + width, 26
  printf "<path class=\"grid\" style=\"stroke-width:1;stroke-dasharray:4 4\" d=\"M%s %dv%d\"/>\n", x(losses[1]), top, height + 22
  printf "<text class=\"dim\" x=\"%s\" y=\"%d\" text-anchor=\"end\">forward</text>", x(losses[1]) - 8, top + height + 20
  printf "<text class=\"dim\" x=\"%s\" y=\"%d\">backward</text>", x(losses[1]) + 8, top + height + 20
  printf "<text class=\"dim\" x=\"%d\" y=\"%d\" text-anchor=\"end\">launches of the step, in their order</text>\n", left + width, top + height + 42
  for (p = 1; p <= plans; p++) {
    path = "M" x(0) " " y(0)
    for (t = 1; t <= lengths[p]; t++)
      path = path "V" y(alive[p, t]) "H" x(t)
    print "<path class=\"" classes[p] "\" d=\"" path "V" y(0) "\"/>"
  }
  print "</svg>"
}
