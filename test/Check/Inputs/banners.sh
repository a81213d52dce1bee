# banners.sh FOLDER: files that are well but for their first line or two, and
# one that is well.
licence='// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception'
write() { # FILE LINE...
  file=$1
  shift
  printf '%s\n' "$@" // "$licence" >"$file"
}
write "$1/Mode.h" '//===- Mode.h - A mark that goes on in the line below -----------------*- C++' '//-*-===//'
write "$1/Short.cpp" '//===- Short.cpp - One column is missing --------------------------------===//'
write "$1/Well.cpp" '//===- Well.cpp - A title of 80 columns -----------------------------------===//'
