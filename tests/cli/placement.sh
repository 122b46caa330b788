#!/bin/sh
# Placements of two pools, against pencil, and against every combination flown on its own.
. "$(dirname "$0")/expect.sh"

# ---- pencil: constant arrivals, one prompt at a time, decodes that cost by the sequence ----
#
# A prompt of 1,000 tokens takes 100, 40 and 30 ms at tensor 1, 2 and 4. Arrivals are constant, so that nothing waits up to
# 10, 25 and 33.3 requests a second, and more and more beyond: 10, 12.5 and 8.33 a GPU.
# Behind the first of 11 tokens are 10 steps of 4.5, 2.5 and 2 ms a sequence: up to 22.2, 40 and 50 requests a second one
# ends before the next one comes: 22.2, 20 and 12.5 a GPU.
"$inflight" trace generate -n 2000 --prompt fixed:1000 --output-tokens fixed:11 -o constant.csv
cat >pencil.yaml <<'END'
workload: {trace: constant.csv, arrivals: {process: constant, rate_rps: 8}}
serving: {max_model_len: 2048, kv: {num_blocks: 100000}}
slo: {ttft_s: 0.2, tpot_s: 0.02}
cluster:
  preset: distserve
  pools:
    prompts: {role: prefill, serving: {preset: distserve-prefill, batching: {max_seqs: 1}}}
    decodes: {role: decode, serving: {preset: distserve-decode}}
cost: {model: linear, prefill_token_s: 0.0001}
capacity:
  criterion: distserve
  target_rps: 26
  placement:
    search: apart
    tensor: [1, 2, 4]
    given:
      - {pool: prompts, tensor: 2, cost: {prefill_token_s: 0.00004}}
      - {pool: prompts, tensor: 4, cost: {prefill_token_s: 0.00003}}
      - {pool: decodes, cost: {prefill_token_s: 0}}
      - {pool: decodes, tensor: 1, cost: {decode_seq_s: 0.0045}}
      - {pool: decodes, tensor: 2, cost: {decode_seq_s: 0.0025}}
      - {pool: decodes, tensor: 4, cost: {decode_seq_s: 0.002}}
output: {plots: false}
END
succeeds "$inflight" capacity pencil.yaml --quiet -o target -j 2
columns target/candidates.csv capacity_rps,best | awk -F, '
    BEGIN { split("10 25 33.3333 22.2222 40 50", rps, " "); split("false true false true false false", best, " ") }
    { bad += $1 < 0.985 * rps[NR] || $1 > 1.015 * rps[NR] || $2 != best[NR] }
    END { exit bad > 0 || NR != 6 }' || complain 'not the capacities by pencil' "$(cat target/candidates.csv)"

# Replicas of each pool, tensor degrees, GPUs. Algorithm 1 takes what carries most a GPU: two of 25 and two of 22.2.
# Three prompt replicas of 10 are cheaper than two of 25: five GPUs, which carry 30.
parts=prompts_replicas,prompts_tensor,decodes_replicas,decodes_tensor,gpus
same "$(columns target/placements.csv $parts,algorithm,chosen,meets | grep true)" '3,1,2,1,5,false,true,true
2,2,2,1,6,true,false,true' 'the chosen placement and the algorithm'\''s'
same "$(columns target/placements.csv $parts | paste -sd' ')" \
    '1,1,1,1,2 1,2,1,1,3 1,2,2,1,4 3,1,2,1,5 2,2,2,1,6 2,2,1,4,8' 'the front'

# A budget in place of a target. Of 4 GPUs two of tensor 2 and two of tensor 1: 25. Three prompt replicas and one decode
# replica carry 22.2, two and two 20.
succeeds "$inflight" capacity pencil.yaml --quiet -o gpus --set capacity.target_rps=null --set capacity.placement.max_gpus=4
same "$(columns gpus/placements.csv $parts,chosen | paste -sd' ')" '1,1,1,1,2,false 1,2,1,1,3,false 1,2,2,1,4,true' 'within 4 GPUs'

# Prices: 4 USD a GPU for prompts, 1 for decodes. 10 USD are enough for tensor 2 and two decode replicas, 25; 9 for one, 22.2.
# Both are dearer than 5 GPUs would be at one price.
for budget in 10 9; do
    succeeds "$inflight" capacity pencil.yaml --quiet -o usd$budget --set capacity.target_rps=null \
        --set cluster.pools.prompts.hardware=h100-sxm --set cluster.pools.decodes.hardware=a100-80gb-sxm \
        --set 'capacity.usd_per_gpu_hour={h100-sxm: 4, a100-80gb-sxm: 1}' --set capacity.placement.max_usd_per_hour=$budget
done
same "$(columns usd10/placements.csv $parts,usd_per_hour,chosen | tail -1)" '1,2,2,1,4,10,true' 'within 10 USD an hour'
same "$(columns usd9/placements.csv $parts,usd_per_hour,chosen | tail -1)" '1,2,1,1,3,9,true' 'within 9 USD an hour'

# ---- the same bytes on any number of threads, and from what is written ----
succeeds "$inflight" capacity pencil.yaml --quiet -o again
succeeds "$inflight" capacity target/config.yaml --quiet -o written -j 4
for report in candidates.csv placements.csv trials.csv config.yaml; do
    same_bytes target/$report again/$report
    same_bytes target/$report written/$report
done
[ ! -e target/capacity.csv ] && [ ! -e target/plan.csv ] || complain 'a placement leaves another answer'
succeeds "$inflight" capacity pencil.yaml --dry-run
grep -q 'searches  6' logs/out || complain 'not 6 searches' "$(cat logs/out)"
# a search without placement leaves none behind
succeeds "$inflight" capacity pencil.yaml --quiet -o again --set capacity.placement=null --set capacity.target_rps=null
[ ! -e again/placements.csv ] && [ ! -e again/candidates.csv ] || complain 'a placement is left behind'
# a run takes no notice of the key, and writes it
succeeds "$inflight" run pencil.yaml --quiet -o run
succeeds "$inflight" run run/config.yaml --quiet -o rerun
same_bytes run/config.yaml rerun/config.yaml
same "$(grep -c 'given\|search: apart' run/config.yaml)" 2 'the keys that a run writes'

# ---- each combination flown on its own ----
"$inflight" trace generate -n 400 --prompt lognormal:300,0.8 --output-tokens lognormal:60,0.8 --seed 3 -o chats.csv
cat >chats.yaml <<'END'
workload: {trace: chats.csv, arrivals: {process: poisson, rate_rps: 8, seed: 1}}
serving: {max_model_len: 8192, kv: {num_blocks: 2000}}
slo: {ttft_s: 0.3, tpot_s: 0.03}
cluster:
  preset: distserve
  links: {latency_s: 0.002, gb_per_s: 10, token_bytes: 100000}
  pools:
    p: {role: prefill, serving: {preset: distserve-prefill}, cost: {model: linear, step_s: 0.005, prefill_token_s: 0.00006}}
    d: {role: decode, serving: {preset: distserve-decode}, cost: {model: linear, step_s: 0.012, decode_seq_s: 0.0004}}
capacity:
  criterion: distserve
  placement:
    search: together
    tensor: [1, 2]
    counts: [1, 2]
    max_gpus: 6
    given:
      - {pool: p, tensor: 2, cost: {prefill_token_s: 0.000035}}
      - {pool: d, tensor: 2, cost: {step_s: 0.009}, serving: {kv: {num_blocks: 5000}}}
output: {plots: false}
END
succeeds "$inflight" capacity chats.yaml --quiet -o together -j 2
n=0
best=0
for tp in 1 2; do
    for np in 1 2; do
        for td in 1 2; do
            for nd in 1 2; do
                [ $((tp * np + td * nd)) -le 6 ] || continue
                n=$((n + 1))
                set -- --set capacity.placement=null --set cluster.pools.p.parallel.tensor=$tp --set cluster.pools.p.count=$np \
                    --set cluster.pools.d.parallel.tensor=$td --set cluster.pools.d.count=$nd
                [ $tp = 1 ] || set -- "$@" --set cluster.pools.p.cost.prefill_token_s=0.000035
                [ $td = 1 ] || set -- "$@" --set cluster.pools.d.cost.step_s=0.009 --set cluster.pools.d.serving.kv.num_blocks=5000
                succeeds "$inflight" capacity chats.yaml --quiet -o alone "$@"
                alone=$(columns alone/capacity.csv capacity_rps)
                same "$(columns together/candidates.csv p_replicas,p_tensor,d_replicas,d_tensor,capacity_rps |
                    grep "^$np,$tp,$nd,$td,")" "$np,$tp,$nd,$td,$alone" 'a combination flown on its own'
                best=$(echo "$best $alone" | awk '{ print ($2 > $1 ? $2 : $1) }')
            done
        done
    done
done
same "$(columns together/candidates.csv gpus | wc -l)" $n 'all combinations within 6 GPUs, and no other'
same "$(columns together/placements.csv carried_rps,chosen | grep true)" "$best,true" 'the most within 6 GPUs'
columns together/placements.csv gpus,carried_rps | awk -F, '{ exit !(NR == 1 || ($1 > g && $2 > r)) } { g = $1; r = $2 }' ||
    complain 'the front does not rise' "$(cat together/placements.csv)"

# Phases apart: the other pool takes no time. What is made of both is the best of all numbers within the budget, by a loop.
succeeds "$inflight" capacity chats.yaml --quiet -o apart --set capacity.placement.search=apart --set capacity.placement.max_gpus=9
succeeds "$inflight" capacity chats.yaml --quiet -o alone --set capacity.placement=null --set cluster.pools.p.parallel.tensor=2 \
    --set cluster.pools.p.cost.prefill_token_s=0.000035 --set cluster.pools.d.serving.kv.num_blocks=1048577 \
    --set 'cluster.pools.d.cost={model: linear, step_s: 1e-9, decode_seq_s: 0}'
same "$(columns apart/candidates.csv p_tensor,d_tensor,capacity_rps | grep '^2,,')" "2,,$(columns alone/capacity.csv capacity_rps)" \
    'a phase flown on its own'
columns apart/candidates.csv p_tensor,d_tensor,capacity_rps >phases
columns apart/placements.csv gpus,carried_rps >front
awk -F, 'FNR == NR { if ($1) p[$1] = $3; else d[$2] = $3; next } { front[$1] = $2 }
    END {
        for (tp in p) for (td in d) for (n = 1; n <= 9; n++) for (m = 1; n * tp + m * td <= 9; m++) {
            rps = n * p[tp] < m * d[td] ? n * p[tp] : m * d[td]
            if (rps > most[n * tp + m * td]) most[n * tp + m * td] = rps
        }
        high = 0
        for (g = 2; g <= 9; g++) {
            on = most[g] > high * (1 + 1e-8)
            if (on) high = most[g]
            if (on != (g in front) || (on && (front[g] / high > 1 + 1e-8 || front[g] / high < 1 - 1e-8))) exit 1
        }
    }' phases front || complain 'not the front of all numbers' "$(cat phases front)"

# 90% of each phase are fewer than 90% of both: what was chosen is flown as a whole, and gets a replica more.
succeeds "$inflight" capacity chats.yaml --quiet -o grown --set capacity.placement.search=apart \
    --set capacity.target_rps=120 --set capacity.placement.max_gpus=0
columns grown/placements.csv chosen,flown_rps,attainment_frac,meets,grown | grep true, | awk -F, '
    $1 == "true" { n++; bad += $2 != 120 || $3 < 0.9 || $4 != "true" } END { exit n != 1 || bad > 0 }' ||
    complain 'the chosen placement misses the objectives' "$(cat grown/placements.csv)"

# Segments of a node: all pairs with tensor_p pipeline_p + tensor_d pipeline_d GPUs in each of 1 or 2 nodes of 4.
succeeds "$inflight" capacity chats.yaml --quiet -o segments --set capacity.placement.search=segments \
    --set 'capacity.placement.pipeline=[1, 2]' --set capacity.placement.node_gpus=4 --set capacity.placement.max_nodes=2 \
    --set capacity.placement.max_gpus=0
for nodes in 1 2; do
    for tp in 1 2; do for pp in 1 2; do for td in 1 2; do for pd in 1 2; do
        [ $((tp * pp + td * pd)) -gt 4 ] || echo "1,$tp,$((pp * nodes)),1,$td,$((pd * nodes))"
    done; done; done; done
done | sort -u >pairs
columns segments/candidates.csv p_replicas,p_tensor,p_pipeline,d_replicas,d_tensor,d_pipeline | sort >found
same_bytes pairs found

# ---- candidates that cannot run ----
"$inflight" trace generate -n 1000 --prompt lognormal:300,0.8 --output-tokens lognormal:200,0.8 --seed 4 -o many.csv
cat >opt.yaml <<'END'
model: opt-66b
hardware: a100-80gb-sxm
workload: {trace: many.csv, arrivals: {process: poisson, rate_rps: 4, seed: 1}}
serving: {max_model_len: 2048}
slo: {ttft_s: 2.5, tpot_s: 0.15}
cluster:
  preset: distserve
  links: {preset: nvlink3}
  pools:
    prompts: {role: prefill, parallel: {tensor: 4}, serving: {preset: distserve-prefill}}
    decodes: {role: decode, parallel: {tensor: 4}, serving: {preset: distserve-decode}}
capacity: {criterion: distserve, target_rps: 4, placement: {tensor: [1, 4, 5]}}
output: {plots: false}
END
succeeds "$inflight" capacity opt.yaml -o opt
same "$(columns opt/candidates.csv prompts_tensor,decodes_tensor,status | paste -sd' ')" \
    '1,,failed 4,,found 5,,failed ,1,failed ,4,found ,5,failed' 'candidates that cannot run'
grep -q 'decodes 1 x tp1 pp1 *failed: opt-66b does not fit on a100-80gb-sxm at parallel.tensor 1$' logs/out ||
    complain 'no reason in the table' "$(cat logs/out)"
grep -q 'parallel.tensor is 5, expected a number that shares the 72 query heads' opt/candidates.csv ||
    complain 'no reason in candidates.csv' "$(cat opt/candidates.csv)"
expect 2 'pool prompts: opt-66b does not fit on a100-80gb-sxm at parallel.tensor 1: ' \
    "$inflight" capacity opt.yaml --quiet -o none --set 'capacity.placement.tensor=[1]'
expect 1 'no placement within the budget carries 4000 requests/s; prompts 1 x tp4 pp1, decodes 1 x tp4 pp1 comes nearest with ' \
    "$inflight" capacity opt.yaml --quiet -o none --set capacity.target_rps=4000 --set capacity.placement.max_gpus=8
expect 1 'the trace is too short to find the capacity of a candidate of pool decodes, expected more requests: the highest rate still' \
    "$inflight" capacity opt.yaml --quiet -o none --set workload.limit=60
expect 1 'no candidate of pool decodes meets the objectives at 0.001 requests/s or more, expected one that does' \
    "$inflight" capacity opt.yaml --quiet -o none --set slo.tpot_s=0.001

expect 1 'no placement is within the budget: one replica of each pool takes more' \
    "$inflight" capacity pencil.yaml --quiet -o none --set capacity.target_rps=null --set capacity.placement.max_gpus=1

# ---- refused, in one line ----
refuses 'pencil.yaml:13:3: capacity.placement stands beside a sweep, expected one of the two' \
    "$inflight" capacity pencil.yaml --set 'sweep.slo.ttft_s=[1,2]'
refuses 'capacity.placement is set, expected 1 to 8 pools in cluster.pools' \
    "$inflight" capacity quickstart --set capacity.placement.max_gpus=8 --set sweep=null
refuses 'capacity.placement.search is apart or segments, expected two pools in cluster.pools, one with the role prefill and one with' \
    "$inflight" capacity pencil.yaml --set cluster.pools.prompts.role=both
refuses 'capacity.placement.search is apart, expected a capacity.target_rps, max_gpus or max_usd_per_hour' \
    "$inflight" capacity pencil.yaml --set capacity.target_rps=null
refuses 'capacity.placement.max_usd_per_hour is set and pool prompts has no price, expected one of its hardware in' \
    "$inflight" capacity pencil.yaml --set capacity.placement.max_usd_per_hour=10
refuses 'capacity.placement leaves no candidate of 6, expected a larger node_gpus, max_nodes, max_gpus or max_usd_per_hour' \
    "$inflight" capacity pencil.yaml --set capacity.placement.node_gpus=4 --set 'capacity.placement.pipeline=[8, 16]' \
    --set 'capacity.placement.tensor=[4]' --set capacity.placement.max_gpus=16 --set capacity.placement.given=null \
    --set 'capacity.placement.tensor=[1, 2, 4]' --set 'capacity.placement.pipeline=[8]'
refuses 'unknown key capacity.placement.serach, did you mean capacity.placement.search?' \
    "$inflight" capacity pencil.yaml --set capacity.placement.serach=apart
refuses 'capacity.placement.tensor is 4, expected a list of 1 to 16 whole numbers' \
    "$inflight" capacity pencil.yaml --set capacity.placement.tensor=4
refuses 'capacity.placement.tensor has 2 twice, expected each number once' \
    "$inflight" capacity pencil.yaml --set 'capacity.placement.tensor=[2, 4, 2]'
refuses 'capacity.placement.given names pool prompt, expected one of cluster.pools' \
    "$inflight" capacity pencil.yaml --set 'capacity.placement.given=[{pool: prompt, cost: {step_s: 1}}]'
refuses 'capacity.placement.given is all, expected a list of maps' "$inflight" capacity pencil.yaml --set capacity.placement.given=all
refuses 'did you mean ' "$inflight" capacity pencil.yaml --set 'capacity.placement.given=[{tensor: 1, cost: {stap_s: 1}}]'
refuses 'capacity.criterion is goodput, which is no limit' "$inflight" capacity pencil.yaml --set capacity.criterion=goodput

finish
