#!/bin/sh
# The parts of an earlier run that --resume keeps, and the lock that allows one run at a time in a directory.
. "$(dirname "$0")/expect.sh"

cat >config.yaml <<'END'
workload: {format: inflight}
model: ./model.yaml
hardware: ./hardware.yaml
serving: {max_model_len: 2048, kv: {num_blocks: 512}}
output: {dir: out, steps: true}
sweep:
  workload.trace: [one.csv, two.csv, gate.csv]
  serving.preset: [./first.yaml]
END
reports='config.yaml quantiles.csv requests.csv steps.csv summary.csv'
rows() {
    printf 'arrival_s,prompt_tokens,output_tokens\n0,10,%s\n1,20,3\n1,30,4\n' "$1"
}
fresh_inputs() {
    rm -f gate.csv
    for trace in one two gate; do
        rows 5 >$trace.csv
    done
    cp "$INFLIGHT_DATA/configs/models/llama-2-7b.yaml" model.yaml
    cp "$INFLIGHT_DATA/configs/hardware/a100-80gb-sxm.yaml" hardware.yaml
    sed '/^about/,/^[s-z]/{/^[s-z]/!d}' "$INFLIGHT_DATA/configs/serving/vllm-v0.yaml" >first.yaml
}

alike() {
    for report in $reports; do
        same_bytes "$1/$report" "$2/$report"
    done
    same "$(ls -A "$1" | tr '\n' ' ')" "$reports " "the files in $1"
}

# The program in the background as $run, until it waits for the trace of its last point.
begin() { # DIR OPTION...
    dir=$1
    shift
    rm -rf "$dir"
    rm -f gate.csv
    mkfifo gate.csv
    "$inflight" run config.yaml --quiet -o "$dir" "$@" >logs/first 2>&1 &
    run=$!
    n_waits=0
    while [ ! -e "$dir/.parts/record-000001" ] && [ $n_waits -lt 400 ]; do
        sleep 0.05
        n_waits=$((n_waits + 1))
    done
    [ -e "$dir/.parts/record-000001" ] || complain "$dir: no record of the second point: $(cat logs/first)"
}

partly() {
    begin "$@"
    kill -9 $run
    wait $run 2>/dev/null
    rm gate.csv
    rows 5 >gate.csv
}

# says PATTERN DIR OPTION...: --resume has one note, and the reports are those of a fresh run
says() {
    pattern=$1
    dir=$2
    shift 2
    try "$inflight" run config.yaml -o "$dir" --resume "$@"
    grep '^note: ' logs/err | grep -v num_blocks >logs/notes
    mv logs/notes logs/err
    wanted=0
    judge
    succeeds "$inflight" run config.yaml --quiet -o fresh "$@"
    alike "$dir" fresh
}

spoil() { # FILE OFFSET
    printf '~' | dd of="$1" bs=1 seek="$2" conv=notrunc 2>logs/dd
}

# ---- nothing has changed ----
fresh_inputs
partly same
says '' same

# ---- damaged parts are named, and flown again ----
partly part
spoil part/.parts/requests.csv-000001 100
says 'note: part/.parts/requests.csv-000001 has changed since it was written, its point is run again' part
partly short
: >short/.parts/steps.csv-000000
says 'note: short/.parts/steps.csv-000000 has changed since it was written' short
partly record
spoil record/.parts/record-000001 500
says 'note: record/.parts/record-000001 has changed since it was written' record
partly quiet
spoil quiet/.parts/quantiles.csv-000000 50
succeeds "$inflight" run config.yaml --quiet -o quiet --resume
alike quiet fresh

# ---- inputs with changed contents of the same size ----
partly trace
rows 9 >two.csv
says 'note: trace/.parts: trace two.csv has changed since, its points are run again' trace
fresh_inputs
partly model
sed 's/llama/LLAMA/' model.yaml >other && cp other model.yaml
cmp -s model.yaml "$INFLIGHT_DATA/configs/models/llama-2-7b.yaml" && complain 'the model has not changed'
says 'note: model/.parts: model ./model.yaml has changed since' model
fresh_inputs
partly hardware
printf '# remark\n' >>hardware.yaml
says 'note: hardware/.parts: hardware profile ./hardware.yaml has changed since' hardware
# the deployment that the profile names
printf 'host: {layer_s: 1e-5}\nmemory: {workspace_gib: 1}\n' >server.yaml
sed -i 's/^deployment: .*/deployment: .\/server.yaml/' hardware.yaml
partly server
printf '# remark\n' >>server.yaml
says 'note: server/.parts: hardware profile ./hardware.yaml has changed since' server
fresh_inputs
# and one that the configuration names
partly deployed --set deployment=./server.yaml
printf '# remark\n' >>server.yaml
says 'note: deployed/.parts: deployment ./server.yaml has changed since' deployed --set deployment=./server.yaml
fresh_inputs
printf 'corrections: corrections.csv\n' >>hardware.yaml
printf 'op,n,k,size,factor\ngemm,,,1,1.5\n' >corrections.csv
partly corrections
printf 'op,n,k,size,factor\ngemm,,,1,2.5\n' >corrections.csv
says 'note: corrections/.parts: hardware profile ./hardware.yaml has changed since' corrections
fresh_inputs
partly preset
printf '\n  check_steady: true\n' >>first.yaml
says 'note: preset/.parts: its points are of another configuration or version' preset
fresh_inputs

# ---- plug-ins ----
if command -v cc >logs/out; then
    cc -std=c17 -shared -fPIC -I"$INFLIGHT_DATA/include" "$INFLIGHT_DATA/tests/plugin/lifo.c" -o lifo.so
    partly plugin --plugin ./lifo.so
    printf 'x' >>lifo.so
    says 'note: plugin/.parts: plug-in ./lifo.so has changed since' plugin --plugin ./lifo.so
    partly list --plugin ./lifo.so
    says 'note: list/.parts: the list of plug-ins, or one of them, has changed since' list
fi

# ---- a study that is whole ----
try "$inflight" run config.yaml --resume -o fresh
same "$(cat logs/err)" 'note: fresh is complete, there is nothing to resume' 'a whole study'
cp -r fresh whole
touch -d '1 minute ago' whole/* # times of files may stand still for some milliseconds
rows 7 >one.csv
says 'note: one.csv is newer than the reports in whole, all points are run again' whole
fresh_inputs

# ---- one run at a time ----
for threads in 1 3; do
    begin held -j $threads
    ls -A held/.parts >before
    refuses "held: process $run on $(uname -n) writes there, expected one run at a time" \
        "$inflight" run config.yaml --quiet -o held
    refuses "process $run on" "$inflight" run config.yaml --quiet -o held --resume
    refuses "process $run on" "$inflight" capacity config.yaml --quiet -o held \
        --set workload.arrivals.process=poisson --set workload.arrivals.rate_rps=1 \
        --set capacity.criterion=delay
    ls -A held/.parts >after
    same_bytes before after
    rows 5 >gate.csv
    wait $run || complain "the first of two runs fails: $(cat logs/first)"
    rm gate.csv
    rows 5 >gate.csv
    succeeds "$inflight" run config.yaml --quiet -o fresh
    alike held fresh
done
# the lock of a dead process does not hold
partly gone
[ -e gone/.lock ] || complain 'a killed run leaves no file of the lock'
succeeds "$inflight" run config.yaml --quiet -o gone
alike gone fresh
# the lock file of a run that was killed after its last report: the directory is complete except for that file
echo 'process 1 on a host that is gone' >gone/.lock
succeeds "$inflight" run config.yaml --quiet -o gone --resume
[ ! -e gone/.lock ] || complain 'the lock of a killed run stays in a directory that is whole'
finish
