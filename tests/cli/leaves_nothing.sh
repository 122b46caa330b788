#!/bin/sh
# A command that fails once it has made its folder leaves none behind: neither that folder nor those above it. A
# folder that was there stays, and so does one in which anything was written.
. "$(dirname "$0")/expect.sh"

printf 'arrival_s,prompt_tokens,output_tokens\n' >empty.csv
printf 'arrival_s,prompt_tokens,output_tokens\n0,10,5\n1,20,3\n' >trace.csv
cat >config.yaml <<'END'
workload: {trace: trace.csv, arrivals: {process: poisson, rate_rps: 1}}
serving: {preset: vllm-v0, max_model_len: 256, kv: {num_blocks: 64}}
cost: {model: linear, step_s: 0.01}
capacity: {criterion: objectives, objectives: {p95_ttft_s: 1}}
output: {dir: out, plots: false}
END
succeeds "$inflight" run config.yaml -q

# leaves_nothing CODE PATTERN COMMAND...: into new folders, into an empty one, and beside a file
leaves_nothing() {
    wanted=$1
    pattern=$2
    shift 2
    expect "$wanted" "$pattern" "$@" -o new/of/it
    [ ! -e new ] || complain "$ran" "    left $(find new | paste -sd' ')"
    mkdir -p there/empty there/used
    echo kept >there/used/file
    expect "$wanted" "$pattern" "$@" -o there/empty
    [ "$(ls -A there/empty)" = '' ] || complain "$ran" "    left $(ls -A there/empty)"
    expect "$wanted" "$pattern" "$@" -o there/used
    same "$(ls -A there/used)" file "$ran: what there is in a folder with a file"
    expect "$wanted" "$pattern" "$@" -o there/../beside/./it/
    [ ! -e beside ] || complain "$ran" "    left $(find beside | paste -sd' ')"
    rm -rf new there beside
}

none='empty.csv: no request, expected at least one'
leaves_nothing 2 "$none" "$inflight" run config.yaml -q --set workload.trace=empty.csv
leaves_nothing 2 'expected at least one' "$inflight" run config.yaml -q --set workload.trace=empty.csv \
    --set 'sweep.cost.step_s=[0.01,0.02]'
leaves_nothing 2 'missing/summary.csv: cannot open' "$inflight" compare out missing
leaves_nothing 2 'none of which finished' "$inflight" validate out \
    "$INFLIGHT_DATA/tests/traces/fixtures/recorded/vtc.jsonl"
leaves_nothing 2 'missing/summary.csv: cannot open' "$inflight" plot missing
leaves_nothing 2 "$none" "$inflight" capacity config.yaml --set workload.trace=empty.csv
leaves_nothing 2 'no request, expected at least one' "$inflight" capacity config.yaml \
    --set workload.trace=empty.csv --set capacity.target_rps=3
leaves_nothing 2 "$none" "$inflight" capacity config.yaml --set workload.trace=empty.csv \
    --set 'sweep.cost.step_s=[0.01,0.02]'
same "$(cat logs/out)" '' 'what a search prints that has failed'

# of two searches the one that has an answer is written
expect 1 '1 of 2 searches failed' "$inflight" capacity config.yaml --quiet -o partly \
    --set 'sweep.workload.trace=[trace.csv,empty.csv]'
same "$(columns partly/capacity.csv workload.trace,status | paste -sd' ')" \
    'trace.csv,unbounded empty.csv,failed' 'the searches of which one fails'

finish
