#!/usr/bin/env bash
# Run the commands that README.md gives for sharded runs, as they stand there, and hold the merged
# report against that of a single run, byte for byte. Exit 77 (skipped) where what they need is not
# installed.
#
#   tests/conformance/shards.sh parallel|slurm GRIDSCOPE GRID_PAIR README
#
# GRID_PAIR: the program that writes a source and a build. Slurm is started for this run alone, as
# one node with its own keys, ports and files, by whoever runs this.
set -euo pipefail

scheduler=$1 gridscope=$2 grid_pair=$3 readme=$4
export PATH=$(dirname "$gridscope"):$PATH:/usr/sbin
work=$(mktemp -d)
daemons=()

skip() {
  echo "skipped: $*"
  exit 77
}

clean_up() {
  [ ${#daemons[@]} -eq 0 ] || kill "${daemons[@]}" 2>/dev/null || true
  wait
  rm -rf "$work"
}
trap clean_up EXIT

need() {
  local program
  for program in "$@"; do
    command -v "$program" >/dev/null || skip "$program is not installed"
  done
}

# The commands of the first block of README.md with that word in it.
commands_with() {
  awk -v word="$1" '
    /^```/ { if (found) exit; inside = !inside; text = ""; next }
    inside { sub(/^\$ /, ""); text = text $0 "\n"; if (index($0, word)) found = 1 }
    END { if (found) printf "%s", text }' "$readme"
}

# Two ports that nobody listens on.
free_ports() {
  local port
  for port in $(shuf -i 20000-32000 -n 100); do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || echo "$port"
  done | head -n 2
}

write_slurm_configuration() {
  local host user ports
  host=$(hostname -s)
  user=$(id -un)
  mapfile -t ports < <(free_ports)
  cat >slurm.conf <<END
ClusterName=shards
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmdPort=${ports[1]}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc)
PartitionName=all Nodes=$host Default=YES
END
}

start() {
  "$@" >"$1.log" 2>&1 &
  daemons+=($!)
}

# wait_until SECONDS COMMAND...
wait_until() {
  local left=$(($1 * 5))
  shift
  until "$@"; do
    [ $((left--)) -gt 0 ] || return 1
    sleep 0.2
  done
}

node_is_idle() { [ "$(sinfo --noheader --format=%t 2>/dev/null)" = idle ]; }

start_slurm() {
  need munged mungekey slurmctld slurmd sbatch sinfo
  mkdir -m 700 munge state spool
  mungekey --create --keyfile=munge/key
  start munged --foreground --force --key-file="$work/munge/key" --socket="$work/munge/socket" \
    --pid-file="$work/munge/pid" --log-file="$work/munge/log" --seed-file="$work/munge/seed"
  wait_until 10 test -S munge/socket || skip "munged does not start: $(tail -n 1 munged.log)"
  write_slurm_configuration
  export SLURM_CONF=$work/slurm.conf
  start slurmctld -D
  start slurmd -D
  wait_until 30 node_is_idle ||
    skip "Slurm does not start: $(tail -q -n 1 slurmctld.log slurmd.log | paste -sd ' ')"
}

cd "$work"
case $scheduler in
  parallel) need parallel && word=parallel ;;
  slurm) start_slurm && word=sbatch ;;
  *) sed -n '2,9p' "$0" >&2 && exit 2 ;;
esac
commands=$(commands_with "$word")
[ -n "$commands" ] || { echo "README.md shows no command with $word" && exit 1; }

"$grid_pair" pair 12 64
export SOURCE=$work/pair/source BUILD=$work/pair/build
gridscope grid-check "$SOURCE" "$BUILD" --json --output single.json
echo "$commands"
bash -euo pipefail -c "$commands" || { tail -n 20 -- *.log slurm-*.out 2>/dev/null && exit 1; }
ls part-*
cmp single.json report.json
echo "the merged report is that of a single run: $(wc -c <report.json) bytes"
