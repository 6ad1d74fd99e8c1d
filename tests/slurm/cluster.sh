#!/bin/bash
# A real Slurm of two nodes on this machine, for tests: cluster.sh start FOLDER | node FOLDER NODE | stop FOLDER
#
# Theory of operation. Needs root and Debian's slurmctld, slurmd, slurm-client and munge (22.05); no systemd. One
# munged authenticates, one slurmctld schedules, and two slurmd play the nodes node1 and node2 on ports of their own,
# with CPUs and GPUs as configured rather than as found (config_overrides). Each slurmd, and so every job of its node,
# is bound to its own half of this machine's cores, so that two nodes really have twice the cores of one. The GPUs are
# device nodes made by mknod that lead to /dev/null: Slurm hands them out, nothing opens them. There is no accounting
# database, so no sacct: what becomes of a job must be learnt from squeue, scontrol and the files it leaves, as on many
# small clusters. SLURM_CONF=FOLDER/slurm.conf leads the client commands here.
set -eu
action=${1:?start, node or stop} folder=$(realpath -m "${2:?a folder for the cluster}")

ended() { # PIDFILE: end the process and wait for it
    [ -s "$1" ] || return 0
    local pid; pid=$(cat "$1")
    kill "$pid" 2>/dev/null || return 0
    for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || return 0; sleep 0.1; done
    kill -9 "$pid" 2>/dev/null || true
}

stop() { # jobs first: without its slurmd nobody ends one
    export SLURM_CONF=$folder/slurm.conf
    if [ -s "$folder/slurmctld.pid" ] && kill -0 "$(cat "$folder/slurmctld.pid")" 2>/dev/null; then
        timeout 10 scancel --user=root --quiet || true
        for _ in $(seq 50); do [ -n "$(timeout 10 squeue -h)" ] || break; sleep 0.2; done
    fi
    for daemon in slurmd-node1 slurmd-node2 slurmctld munged; do ended "$folder/$daemon.pid"; done
}

slurmd_on() { # NODE: start its slurmd on every other of the cores that this script may use
    local cores core
    cores=$(for core in $(seq 0 $(($(nproc --all) - 1))); do taskset -c "$core" true 2>/dev/null && echo "$core"; done)
    local mine; mine=$(echo "$cores" | awk -v node="${1#node}" 'NR % 2 == node % 2' | paste -sd,)
    taskset -c "${mine:-$(echo "$cores" | paste -sd,)}" slurmd -N "$1"
}

start() {
    for command in slurmctld slurmd sbatch munged; do
        command -v "$command" >/dev/null || { echo "cluster.sh: $command is missing: apt install slurmctld slurmd slurm-client munge" >&2; exit 1; }
    done
    [ "$(id -u)" = 0 ] || { echo "cluster.sh: slurmd must be started by root" >&2; exit 1; }
    mkdir -p "$folder"/{state,spool-node1,spool-node2,munge,log}
    for number in 0 1 2 3; do
        [ -e "$folder/gpu$number" ] || mknod "$folder/gpu$number" c 1 3
    done
    host=$(hostname -s)
    port=$((20000 + 3 * ($$ % 3000))) # several clusters may run side by side
    cat > "$folder/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmdSpoolDir=$folder/spool-%n
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SlurmdTimeout=15
InactiveLimit=0
KillWait=5
MinJobAge=300
ReturnToService=2
SchedulerParameters=sched_interval=2,batch_sched_delay=0
NodeName=node1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=2 RealMemory=4000 Gres=gpu:2
NodeName=node2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=2 RealMemory=4000 Gres=gpu:2
PartitionName=both Nodes=node1,node2 Default=YES MaxTime=60 State=UP
PartitionName=one Nodes=node1 MaxTime=60 State=UP
CONF
    cat > "$folder/gres.conf" <<CONF
NodeName=node1 Name=gpu File=$folder/gpu[0-1]
NodeName=node2 Name=gpu File=$folder/gpu[2-3]
CONF
    # munged's own folder: nothing of the machine's munge is touched, if it has one.
    head -c 1024 /dev/urandom > "$folder/munge/key"
    chmod 711 "$folder" "$folder/munge"
    chmod 400 "$folder/munge/key"
    chown -R munge:munge "$folder/munge"
    runuser -u munge -- munged --force --key-file="$folder/munge/key" --socket="$folder/munge/socket" \
        --pid-file="$folder/munge/pid" --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" 2>/dev/null
    for _ in $(seq 50); do [ -s "$folder/munge/pid" ] && break; sleep 0.1; done
    cp "$folder/munge/pid" "$folder/munged.pid"
    export SLURM_CONF=$folder/slurm.conf
    slurmctld -c
    slurmd_on node1; slurmd_on node2
    for _ in $(seq 50); do
        [ "$(timeout 1 sinfo -h -N -o '%T' 2>/dev/null | grep -c '^idle$')" -ge 2 ] && return 0
        sleep 0.2
    done
    echo "cluster.sh: the nodes did not come up; see $folder/log" >&2
    timeout 5 sinfo -N -l >&2 || true
    exit 1
}

case $action in
    start) stop; trap '[ $? = 0 ] || stop' EXIT; start ;;
    node) SLURM_CONF=$folder/slurm.conf slurmd_on "${3:?node1 or node2}" ;;
    stop) stop ;;
    *) echo "cluster.sh: start, node or stop, not $action" >&2; exit 2 ;;
esac
