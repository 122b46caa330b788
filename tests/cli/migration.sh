#!/bin/sh
# Running requests that move: what is written, that it is written again, and what is refused.
. "$(dirname "$0")/expect.sh"

cat >trace.csv <<'E1'
arrival_s,prompt_tokens,output_tokens
0,40,9
0,4,1
E1
cat >base.yaml <<'E1'
workload: {trace: trace.csv}
serving: {preset: vllm-v0, max_model_len: 400, kv: {block_tokens: 4, num_blocks: 40}}
cost: {model: linear, step_s: 1}
cluster:
  replicas: 2
  migration: {interval_s: 2.5, threshold: 30, last_stage_blocks: 4}
  links: {gb_per_s: 0.00001, token_bytes: 1000}
output: {dir: out, steps: true, timeline: true}
E1

# What is written is what was read, and steady runs do not show.
flies_alike base.yaml requests.csv steps.csv moves.csv summary.csv
same_bytes out/config.yaml again/config.yaml

# Twelve blocks of 4 kB over 10 kB/s, ten of them beside steps; the request stands still for the other two.
same "$(columns out/moves.csv request_id,from_replica,to_replica,start_s,end_s,hidden_s,blocks,bytes | paste -sd ' ')" \
    '0,0,1,2.500000000,6.500000000,4.000000000,10,40000 0,0,1,7.000000000,7.800000000,0.000000000,2,8000' 'stages'
same "$(columns out/requests.csv replica,migrations,migrating_s,down_s,max_itl_s | paste -sd ' ')" \
    '1,1,4.800000000,0.800000000,1.800000000 1,0,0.000000000,0.000000000,' 'requests'
same "$(columns out/summary.csv moves,moved_gb,moving_hidden_frac,migrations,migrated,mean_down_s)" \
    '2,4.8e-05,0.833333333,1,1,0.8' 'a summary'
same "$(grep -c '"cat":"move"' out/timeline.json)" 4 'both ends of two stages'

# Off, no file and no column says anything of it, and no byte changes.
succeeds "$inflight" run base.yaml --quiet -o plain --set cluster.migration.interval_s=0
succeeds "$inflight" run base.yaml --quiet -o without --set cluster.migration=null --set cluster.links=null
[ ! -e plain/moves.csv ] || complain 'moves.csv without migration'
for file in requests.csv steps.csv summary.csv; do
    same_bytes plain/$file without/$file
    if grep -q 'migrat\|down_s' plain/$file; then complain "columns of $file without migration"; fi
done

# The preset of the router has it.
grep -v migration: base.yaml >bare.yaml
succeeds "$inflight" run bare.yaml --quiet -o preset --set cluster.preset=llumnix-migrate
same "$(columns preset/summary.csv migrations)" 0 'a threshold of 3 moves nothing here'

# What waits and goes to another replica has found nothing in the tiers there.
cat >chats.csv <<'E1'
request_id,arrival_s,prompt_tokens,output_tokens,prefix_group,prefix_tokens
0,0,32,1,g,32
1,0,4,1,,
2,20,64,8,,
3,20,4,1,,
4,20.5,36,2,g,32
5,20.6,4,1,,
E1
cat >tiers.yaml <<'E1'
workload: {trace: chats.csv}
serving:
  preset: sglang-hicache
  max_model_len: 400
  kv: {block_tokens: 4, num_blocks: 20, tiers: {host: {blocks: 200, device_ratio: 0, latency_s: 0.1, gb_per_s: 0, min_tokens: 4}}}
cost: {model: linear, step_s: 1}
cluster: {replicas: 2, router: round-robin, migration: {interval_s: 2.5, threshold: 3, request: first_waiting}}
output: {dir: out}
E1
succeeds "$inflight" run tiers.yaml --quiet -o chats
same "$(columns chats/requests.csv request_id,host_tokens,load_s,migrations | grep '^4,')" '4,0,0.000000000,1' 'tokens found'

# A module that was not asked about a request hears of its start.
succeeds "$inflight" trace generate -n 400 --seed 5 --prompt lognormal:60,0.8,8,200 --output-tokens lognormal:60,0.8,4,200 \
    --process poisson --rate 20 -o many.csv
for preset in lightllm s-lora vtc vllm-v1; do
    for request in shortest first_waiting; do
        succeeds "$inflight" run base.yaml --quiet -o many --set workload.trace=many.csv --set serving.preset=$preset \
            --set serving.max_model_len=512 --set serving.kv='{num_blocks: 600}' \
            --set cost='{model: linear, step_s: 0.04, prefill_token_s: 0.001}' --set cluster.links=null \
            --set cluster.migration="{interval_s: 0.2, threshold: 3, request: $request}" --set cluster.replicas=3
    done
done

# Each of five that wait needs two whole blocks of 16: of 8 free ones less 10 there are fewer than 0 for each request at
# 0.25, and the one that decodes moves as its step ends at 0.3. Their tokens would fill 5.3 blocks.
cat >waits.csv <<'E1'
arrival_s,prompt_tokens,output_tokens,session
0,16,40,s
0.001,17,1,s
0.002,17,1,s
0.003,17,1,s
0.004,17,1,s
0.005,17,1,s
E1
cat >waits.yaml <<'E1'
workload: {trace: waits.csv}
serving: {preset: vllm-v1-sync, max_model_len: 100, batching: {max_seqs: 1}, kv: {num_blocks: 10, block_tokens: 16}}
cost: {model: linear, step_s: 0.1}
cluster:
  replicas: 2
  router: session
  migration: {interval_s: 0.25, threshold: 0, watermark_frac: 0}
output: {dir: out}
E1
succeeds "$inflight" run waits.yaml --quiet
same "$(columns out/moves.csv request_id,asked_s,blocks | paste -sd ' ')" '0,0.300000000,2' 'whole blocks'
succeeds "$inflight" run waits.yaml --quiet --set cluster.migration.awaited=first
same "$(columns out/moves.csv request_id)" '' 'the first that waits needs two of 8'

# Last stages that begin as a step ends pass the link in the order of the requests, whichever was chosen first: there and
# back.
printf 'arrival_s,prompt_tokens,output_tokens,session\n0,16,10,s\n0,20,10,s\n0,24,10,s\n' >trio.csv
for request in shortest longest; do
    succeeds "$inflight" run waits.yaml --quiet --set workload.trace=trio.csv --set serving.batching.max_seqs=8 \
        --set cost.step_s=1 --set cluster.links='{gb_per_s: 1, token_bytes: 1000000}' \
        --set cluster.migration="{interval_s: 0.4, threshold: 5, max_moves: 2, request: $request}"
    columns out/moves.csv from_replica,asked_s,request_id,start_s >stages
    [ "$(cut -d, -f1,2 stages | uniq -d | wc -l)" -gt 2 ] || complain 'no stages that are asked for together'
    sort -t, -k2,2n -k1,1n -k3,3n stages | awk -F, '$1 "," $2 == last && $4 + 0 <= begun { print }
        { last = $1 "," $2; begun = $4 + 0 }' >overtaken
    [ ! -s overtaken ] || complain "$request: overtaken" "$(cat overtaken)"
done

# ---- refused, in one line ----
refuses 'cluster.pools has roles, expected none, where running requests move' \
    "$inflight" run base.yaml --quiet --set cluster.replicas=null --set cluster.router=pair \
    --set 'cluster.pools={p: {role: prefill}, d: {role: decode}}'
refuses 'base.yaml:6:3: parallel.data is above 1, expected 1, where running requests move (cluster.migration.interval_s)' \
    "$inflight" run base.yaml --quiet --set parallel.data=2
refuses 'cluster.migration.interval_s is below 0.0001, expected 0 or at least that' \
    "$inflight" run base.yaml --quiet --set cluster.migration.interval_s=1e-9
succeeds "$inflight" run base.yaml --quiet -o often --set cluster.migration.interval_s=0.0001
refuses 'serving.kv.allocator is buddy, expected paged' "$inflight" run base.yaml --quiet --set serving.kv.allocator=buddy
refuses 'cluster.links.token_bytes is missing or 0' "$inflight" run base.yaml --quiet --set cluster.links.token_bytes=0
refuses 'cluster.migration.request is shortes, expected one of shortest, longest, last' \
    "$inflight" run base.yaml --quiet --set cluster.migration.request=shortes

finish
