# commits.sh FOLDER: a repository there whose origin/main has a bad subject, and
# commits behind it, bad ones and good ones.
set -e
cd "$1"
commit() { # FILE SUBJECT [BODY]
  echo "$2" >>"$1"
  git add "$1"
  git -c user.name=Nobody -c user.email=nobody@example.org commit -q -m "$2" ${3:+-m "$3"}
}
git init -q
commit a.c 'Added what is there already; more of it'
git update-ref refs/remotes/origin/main HEAD
commit a.c 'Address the one, and pass' 'It was needed.'
commit page.md 'Embed a page'
commit page.md 'Let a subject have as many columns as are too many, which are 72 and one!'
commit page.md 'Add a; add b'
commit page.md 'Adds a'
commit page.md 'Added a'
commit page.md 'Adding a'
commit page.md 'Docs: a page'
commit a.c 'Change code without a word'
commit page.md 'Feed a page'
