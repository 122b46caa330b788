#!/bin/sh
# Pools: replicas that differ, requests that name their model, files that name the pool, and what is refused.
. "$(dirname "$0")/expect.sh"

# Equal pools are replicas: but for the column `pool`, every byte is that of a cluster without pools.
cat >base.yaml <<'E1'
model: llama-2-7b
hardware: a100-80gb-sxm
workload:
  trace: traces/data/sharegpt-8k-lengths.csv.gz
  filter: sharegpt
  limit: 300
  arrivals: {process: poisson, rate_rps: 12, seed: 3}
serving: {preset: vllm-v0, max_model_len: 2048, kv: {num_blocks: 600}}
output: {dir: out, steps: true, work: true}
E1
# The table without the column, which is the one in the place given.
without() {
    cut -d, -f"$2" --complement "$1"
}
for router in round-robin least-outstanding power-of-two prefix random session remaining-steps; do
    succeeds "$inflight" run base.yaml --quiet --set cluster.router=$router --set cluster.replicas=4 -o alike
    succeeds "$inflight" run base.yaml --quiet --set cluster.router=$router -o pooled \
        --set 'cluster.pools={a: {}, none: {count: 0}, b: {count: 3, serving: {preset: vllm-v0}}}'
    without pooled/requests.csv 4 >requests
    without pooled/steps.csv 3 >steps
    without pooled/work.csv 3 >work
    same_bytes requests alike/requests.csv
    same_bytes steps alike/steps.csv
    same_bytes work alike/work.csv
    for side in pooled alike; do
        sed 's/"[^"]*"//' $side/summary.csv >$side.summary # without what is assumed, which names the pools
    done
    same_bytes pooled.summary alike.summary
    same_bytes pooled/quantiles.csv alike/quantiles.csv
done
# A request that came to no replica names none.
succeeds "$inflight" run base.yaml --quiet --set cluster.replicas=4 --set serving.max_queued_reqs=8 -o shed
succeeds "$inflight" run base.yaml --quiet --set serving.max_queued_reqs=8 -o shed-pooled \
    --set 'cluster.pools={a: {}, b: {count: 3}}'
same "$(columns shed/requests.csv status,replica | grep '^shed' | sort -u)" 'shed,' 'replicas of requests that were shed'
without shed-pooled/requests.csv 4 >requests
columns shed/requests.csv status,replica | grep -q '^finished,0$' || complain 'no request came to replica 0'
columns requests status,replica | grep '^shed' | sort -u >shed.pooled
columns shed/requests.csv status,replica | grep '^shed' | sort -u >shed.alike
same_bytes shed.pooled shed.alike
same "$(columns pooled/requests.csv replica,pool | sort -u | tr '\n' ' ')" '0,a 1,b 2,b 3,b ' 'names of pools'

# What is written is what was read, and rates and counts of pools add up.
cat >mixed.yaml <<'E1'
model: llama-2-7b
workload:
  trace: traces/data/sharegpt-8k-lengths.csv.gz
  filter: sharegpt
  limit: 300
  arrivals: {process: poisson, rate_rps: 12, seed: 3}
cluster:
  router: least-outstanding
  pools:
    big: {count: 2, hardware: h100-sxm, parallel: {tensor: 2}, serving: {preset: vllm-v1, batching: {max_seqs: 64}}}
    small: {count: 3, hardware: a100-80gb-sxm, serving: {preset: sarathi, order: sjf}}
output: {dir: mixed}
capacity: {p99_tbt_s: 0.1, max_rate_rps: 20, usd_per_gpu_hour: {h100-sxm: 3, a100-80gb-sxm: 2}}
E1
succeeds "$inflight" run mixed.yaml --quiet
succeeds "$inflight" run mixed/config.yaml --quiet -o again
for file in config.yaml requests.csv summary.csv pools.csv; do
    same_bytes mixed/$file again/$file
done
same "$(columns mixed/pools.csv pool,model,hardware,replicas,gpus | tr '\n' ' ')" \
    'big,llama-2-7b,h100-sxm,2,4 small,llama-2-7b,a100-80gb-sxm,3,3 ' 'pools'
for column in requests finished steps output_throughput_tok_per_s goodput_rps; do
    whole=$(columns mixed/summary.csv $column)
    parts=$(columns mixed/pools.csv $column | awk '{ sum += $1 } END { printf "%.6g", sum }')
    same "$parts" "$(printf '%.6g' "$whole")" "the sum of $column"
done
succeeds "$inflight" capacity mixed.yaml --quiet -o searched # 2 x 2 x 3 + 3 x 2 dollars
same "$(columns searched/capacity.csv gpus,usd_per_hour)" '7,18' 'the price'

# A sweep reaches a pool's keys, and its configuration flies again.
succeeds "$inflight" run mixed.yaml --quiet -o swept \
    --set 'sweep={cluster.pools.big.count: [0, 2], cluster.pools.small.serving.preset: [sarathi, sglang]}'
succeeds "$inflight" run swept/config.yaml --quiet -o again
same_bytes swept/config.yaml again/config.yaml
same_bytes swept/pools.csv again/pools.csv
same "$(columns swept/pools.csv point,pool,replicas | tr '\n' ' ')" \
    '0,big,0 0,small,3 1,big,0 1,small,3 2,big,2 2,small,3 3,big,2 3,small,3 ' 'a sweep'
succeeds "$inflight" run mixed.yaml --quiet -o swept --set 'sweep={serving.max_model_len: [1024, 2048]}'
succeeds "$inflight" run swept/config.yaml --quiet -o again
same_bytes swept/summary.csv again/summary.csv
same_bytes swept/config.yaml again/config.yaml

# By pencil: a step takes 1 s in `fast`, which has K/V blocks for 8 x 16 = 128 tokens, and 3 s in `slow`. Requests
# take turns among the replicas that may have them. C is longer than the pool of `fast`, D is for the other model,
# E for one that no pool serves, and F for any: it is the third routed of two that may have it.
cat >models.csv <<'E1'
request_id,arrival_s,prompt_tokens,output_tokens,model
0,0,10,2,
1,0,10,2,llama-2-7b
2,0,10,2,
3,10,200,2,
4,20,10,2,llama-3-8b
5,30,10,2,qwen3-8b
6,40,10,2,
E1
cat >models.yaml <<'E1'
workload: {trace: models.csv}
serving: {preset: vllm-v0, max_model_len: 1024, kv: {swap_gib: 0}}
cost: {model: linear}
cluster:
  pools:
    fast: {model: llama-2-7b, cost: {step_s: 1}, serving: {kv: {num_blocks: 8}}}
    slow: {model: llama-3-8b, cost: {step_s: 3}, serving: {kv: {num_blocks: 64}}}
output: {dir: models, timeline: true}
E1
expect 0 'rejected requests: 1 for a model that no pool serves' "$inflight" run models.yaml
same "$(columns models/requests.csv request_id,replica,pool,status,finish_s | sed 's/0000000//g' | tr '\n' ' ')" \
    '0,0,fast,finished,2.00 1,0,fast,finished,2.00 2,0,fast,finished,2.00 3,1,slow,finished,16.00 4,1,slow,finished,26.00 5,,,rejected, 6,1,slow,finished,46.00 ' \
    'requests by models'
same "$(columns models/pools.csv pool,requests,rejected | tr '\n' ' ')" 'fast,3,0 slow,3,0 ' 'pools by models'
same "$(columns models/summary.csv requests,rejected)" '7,1' 'all requests'
grep -q '"replica 1 of slow"' models/timeline.json || complain 'the timeline does not name the pools'

# Data-parallel ranks of one pool run in lockstep, the other pool is on its own.
cat >ranks.csv <<'E1'
arrival_s,prompt_tokens,output_tokens
0,1,20
0,1,20
0.035,80,1
E1
cat >ranks.yaml <<'E1'
workload: {trace: ranks.csv}
serving: {preset: vllm-v1-sync, max_model_len: 2048, kv: {num_blocks: 512}}
cost: {model: linear, step_s: 0.01, prefill_token_s: 0.001}
model: qwen3-30b-a3b
cluster: {pools: {alone: {}, ranks: {parallel: {data: 2}}}}
output: {dir: ranks}
E1
expect 0 'dummy steps of data-parallel ranks without work: 19' "$inflight" run ranks.yaml
same "$(columns ranks/requests.csv replica,pool,finish_s,max_itl_s | tr '\n' ' ')" \
    '0,alone,0.201000000,0.010000000 1,ranks,0.281000000,0.090000000 2,ranks,0.131000000, ' 'a pool of ranks'

# errors
edit() {
    refuses "$2" "$inflight" run mixed.yaml --quiet --set "$1"
}
edit cluster.pools.bgi.count=2 'there is no pool bgi in cluster.pools, did you mean big[?]'
edit cluster.pools.big.cuont=2 'a pool has no key cuont, did you mean count[?]'
edit cluster.pools.big.workload.limit=2 'a pool has no key workload, expected count, role, model'
edit cluster.pools.big.serving.order.policy=sjff 'pool big: unknown order policy sjff, did you mean sjf[?]'
edit cluster.pools.big.hardware=h100 'pool big: unknown hardware profile h100, did you mean h100-nvl, h100-pcie, h100-sxm'
edit cluster.pools.big.count=-1 'cluster.pools.big.count is -1, expected a whole number from 0'
edit cluster.pools.big.count=70000 'cluster.pools.big.count is 70000, expected a whole number from 0 to 65536'
refuses 'cluster.pools has 0 replicas in all' \
    "$inflight" run mixed.yaml --quiet --set cluster.pools.big.count=0 --set cluster.pools.small.count=0
edit 'cluster.pools.big={count: 65536}' 'cluster.pools has 65539 replicas in all'
edit cluster.pools=4 'cluster.pools is 4, expected a map'
edit cluster.pools.big=4 'pool big: cluster.pools.big is 4, expected a map of keys'
edit 'cluster.pools.9x={}' 'cluster.pools has 9x, expected a name that begins with a letter'
edit cluster.replicas=2 'cluster.replicas is set beside cluster.pools'
edit 'sweep={cluster.pools.bgi.count: [1]}' 'there is no pool bgi in cluster.pools, did you mean big[?]'
edit 'sweep={cluster.pools.big: [1]}' 'a pool is a map of keys, expected a key of it'
sed 's/hardware: h100-sxm, /hardwear: h100-sxm, /' mixed.yaml >bad.yaml
refuses 'bad.yaml:10:21: pool big: a pool has no key hardwear, did you mean hardware[?]' "$inflight" run bad.yaml
sed 's/max_seqs: 64/max_sqs: 64/' mixed.yaml >bad.yaml
refuses 'bad.yaml:10:*: pool big: unknown key serving.batching.max_sqs, did you mean *max_seqs[?]' "$inflight" run bad.yaml
sed 's/hardware: a100-80gb-sxm, //' mixed.yaml >bad.yaml
refuses 'pool small: hardware is missing' "$inflight" run bad.yaml
refuses 'mixed.yaml:9:3: cluster.pools is set, expected one kind of replica: a command line' \
    "$inflight" export --server vllm mixed.yaml
refuses 'mixed.yaml: cluster.pools is set, expected one kind of replica, whose deployment' \
    "$inflight" identify mixed.yaml mixed/requests.csv
# ---- pipelines of two and of four stages ----
#
# A prompt of 0.1 s each: 50 ms in each of two stages, 25 in each of four. In the 0.2 s of both the first and the second stage
# compute 75 ms, the third and the fourth 25 of 100. 0.2 s of work in 0.1 x 2 + 0.1 x 4.
printf 'arrival_s,prompt_tokens,output_tokens\n0,1000,1\n0,1000,1\n' >two.csv
cat >stages.yaml <<'E1'
workload: {trace: two.csv}
serving: {preset: vllm-v1, max_model_len: 4096, kv: {num_blocks: 400}, in_flight: {pipelined: true}}
cost: {model: linear, prefill_token_s: 0.0001}
cluster: {router: round-robin, pools: {a: {parallel: {pipeline: 2}}, b: {parallel: {pipeline: 4}}}}
output: {plots: false}
E1
for order in '{a: {parallel: {pipeline: 2}}, b: {parallel: {pipeline: 4}}}' '{a: {parallel: {pipeline: 4}}, b: {parallel: {pipeline: 2}}}'; do
    succeeds "$inflight" run stages.yaml --quiet -o stages --set "cluster.pools=$order"
    same "$(columns stages/summary.csv stages,bubble_frac,stage_use_frac)" '4,0.666666667,0.375 0.375 0.25 0.25' \
        'stages of pipelines of different lengths'
done

finish
