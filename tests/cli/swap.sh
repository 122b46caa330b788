#!/bin/sh
# Swaps beside steps: what is written, that it is written again, and what is refused.
. "$(dirname "$0")/expect.sh"

cat >trace.csv <<'E1'
arrival_s,prompt_tokens,output_tokens
0,36,11
0,32,6
12,8,2
E1
cat >base.yaml <<'E1'
workload: {trace: trace.csv}
serving: {preset: vllm-v0-swap, swap: overlap, swap_block_s: 0.5, max_model_len: 400, kv: {block_tokens: 4, num_blocks: 20}}
cost: {model: linear, step_s: 1}
output: {dir: out, steps: true}
E1

# What is written is what was read, and steady runs do not show.
flies_alike base.yaml requests.csv steps.csv moves.csv summary.csv

# Out from 5 to 9.5, beside steps until 9; back from 11.5 to 16, beside steps from 12 to 14.
same "$(columns out/moves.csv request_id,from_replica,to_replica,start_s,end_s,hidden_s,blocks | paste -sd ' ')" \
    '1,0,host,5.000000000,9.500000000,4.000000000,9 1,host,0,11.500000000,16.000000000,2.000000000,9' 'copies'
same "$(columns out/summary.csv swap_outs,moves,mean_moving_s,moving_hidden_frac)" '1,2,4.5,0.666666667' 'a summary'

# In steps, no file says anything of it.
succeeds "$inflight" run base.yaml --quiet -o plain --set serving.swap=step
[ ! -e plain/moves.csv ] || complain 'moves.csv with swaps in steps'

# ---- refused, in one line ----
refuses 'serving.batching is not prefill-first, or serving.preempt not tail, expected these, where swaps overlap (serving.swap)' \
    "$inflight" run base.yaml --quiet --set serving.preset=fastserve
refuses 'pool d: serving.swap is overlap, expected step where pools have roles' "$inflight" run base.yaml --quiet \
    --set 'cluster={preset: distserve, links: {token_bytes: 1, gb_per_s: 1}, pools: {p: {role: prefill, serving: {swap: step}}, d: {role: decode}}}'
refuses 'serving.swap is overlaps, expected one of step, overlap' "$inflight" run base.yaml --quiet --set serving.swap=overlaps

finish
