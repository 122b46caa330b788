#!/bin/sh
# Rows that repeat others (retry_of): they find the prompt in the cache, are counted, and are refused where they are
# none.
. "$(dirname "$0")/expect.sh"

# By pencil, blocks of 16 tokens: 7 is aborted at 0.5 s, in the step that computes its prompt of 64 tokens, 9 repeats it
# at 10 s and finds 3 of its 4 blocks (one token is always computed, and only whole blocks are found); 11 repeats 9,
# so 7, in a prefix group that 7 has not: it finds the same. 13 has a prompt of that length, and finds nothing.
cat >again.csv <<'E1'
request_id,arrival_s,prompt_tokens,output_tokens,abort_s,retry_of,prefix_group,prefix_tokens
7,0,64,4,0.5,,,
9,10,64,4,,7,,
11,20,64,4,,9,g,16
13,30,64,4,,,,
E1
cat >config.yaml <<'E1'
workload: {trace: again.csv}
serving: {preset: vllm-v1-sync, max_model_len: 256, kv: {num_blocks: 64, swap_gib: 0}}
cost: {model: linear, step_s: 1}
output: {dir: out}
E1
for cache in hash radix; do
    succeeds "$inflight" run config.yaml --quiet --set serving.kv.prefix_cache=$cache
    same "$(columns out/requests.csv request_id,status,cached_tokens | tr '\n' ' ')" \
        '7,aborted,0 9,finished,48 11,finished,48 13,finished,0 ' "$cache: found in the cache"
    same "$(columns out/summary.csv requests,aborted,retries,retry_amplification)" '4,1,2,2' "$cache: amplification"
done
# 1 waits for the one seat and leaves: what the cache holds of its prompt was not computed for it, with a limit or
# without one.
for limit in '' 3; do
    printf 'arrival_s,prompt_tokens,output_tokens,abort_s,abort_tokens,prefix_group,prefix_tokens\n0,64,9,,,g,64\n2.5,64,9,3,%s,g,64\n' \
        "$limit" >leaves.csv
    succeeds "$inflight" run config.yaml --quiet --set workload.trace=leaves.csv --set serving.batching.max_seqs=1
    same "$(columns out/summary.csv aborted,wasted_tokens,wasted_steps)" '1,0,0' "limit $limit: wasted"
done
succeeds "$inflight" run config.yaml --quiet --set serving.kv.prefix_cache=none
same "$(columns out/summary.csv cached_prompt_frac,retry_amplification)" '0,2' 'without a cache'

# What a client sends again itself is a retry, too: the same prompt, found, and counted.
printf 'arrival_s,prompt_tokens,output_tokens\n0,64,4\n' >once.csv
succeeds "$inflight" run config.yaml --quiet --set workload.trace=once.csv \
    --set 'workload.patience={process: constant, mean_s: 1.5}' --set 'workload.retry={most: 2, backoff_s: 5, jitter_frac: 0}'
same "$(columns out/requests.csv request_id,status,cached_tokens | tr '\n' ' ')" '0,aborted,0 1,aborted,48 2,aborted,48 ' \
    'attempts of a client'
same "$(columns out/summary.csv requests,retries,retry_amplification)" '3,2,3' 'amplification of a client'

# Cut away, the first leaves its retry alone.
succeeds "$inflight" run config.yaml --quiet --set workload.skip=1
same "$(columns out/requests.csv request_id,status,cached_tokens | tr '\n' ' ')" \
    '9,finished,0 11,finished,48 13,finished,0 ' 'without the first'

retry() {
    printf 'arrival_s,prompt_tokens,output_tokens,retry_of\n0,64,4,%s\n1,%s,4,%s\n' "$1" "$2" "$3" >bad.csv
    refuses "$4" "$inflight" run config.yaml --quiet --set workload.trace=bad.csv
}
retry '' 64 1 'bad.csv:3:8: retry_of is "1", expected another request than itself'
retry '' 63 0 'bad.csv:3:8: retry_of is "0", expected a row with as many prompt_tokens'
retry '' 64 5 'bad.csv:3:8: retry_of is "5", expected the request_id of a row of this file'
retry 1 64 '' 'bad.csv:2:8: retry_of is "1", expected a row that arrives before this one'
retry 1 64 0 'bad.csv:2:8: retry_of is "1", expected a row that arrives before this one'
retry '' 64 -1 'bad.csv:3:8: retry_of is "-1", expected a whole number from 0'
retry '' 64 first 'bad.csv:3:8: retry_of is "first", expected a whole number'
# Where rows arrive together, which is first is open, but for a circle; without stamps they arrive in their order; a turn
# with a think time arrives when it does.
printf 'arrival_s,prompt_tokens,output_tokens,request_id,retry_of\n0,64,4,5,7\n0,64,4,7,\n' >bad.csv
succeeds "$inflight" run config.yaml --quiet --set workload.trace=bad.csv
printf 'arrival_s,prompt_tokens,output_tokens,request_id,retry_of\n0,64,4,5,7\n0,64,4,7,9\n0,64,4,9,5\n' >bad.csv
refuses 'bad.csv:2:10: retry_of is "7", expected no retries in a circle' "$inflight" trace stats bad.csv
printf 'prompt_tokens,output_tokens,retry_of\n64,4,1\n64,4,\n' >bad.csv
refuses 'bad.csv:2:6: retry_of is "1", expected a row that arrives before this one' "$inflight" trace stats bad.csv
printf 'arrival_s,prompt_tokens,output_tokens,retry_of,session,think_s\n0,64,4,,s,\n,64,4,2,s,1\n1,64,4,,,\n' >bad.csv
succeeds "$inflight" run config.yaml --quiet --set workload.trace=bad.csv
finish
