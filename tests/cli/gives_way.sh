#!/bin/sh
# A preempt module is shown requests that may not give way in this plan. One that names such a request breaks nothing:
# no room is made, and the request that lacks it waits for another plan.
. "$(dirname "$0")/expect.sh"

# At 5 s request 3 has the last 5 tokens of its prompt, on which 2 starts in the same plan, and 0 lacks a block.
cat >trace.csv <<'E1'
arrival_s,prompt_tokens,output_tokens,prefix_group,prefix_tokens
1,60,33,,
1,9,14,,
4,33,8,1,24
4,25,3,1,24
4,25,20,,
E1
cat >config.yaml <<'E1'
workload: {trace: trace.csv}
serving:
  max_model_len: 4096
  kv: {num_blocks: 32, block_tokens: 4, prefix_cache: hash, publish: scheduled}
  batching: {policy: capacity, chunking: first-come, max_batched_tokens: 24}
  order: {policy: sjf, job: remaining}
  admit: {policy: chunk-fits}
  preempt: {policy: tail, fate: swap, scheduled: undo, place: in-order}
cost: {model: linear, step_s: 1}
output: {dir: out, plots: false, steps: true}
E1
for fate in swap recompute; do
    sed "s/fate: swap/fate: $fate/" config.yaml >"$fate.yaml"
    flies_alike "$fate.yaml" requests.csv steps.csv summary.csv
    same "$(columns out/requests.csv status | sort | uniq -c | tr -s ' ')" ' 5 finished' "$fate: all are answered"
    same "$(columns out/steps.csv start_s,running,waiting,preempted | sed -n 5p)" '5.000000000,4,1,0' "$fate: none gave way"
done
finish
