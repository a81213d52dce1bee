#!/bin/sh
# launch.sh LAUNCHER N PROGRAM [option]...: starts N ranks of a program with the
# variables of torchrun or of srun, all of one machine; as "apart", those of
# torchrun with a machine for each rank, which meet at 10.9.8.7; as "shown",
# those of srun, which shows each rank one GPU. Ends with the status of the first
# rank that has not ended well. The others are not ended: ranks see to that.
launcher=$1 number=$2
shift 2
port=$((20000 + $$ % 10000)) rank=0 all='' status=0
# Of a program that is stopped or asked to end, each rank has its share.
trap 'kill $all 2>/dev/null' TERM
while [ $rank -lt "$number" ]; do
  case $launcher in
  torchrun) variables="RANK=$rank WORLD_SIZE=$number LOCAL_RANK=$rank LOCAL_WORLD_SIZE=$number
    MASTER_ADDR=localhost MASTER_PORT=$port" ;;
  apart) variables="RANK=$rank WORLD_SIZE=$number LOCAL_RANK=0 LOCAL_WORLD_SIZE=1
    MASTER_ADDR=10.9.8.7 MASTER_PORT=$port" ;;
  srun | shown) variables="SLURM_PROCID=$rank SLURM_STEP_NUM_TASKS=$number SLURM_LOCALID=$rank
    SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=$number SLURM_STEP_NODELIST=localhost
    SLURM_JOB_ID=$$ SLURM_STEP_ID=0" ;;
  esac
  [ $launcher != shown ] || variables="$variables CUDA_VISIBLE_DEVICES=$rank"
  # shellcheck disable=SC2086 # Each is a word.
  env $variables "$@" &
  all="$all $!"
  rank=$((rank + 1))
done
for each in $all; do
  wait "$each"
  last=$?
  [ $status -ne 0 ] || status=$last
done
exit $status
