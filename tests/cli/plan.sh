#!/bin/sh
# A number of replicas for a rate, against closed forms and against a loop over all numbers.
. "$(dirname "$0")/expect.sh"

# One request at a time, each 1,000 tokens of 0.1 ms, dealt out at random: n M/D/1 queues with S = 0.1 s at RATE / n.
# The mean wait rho S / (2 (1 - rho)) is at most W where rho <= 2 W / (S + 2 W): W = S allows 6.667 a replica, so that
# 32 requests a second take 4.8, five replicas; W = S / 4 allows 3.333: 9.6, ten.
"$inflight" trace generate -n 20000 --prompt fixed:1000 --output-tokens fixed:1 -o constant.csv
cat >md1.yaml <<'END'
workload: {trace: constant.csv, arrivals: {process: poisson, seed: 5}}
serving:
  preset: vllm-v0
  max_model_len: 1000000
  batching: {max_seqs: 1, max_batched_tokens: 1000000}
  kv: {num_blocks: 62500}
cluster: {router: random}
cost: {model: linear, prefill_token_s: 0.0001}
capacity: {target_rps: 32, objectives: {mean_queue_s: 0.1}, usd_per_gpu_hour: 3, watts_per_gpu: 500}
replications: 4
output: {dir: md1}
sweep: {capacity.objectives.mean_queue_s: [0.1, 0.025]}
END
succeeds "$inflight" capacity md1.yaml --quiet -j 2
same "$(columns md1/plan.csv capacity.objectives.mean_queue_s,status,replicas | paste -sd' ')" \
    '0.1,found,5 0.025,found,10' 'replicas for n queues M/D/1'
same "$(columns md1/plan.csv binding | paste -sd' ')" 'mean_queue_s mean_queue_s' 'what binds'

# Prices and energy by hand: 5 replicas of one GPU at 3 USD and 500 W serve 115,200 requests an hour, of one token each.
columns md1/plan.csv usd_per_hour,usd_per_million_output_tokens,wh_per_1000_requests,kwh_per_million_output_tokens,gpus,power |
    head -1 | awk -F, '{ exit !($1 == 15 && $2 > 130.2 && $2 < 130.21 && $3 > 21.7 && $3 < 21.702 && $4 > 21.7 &&
        $4 < 21.702 && $5 == 5 && $6 == "given") }' || complain 'prices or energy are wrong' "$(cat md1/plan.csv)"
[ ! -e md1/capacity.csv ] || complain 'a plan leaves a capacity.csv'

# the same bytes on one thread
succeeds "$inflight" capacity md1.yaml --quiet -o again
for report in plan.csv trials.csv config.yaml; do
    same_bytes md1/$report again/$report
done
# a search for a rate leaves no plan behind; its capacity of one such replica gives the same number
succeeds "$inflight" capacity md1.yaml --quiet -o again --set capacity.target_rps=null \
    --set workload.arrivals.rate_rps=5
[ ! -e again/plan.csv ] || complain 'a search for a rate leaves the plan of an earlier one'
columns again/capacity.csv capacity_rps | paste -sd' ' | awk '{
    exit !(int(32 / $1) + 1 == 5 && int(32 / $2) + 1 == 10) }' ||
    complain 'the rate of one replica does not give the number' "$(columns again/capacity.csv capacity_rps)"

# Several objectives at once, on batches that share: each number of replicas flown by itself. The fewest that keep all.
"$inflight" trace generate -n 3000 --prompt lognormal:200,1 --output-tokens lognormal:50,1 -o chats.csv
awk -F, -v OFS=, 'NR == 1 { print $0, "client"; next } { print $0, NR % 5 ? "chat" : "batch" }' chats.csv >clients.csv
cat >chats.yaml <<'END'
workload: {trace: clients.csv, arrivals: {process: poisson, seed: 1}}
serving: {preset: vllm-v1, max_model_len: 8192, batching: {max_seqs: 32}, kv: {num_blocks: 1000}}
cost: {model: linear, step_s: 0.01, prefill_token_s: 0.00005, decode_seq_s: 0.0005}
slo: {ttft_s: 0.5, tpot_s: 0.03}
cluster: {router: least-outstanding}
capacity:
  target_rps: 60
  objectives: {p95_ttft_s: 0.2, p99_tbt_s: 0.06, client_attainment_frac: 0.93}
END
succeeds "$inflight" capacity chats.yaml --quiet -o chats
succeeds "$inflight" run chats.yaml --quiet -o loop --set 'sweep.cluster.replicas=[1,2,3,4,5,6,7,8,9,10,11,12]'
awk -F, -v point=0 '
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { print $at["cluster.replicas"] "," $at["p95_ttft_s"] "," $at["p99_itl_s"] }' loop/summary.csv >flown
# the share of each client, counted by hand from the rows of requests
awk -F, 'FILENAME == "clients.csv" { client[FNR - 2] = $NF; next }
    FNR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { point = $at["point"] + 1; name = client[$at["request_id"]]; n[point, name]++
      met[point, name] += $at["status"] == "finished" && $at["ttft_s"] <= 0.5 && ($at["tpot_s"] == "" || $at["tpot_s"] <= 0.03) }
    END { for (p = 1; p <= 12; p++) {
              a = met[p, "chat"] / n[p, "chat"]; b = met[p, "batch"] / n[p, "batch"]; print p "," (a < b ? a : b) } }' \
    clients.csv loop/requests.csv >shares
fewest=$(paste -d, flown shares | awk -F, '!done && $2 <= 0.2 && $3 <= 0.06 && $5 >= 0.93 { print $1; done = 1 }')
same "$(columns chats/plan.csv replicas)" "$fewest" 'the fewest replicas of a loop over all'
at=$(paste -d, flown shares | awk -F, -v n="$fewest" '$1 == n { printf "%.6g,%.6g,%.6g", $2, $3, $5 }')
same "$(columns chats/plan.csv p95_ttft_s,p99_tbt_s,client_attainment_frac | awk -F, '{ printf "%.6g,%.6g,%.6g", $1, $2, $3 }')" \
    "$at" 'the metrics with that many'
# What binds is what one replica less misses, and no other objective.
missed=$(paste -d, flown shares | awk -F, -v n="$((fewest - 1))" '$1 == n {
    print ($2 > 0.2 ? "p95_ttft_s+" : "") ($3 > 0.06 ? "p99_tbt_s+" : "") ($5 < 0.93 ? "client_attainment_frac+" : "") }')
same "$(columns chats/plan.csv binding)+" "$missed" 'what binds'
# from above the search comes to the same number
succeeds "$inflight" capacity chats.yaml --quiet -o above --set cluster.replicas=40
same "$(columns above/plan.csv replicas)" "$fewest" 'the fewest replicas, from above'
# and the criteria of papers have a target, too
succeeds "$inflight" capacity chats.yaml --quiet -o paper --set capacity.objectives=null --set capacity.criterion=distserve
fewest=$(columns loop/summary.csv cluster.replicas,attainment_frac | awk -F, '!done && $2 >= 0.9 { print $1; done = 1 }')
same "$(columns paper/plan.csv replicas)" "$fewest" 'the fewest replicas for distserve'

# An ensemble with one error of costs, the floor of a step, S = 0.1 s f: a member is n queues M/D/1 with its own S.
# With W fixed, a replica takes 2 W / (S (S + 2 W)), and n follows.
sed 's/^deployment: .*/deployment: {base: vllm, host: {layer_s: 0, floor_s: 0.1}}/' \
    "$INFLIGHT_DATA/configs/hardware/a100-80gb-sxm.yaml" | sed '/^fit:/,$d' >floor.yaml
"$inflight" trace generate -n 20000 --prompt fixed:100 --output-tokens fixed:1 -o short.csv
cat >ensemble.yaml <<'END'
model: llama-15m
hardware: floor.yaml
deployment: {intervals: {host: {floor_s: [0.08, 0.12]}}}
workload: {trace: short.csv, arrivals: {process: poisson, seed: 5}}
serving: {preset: vllm-v0, max_model_len: 1024, batching: {max_seqs: 1}, kv: {num_blocks: 64}}
cluster: {router: random}
cost: {ensemble: 39}
capacity: {target_rps: 56, objectives: {mean_queue_s: 0.1}}
END
succeeds "$inflight" capacity ensemble.yaml --quiet -o members -j 2
same "$(columns members/plan.csv replicas)" 9 'replicas with the fitted floor'
# 1.96 / 1.645 x 0.02 s to either side: 0.0762 s takes 5.9 queues of 9.5 requests a second, 0.1238 s takes 11.2 of 4.99
columns members/plan.csv members_low_replicas,members_high_replicas | awk -F, '{
    exit !($1 >= 5 && $1 <= 7 && $2 >= 11 && $2 <= 13) }' ||
    complain 'the interval of the members' "$(cat members/plan.csv)"
same "$(columns members/plan.csv replicas_low,replicas_high)" \
    "$(columns members/plan.csv members_low_replicas,members_high_replicas)" 'the interval of one replication'
columns members/members.csv status,replicas | awk -F, '{ bad += $1 != "found" || $2 < 4 || $2 > 17 }
    END { exit bad || NR != 39 }' || complain 'members of a plan' "$(cat members/members.csv)"
succeeds "$inflight" capacity ensemble.yaml --quiet -o members-again
for report in plan.csv members.csv trials.csv; do
    same_bytes members/$report members-again/$report
done

# Options that are impossible are said so beside the others; a plan without any answer fails with the nearest one.
cat >options.yaml <<'END'
model: llama-3.1-70b
hardware: h100-sxm
workload: {trace: clients.csv, arrivals: {process: poisson, seed: 1}, limit: 400}
serving: {preset: vllm-v1, max_model_len: 8192}
capacity: {target_rps: 4, objectives: {p95_ttft_s: 1}, usd_per_gpu_hour: {h100-sxm: 2}}
sweep: {parallel.tensor: [1, 2, 4], dtype: [bf16, fp8]}
END
succeeds "$inflight" capacity options.yaml -o options
printed 'failed: llama-3.1-70b does not fit on h100-sxm at parallel.tensor 1'
same "$(columns options/plan.csv parallel.tensor,dtype,status | sed -n 1,2p | paste -sd' ')" '1,bf16,failed 1,fp8,found' \
    'a model in 16 and in 8 bits'
awk -F, 'NR > 1 && $3 == "found" && $NF == "" { n++ } END { exit n != 5 }' options/plan.csv ||
    complain 'options of a plan' "$(cat options/plan.csv)"
# the figure's data: a row an option
succeeds "$inflight" capacity options.yaml --quiet -o drawn --set output.plots=true
same "$(columns drawn/plan_figure.csv series,status | head -2 | paste -sd' ')" \
    'tensor 1 / dtype bf16,failed tensor 1 / dtype fp8,found' 'options of the figure'
same "$(columns drawn/plan_figure.csv bill | paste -sd' ')" "$(columns drawn/plan.csv usd_per_hour | paste -sd' ')" \
    'what the figure says of costs'
! command -v gnuplot >gnuplot.txt || [ -s drawn/plan_figure.pdf ] || complain 'the figure of a plan is not there'
expect 1 'no deployment meets the objectives at 4 requests/s; tensor 4, dtype fp8 comes nearest: p95_ttft_s is ' \
    "$inflight" capacity options.yaml --quiet --set capacity.objectives.p95_ttft_s=0.001 --set 'sweep.parallel.tensor=[4]'

# refusals
refuses 'capacity.target_rps is 0, expected a number from' "$inflight" capacity md1.yaml --set capacity.target_rps=0
refuses 'unknown key capacity.objectives.p95_tfft_s, did you mean capacity.objectives.p95_ttft_s?' \
    "$inflight" capacity md1.yaml --set capacity.objectives.p95_tfft_s=1
refuses 'capacity.criterion is delay beside capacity.objectives, expected objectives' \
    "$inflight" capacity md1.yaml --set capacity.criterion=delay
refuses 'capacity.objectives is missing or empty' \
    "$inflight" capacity chats.yaml --set capacity.objectives=null --set capacity.criterion=objectives
refuses 'slo.ttft_s and slo.tpot_s are missing' "$inflight" capacity chats.yaml --set slo=null
refuses 'cluster.replicas is swept' "$inflight" capacity chats.yaml --set 'sweep.cluster.replicas=[1,2]'
refuses 'capacity.max_replicas is 2, expected at least cluster.replicas, 3' \
    "$inflight" capacity chats.yaml --set capacity.max_replicas=2 --set cluster.replicas=3
refuses 'capacity.criterion is goodput, which is no limit' \
    "$inflight" capacity chats.yaml --set capacity.objectives=null --set capacity.criterion=goodput
refuses 'capacity.usd_per_gpu_hour is dear, expected a number' \
    "$inflight" capacity chats.yaml --set capacity.usd_per_gpu_hour=dear
refuses 'dtype is fp9, expected one of' "$inflight" capacity options.yaml --set dtype=fp9 --set sweep=null
refuses 'dtype is set, expected auto where an engine executes' \
    "$inflight" run options.yaml --set dtype=fp8 --set sweep=null --set executor=cpu
expect 1 'no deployment meets the objectives at 60 requests/s; it comes nearest: ' \
    "$inflight" capacity chats.yaml --quiet -o bounded --set capacity.max_replicas=2
# intervals of a deployment
refuses 'deployment.intervals: host.floor_s is 0.1, expected a value within its interval, 0.2 to 0.3' \
    "$inflight" capacity ensemble.yaml --set 'deployment.intervals.host.floor_s=[0.2,0.3]'
refuses 'unknown key deployment.intervals.host.flor_s, did you mean' \
    "$inflight" capacity ensemble.yaml --set 'deployment.intervals.host.flor_s=[0.2,0.3]'
refuses 'deployment.intervals.host.floor_s is 0.1, expected ?low, high?' \
    "$inflight" capacity ensemble.yaml --set deployment.intervals.host.floor_s=0.1
refuses 'deployment.intervals.host.floor_s is ?0.3, 0.2?, expected the lower end first' \
    "$inflight" capacity ensemble.yaml --set 'deployment.intervals.host.floor_s=[0.3,0.2]'
finish
