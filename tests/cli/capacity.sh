#!/bin/sh
# The search for capacity, against queueing theory where possible, otherwise against its own trials.
. "$(dirname "$0")/expect.sh"

# One request at a time, each 1,000 tokens of 0.1 ms: an M/D/1 queue with S = 0.1 s. Its mean wait
# rho S / (2 (1 - rho)) is W at rho = 2 W / (S + 2 W): 2/3 for W = S, 6.667 requests a second.
"$inflight" trace generate -n 3000 --prompt fixed:1000 --output-tokens fixed:1 -o constant.csv
cat >md1.yaml <<'END'
workload: {trace: constant.csv, arrivals: {process: poisson, rate_rps: 1, seed: 5}}
serving:
  preset: vllm-v0
  max_model_len: 1000000
  batching: {max_seqs: 1, max_batched_tokens: 1000000}
  kv: {num_blocks: 62500}
cost: {model: linear, prefill_token_s: 0.0001}
capacity: {criterion: delay, delay_s: 0.1, tolerance_frac: 0.002}
replications: 6
output: {dir: md1}
sweep: {capacity.delay_s: [0.1, 0.025]}
END
succeeds "$inflight" capacity md1.yaml --quiet -j 2
columns md1/capacity.csv capacity.delay_s,status,capacity_rps,capacity_low_rps,capacity_high_rps >found
cat found
awk -F, '{
    exact = 10 * 2 * $1 / (0.1 + 2 * $1)
    bad += $2 != "found" || exact < $4 || exact > $5 || $3 < 0.96 * exact || $3 > 1.04 * exact
    wide += $5 - $4 > 0.12 * exact
} END { exit bad || wide || NR != 2 }' found || complain 'capacity of M/D/1 is not the closed form'

# the same bytes on more threads, and after a search was cut short
succeeds "$inflight" capacity md1.yaml --quiet -o again
for report in capacity.csv trials.csv config.yaml; do
    same_bytes md1/$report again/$report
done

# and where several threads share one search
succeeds "$inflight" capacity md1.yaml --quiet -o one --set sweep=null
succeeds "$inflight" capacity md1.yaml --quiet -o one-j4 --set sweep=null -j 4
for report in capacity.csv trials.csv config.yaml; do
    same_bytes one/$report one-j4/$report
done
printf 'arrival_s,prompt_tokens,output_tokens\n0,10,x\n' >broken.csv
refuses 'broken.csv:2:6: ' "$inflight" capacity md1.yaml --quiet -j 4 --set sweep=null \
    --set workload.trace=broken.csv

# every criterion ends between two tried rates: one fulfils it, the other, higher by the tolerance, does not
"$inflight" trace generate -n 400 --prompt lognormal:200,1 --output-tokens lognormal:50,1 -o chats.csv
cat >chats.yaml <<'END'
workload: {trace: chats.csv, arrivals: {process: poisson, rate_rps: 4, seed: 1}}
serving: {preset: vllm-v0, max_model_len: 8192, kv: {num_blocks: 1000}}
cost: {model: linear, step_s: 0.01, prefill_token_s: 0.00005, decode_seq_s: 0.0005}
capacity: {p99_tbt_s: 0.1, usd_per_gpu_hour: {gpu-a: 3.6, gpu-b: 9}}
slo: {ttft_s: 0.5, tpot_s: 0.05}
replications: 2
output: {dir: chats}
sweep: {serving.preset: [vllm-v0, sarathi], serving.batching.max_seqs: [8, 64]}
END
for criterion in sarathi distserve delay; do
    succeeds "$inflight" capacity chats.yaml --quiet -j 2 --set capacity.criterion=$criterion
    columns chats/trials.csv serving.preset,serving.batching.max_seqs,rate_rps,margin >tried
    columns chats/capacity.csv \
        serving.preset,serving.batching.max_seqs,capacity_rps,status >found
    awk -F, 'NR == FNR { rate[$1 FS $2] = $3; status[$1 FS $2] = $4; next }
        $4 <= 0 && $3 == rate[$1 FS $2] { within[$1 FS $2] = 1 }
        $4 > 0 && $3 > rate[$1 FS $2] && $3 <= 1.0101 * rate[$1 FS $2] { beyond[$1 FS $2] = 1 }
        END { for (row in rate) bad += status[row] != "found" || !within[row] || !beyond[row]
              exit bad || length(rate) != 4 }' found tried || complain "$criterion does not end at the limit"
done

# goodput: no rate that was tried gives more
succeeds "$inflight" capacity chats.yaml --quiet --set capacity.criterion=goodput --set sweep=null
best=$(columns chats/trials.csv goodput_rps | sort -g | tail -1)
same "$(columns chats/capacity.csv capacity_rps)" "$best" 'the most goodput'

# the cheapest deployment and the front: dollars per token and marks follow from the other columns
succeeds "$inflight" capacity chats.yaml --quiet -o gpus --set model=llama-2-7b --set cost=null \
    --set serving.kv.num_blocks=null --set serving.max_model_len=4096 --set replications=1 \
    --set workload.limit=100 --set 'capacity.usd_per_gpu_hour={a100-80gb-sxm: 2, h100-sxm: 3.5}' \
    --set sweep=null --set 'sweep.hardware=[a100-80gb-sxm,h100-sxm]' \
    --set 'sweep.parallel.tensor=[1,2]'
columns gpus/capacity.csv "hardware,parallel.tensor,gpus,usd_per_hour,usd_per_million_output_tokens,\
output_throughput_tok_per_s,p99_itl_s,cheapest,pareto_tbt" >found
awk -F, '{
    price = ($1 == "h100-sxm" ? 3.5 : 2) * $2
    usd = price / ($6 * 3600) * 1e6
    bad += $3 != $2 || $4 != price || $5 < 0.99999 * usd || $5 > 1.00001 * usd
    cost[NR] = $5; tbt[NR] = $7; cheapest[NR] = $8; front[NR] = $9
} END {
    for (i = 1; i <= NR; i++) {
        least = best = "true"
        for (j = 1; j <= NR; j++) {
            if (cost[j] < cost[i]) least = "false"
            if (cost[j] <= cost[i] && tbt[j] <= tbt[i] && cost[j] + tbt[j] < cost[i] + tbt[i]) best = "false"
        }
        bad += least != cheapest[i] || best != front[i]
    }
    exit bad || NR != 4
}' found || complain "costs or marks are wrong" "$(cat found)"

# few requests: attainment goes up and down with the rate, and has several roots
succeeds timeout 100 "$inflight" capacity "$INFLIGHT_DATA/configs/quickstart.yaml" --quiet -o rough -j 2 \
    --set sweep=null --set replications=6 --set workload.limit=200 --set model=llama-3-8b \
    --set serving.kv.num_blocks=null --set serving.max_model_len=4096 --set slo.ttft_s=1 \
    --set slo.tpot_s=0.05 --set capacity.criterion=distserve
same "$(columns rough/capacity.csv status)" found 'the capacity where the margin has several roots'

# goodput: above saturation it hardly depends on the rate, so a search that starts there goes down first
for rate in 200 5000; do
    succeeds "$inflight" capacity chats.yaml --quiet --set capacity.criterion=goodput --set sweep=null \
        --set workload.arrivals.rate_rps=$rate
    columns chats/capacity.csv capacity_rps | awk -v best="$best" '{ exit !($1 > 0.97 * best) }' ||
        complain "the most goodput, from $rate requests/s on, is $(columns chats/capacity.csv capacity_rps), not $best"
done

# the ends of the range are tried: LEAST,MOST,START as multiples of the capacity, and what is found
succeeds "$inflight" capacity md1.yaml --quiet --set sweep=null --set replications=1
at=$(columns md1/capacity.csv capacity_rps)
for range in 0.1,1.02,0.2,found 0.1,0.97,0.2,unbounded 0.1,0.97,3,unbounded 0.9,9,1.5,found 1.1,9,3,none 1.1,9,0.5,none; do
    set -- $(echo $range | awk -F, -v at="$at" '{ print $1 * at, $2 * at, $3 * at, $4 }')
    succeeds "$inflight" capacity md1.yaml --quiet --set sweep=null --set replications=1 \
        --set capacity.min_rate_rps=$1 --set capacity.max_rate_rps=$2 --set workload.arrivals.rate_rps=$3
    columns md1/capacity.csv status,capacity_rps >found
    awk -F, -v status=$4 -v at="$at" -v most=$2 '{
        is = status == "none" ? 0 : status == "found" ? at : most
        exit !($1 == status && $2 >= 0.995 * is && $2 <= 1.005 * is)
    }' found || complain "between $1 and $2, from $3 on: $(cat found), not $4"
done

# a margin that goes up and down: a start at which the solver follows a root outside of the bracket
succeeds "$inflight" capacity chats.yaml --quiet --set sweep=null --set capacity.min_rate_rps=14.142 \
    --set capacity.max_rate_rps=141.42 --set workload.arrivals.rate_rps=23.5701
same "$(columns chats/capacity.csv status)" found 'the capacity where the solver follows another root'

# latencies of requests that were never served are no reason to call a rate met
for criterion in sarathi delay; do
    succeeds "$inflight" capacity chats.yaml --quiet --set sweep=null --set capacity.criterion=$criterion \
        --set serving.kv.num_blocks=2
    same "$(columns chats/capacity.csv status)" none "the capacity where nothing fits ($criterion)"
done

# out of reach
for limit in 0.0001,none 1000,unbounded; do
    succeeds "$inflight" capacity chats.yaml --quiet --set sweep=null \
        --set "capacity.p99_tbt_s=${limit%,*}" --set capacity.delay_s=1e6
    same "$(columns chats/capacity.csv status)" "${limit#*,}" "P99 TBT of ${limit%,*} s"
done

# An ensemble. Every forward pass takes the host's floor of S = 0.1 s: an M/D/1 queue again. A member's floor is S f,
# f lognormal around 1 with a median error of 20%, so the log of f has the standard deviation 0.2 / 0.6745 = 0.2965.
sed 's/^deployment: .*/deployment: {base: vllm, host: {layer_s: 0, floor_s: 0.1}}/' \
    "$INFLIGHT_DATA/configs/hardware/a100-80gb-sxm.yaml" >floor.yaml
"$inflight" trace generate -n 3000 --prompt fixed:100 --output-tokens fixed:1 -o short.csv
cat >ensemble.yaml <<'END'
model: llama-15m
hardware: floor.yaml
workload: {trace: short.csv, arrivals: {process: poisson, rate_rps: 1, seed: 5}}
serving: {preset: vllm-v0, max_model_len: 1024, batching: {max_seqs: 1}, kv: {num_blocks: 64}}
cost: {host_error_frac: 0.2}
capacity: {criterion: delay, delay_s: 0.1, tolerance_frac: 0.002}
replications: 4
END
succeeds "$inflight" capacity ensemble.yaml --quiet -o fitted
succeeds "$inflight" capacity ensemble.yaml --quiet -o members -j 2 --set cost.ensemble=40
same_bytes fitted/trials.csv members/trials.csv
succeeds "$inflight" capacity ensemble.yaml --quiet -o again-members --set cost.ensemble=40
for report in capacity.csv members.csv; do
    same_bytes members/$report again-members/$report
done
same "$(columns fitted/capacity.csv capacity_rps)" "$(columns members/capacity.csv capacity_rps)" \
    'the capacity beside an ensemble'
columns members/members.csv status,capacity_rps | sort -t, -k2g >rates
awk -F, '
    # 2 W / (s (s + 2 W)) at W = 0.1, solved for the service time s
    { s = -0.1 + sqrt(0.01 + 0.2 / $2); z = log(s / 0.1) / 0.2965; sum += z; squares += z * z; bad += $1 != "found" }
    END { mean = sum / NR; sd = sqrt((squares - NR * mean * mean) / (NR - 1))
          exit bad || NR != 40 || mean > 0.45 || mean < -0.45 || sd < 0.7 || sd > 1.3 }' rates ||
    complain 'the members do not have the capacities of their service times' "$(cat rates)"
# each end lies at the root of the sum of squares of two distances: of the replications, of the members
for interval in fitted members; do
    columns $interval/capacity.csv capacity_rps,capacity_low_rps,capacity_high_rps
done | paste -d, - - | cat - rates | awk -F, '
    function end(sign, of_fitted, of_members) { return $1 + sign * sqrt((of_fitted - $1) ^ 2 + (of_members - $1) ^ 2) }
    function close_to(a, b) { return a / b < 1.00001 && a / b > 0.99999 }
    NR == 1 { line = $0; next }
    { rate[NR - 2] = $2 }
    END { $0 = line
          # ranks 0.025 and 0.975 of 41
          low = rate[0] + 0.025 * (rate[1] - rate[0]); high = rate[38] + 0.975 * (rate[39] - rate[38])
          exit !(close_to($5, end(-1, $2, low)) && close_to($6, end(1, $3, high)) && $5 < $2 && $6 > $3) }' ||
    complain 'the interval is not that of replications and members together'
# costs without an error: every member has the fitted costs and finds the same capacity
sed '/^fit:/,$d' floor.yaml >exact.yaml
echo 'fit: {gemm: {rows: 1}}' >>exact.yaml
succeeds "$inflight" capacity ensemble.yaml --quiet -o exact --set hardware=exact.yaml --set cost.host_error_frac=0
succeeds "$inflight" capacity ensemble.yaml --quiet -o same --set hardware=exact.yaml --set cost.host_error_frac=0 \
    --set cost.ensemble=2
same "$(columns exact/capacity.csv capacity_rps,capacity_low_rps,capacity_high_rps)" \
    "$(columns same/capacity.csv capacity_rps,capacity_low_rps,capacity_high_rps)" 'an ensemble of exact costs'
same "$(columns same/members.csv capacity_rps | uniq)" "$(columns exact/capacity.csv capacity_rps)" 'its members'
# with one replication the interval comes from the members alone; a search without members removes their files
succeeds "$inflight" capacity ensemble.yaml --quiet -o members --set replications=1 --set cost.ensemble=3
same "$(columns members/capacity.csv capacity_low_rps,capacity_high_rps)" \
    "$(columns members/capacity.csv members_low_rps,members_high_rps)" 'the interval of one replication'
succeeds "$inflight" capacity ensemble.yaml --quiet -o members --set replications=1
[ ! -e members/members.csv ] || complain 'members of an earlier search are left'
refuses 'cost.ensemble is swept' "$inflight" capacity ensemble.yaml --set 'sweep.cost.ensemble=[1,2]'
refuses 'cost.ensemble is swept' "$inflight" capacity ensemble.yaml \
    --set 'sweep.variants={few: {}, many: {cost: {ensemble: 3}}}'

# the figure's data: a row a deployment, with the rates of capacity.csv
succeeds "$inflight" capacity ensemble.yaml --quiet -o drawn --set output.plots=true
same "$(columns drawn/capacity_figure.csv rate_rps,rate_rps_low,rate_rps_high)" \
    "$(columns drawn/capacity.csv capacity_rps,capacity_low_rps,capacity_high_rps)" 'what the figure says of rates'
! command -v gnuplot >gnuplot.txt || [ -s drawn/capacity_figure.pdf ] || complain 'the figure of rates is not there'

# refusals
refuses 'workload.arrivals.rate_rps is swept' \
    "$inflight" capacity md1.yaml --set 'sweep.workload.arrivals.rate_rps=[1,2]'
refuses 'md1.yaml: capacity.p99_tbt_s is missing or 0, expected above 0' \
    "$inflight" capacity md1.yaml --set capacity.criterion=sarathi
refuses 'slo.ttft_s and slo.tpot_s are missing' \
    "$inflight" capacity md1.yaml --set capacity.criterion=distserve
refuses 'workload.arrivals.process has no rate' \
    "$inflight" capacity md1.yaml --set workload.arrivals.process=burst --set workload.shuffle=true
refuses 'capacity.usd_per_gpu_hour has no price of h100-sxm, expected one of every hardware' \
    "$inflight" capacity chats.yaml --set hardware=h100-sxm
refuses 'capacity.min_rate_rps is 5, expected at most max_rate_rps, 1' \
    "$inflight" capacity chats.yaml --set capacity.min_rate_rps=5 --set capacity.max_rate_rps=1
refuses 'capacity.usd_per_gpu_hour.gpu-a is dear, expected a number' \
    "$inflight" capacity chats.yaml --set 'capacity.usd_per_gpu_hour={gpu-a: dear}'
finish
