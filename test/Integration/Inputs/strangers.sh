#!/bin/sh
# strangers.sh PROGRAM [option]...: starts ranks 0 and 1 of two runs at one place.
env TORCHELASTIC_RUN_ID=one RANK=0 "$@" &
env TORCHELASTIC_RUN_ID=other RANK=1 "$@" &
wait
