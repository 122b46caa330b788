#!/bin/sh
# Fifteen times kill -9 (fifty with TESTS=long), at random moments of a sweep: of the program, of one rank, of mpirun with all
# ranks. After --resume the reports are those of an undisturbed run, byte for byte.
# Usage: kills.sh INFLIGHT SOURCE [MPIRUN]; without mpirun only the program is killed.
mpirun=$3
set -- "$1" "$2"
. "$(dirname "$0")/expect.sh"

OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ASAN_OPTIONS=detect_leaks=0 # MPI does not free its memory
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM ASAN_OPTIONS

"$inflight" trace generate -n 1000 --process poisson --rate 5 -o trace.csv
cat >config.yaml <<'END'
workload: {trace: trace.csv}
serving: {preset: vllm-v0, max_model_len: 2048, kv: {num_blocks: 512}}
cost: {model: linear, step_s: 0.01}
output: {dir: out, timeline: true}
sweep:
  serving.preset: [vllm-v0, sarathi]
  cost.step_s: [0.01, 0.012, 0.014, 0.016, 0.018, 0.02, 0.03, 0.04]
END
began=$(date +%s.%N)
succeeds "$inflight" run config.yaml --quiet -o whole
took_s=$(echo "$began $(date +%s.%N)" | awk '{ print $2 - $1 }')
same "$(ls -A whole | tr '\n' ' ')" 'config.yaml quantiles.csv requests.csv summary.csv timeline.json ' \
    'the files of an undisturbed run'

children() {
    cat "/proc/$1/task/$1/children" 2>/dev/null
}

# The ranks, once mpirun has started both: a rank missing from the list would run on beside the next run.
ranks_of() {
    n_waits=0
    while [ "$(children "$run" | wc -w)" -lt 2 ] && [ -d "/proc/$run" ] && [ $n_waits -lt 400 ]; do
        sleep 0.01
        n_waits=$((n_waits + 1))
    done
    children "$run"
}

all_gone() {
    for pid in "$@"; do
        while [ -d "/proc/$pid" ] && ! grep -q '^State:.*Z' "/proc/$pid/status" 2>/dev/null; do
            sleep 0.01
        done
    done
}

# start MODE: a part of the work, in the background as $run
start() {
    if [ "$1" = alone ]; then
        "$inflight" run config.yaml --quiet --resume -j 2 >logs/out 2>logs/err &
    else
        "$mpirun" --quiet --oversubscribe -n 2 "$inflight" run config.yaml --quiet --resume \
            >logs/out 2>logs/err &
    fi
    run=$!
}

# Kills $run in MODE after a share of the time that an undisturbed run takes. Fails if it was over.
kill_after() {
    ranks=
    [ "$1" = alone ] || ranks=$(ranks_of)
    sleep "$(echo "$2 $took_s" | awk '{ print $1 * $2 }')"
    case $1 in
    alone) kill -9 "$run" 2>/dev/null ;;
    rank) kill -9 "${ranks%% *}" 2>/dev/null ;;
    # shellcheck disable=SC2086 # a list on purpose
    all) kill -9 "$run" $ranks 2>/dev/null ;;
    esac
    wait "$run" 2>/dev/null
    code=$?
    # shellcheck disable=SC2086
    all_gone $ranks
    [ $code -ne 0 ]
}

modes='alone'
[ -z "$mpirun" ] || modes='alone alone alone alone rank all'
awk -v seed=7 -v modes="$modes" 'BEGIN {
    srand(seed)
    n = split(modes, mode, " ")
    while (1)
        printf "%s %.3f %d\n", mode[1 + int(rand() * n)], rand() * 0.8, rand() < 0.3
}' 2>/dev/null | head -300 >plan
n_kills=0
n_kept=0
[ "${TESTS:-}" = long ] && most=50 || most=15
while [ $n_kills -lt $most ] && read -r mode delay last; do
    start "$mode"
    kill_after "$mode" "$delay" && n_kills=$((n_kills + 1))
    [ -z "$(ls out/.parts/record-?????? 2>/dev/null)" ] || n_kept=$((n_kept + 1))
    [ "$last" = 1 ] || continue
    succeeds "$inflight" run config.yaml --quiet --resume -j 2
    for report in config.yaml quantiles.csv requests.csv summary.csv timeline.json; do
        same_bytes whole/$report out/$report
    done
    same "$(ls -A out)" "$(ls -A whole)" "the files after $n_kills kills"
    rm -rf out
done <plan
[ $n_kills -eq $most ] || complain "only $n_kills kills met a running program"
[ $n_kept -ge $((most / 5)) ] || complain "only $n_kept kills left finished points behind"
echo "$n_kills kills, $n_kept of them with finished points to keep"
finish
