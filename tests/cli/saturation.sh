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

# Why one is saturated where another is not: the share of the time in which requests wait, from steps.csv, that
# as many run as ever, that the blocks are 15/16 full, and that a step has nearly the most tokens.
cat >config.yaml <<'E1'
model: llama-2-7b
hardware: a100-80gb-sxm
workload: {trace: lengths.csv, limit: 1500, arrivals: {process: poisson, seed: 1, rate_rps: 6}}
serving: {preset: vllm-v0}
output: {dir: out, plots: false}
E1
# explains WORDS SWEEP: the note has the words, and the shares of point 0
explains() {
    try "$inflight" run config.yaml --set "sweep={$2}" --set output.steps=true
    same "$code" 0 "sweep $2: $(cat logs/err)"
    grep ' is saturated' logs/err >note
    grep -qF "$1" note || complain "sweep $2: $(cat logs/err) does not say: $1"
    columns out/steps.csv point,duration_s,running,waiting,prefill_tokens,decode_tokens,kv_used_blocks,kv_total_blocks |
        awk -F, '
        NR > 1 && $1 == 0 && $4 > 0 {
            all += $2; seats[$3] += $2; n = $5 + $6; tokens[n] += $2
            most_seats = $3 > most_seats ? $3 : most_seats
            most = n > most ? n : most
            blocks += $7 * 16 >= $8 * 15 ? $2 : 0
        }
        END {
            for (n in tokens) near += n * 16 >= most * 15 ? tokens[n] : 0
            printf "(while requests waited: %d sequences ran in %.0f%% of the time, steps had %d tokens or nearly in %.0f%%, 15/16 of the blocks were in use in %.0f%%)", most_seats, 100 * seats[most_seats] / all, most, 100 * near / all, 100 * blocks / all
        }' >shares
    grep -qF "$(cat shares)" note || complain "$(cat note)" "    steps.csv: $(cat shares)"
    cp note first
    try "$inflight" run config.yaml --set "sweep={$2}"
    grep ' is saturated' logs/err >note
    same_bytes first note
}
explains '16 is saturated and 256 is not: its limit of 16 sequences was full' 'serving.batching.max_seqs: [16, 256]'
explains '400 is saturated and 7000 is not: its blocks were full' 'serving.kv.num_blocks: [400, 7000]'
sed 's/vllm-v0/sarathi/' config.yaml >sarathi.yaml
cp config.yaml vllm.yaml
cp sarathi.yaml config.yaml
explains '32 is saturated and 512 is not: its limit of 32 tokens a step was full' 'serving.batching.chunk_tokens: [32, 512]'
cp vllm.yaml config.yaml
explains 'faster-transformer is saturated and vllm-v0 is not: none of its limits was full' \
    'serving.preset: [faster-transformer, vllm-v0]'
try "$inflight" run config.yaml --set 'sweep={workload.arrivals.rate_rps: [4, 40]}'
! grep -q ' is saturated' logs/err || complain "more load is no reason: $(cat logs/err)"

finish
