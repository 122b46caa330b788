#!/bin/sh
# Hand-overs: what is written, that it is written again, and what is refused.
. "$(dirname "$0")/expect.sh"

cat >trace.csv <<'E1'
arrival_s,prompt_tokens,output_tokens
0,1000,3
0.05,500,40
0.1,2000,1
0.12,30,200
E1
"$inflight" trace generate -n 200 --prompt uniform:10,800 --output-tokens uniform:2,60 -o many.csv >logs/generated
cat >base.yaml <<'E1'
workload: {trace: trace.csv}
serving: {preset: vllm-v1, max_model_len: 4096, kv: {num_blocks: 400}}
cost: {model: linear, step_s: 0.01, prefill_token_s: 0.0001}
cluster:
  preset: vllm-nixl
  links: {latency_s: 0.001, gb_per_s: 10, token_bytes: 100000}
  pools:
    p: {role: prefill}
    d: {role: decode, count: 2}
output: {dir: out, steps: true}
E1

# What is written is what was read, and steady runs do not show.
flies_alike base.yaml requests.csv steps.csv moves.csv summary.csv pools.csv
same_bytes out/config.yaml again/config.yaml

# 1000 tokens are 63 blocks of 16, 100.8 MB: 10.08 ms and the latency.
same "$(columns out/moves.csv request_id,from_replica,to_replica,blocks,bytes | head -1)" '0,0,1,63,100800000' 'a move'
same "$(columns out/requests.csv request_id,replica,prefill_replica,transfer_s | head -1)" '0,1,0,0.011080000' 'a request'
same "$(columns out/summary.csv moves)" 4 'moves'
# Requests count where they decode, a move on both sides of it.
same "$(columns out/pools.csv pool,requests,moves,moved_gb | tr '\n' ' ')" \
    "p,0,4,$(columns out/summary.csv moved_gb) d,4,4,$(columns out/summary.csv moved_gb) " 'requests and moves of pools'

# The prompt of 300 tokens takes 40 ms, its move 10 ms more, and its client leaves after 45 ms: the tokens are wasted.
cat >leaves.csv <<'E1'
arrival_s,prompt_tokens,output_tokens,abort_s
0,300,3,0.045
E1
succeeds "$inflight" run base.yaml --quiet --set workload.trace=leaves.csv --set cluster.links.latency_s=0.01
same "$(columns out/summary.csv aborted,wasted_tokens,wasted_steps)" 1,300,1 'a client that leaves in a move'

# The second prompt is computed at the other prefill replica, and the decode replica has 304 of its tokens. The K/V is lost: what
# was computed is given up before the request fails, and what the decode replica has was not computed for it.
cat >lost.csv <<'E1'
arrival_s,prompt_tokens,output_tokens,prefix_group,prefix_tokens
0,320,3,1,320
1,320,3,1,320
E1
succeeds "$inflight" run base.yaml --quiet --set workload.trace=lost.csv --set workload.arrivals.seed=2 \
    --set cluster.handover.fail_frac=0.5 --set cluster.pools.d.count=1 --set cluster.pools.p.count=2 \
    --set cluster.router.prefill=turns
same "$(columns out/moves.csv blocks | tr '\n' ' ')" '20 1 ' 'blocks beside a hit'
same "$(columns out/summary.csv failed,wasted_tokens,wasted_steps)" 1,0,1 'K/V that is lost'

# The decode replica has the whole second prompt, so that nothing moves. Tokens come at 11.6 ms, as the prompt ends, 21.7, 31.7 and
# so on; the client leaves in the step that ends at 71.7 ms.
cat >held.csv <<'E1'
arrival_s,prompt_tokens,output_tokens,prefix_group,prefix_tokens,abort_s
0,320,3,1,320,
1,320,9,1,320,0.065
E1
succeeds "$inflight" run base.yaml --quiet --set workload.trace=held.csv --set cluster.pools.d.count=1 --set cluster.handover.first_token=prefill
same "$(columns out/moves.csv request_id)" 0 'a prompt that is there does not move'
same "$(columns out/requests.csv status,output_tokens,left_s | tail -1)" aborted,6,1.071700000 'a client whose prompt did not move'

# Two stages of 5 ms. The first request's K/V comes at 43 ms, 20 blocks or 5%, so that the second one's is pulled once that decodes:
# it comes at 44 ms, and the first stage is busy until 48 ms.
cat >staged.csv <<'E1'
arrival_s,prompt_tokens,output_tokens
0,320,4
0.0225,100,4
E1
sed 's/vllm-nixl/distserve/; s/role: prefill/&, count: 2, serving: {preset: distserve-prefill}/
     s/role: decode, count: 2/role: decode, serving: {preset: distserve-decode}, parallel: {pipeline: 2}/' base.yaml >staged.yaml
succeeds "$inflight" run staged.yaml --quiet --set workload.trace=staged.csv --set cluster.links.gb_per_s=0
same "$(columns out/requests.csv transfer_s,decode_queue_s | tr '\n' ' ')" \
    '0.001000000,0.000000000 0.001000000,0.004000000 ' 'the wait for a stage'

# A link's preset, under keys of one's own.
same "$("$inflight" list links | grep -c .)" "$(ls "$INFLIGHT_DATA"/configs/links | grep -c yaml)" 'a line a link'
sed 's/latency_s: 0.001, gb_per_s: 10/preset: rdma-8x200g-roce, latency_s: 0.01/' base.yaml >linked.yaml
succeeds "$inflight" run linked.yaml --quiet -o linked
same "$(columns linked/requests.csv transfer_s | head -1)" '0.010720000' '10 ms and 100.8 MB at 140 GB/s'

# Without roles no file and no column says anything of it.
succeeds "$inflight" run base.yaml --quiet -o plain --set cluster.preset=null --set cluster.router=round-robin \
    --set cluster.pools.p.role=null --set cluster.pools.d.role=null
[ ! -e plain/moves.csv ] || complain 'moves.csv without roles'
if grep -q prefill_replica plain/requests.csv; then complain 'columns without roles'; fi

# Points with and without hand-overs have the same columns.
succeeds "$inflight" run base.yaml --quiet -o swept --set 'sweep={cluster.pools.p.role: [both, prefill]}'
same "$(awk -F, '{ print NF }' swept/requests.csv | sort -u | wc -l)" 1 'one number of columns'

sed 's/^workload: .*/workload: {trace: many.csv, arrivals: {process: poisson, rate_rps: 20, seed: 1}}/' base.yaml >many.yaml
# K/V that is lost as it moves: half of the requests fail, or are computed where they decode, by the same draws.
succeeds "$inflight" run many.yaml --quiet -o lost --set cluster.handover.fail_frac=0.5
succeeds "$inflight" run many.yaml --quiet -o anew --set cluster.handover.fail_frac=0.5 \
    --set cluster.handover.lost=recompute
columns lost/requests.csv status | awk '{ n[$1]++ } END { exit !(n["failed"] > 70 && n["failed"] < 130 && n["failed"] + n["finished"] == 200) }' ||
    complain 'not half of the requests fail'
same "$(columns anew/requests.csv status | sort -u)" finished 'all are computed anew'
same "$(columns lost/moves.csv request_id | wc -l)" 200 'what is lost has moved, too'

# With push: the client of a request that fails behind its prompt has the token of the prefill replica, as with pull.
sed 's/^cluster:/&\n  handover: {first_token: prefill, overlap: none}/; s/, count: 2}/}/; s/0.1,2000,1/0.1,2000,5/' base.yaml >failing.yaml
for order in pull push; do
    succeeds "$inflight" run failing.yaml --quiet -o failing --set cluster.handover.order=$order --set cluster.handover.fail_frac=1 \
        --set cluster.handover.lost=fail --set 'workload={trace: trace.csv, limit: 2}'
    same "$(columns failing/requests.csv status,output_tokens | tr '\n' ' ')" 'failed,1 failed,1 ' "tokens of requests that fail with $order"
done
# One that its decode replica refuses has failed if its prompt had begun, and leaves as that step ends; else it never ran.
refuse() {
    expect 0 "$1: 1 by batching unified: the request has more sequences than max_seqs" "$inflight" run failing.yaml -o failing \
        --set cluster.handover.order=push --set workload.trace=two.csv --set cluster.pools.d.serving.batching.max_seqs=1
}
printf 'arrival_s,prompt_tokens,output_tokens,samples\n0,32,6,2\n' >two.csv
refuse 'failed requests'
same "$(columns failing/requests.csv replica,status,first_scheduled_s,output_tokens)" '0,failed,0.000000000,0' 'refused while its prompt is computed'
same "$(columns failing/steps.csv replica,prefill_tokens)" '0,32' 'the step of its prompt'
printf 'arrival_s,prompt_tokens,output_tokens,samples\n0,3000,1,1\n0.001,32,6,2\n' >two.csv
refuse 'rejected requests'
same "$(columns failing/requests.csv request_id,replica,status,first_scheduled_s | grep ^1)" '1,1,rejected,' 'refused before its prompt has begun'

# ---- refused, in one line ----
# tiers: below prefill pools alone, with loads that a step waits for
store='cluster.pools.p.serving.kv.tiers.store={blocks: 100, latency_s: 0.01, loads: apart}'
refuses 'pool p: serving.kv.tiers has a tier with loads apart, expected before or layers where pools have roles' \
    "$inflight" run base.yaml --quiet --set "$store"
refuses 'pool d: serving.kv.tiers is set, expected none but with role prefill where pools have roles' \
    "$inflight" run base.yaml --quiet --set 'cluster.pools.d.serving.kv.tiers.store={blocks: 100}'
# the module of decode replicas that holds steps for its loads: without roles, and with a cache
sed '/^cluster:/,/^    d:/d' base.yaml >alone.yaml
for tier in 'kv.tiers.host={blocks: 100, gb_per_s: 1}' 'kv.tiers.store={hit_frac: 0.4}'; do
    refuses 'serving.batching.before_step is true, expected false: key loads of a tier says which steps wait' \
        "$inflight" run alone.yaml --quiet --set serving.preset=distserve-decode --set serving.kv.prefix_cache=hash --set "serving.$tier"
done
succeeds "$inflight" run alone.yaml --quiet -o below --set serving.preset=distserve-decode --set serving.kv.prefix_cache=hash \
    --set serving.batching.before_step=false --set 'serving.kv.tiers.store={hit_frac: 0.4}'
refuses 'base.yaml:7:3: cluster.pools has no pool with the role decode and a count above 0, expected one beside those that prefill' \
    "$inflight" run base.yaml --quiet --set cluster.pools.d.role=prefill
refuses 'cluster.pools has no pool with the role prefill and a count above 0' \
    "$inflight" run base.yaml --quiet --set cluster.pools.p.count=0
refuses 'cluster.pools.p.role is encode, expected one of prefill, decode, both' \
    "$inflight" run base.yaml --quiet --set cluster.pools.p.role=encode
refuses 'pool d: model is llama-2-7b, and that of pool p is llama-2-13b, expected one model where pools have roles' \
    "$inflight" run base.yaml --quiet --set cluster.pools.p.model=llama-2-13b --set cluster.pools.d.model=llama-2-7b
refuses 'serving.in_flight.batches is engines and parallel.pipeline above 1, expected shared or slots where pools have roles' \
    "$inflight" run base.yaml --quiet --set parallel.pipeline=2 --set serving.in_flight.pipelined=true --set serving.in_flight.batches=engines
refuses 'serving.in_flight.request is tokens and parallel.pipeline above 1, expected one-step or chunks where pools have roles' \
    "$inflight" run base.yaml --quiet --set parallel.pipeline=2 --set serving.in_flight.pipelined=true --set serving.in_flight.request=tokens
refuses 'cluster.links.token_bytes is missing or 0, expected the bytes of K/V of a token where no model is named' \
    "$inflight" run base.yaml --quiet --set cluster.links.token_bytes=0
refuses '--set cluster.handover.order=pulll: cluster.handover.order is pulll, expected one of pull, push' \
    "$inflight" run base.yaml --quiet --set cluster.handover.order=pulll
sed 's/^cluster:/&\n  handover: {order: pulll}/' base.yaml >bad.yaml
refuses 'bad.yaml:5:14: cluster.handover.order is pulll, expected' "$inflight" run bad.yaml --quiet
# A client leaves while its prompt is computed; a step of the other replica waits for that prompt's K/V, layer by layer, and
# begins then. The run ended with "nothing can happen any more".
printf 'arrival_s,prompt_tokens,output_tokens,abort_s\n0,1,1,\n0,1,2,0.005\n' >leaves.csv
cat >leaves.yaml <<'YAML'
workload: {trace: leaves.csv}
serving: {preset: distserve-decode, max_model_len: 64, kv: {num_blocks: 20}}
cost: {model: linear, step_s: 0.01, prefill_token_s: 0.00001}
cluster:
  router: {policy: pair, decode: blocks}
  handover: {order: push, first_token: prefill, overlap: layer}
  links: {token_bytes: 100}
  pools: {d: {role: both, count: 2}}
output: {dir: out}
YAML
succeeds "$inflight" run leaves.yaml --quiet
same "$(cut -d, -f 2,5,9,31 out/requests.csv | tr '\n' ' ')" \
    'request_id,status,finish_s,left_s 0,finished,0.020020000, 1,aborted,,0.010010000 ' 'a step whose K/V never comes'

sed 's/^output:.*/output: {dir: out, steps: maybe}/' base.yaml >bad.yaml
refuses 'bad.yaml:10:20: output.steps is maybe, expected' "$inflight" run bad.yaml --quiet
sed 's/d: {role: decode, /&serving: {kv: {num_blocks: -1}}, /' base.yaml >bad.yaml
refuses 'bad.yaml:*: pool d: serving.kv.num_blocks is -1' "$inflight" run bad.yaml --quiet
mixed="--set cluster.preset=splitwise-mixed --set cluster.pools.p.role=both --set cluster.pools.d.role=both --set serving.batching.policy=pausing"
# shellcheck disable=SC2086 # words on purpose
refuses 'cluster.router.prompt_pools is 3, expected at most the number of pools, 2' "$inflight" run base.yaml --quiet $mixed \
    --set cluster.router.prompt_pools=3
refuses 'cluster.handover.overlap is set and order pull' "$inflight" run base.yaml --quiet --set cluster.handover.overlap=layer
refuses 'cluster.handover.lease_s is set and order push' \
    "$inflight" run base.yaml --quiet --set cluster.handover.order=push --set cluster.handover.lease_s=1
refuses 'cluster.handover.fail_frac is set, order push and lost recompute, expected lost fail' "$inflight" run base.yaml --quiet \
    --set cluster.handover.order=push --set cluster.handover.lost=recompute --set cluster.handover.fail_frac=0.1
refuses 'cluster.handover.blocks_destination is true and order push' \
    "$inflight" run base.yaml --quiet --set cluster.handover.order=push --set cluster.handover.blocks_destination=true
refuses 'unknown link nvlink9, did you mean nvlink3 or nvlink4[?]' "$inflight" run base.yaml --quiet --set cluster.links.preset=nvlink9
refuses 'cluster.router is round-robin, which sends a request to one replica, and no pool has both roles; expected a router*: pair, conditional' \
    "$inflight" run base.yaml --quiet --set cluster.router=round-robin
sed '/preset: vllm-nixl/d' base.yaml >unsaid.yaml
refuses 'unsaid.yaml:*cluster.router is round-robin, which sends' "$inflight" run unsaid.yaml --quiet
# a pool with both roles may do all of a request; one that only computes prompts may not
expect 1 'policy round-robin sends a request to replica 0 alone, which has the role prefill; expected a router that answers a prefill and a decode replica, such as pair (cluster.router)' \
    "$inflight" run base.yaml --quiet --set cluster.router=round-robin --set cluster.pools.d.role=both

finish
