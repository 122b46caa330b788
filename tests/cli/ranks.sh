#!/bin/sh
# A sweep on several ranks: the same bytes as on one rank, also after kills; one line per error; and one
# run at a time in a directory. Usage: ranks.sh INFLIGHT SOURCE MPIRUN
mpirun=$3
set -- "$1" "$2"
. "$(dirname "$0")/expect.sh"

OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ASAN_OPTIONS=detect_leaks=0 # MPI does not free its memory
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM ASAN_OPTIONS

ranks() {
    n=$1
    shift
    "$mpirun" --quiet --oversubscribe -n "$n" "$inflight" "$@"
}

# other runs start without MPI's libraries
if ldd "$inflight" >libraries 2>/dev/null; then
    if grep -q libmpi libraries; then complain 'the program itself needs MPI'; fi
fi

"$inflight" trace generate -n 200 --process poisson --rate 20 -o trace.csv
cat >config.yaml <<'END'
workload: {trace: trace.csv}
serving: {preset: vllm-v0, max_model_len: 2048, kv: {num_blocks: 512}}
cost: {model: linear, step_s: 0.01}
output: {dir: out, steps: true, timeline: true}
sweep:
  serving.preset: [vllm-v0, sarathi]
  cost.step_s: [0.01, 0.02, 0.03, 0.04, 0.05]
END
reports='config.yaml quantiles.csv requests.csv steps.csv summary.csv timeline.json'
succeeds "$inflight" run config.yaml --quiet -o alone
for n in 1 2 3; do
    succeeds ranks $n run config.yaml --quiet -j 2 -o "ranks-$n"
    for report in $reports; do
        same_bytes "alone/$report" "ranks-$n/$report"
    done
    same "$(ls -A "ranks-$n" | tr '\n' ' ')" "$reports " "the files of $n ranks"
done

# variants are dealt out as other points are
named='sweep.variants={few: {serving: {kv: {num_blocks: 64}}}, host: {cost: {step_s: 0.3}}}'
succeeds "$inflight" run config.yaml --quiet -o named --set sweep.cost.step_s=null --set "$named"
succeeds ranks 3 run config.yaml --quiet -o named-ranks --set sweep.cost.step_s=null --set "$named"
for report in $reports; do
    same_bytes "named/$report" "named-ranks/$report"
done

# all ranks find the same mistake, and one rank reports it
ranks 3 run config.yaml --set cost.step_z=1 >logs/out 2>logs/err
code=$?
same "$code" 2 'the exit code of a wrong configuration'
same "$(grep -c 'unknown key cost.step_z' logs/err)" 1 'the messages of three ranks'
ranks 2 run config.yaml --quiet -o some --set 'sweep.workload.trace=[trace.csv,config.yaml]' \
    >logs/out 2>logs/err
same $? 1 'the exit code of a study with failed points'
same "$(grep -c '10 of 20 points failed' logs/err)" 1 'the message about failed points'
# one run at a time: rank 0 holds the directory for all
mkfifo gate.csv
ranks 2 run config.yaml --quiet -o held --set sweep=null \
    --set 'sweep.workload.trace=[trace.csv,gate.csv]' --set workload.format=inflight >logs/first 2>&1 &
run=$!
n_waits=0
while [ ! -e held/.parts/record-000000 ] && [ $n_waits -lt 400 ]; do
    sleep 0.05
    n_waits=$((n_waits + 1))
done
refuses 'held: process * writes there, expected one run at a time' \
    timeout 60 "$inflight" run config.yaml --quiet -o held
ranks 2 run config.yaml --quiet -o held >logs/out 2>logs/err
same $? 2 'the exit code of ranks in a directory that is held'
same "$(grep -c 'held: process .* writes there' logs/err)" 1 'the messages of ranks that are refused'
cat trace.csv >gate.csv &
feeder=$!
wait $run || complain "the first of two runs on ranks fails: $(cat logs/first)"
kill $feeder 2>/dev/null
same "$(ls -A held | tr '\n' ' ')" "$reports " 'the files of ranks that held a directory'
sh "$scripts/kills.sh" "$inflight" "$INFLIGHT_DATA" "$mpirun" || complain 'see above: kills.sh'
finish
