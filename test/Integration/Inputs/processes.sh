# What other scripts ask of processes.

# The processes below one, in the order in which they were started.
below() {
  cat /proc/[0-9]*/stat 2>/dev/null | sed 's/ .*) . / /' | awk -v root="$1" '
    { parent[$1] = $2 }
    END {
      for (each in parent) {
        for (up = parent[each]; up in parent && up != root;)
          up = parent[up]
        if (up == root)
          print each
      }
    }' | sort -n
}
parent_of() { sed 's/.*) . //; s/ .*//' /proc/"$1"/stat; }
# A rank is forked by a process of the same program.
is_rank() { [ /proc/"$1"/exe -ef /proc/"$(parent_of "$1")"/exe ]; }
# One that has ended, and that nobody has waited for, is none.
is_alive() { grep -q '^State:[[:space:]]*[^ZX[:space:]]' /proc/"$1"/status 2>/dev/null; }
