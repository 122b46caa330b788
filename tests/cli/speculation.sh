#!/bin/sh
# Speculation through the program: its reports, the modes that may not change them, and what it is refused with.
. "$(dirname "$0")/expect.sh"

"$inflight" trace generate -n 400 --prompt lognormal:120,1,4,512 --output-tokens lognormal:100,1,4,512 -o t.csv
awk -F, -v OFS=, 'NR == 1 { print $0, "accept_percent"; next } { print $0, NR % 2 ? 100 : 0 }' t.csv >own.csv
awk -F, -v OFS=, 'NR == 1 { print $0, "client"; next } { print $0, NR % 2 ? "code" : "chat" }' t.csv >clients.csv
write() { # preset
    cat >c.yaml <<EOF
workload: {trace: t.csv, format: inflight, arrivals: {process: poisson, rate_rps: 8, seed: 3}}
cost: {model: linear, step_s: 0.01, prefill_token_s: 1.0e-5, decode_seq_s: 1.0e-4}
serving: {preset: $1, max_model_len: 2048, kv: {num_blocks: 4000}}
output: {steps: true}
EOF
}
fly() { # folder, --set arguments
    folder=$1
    shift
    succeeds "$inflight" run c.yaml --quiet -o "$folder" "$@"
}
same() { # folders
    for file in requests steps summary quantiles; do
        cmp -s "$1/$file.csv" "$2/$file.csv" || complain "$1 and $2 differ in $file.csv ($preset)"
    done
}
fixed='serving.draft={policy: fixed, tokens: 3}'

for preset in vllm-v1 vllm-v1-sync vllm-v0 vllm-v0-swap sglang sglang-overlap trtllm-1.2-no-evict sarathi vtc; do
    write "$preset"
    fly off
    fly none --set 'serving.draft={policy: fixed, tokens: 0}'
    same off none
    [ ! -e off/speculation.csv ] && [ ! -e none/speculation.csv ] || complain "$preset: a report of no speculation"
    fly on --set "$fixed"
    fly planned --set "$fixed" --set serving.steady_runs=false
    fly checked --set "$fixed" --set serving.check_steady=true
    same on planned
    same on checked
    cmp -s on/speculation.csv planned/speculation.csv || complain "$preset: speculation.csv differs"
    # 1 + 0.7 + 0.49 + 0.343 = 2.533, over some 16,000 steps of requests: 0.03 is three standard errors
    awk -F, 'NR == 2 { exit !($3 > 10000 && $9 > 2.503 && $9 < 2.563) }' on/speculation.csv ||
        complain "$preset: $(sed -n 2p on/speculation.csv)"
done

for preset in vllm-v1-eagle vllm-v1-ngram sglang-eagle sglang-eagle-adaptive; do
    write "$preset"
    fly on
    fly checked --set serving.check_steady=true
    same on checked
done
for draft in '{policy: by-batch, tokens: 5, table: "1-4:5,5-8:2,9-:0"}' '{policy: goodput, tokens: 6}' \
    '{policy: ngram, tokens: 4, match_frac: 0.5}' '{policy: adaptive}'; do
    preset=vllm-v1
    write $preset
    fly on --set "serving.draft=$draft"
    fly checked --set "serving.draft=$draft" --set serving.check_steady=true
    same on checked
done

# adaptive guesses for batches of a size, from the first decode on: what a list begins with, what it goes down to
# after fifteen steps where none holds, and a look each ten steps
for case in '31 3 0 1' '32 1 0 1' '63 1 0 1' '64 0 0 0'; do
    # shellcheck disable=SC2086 # four words
    set -- $case
    awk -v n="$1" 'BEGIN { print "arrival_s,prompt_tokens,output_tokens"; while (n--) print "0,5,45" }' >batch.csv
    write sglang-eagle-adaptive
    fly on --set workload.trace=batch.csv --set 'workload.arrivals={process: trace}' --set serving.kv.num_blocks=100000 --set serving.speculation.acceptance=0 \
        --set output.steps=true
    columns on/steps.csv draft_tokens | tail -n +2 | awk -v n="$1" -v first="$2" -v down="$3" -v look="$4" '
        { bad += $1 != n * (NR <= 15 ? first : NR <= 20 ? down : NR <= 25 ? look : down); if (NR == 30) exit }
        END { exit bad > 0 || NR != 30 }' || complain "adaptive guesses of $1 requests"
done

# one rate stands for every place: of 64 guesses that all hold a step yields 65 tokens
write vllm-v1
fly all --set 'serving.draft={policy: fixed, tokens: 64}' --set serving.speculation.acceptance=1
awk -F, 'NR == 2 { exit $9 != 65 }' all/speculation.csv || complain "64 sure guesses: $(sed -n 2p all/speculation.csv)"

# newcomers with a prompt that is cached but for a token, with room and without: the same in all modes, and slower than
# those that are not filled up, by the rows
awk -F, -v OFS=, 'NR == 1 { print $0, "prefix_group", "prefix_tokens"; next } { n = 16 * (NR % 3 + 1); print n + 1, $2, NR % 3 + 1, n }' \
    t.csv >newcomers.csv
for set in batching.max_batched_tokens=20 batching.max_batched_tokens=512 kv.num_blocks=60 kv.num_blocks=4000; do
    for preset in vllm-v1-ngram vllm-v1-eagle vllm-v1; do
        write $preset
        for mode in steady_runs=true steady_runs=false check_steady=true; do
            fly "$mode" --set workload.trace=newcomers.csv --set "serving.$set" --set "serving.$mode" \
                --set serving.batching.pads_newcomers=true --set "$fixed" --set serving.max_model_len=600
        done
        same steady_runs=true steady_runs=false
        same steady_runs=true check_steady=true
        [ "$(grep -c ',finished,' steady_runs=true/requests.csv)" -eq 400 ] || complain "$preset, $set: not all finish"
    done
done
fly padded --set workload.trace=newcomers.csv --set "$fixed" --set serving.batching.pads_newcomers=true
fly bare --set workload.trace=newcomers.csv --set "$fixed" --set serving.batching.pads_newcomers=false
ttft() { # folder
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { print $at["mean_ttft_s"] }' "$1/summary.csv"
}
echo "$(ttft padded) $(ttft bare)" | awk '{ exit !($1 > $2) }' || complain "rows in place of guesses take no time: $(ttft padded) and $(ttft bare)"

# All guesses of every second request hold, none of the others.
write vllm-v1-sync
fly own --set "$fixed" --set workload.trace=own.csv
awk -F, 'NR == 3 { held = $5 } NR == 4 { second = $5 } END { exit !(held > 0 && held == second) }' own/speculation.csv ||
    complain "accept_percent of 100 and 0: places one and two hold alike"
fly clients --set "$fixed" --set workload.trace=clients.csv --set 'serving.speculation.clients=code=1;chat=1,0'
awk -F, 'NR == 3 { one = $6 } NR == 4 { two = $6 } END { exit !(one == 1 && two > 0.1 && two < 0.9) }' clients/speculation.csv ||
    complain "clients: $(cat clients/speculation.csv)"

head -1 on/steps.csv | grep -q 'draft_tokens,accepted_tokens$' || complain "columns of steps.csv"
head -1 off/steps.csv | grep -q draft && complain "steps.csv without speculation has its columns"

refused() { # PATTERN, --set arguments
    pattern=$1
    shift
    expect 2 "$pattern" "$inflight" run c.yaml --quiet -o no "$@"
}
refused "acceptance has '1.5', expected one rate from 0 to 1" --set "$fixed" --set serving.speculation.acceptance=1.5
refused "acceptance has '0.7;', expected" --set "$fixed" --set 'serving.speculation.acceptance=0.7;'
refused "clients has 'code', expected NAME=RATES" --set "$fixed" --set serving.speculation.clients=code
refused "clients names robot" --set "$fixed" --set workload.trace=clients.csv --set serving.speculation.clients=robot=1
refused "expected a draft model in serving.speculation.model" --set "$fixed" --set serving.speculation.proposer=model
refused "expected policy none where serving.kv.allocator is buddy" --set "$fixed" --set serving.kv.allocator=buddy --set serving.kv.prefix_cache=none
refused "table has '5-4:1', expected" --set 'serving.draft={policy: by-batch, table: "1-4:2,5-4:1"}'
refused "table has '5', expected" --set 'serving.draft={policy: by-batch, table: "5"}'
refused "unknown draft policy fix, expected one of adaptive, by-batch, fixed" --set serving.draft=fix
sed 's/,100$/,101/' own.csv >beyond.csv
refused "accept_percent of 101, expected at most 100" --set "$fixed" --set workload.trace=beyond.csv

# A head on a model with experts has none: they are dealt out over ranks, and the head is not.
cat >experts.yaml <<'EOF'
model: qwen3-30b-a3b
hardware: h100-sxm
workload: {trace: t.csv, format: inflight, limit: 40, arrivals: {process: poisson, rate_rps: 8, seed: 3}}
serving: {preset: vllm-v1-eagle}
parallel: {tensor: 2}
output: {plots: false}
EOF
for preset in vllm-v1-eagle sglang-eagle; do
    for set in parallel.expert=2 parallel.data=2 'parallel={tensor: 2, data: 2, expert: 4}'; do
        succeeds "$inflight" run experts.yaml --quiet --set serving.preset=$preset --set "$set" -o experts
        awk -F, 'NR == 2 { exit !($5 > 0) }' experts/speculation.csv || complain "$preset, $set: no guess holds"
    done
done
expect 2 'parallel.expert is 2, expected 1 for llama-3-8b, which has no experts' \
    "$inflight" run experts.yaml --quiet --set model=llama-3-8b --set parallel.expert=2

# guesses that do not fit for every request, in a pool that has a block for each one's next token: all finish, mode by mode
awk 'NR <= 41' t.csv >few.csv
for preset in srtf fastserve; do
    write "$preset"
    short='--set workload.trace=few.csv --set workload.arrivals.rate_rps=40 --set serving.kv.num_blocks=90'
    for tokens in 40 64; do
        fly short $short --set "serving.draft={policy: fixed, tokens: $tokens}"
        fly short-checked $short --set "serving.draft={policy: fixed, tokens: $tokens}" --set serving.check_steady=true
        same short short-checked
        [ "$(grep -c ',finished,' short/requests.csv)" = 40 ] || complain "$preset: not all finish beside $tokens guesses"
    done
done

finish
