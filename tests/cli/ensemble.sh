#!/bin/sh
# An ensemble with one uncertain number, of the deployment: its intervals are those of direct runs at the ends of the
# number's interval, and those of the closed form.
. "$(dirname "$0")/expect.sh"

# Each step takes the host's floor of 0.1 s, each request one step of 160 tokens, ten blocks. With many more requests
# than places, blocks / 10 go in each step: with 1,000 blocks 1,000 requests a second.
sed 's/^deployment: .*/deployment: {base: vllm, host: {layer_s: 0, floor_s: 0.1}, num_blocks: 1000}/' \
    "$INFLIGHT_DATA/configs/hardware/a100-80gb-sxm.yaml" | sed '/^fit:/,$d' >floor.yaml
"$inflight" trace generate -n 20000 --prompt fixed:159 --output-tokens fixed:1 -o short.csv
cat >blocks.yaml <<'END'
model: llama-15m
hardware: floor.yaml
workload: {trace: short.csv, arrivals: {process: constant, rate_rps: 100000}}
serving:
  preset: vllm-v1
  max_model_len: 256
  batching: {max_seqs: 1000, max_batched_tokens: 1000000}
  kv: {prefix_cache: none}
deployment: {intervals: {num_blocks: [900, 1050]}}
output: {dir: blocks, requests: false}
END
interval_of() { # METRIC DIR
    awk -F, -v metric="$1" '$2 == metric { print $6, $8 }' "$2/intervals.csv"
}
close_to() { # "A B" "C D" TOLERANCE WHAT
    echo "$1 $2" | awk -v t="$3" '{ exit !($1 > $3 * (1 - t) && $1 < $3 * (1 + t) && $2 > $4 * (1 - t) && $2 < $4 * (1 + t)) }' ||
        complain "$4" "    found:    $1" "    expected: $2"
}
succeeds "$inflight" run blocks.yaml --quiet --set cost.ensemble=199
for blocks in 900 1050; do
    succeeds "$inflight" run blocks.yaml --quiet -o end-$blocks --set deployment=null --set serving.kv.num_blocks=$blocks
done
ends="$(columns end-900/summary.csv request_throughput_rps) $(columns end-1050/summary.csv request_throughput_rps)"
close_to "$ends" '900 1050' 0.02 'requests a second with blocks at the ends'
close_to "$(interval_of request_throughput_rps blocks)" "$ends" 0.02 'the interval of an ensemble of blocks'

# The front end: TTFT is its latency, the wait for the step under way and the step. No step sees it.
cat >front.yaml <<'END'
model: llama-15m
hardware: floor.yaml
workload: {trace: short.csv, limit: 2000, arrivals: {process: constant, rate_rps: 5}}
serving: {preset: vllm-v1, max_model_len: 256}
deployment: {front_end: {request_s: 0.02}, intervals: {front_end: {request_s: [0.015, 0.04]}}}
output: {dir: front, requests: false}
END
succeeds "$inflight" run front.yaml --quiet --set cost.ensemble=199
close_to "$(interval_of mean_ttft_s front)" '0.115 0.14' 0.02 'the interval of an ensemble of front ends'

# The same through capacity: the 95% of the members reach 1.96 / 1.645 times as far as the 90% of the blocks.
cat >>blocks.yaml <<'END'
capacity: {criterion: delay, delay_s: 0.5, tolerance_frac: 0.002}
END
sed -i 's/rate_rps: 100000/rate_rps: 500/' blocks.yaml
succeeds "$inflight" capacity blocks.yaml --quiet -o capacity -j 2 --set cost.ensemble=99
for blocks in 881 1060; do
    succeeds "$inflight" capacity blocks.yaml --quiet -o end-$blocks --set deployment=null --set serving.kv.num_blocks=$blocks
done
close_to "$(columns capacity/capacity.csv members_low_rps,members_high_rps | tr , ' ')" \
    "$(columns end-881/capacity.csv capacity_rps) $(columns end-1060/capacity.csv capacity_rps)" 0.02 \
    'the capacity of an ensemble of blocks'

# A number that is given anew has no interval; one that is set to null has none either.
for known in deployment.num_blocks=1000 deployment.intervals.num_blocks=null; do
    cat >base.yaml <<'END'
host: {layer_s: 0, floor_s: 0.1}
memory: {workspace_gib: 1}
num_blocks: 1000
intervals: {num_blocks: [500, 2000], front_end: {request_s: [0, 0]}}
END
    succeeds "$inflight" run blocks.yaml --quiet -o known --set deployment=null --set deployment.base=./base.yaml \
        --set $known --set cost.ensemble=3 --set workload.limit=500
    interval_of request_throughput_rps known | awk '{ exit !($1 == $2) }' || complain "an interval after $known"
done
# config.yaml has the intervals, and flies to the same bytes
succeeds "$inflight" run front.yaml --quiet -o first --set cost.ensemble=3
succeeds "$inflight" run first/config.yaml --quiet -o second
same_bytes first/intervals.csv second/intervals.csv
# numbers that vary together do so in the flight of config.yaml, too
both='deployment={num_blocks: 1000, front_end: {request_s: 0.1}, intervals: {num_blocks: [500, 2000], front_end: {request_s: [0.1, 0.2]},
    correlations: [[num_blocks, front_end.request_s, 0.9]]}}'
succeeds "$inflight" run front.yaml --quiet -o together --set cost.ensemble=5 --set "$both"
succeeds "$inflight" run together/config.yaml --quiet -o again
same_bytes together/intervals.csv again/intervals.csv
succeeds "$inflight" run front.yaml --quiet -o apart --set cost.ensemble=5 --set "$both" --set deployment.intervals.correlations=null
cmp -s together/intervals.csv apart/intervals.csv && complain 'a correlation changes nothing'
refuses 'correlations has host.step, expected a number such as host.step_s' \
    "$inflight" run front.yaml --quiet --set 'deployment.intervals.correlations=[[host.step, num_blocks, 0.5]]'
refuses 'expected a number from -1 to 1' \
    "$inflight" run front.yaml --quiet --set 'deployment.intervals.correlations=[[host.step_s, num_blocks, 2]]'
refuses 'expected a positive definite matrix' "$inflight" run front.yaml --quiet --set "$both" \
    --set 'deployment.intervals.correlations=[[num_blocks, front_end.request_s, 1]]'
refuses 'no errors of a fit, expected a profile that inflight fit wrote' \
    "$inflight" run front.yaml --quiet --set cost.ensemble=3 --set deployment.intervals=null
finish
