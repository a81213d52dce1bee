#!/bin/bash
# strangers.sh PROGRAM [option]...: starts ranks 0 and 1 of two runs at one place.
# strangers.sh silent PROGRAM [option]...: starts those of one run at a port where
# three others have called rank 0 and say nothing.
if [ "$1" != silent ]; then
  env TORCHELASTIC_RUN_ID=one RANK=0 "$@" &
  env TORCHELASTIC_RUN_ID=other RANK=1 "$@" &
  wait
  exit
fi
shift
port=$((20000 + $$ % 10000))
export WORLD_SIZE=3 LOCAL_WORLD_SIZE=3 MASTER_ADDR=localhost MASTER_PORT=$((port - 1))
RANK=0 "$@" &
until { exec 3<>/dev/tcp/127.0.0.1/$port; } 2>/dev/null; do sleep 0.05; done
exec 4<>/dev/tcp/127.0.0.1/$port 5<>/dev/tcp/127.0.0.1/$port
RANK=1 "$@" 3>&- 4>&- 5>&- &
RANK=2 "$@" 3>&- 4>&- 5>&- &
wait
