#!/bin/sh
# A run against itself, against a run that is known to be slower, and against a recorded one.
. "$(dirname "$0")/expect.sh"

cat >config.yaml <<'END'
workload: {trace: trace.csv}
serving: {preset: vllm-v0, max_model_len: 2048, kv: {num_blocks: 512}}
cost: {model: linear, step_s: 0.01}
output: {dir: fast, steps: true, plots: false}
END
printf 'arrival_s,prompt_tokens,output_tokens\n0,10,5\n1,20,3\n1,30,4\n5,7,1\n9,100,20\n' >trace.csv
succeeds "$inflight" run config.yaml -q
succeeds "$inflight" run config.yaml -q --set cost.step_s=0.02 -o slow

errors() {
    awk -F, -v "metric=$2" -v "statistic=$3" '$1 == metric && $2 == statistic { print $6 + 0 }' "$1"
}

# against itself: no error anywhere, and the same decisions
succeeds "$inflight" validate fast fast -o same --no-plots
printed 'paired     5 by request_id'
same "$(awk -F, 'NR > 1 && $2 !~ /spearman/ && $6 + 0 != 0' same/validation.csv)" '' \
    'errors of a run against itself'
same "$(errors same/validation.csv scheduling.order spearman)" 1 'rank correlation with itself'
same "$(awk -F, '$1 == "steps.alike_from_the_start" { print $4 == $5 }' same/validation.csv)" 1 \
    'steps alike'

# requests with equal arrivals, and with arrivals twice as fast: 4.5 s earlier after 9 s
grep -q arrivals logs/out && complain 'a run has its own arrivals'
succeeds "$inflight" run config.yaml -q --set workload.arrivals.speedup=2 -o sooner
succeeds "$inflight" validate sooner fast -o apart --no-plots
printed 'arrivals   up to 4.5 s apart'

# steps of 20 ms instead of 10: no request queues, so every latency doubles
succeeds "$inflight" validate slow fast -o double --no-plots
for metric in ttft_s tpot_s e2e_s; do
    same "$(awk -F, -v "m=$metric" '$1 == m && $2 == "mean" { print $7 + 0 }' double/validation.csv)" \
        1 "relative error of $metric at half the speed"
    same "$(errors double/validation.csv $metric request_abs_relative_error_p99)" 1 "$metric, p99"
done
same "$(errors double/validation.csv scheduling.steps_s sum)" 0 'the same steps'

# a recorded run drives a simulation and judges it: the first token 5 ms later than simulated
awk -F, 'NR == 1 { print "start,p,o,ttft,e2e,queue"; next }
    { printf "%s,%s,%s,%.9f,%.9f,0\n", $5, $9, $10, $12 + 0.005, $14 + 0.005 }' \
    fast/requests.csv >recorded.csv
succeeds "$inflight" run config.yaml -q --set workload.trace=recorded.csv -o of-recorded
same_bytes fast/requests.csv of-recorded/requests.csv
succeeds "$inflight" validate of-recorded recorded.csv -o shifted --no-plots
same "$(errors shifted/validation.csv e2e_s mean)" -0.005 'end to end, shifted by 5 ms'
same "$(errors shifted/validation.csv ttft_s p90)" -0.005 'first token, shifted by 5 ms'
same "$(errors shifted/validation.csv ttft_s wasserstein)" 0.005 'distance of a shift'
same "$(errors shifted/validation.csv tpot_s p50)" 0 'decoding, not shifted'

# a run's own requests.csv is a trace as well
succeeds "$inflight" run config.yaml -q --set workload.trace=fast/requests.csv -o again
same_bytes fast/requests.csv again/requests.csv

# a prefix that all prompts share: the same as a key and in the trace, and found
awk -F, 'NR == 1 { print $0 ",prefix_group,prefix_tokens"; next } { print $0 ",1," ($2 < 64 ? $2 : 64) }' \
    trace.csv >prefixes.csv
cached='--set serving.kv.prefix_cache=hash'
# shellcheck disable=SC2086 # two words
succeeds "$inflight" run config.yaml -q $cached --set workload.shared_prefix_tokens=64 -o shared-key
# shellcheck disable=SC2086
succeeds "$inflight" run config.yaml -q $cached --set workload.trace=prefixes.csv -o shared-trace
same_bytes shared-key/requests.csv shared-trace/requests.csv
awk -F, '
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { hits += $at["cached_tokens"] }
    END { exit hits == 0 }' shared-key/requests.csv || complain 'no prompt found the prefix that it shares'

# every second request alone is judged
succeeds "$inflight" validate slow fast -o part --no-plots --part 1/2
printed 'paired     2 by request_id, those of part 1/2; 3 not judged'
same "$(awk -F, '$1 == "ttft_s" && $2 == "mean" { print $3 }' part/validation.csv)" 2 'judged requests'
for part in 2/2 1 /2 1/0 x/y 1/2/3; do
    refuses 'expected K/N with K below N' "$inflight" validate slow fast --part "$part"
done

# a format that there is none of, also where it would not be read: of a folder
for real in fast recorded.csv missing; do
    refuses 'unknown trace format "nosuch", expected auto, azure, ' "$inflight" validate slow $real --format nosuch
done

# the run's steps, replayed one by one, have the same durations; host time between them does not matter
succeeds "$inflight" run config.yaml -q --set cost.model=recorded --set cost.dir=slow -o replayed
same_bytes slow/requests.csv replayed/requests.csv
same_bytes slow/steps.csv replayed/steps.csv
mkdir gaps
awk -F, -v OFS=, 'NR > 1 { $4 = sprintf("%.9f", $4 + 0.005); $5 = sprintf("%.9f", $5 - 0.005) } 1' \
    slow/steps.csv >gaps/steps.csv
succeeds "$inflight" run config.yaml -q --set cost.model=recorded --set cost.dir=gaps -o replayed
# first_scheduled_s is when the first step began: 5 ms of the prefill are the queue's
awk -F, -v OFS=, 'NR > 1 { $6 = sprintf("%.9f", $6 + 0.005); $18 = sprintf("%.9f", $18 + 0.005)
                           $19 = sprintf("%.9f", $19 - 0.005) } 1' slow/requests.csv >gaps/requests.csv
same_bytes gaps/requests.csv replayed/requests.csv
same "$(cut -d, -f4,5 replayed/steps.csv)" "$(cut -d, -f4,5 gaps/steps.csv)" 'when replayed steps begin'
refuses 'step 5 of replica 0 has 20 prompt tokens of 1 sequences * recorded: 50 of 2, and 0 with 0' \
    "$inflight" run config.yaml -q --set cost.model=recorded --set cost.dir=slow -o replayed \
    --set workload.limit=2
refuses 'cost.dir is missing' "$inflight" run config.yaml -q --set cost.model=recorded
refuses 'there is no folder nowhere' "$inflight" run config.yaml -q --set cost.model=recorded \
    --set cost.dir=nowhere

# exported as vllm bench serve would write it, and read back
expect 0 'note: fast/bench.json: itls repeats' "$inflight" export fast
succeeds "$inflight" validate fast fast/bench.json -o exported --no-plots
printed 'paired     5 by request_id'
same "$(awk -F, 'NR > 1 && $2 !~ /spearman/ && ($6 > 1e-8 || $6 < -1e-8)' \
    exported/validation.csv)" '' 'errors of a run against its export'
refuses 'usage: inflight export' "$inflight" export
refuses 'nowhere/requests.csv: cannot open' "$inflight" export nowhere

# every tool's format drives a run and judges it; means of TTFT and end to end by hand from the fixtures' numbers
adapter() { # file, pairs, TTFT, end to end, settings...
    file=$INFLIGHT_DATA/tests/traces/fixtures/recorded/$1
    expected=$2:$3:$4
    shift 4
    try "$inflight" run config.yaml -q --set workload.trace="$file" --set serving.max_model_len=4096 "$@" -o by-tool
    try "$inflight" validate by-tool "$file" -o by-tool --no-plots
    same "$(awk -F, '$2 == "mean" && $1 == "ttft_s" { ttft = $5 } $2 == "mean" && $1 == "e2e_s" { print $3 ":" ttft ":" $5 }' \
        by-tool/validation.csv)" "$expected" "pairs, TTFT and end to end of $file"
}
adapter bench.json 3 0.259619 0.384619
adapter sglang.jsonl 3 0.583333333 0.75 --set 'workload.arrivals={process: constant, rate_rps: 1}'
adapter aiperf.jsonl 2 0.2555 1.148875
adapter guidellm.json 2 0.0625 1.75
adapter llmservingsim.jsonl 2 0.625 9.375
adapter blis.csv 2 0.785135 1.50077
adapter llmd.csv 3 0.308333333 15.8916667
adapter vtc.jsonl 2 1.125 5.75

# error bars: an ensemble does not change the nominal run; it adds the interval of 90% of its members
cat >fitted.yaml <<'END'
model: llama-2-7b
hardware: a100-80gb-sxm
workload: {trace: trace.csv}
serving: {preset: vllm-v0, kv: {num_blocks: 512}}
output: {dir: nominal, plots: false}
END
succeeds "$inflight" run fitted.yaml -q
succeeds "$inflight" run fitted.yaml -q --set cost.ensemble=40 -o bars
same_bytes nominal/requests.csv bars/requests.csv
same_bytes nominal/summary.csv bars/summary.csv
succeeds "$inflight" run fitted.yaml -q --set cost.ensemble=40 -o again-bars -j 2
same_bytes bars/intervals.csv again-bars/intervals.csv
same "$(awk -F, '$2 == "mean_e2e_s" { print $4, ($6 < $3 && $3 < $8) }' bars/intervals.csv)" '40 1' \
    'members, and the nominal value inside'
succeeds "$inflight" validate bars nominal -o with-bars --no-plots
printed 'lie in the 90% interval'
same "$(awk -F, '$1 == "e2e_s" && $2 == "mean" { print $10 }' with-bars/validation.csv)" true \
    'the nominal run lies in its own interval'
succeeds "$inflight" run fitted.yaml -q -o bars
[ ! -e bars/intervals.csv ] || complain 'intervals of an earlier run are left'
refuses 'cost.ensemble is above 0' "$inflight" run config.yaml -q --set cost.ensemble=2

# refusals
refuses 'usage: inflight validate SIM_DIR REAL' "$inflight" validate fast
refuses 'nowhere: cannot open' "$inflight" validate fast nowhere
refuses 'trace.csv: a trace without outcomes' "$inflight" validate fast trace.csv
refuses 'expected -o DIR' "$inflight" validate recorded.csv recorded.csv
refuses 'none of which finished' "$inflight" validate fast "$INFLIGHT_DATA/tests/traces/fixtures/recorded/vtc.jsonl"
refuses 'unknown trace format "blsi"' "$inflight" validate fast recorded.csv --format blsi
mkdir swept
awk 'NR == 1 || 1; NR > 1 { sub(/^0/, "1"); print }' fast/requests.csv >swept/requests.csv
refuses 'a trace is one point of a run' "$inflight" validate swept fast

finish
