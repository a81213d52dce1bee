#!/bin/bash
# dump.sh FILE NORM GRADIENT PARAMETER: a dump of one parameter; each argument
# is four bytes as `printf` writes them.
header='{"grad_norm":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},'
header+='"gradient/w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},'
header+='"parameter/w":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}'
{
  printf "\\$(printf %o ${#header})\\0\\0\\0\\0\\0\\0\\0"
  printf %s "$header"
  printf "$2$3$4"
} >"$1"
