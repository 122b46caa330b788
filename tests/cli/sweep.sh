#!/bin/sh
# Sweeps: points that fail beside points that do not, and what --resume does with what is there.
. "$(dirname "$0")/expect.sh"

cat >config.yaml <<'END'
workload: {trace: three.csv}
serving: {preset: vllm-v0, max_model_len: 2048, kv: {num_blocks: 512}}
cost: {model: linear, step_s: 0.01}
output: {dir: out, steps: true, timeline: true}
sweep:
  cost.step_s: [0.01, 0.02, 0.03]
END
printf 'arrival_s,prompt_tokens,output_tokens\n0,10,5\n1,20,3\n1,30,4\n' >three.csv
printf 'arrival_s,prompt_tokens,output_tokens\n0,10,x\n' >broken.csv
reports='config.yaml quantiles.csv requests.csv steps.csv summary.csv timeline.json'

alike() {
    for report in $reports; do
        same_bytes "$1/$report" "$2/$report"
    done
    same "$(ls -A "$1" | tr '\n' ' ')" "$reports " "the files in $1"
}

succeeds "$inflight" run config.yaml --quiet -o whole

# a point that fails is recorded, and the rest go on
traces='sweep.workload.trace=[broken.csv,three.csv,broken.csv]'
expect 1 'inflight: 2 of 3 points failed, the first is point 0 (trace=broken.csv): broken.csv:2:6: ' \
    "$inflight" run config.yaml --quiet -o some --set sweep=null --set "$traces"
same "$(columns some/summary.csv workload.trace,requests,finished)" "$(printf 'broken.csv,,\nthree.csv,3,3\nbroken.csv,,')" \
    'the summary of failed points'
same "$(columns some/requests.csv point | sort -u)" 1 'the requests of failed points'
grep -q '^broken.csv,.*,.*broken.csv:2:6: ' some/summary.csv || complain 'no error in summary.csv'
same "$(ls -A some | tr '\n' ' ')" "$reports " 'the files in some'

# all of them: no run at all
refuses 'broken.csv:2:6: ' "$inflight" run config.yaml --quiet -o none --set sweep=null \
    --set 'sweep.workload.trace=[broken.csv,broken.csv]'
same "$(ls -A none)" '' 'the files in none'

# parts of a study, as a killed run leaves them: what the directory holds is put there while the
# program waits for the trace of its last point
partly() {
    rm -rf "$1"
    mkfifo gate.csv 2>/dev/null
    "$inflight" run config.yaml --quiet -o "$1" --set sweep=null \
        --set 'sweep.workload.trace=[three.csv,three.csv,gate.csv]' &
    run=$!
    n_waits=0
    while [ ! -e "$1/.parts/record-000001" ] && [ $n_waits -lt 200 ]; do
        sleep 0.05
        n_waits=$((n_waits + 1))
    done
    kill -9 $run
    wait $run 2>/dev/null
}
partly cut
[ -e cut/.parts/record-000001 ] || complain 'no record of the second point'
cp -r cut cut-again
rm gate.csv
cp three.csv gate.csv
gates='sweep.workload.trace=[three.csv,three.csv,gate.csv]'
succeeds "$inflight" run config.yaml --quiet -o gates --set sweep=null --set "$gates"
succeeds "$inflight" run config.yaml --quiet -o cut --resume --set sweep=null --set "$gates"
alike cut gates

# a part that was cut short or is gone is done again
: >cut-again/.parts/requests.csv-000001
rm cut-again/.parts/steps.csv-000000
succeeds "$inflight" run config.yaml --quiet -o cut-again --resume --set sweep=null --set "$gates"
alike cut-again gates

# another study's parts are not taken for ours, and a fresh start takes none
rm gate.csv
partly other
succeeds "$inflight" run config.yaml --quiet -o other --resume
alike other whole
rm -f gate.csv
partly fresh
succeeds "$inflight" run config.yaml --quiet -o fresh
alike fresh whole

# what is whole is left alone
touch -d '2001-01-01' whole/summary.csv
succeeds "$inflight" run config.yaml --quiet -o whole --resume
[ "$(find whole -name summary.csv -newermt 2002-01-01)" ] && complain 'a whole study was written again'
expect 0 'note: whole is whole' "$inflight" run config.yaml -o whole --resume
finish
