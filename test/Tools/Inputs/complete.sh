# complete.sh TOOL: what bash completes, a line for each. `=` is a word of its
# own, as bash cuts it.
eval "$("$1" --completion=bash)"
words=$(complete -p "$1")
function=${words#complete -F }
function=${function% *}

complete_words() {
  COMP_WORDS=(reprisec "$@") COMP_CWORD=$# COMPREPLY=()
  # There is no line to be edited, which compopt tells of.
  $function 2>/dev/null
  echo "$*: ${COMPREPLY[*]}"
}

complete_words --mem
complete_words --recompute_m
complete_words --emit n
complete_words --emit = r
complete_words --explain = ''
complete_words --explain m
complete_words --lr ''
complete_words --report = m
complete_words m
