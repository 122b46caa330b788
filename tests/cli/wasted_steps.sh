#!/bin/sh
# What was computed for requests that left unanswered: summary.csv counts in steps what work.csv lists one by one.
. "$(dirname "$0")/expect.sh"

succeeds "$inflight" trace generate -n 300 --prompt lognormal:220,1.2,4,1024 --output-tokens lognormal:210,1.0,4,1024 -o trace.csv
cat >config.yaml <<'E1'
model: llama-2-7b
hardware: a100-80gb-sxm
workload: {trace: trace.csv, arrivals: {process: poisson, rate_rps: 12, seed: 1}, patience: {process: exponential, mean_s: 6}}
serving: {preset: vllm-v0, kv: {num_blocks: 600}}
output: {dir: out, plots: false}
E1

# The rows of work.csv of requests that requests.csv does not call finished.
listed() {
    columns out/requests.csv request_id,status | grep -v ',finished$' | cut -d, -f1 | sort >unanswered
    columns out/work.csv request_id | sort | join - unanswered | wc -l
}

wasted() {
    sed 's/"[^"]*"//g' out/summary.csv >unquoted.csv
    columns unquoted.csv wasted_steps
}

# Requests leave at the end of a step, at that of the next one, with another one in flight, between chunks, from host
# memory, and with guesses.
for preset in vllm-v0 vllm-v0-swap vllm-v1 vllm-v1-ngram sglang sarathi fastserve trtllm-1.2-max-utilization; do
    succeeds "$inflight" run config.yaml --quiet --set serving.preset=$preset --set output.work=true
    steps=$(wasted)
    succeeds test "$steps" -gt 0
    same "$steps" "$(listed)" "$preset: steps of requests that left"
    succeeds "$inflight" run config.yaml --quiet --set serving.preset=$preset --set output.work=false
    same "$(wasted)" "$steps" "$preset: steps that repeat the one before"
done

# In pipelines requests leave with several steps in flight, which end later.
sums() {
    columns "out/$1.csv" replica,step,prefill_tokens,decode_tokens |
        awk -F, '{ p[$1 "," $2] += $3; d[$1 "," $2] += $4 } END { for (s in p) print s, p[s], d[s] }' | sort
}

# When the first step begins in which work.csv has the request.
begun() {
    columns out/steps.csv replica,step,start_s | sed 's/,/:/' | sort -t, -k1,1 >starts
    columns out/work.csv replica,step,request_id | sed 's/,/:/' | sort -t, -k1,1 | join -t, - starts |
        sort -t, -k2,2n -k3,3n | awk -F, '!seen[$2]++ { print $2 "," $3 }' | sort
}
for preset in vllm-v0 vllm-v1 sglang sarathi trtllm-1.2-max-utilization; do
    succeeds "$inflight" run config.yaml --quiet --set serving.preset=$preset --set parallel.pipeline=4 \
        --set output.work=true --set output.steps=true
    succeeds test "$(wasted)" -gt 0
    same "$(wasted)" "$(listed)" "$preset in a pipeline: steps of requests that left"
    sums steps >steps.sums
    sums work >work.sums
    same_bytes steps.sums work.sums
    begun >begun
    columns out/requests.csv request_id,first_scheduled_s | grep -v ',$' | sort >said
    same_bytes begun said
done

# A pipeline of two stages of 1 s: the second prompt waits for the first stage, and leaves as its step ends.
printf 'arrival_s,prompt_tokens,output_tokens,abort_s\n0,100,4,\n0.1,20,4,2.2\n' >two.csv
cat >two.yaml <<'E1'
workload: {trace: two.csv}
serving:
  batching: {policy: unified, max_seqs: 4, max_batched_tokens: 100}
  order: fcfs
  admit: chunk-fits
  preempt: tail
  kv: {num_blocks: 1000}
  in_flight: {pipelined: true, request: one-step}
cost: {model: linear, step_s: 2}
parallel: {pipeline: 2}
output: {dir: two, plots: false}
E1
succeeds "$inflight" run two.yaml --quiet
same "$(columns two/requests.csv status,first_scheduled_s | tail -n 1)" 'aborted,1.000000000' 'its step begins behind the first'
finish
