#!/bin/sh
# The star that marks a saturated point, against the share of tokens in requests.csv that arrive in the second
# half of the arrivals and leave in that time. The schedulers let all requests wait, or long ones, or started
# ones.
. "$(dirname "$0")/expect.sh"

"$inflight" trace generate -n 3000 --prompt lognormal:220,1.2,4,1024 \
    --output-tokens lognormal:210,1,4,1024 -o lengths.csv >generated
cat >config.yaml <<'E1'
model: llama-2-7b
hardware: a100-80gb-sxm
workload: {trace: lengths.csv, arrivals: {process: poisson, seed: 1}}
serving: {kv: {num_blocks: 1000, swap_gib: 8}}
output: {dir: out, plots: false}
sweep:
  serving.preset: [vllm-v0, sjf, ltr, fastserve]
  workload.arrivals.rate_rps: [2, 4, 16, 24]
E1
succeeds "$inflight" run config.yaml --quiet

# A line a point; requests come by point, then by arrival
columns out/requests.csv point,arrival_s,finish_s,prompt_tokens,output_tokens >lives
awk -F, '
    function add_up(i, half, came, left) {
        half = (arrival[1] + arrival[n]) / 2
        for (i = 1; i <= n; i++) {
            came += arrival[i] > half ? tokens[i] : 0
            left += finish[i] > half && finish[i] <= arrival[n] ? tokens[i] : 0
        }
        print left / came
        n = 0
    }
    NR > 1 && $1 != point { add_up() }
    { point = $1; arrival[++n] = $2; finish[n] = $3; tokens[n] = $4 + $5 }
    END { add_up() }' lives >shares

columns out/summary.csv serving.preset,workload.arrivals.rate_rps,saturated >flags
paste -d, flags shares >judged
cat judged
awk -F, '
    $4 < 0.9 { over[$1]++; missed += $3 != "true" }
    $4 > 0.97 { under[$1]++; alarms += $3 != "false" }
    END {
        for (preset in over)
            n_both += preset in under
        print missed " missed, " alarms " false alarms, " n_both " schedulers above and below"
        exit missed || alarms || n_both != 4
    }' judged || complain 'the star and the tokens that leave disagree'

finish
