#!/bin/sh
# Runs on the durations of recorded steps: another plan ends the run or is listed, from files of inflight and logs of an
# engine, gzipped or not.
. "$(dirname "$0")/expect.sh"

cat >config.yaml <<'END'
workload: {trace: trace.csv}
serving: {preset: vllm-v0, max_model_len: 2048, kv: {num_blocks: 512}}
cost: {model: linear, step_s: 0.01}
output: {dir: slow, steps: true, work: true, plots: false}
END
printf 'arrival_s,prompt_tokens,output_tokens\n0,10,5\n1,20,3\n1,30,4\n5,7,1\n9,100,20\n' >trace.csv
succeeds "$inflight" run config.yaml -q

replay() { # DIR OUT SETTINGS...
    from=$1
    to=$2
    shift 2
    "$inflight" run config.yaml -q --set cost.step_s=null --set cost.model=recorded --set cost.dir="$from" -o "$to" "$@"
}

# the same requests: the same bytes, from plain files and gzipped ones, and nothing is listed
for otherwise in fail recorded predicted; do
    step_s=null
    [ $otherwise = predicted ] && step_s=0.03
    succeeds replay slow again --set cost.otherwise=$otherwise --set cost.step_s=$step_s
    same_bytes slow/requests.csv again/requests.csv
    same_bytes slow/steps.csv again/steps.csv
    same_bytes slow/work.csv again/work.csv
done
same "$(cat again/differences.csv)" \
    point,replica,step,recorded_step,start_s,request_id,planned_tokens,recorded_tokens,planned_context_tokens,recorded_context_tokens \
    'nothing differs'
# several samples: each sequence that decodes has its row, and the rows of a step add up to its tokens
sed '1s/$/,samples/; 2,$s/$/,1/; 4s/,1$/,3/' trace.csv >samples.csv
succeeds "$inflight" run config.yaml -q --set workload.trace=samples.csv -o samples
same "$(columns samples/work.csv prefill_tokens,decode_tokens | awk -F, '{ p += $1; d += $2 } END { print p, d }')" \
    "$(columns samples/steps.csv prefill_tokens,decode_tokens | awk -F, '{ p += $1; d += $2 } END { print p, d }')" \
    'tokens of rows and of steps'
same "$(columns samples/work.csv request_id,decode_tokens | grep -c '^2,1$')" 9 'three sequences in three steps'
succeeds replay samples again --set workload.trace=samples.csv
same_bytes samples/work.csv again/work.csv
mkdir packed
gzip -c slow/steps.csv >packed/steps.csv.gz
gzip -c slow/work.csv >packed/work.csv.gz
succeeds replay packed again
same_bytes slow/requests.csv again/requests.csv
[ ! -e again/differences.csv ] || complain 'differences.csv is written although another plan ends the run'
succeeds replay packed/steps.csv.gz again
same_bytes slow/requests.csv again/requests.csv

# an engine's log says the same: its rows are those of work.csv with the times of steps.csv
awk -F, 'NR == FNR { if (FNR > 1) time[$3] = $4 "," $5; next }
    FNR == 1 { print "step,start_s,duration_s,request_id,scheduled_tokens,computed_tokens"; next }
    { print $3 "," time[$3] "," $4 "," $5 + $6 "," $7 }' slow/steps.csv slow/work.csv >engine.csv
succeeds replay engine.csv again
same_bytes slow/requests.csv again/requests.csv
same_bytes slow/steps.csv again/steps.csv
mkdir engine
gzip -c engine.csv >engine/step_log.csv.gz
succeeds replay engine again
same_bytes slow/requests.csv again/requests.csv

# several replicas with recorded steps that begin late: the same requests with steps.csv and without
succeeds "$inflight" trace generate -n 200 --prompt uniform:5,200 --output-tokens uniform:1,40 --process poisson --rate 9 -o busy.csv
succeeds "$inflight" run config.yaml -q -o fleet --set workload.trace=busy.csv --set cluster.replicas=3 \
    --set cost='{model: linear, step_s: 0.04, prefill_token_s: 0.001}'
awk -F, -v OFS=, 'FNR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
    FNR > 1 { $at["start_s"] = sprintf("%.9f", $at["start_s"] + 0.005); $at["duration_s"] = sprintf("%.9f", $at["duration_s"] - 0.005) }
    { print }' fleet/steps.csv >late.csv
mv late.csv fleet/steps.csv
for steps in true false; do
    succeeds replay fleet late-$steps --set workload.trace=busy.csv --set cluster.replicas=3 --set output.steps=$steps --set output.work=false
done
same_bytes late-true/requests.csv late-false/requests.csv

# Of two requests that run together the second is left out: its tokens are missing in steps 5 to 7, and the recorded
# step 8, which it has for itself, is planned by none.
sed 4d trace.csv >fewer.csv
for from in slow engine.csv; do
    expect 2 "at place 1 of 1, nothing; recorded, of 2: 30 tokens of request 2 behind 0" \
        replay engine.csv stopped --set workload.trace=fewer.csv
    awk -F, -v OFS=, 'NR > 3 { print $0, NR - 1; next } NR == 1 { print $0, "request_id"; next } { print $0, NR - 2 }' \
        fewer.csv >numbered.csv
    try "$inflight" run config.yaml --set cost.step_s=null --set cost.model=recorded --set cost.dir="$from" -o otherwise \
        --set workload.trace=numbered.csv --set cost.otherwise=recorded
    same "$code" 0 "a run from $from that goes on"
    grep -qF 'note: 3 of 29 steps were planned otherwise than recorded, 1 recorded steps were not planned, 0 not reached' \
        logs/err || complain "the note of $from" "    said: $(cat logs/err)"
    grep -qF '3 of 29 steps were planned otherwise' otherwise/summary.csv || complain 'the summary does not say it'
    same "$(cut -d, -f3- otherwise/differences.csv)" "step,recorded_step,start_s,request_id,planned_tokens,recorded_tokens,planned_context_tokens,recorded_context_tokens
5,5,1.000000000,2,,30,,0
6,6,1.010000000,2,,1,,30
7,7,1.020000000,2,,1,,31
,8,1.030000000,2,,1,,32" "differences from $from"
done
# without work.csv the sums of a step are all that is known
mkdir sums
cp slow/steps.csv sums
succeeds replay sums otherwise --set workload.trace=numbered.csv --set cost.otherwise=recorded
same "$(sed -n 2p otherwise/differences.csv)" 0,0,5,5,1.000000000,,20,50,0,0 'the sums of a step'

# predicted: the steps planned otherwise take 3 ms, all others what was recorded
succeeds replay engine.csv predicted --set workload.trace=numbered.csv --set cost.otherwise=predicted \
    --set cost.step_s=0.003
same "$(awk -F, 'NR > 1 { printf "%s ", $5 }' predicted/steps.csv | cut -d' ' -f5-9)" \
    '0.010000000 0.003000000 0.003000000 0.003000000 0.010000000' 'predicted durations'
refuses 'model is missing' replay engine.csv none --set cost.otherwise=predicted
refuses 'cost.otherwise is maybe, expected one of fail, recorded, predicted' \
    replay engine.csv none --set cost.otherwise=maybe
refuses 'engine2.csv:3:15: duration_s is "soon"' sh -c "sed '3s/[^,]*/soon/3' engine.csv >engine2.csv &&
    '$inflight' run config.yaml -q --set cost.model=recorded --set cost.dir=engine2.csv -o none"
mkdir nothing
refuses 'has no steps.csv and no step_log.csv' replay nothing none

# a real vLLM, all steps: see its page
pages=$INFLIGHT_DATA/reports/reproductions/vllm-cpu
try sh "$pages/run" "$inflight" "$work/vllm"
same "$code" 0 "the page of vLLM's steps"
same_bytes "$pages/vllm.csv" vllm/vllm.csv
same "$(awk -F, '$2 ~ /as recorded/ || $1 == "room" || $2 ~ /=512$/ { n += $3; other += $4 + $5 } END { print n, other }' \
    vllm/vllm.csv)" '3447 0' "vLLM's steps, and those planned otherwise"

# the model of costs is switched by an override: what is of the other one has no effect, and a note says so
cat >linear.yaml <<'END'
model: llama-2-7b
hardware: a100-80gb-sxm
workload: {trace: trace.csv}
serving: {preset: vllm-v0, kv: {num_blocks: 512}}
cost: {model: linear, step_s: 0.01, context_token_s: 1e-6}
output: {plots: false}
END
expect 0 'note: cost.step_s is 0.01 and has no effect: only linear costs use it; cost.context_token_s is 1e-06 and' \
    "$inflight" run linear.yaml --set cost.model=roofline -o switched
succeeds "$inflight" run linear.yaml --set cost=null -o dropped
same_bytes dropped/requests.csv switched/requests.csv
same_bytes dropped/summary.csv switched/summary.csv

# num_blocks is the number of the engine's log: vLLM's V1 keeps one of them
for preset in vllm-v1 vllm-v1-2025-05; do
    succeeds "$inflight" run linear.yaml -q --set serving.preset=$preset --set output.steps=true -o null
    same "$(sed -n 2p null/steps.csv | cut -d, -f18)" 511 "blocks of $preset that requests get"
done
refuses 'serving.kv.num_blocks is 1, expected more than serving.kv.null_blocks, 1' \
    "$inflight" run linear.yaml -q --set serving.preset=vllm-v1 --set serving.kv.num_blocks=1 -o null
finish
