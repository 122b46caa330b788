#!/bin/sh
# Coverage of replications' intervals. One sequence at a time with exponential service and Poisson arrivals is
# an M/M/1 queue with the mean wait rho S / (1 - rho). Of 200 experiments' 95% intervals, 90 to 99 per cent must
# cover it.
#
# The warm-ups are left out by MSER-5. It prefers to cut where a busy period ends, which makes short
# runs look better than they are: by 5% with 1,000 requests a run, by 3% with the 2,000 here.
. "$(dirname "$0")/expect.sh"

# Service times: the quantiles of an exponential distribution with mean S = 0.1 s, 10 us a token.
awk 'BEGIN {
    n = 5000
    print "arrival_s,prompt_tokens,output_tokens"
    for (i = 0; i < n; i++)
        printf "0,%d,1\n", 1 - 10000 * log(1 - (i + 0.5) / n)
}' >exponential.csv
cat >config.yaml <<'END'
workload:
  {trace: exponential.csv, shuffle: true, limit: 2000, arrivals: {process: poisson, rate_rps: 5}}
serving:
  preset: vllm-v0
  max_model_len: 1000000
  batching: {max_seqs: 1, max_batched_tokens: 1000000}
  kv: {num_blocks: 62500}
cost: {model: linear, prefill_token_s: 0.00001}
replications: 5
steady_state: true
output: {requests: false}
END
for seed in $(seq 1 200); do
    "$inflight" run config.yaml --quiet -j 2 -o out --set "workload.arrivals.seed=$seed" \
        --set "workload.shuffle_seed=$seed" || complain "seed $seed"
    columns out/replications.csv runs,mean_queue_s,mean_queue_s_ci95
done >intervals
covered=$(awk -F, '$1 == 5 && $2 - $3 <= 0.1 && 0.1 <= $2 + $3 { n++ } END { print n + 0 }' intervals)
echo "$covered of 200 intervals cover the closed form"
[ "$covered" -ge 180 ] && [ "$covered" -le 198 ] || complain "$covered of 200, not 180 to 198"
# and most intervals are narrower than half of the mean
narrow=$(awk -F, '$3 < 0.5 * $2 { n++ } END { print n + 0 }' intervals)
[ "$narrow" -ge 190 ] || complain "only $narrow of 200 intervals are narrower than 50%"
finish
