#!/bin/bash
# A leaderboard on several nodes, one process on each:
#
#   sbatch docs/jobs/slurm.sh /data/votes/*.parquet --by category --out board.csv --checkpoint /scratch/run
#
# What follows the script's name are files and options of `jaxeval leaderboard`. Options of sbatch stand before it, as in
# sbatch --nodes=8 docs/jobs/slurm.sh ...

#SBATCH --job-name=jaxeval
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --gpus-per-node=8
#SBATCH --time=01:00:00

set -euo pipefail

# On Slurm, JAX gives a process one GPU unless it is told otherwise. This one takes all of its node.
if [[ -n ${SLURM_GPUS_ON_NODE:-} ]]; then
    JAX_LOCAL_DEVICE_IDS=$(seq -s, 0 $((SLURM_GPUS_ON_NODE - 1)))
    export JAX_LOCAL_DEVICE_IDS
fi

# srun does not take over the cores of sbatch. If a process fails, the others end with it.
srun --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" --kill-on-bad-exit=1 jaxeval leaderboard "$@" --distributed auto
