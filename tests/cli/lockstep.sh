#!/bin/sh
# Data-parallel ranks in lockstep: steps begin and end together, a rank without work runs dummies, and what the run
# refuses. A step takes 10 ms, and 1 ms more for each token of a prompt.
. "$(dirname "$0")/expect.sh"

cat >two.csv <<'E1'
arrival_s,prompt_tokens,output_tokens
0,1,20
0.035,80,1
E1
cat >config.yaml <<'E1'
workload: {trace: two.csv, arrivals: {process: trace}}
serving: {preset: vllm-v1-sync, max_model_len: 2048, kv: {num_blocks: 512}}
cost: {model: linear, step_s: 0.01, prefill_token_s: 0.001}
output: {dir: out, steps: true, plots: false}
model: qwen3-30b-a3b
E1

# In lockstep the prompt waits for the step in flight, from 31 to 41 ms, and takes 90 ms, in which the other
# request gets one token. Rank 1 has no work in the first four steps and in the last fifteen.
expect 0 'dummy steps of data-parallel ranks without work: 19' "$inflight" run config.yaml --set parallel.data=2
columns out/steps.csv replica,start_s,duration_s >steps
same "$(sed -n 4,6p steps | tr '\n' ' ')" '0,0.031000000,0.010000000 0,0.041000000,0.090000000 1,0.041000000,0.090000000 ' \
    'steps in lockstep'
columns out/requests.csv first_token_s,finish_s,max_itl_s >requests
same "$(sed -n 1,2p requests | tr '\n' ' ')" '0.011000000,0.281000000,0.090000000 0.131000000,0.131000000, ' \
    'requests in lockstep'

# On their own, the prompt starts at once and no other request waits for it.
succeeds "$inflight" run config.yaml --quiet --set cluster.replicas=2
columns out/requests.csv first_token_s,finish_s,max_itl_s >requests
same "$(sed -n 1,2p requests | tr '\n' ' ')" '0.011000000,0.201000000,0.010000000 0.125000000,0.125000000, ' \
    'requests of replicas'

# Two groups of two ranks: a group knows nothing of the other.
succeeds "$inflight" run config.yaml --quiet --set parallel.data=2 --set cluster.replicas=2 -o groups
"$inflight" run config.yaml --quiet --set parallel.data=2 --set cluster.replicas=2 -o again
same_bytes groups/requests.csv again/requests.csv
same_bytes groups/steps.csv again/steps.csv

refuses 'parallel.data is 2, expected 1 for llama-3-8b, which has no experts' \
    "$inflight" run config.yaml --quiet --set parallel.data=2 --set model=llama-3-8b
refuses 'parallel.expert is 3, expected a divisor of the 2 ranks' \
    "$inflight" run config.yaml --quiet --set parallel.data=2 --set parallel.expert=3
refuses 'cluster.replicas x parallel.data is 131072, expected at most 65536' \
    "$inflight" run config.yaml --quiet --set parallel.data=2 --set cluster.replicas=65536
refuses 'parallel.context is 2, expected a divisor of the 1 ranks' \
    "$inflight" run config.yaml --quiet --set parallel.context=2
finish
