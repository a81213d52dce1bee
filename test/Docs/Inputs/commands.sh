# Reads pages, and has each command of theirs that compiles an example, and that is
# not run as it stands, read as well: commands.sh EXAMPLES PAGE...
cd "$1" || exit 2
shift
awk '/^```/ { inside = !inside } inside' "$@" | sed ':a; /\\$/ { N; s/\\\n *//; ba }' |
  sed -n 's/ *\(#\|&&\).*//; s/ -o [^ ]*//; s/^reprisec \([a-z0-9-]*\.yaml\)/\1/p' | sort -u |
  while read -r model options; do
    [ -f "$model" ] || continue
    case $options in *--emit=*) ;; *) options="$options --emit=nn" ;; esac
    if said=$(eval "reprisec $model $options --quiet -o /dev/null" 2>&1); then
      echo "taken: $model $options"
    else
      echo "refused: $model $options: $said"
    fi
  done
