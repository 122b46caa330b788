#!/bin/sh
# Unusual, but valid input: exit code 0, and reports as computed by hand. Every step takes 10 ms, so a request
# of n tokens that never waits takes n x 10 ms.
. "$(dirname "$0")/expect.sh"

cat >config.yaml <<'END'
workload: {trace: trace}
serving: {preset: vllm-v0, max_model_len: 256, kv: {num_blocks: 64}}
cost: {model: linear, step_s: 0.01}
output: {dir: out}
END
head='arrival_s,prompt_tokens,output_tokens'

# flies TEXT WORDS [OPTION...]: the text with its \n is flown, and the run prints one line with the words, or
# nothing.
flies() {
    printf "$1" >trace
    words=$2
    shift 2
    expect 0 "$words" "$inflight" run config.yaml "$@"
}

# request_id, status, arrival_s, first_token_s, finish_s of each request
requests() {
    same "$(columns out/requests.csv request_id,status,arrival_s,first_token_s,finish_s)" \
        "$(printf "$1")" "requests.csv of $(head -c 99 trace)"
}

# requests, finished, rejected, failed
counts() {
    same "$(columns out/summary.csv requests,finished,rejected,failed)" "$1" "summary.csv"
}

alone='0,finished,0.000000000,0.010000000,0.050000000\n'
both="${alone}1,finished,0.000000000,0.010000000,0.030000000\n"

# stamps
flies "$head\n0,10,5\n" ''
requests "$alone"
counts 1,1,0,0
flies "$head\n0,10,5\n0,20,3\n" ''
requests "$both"
flies "$head\n7,10,5\n" ''
requests '0,finished,7.000000000,7.010000000,7.050000000\n'
flies "$head\n0.000000001,10,1\n0.000000002,10,1\n" ''
requests '0,finished,0.000000001,0.010000001,0.010000001
1,finished,0.000000002,0.020000001,0.020000001\n'
flies "$head\n2,10,5\n1,20,3\n1,30,2\n" 'note: * of 3 stamps were out of order; sorted'
requests '1,finished,1.000000000,1.010000000,1.030000000
2,finished,1.000000000,1.010000000,1.020000000
0,finished,2.000000000,2.010000000,2.050000000\n'
flies "$head\n0,10,5\n9e9,20,3\n" ''
requests "${alone}1,finished,9000000000.000000000,9000000000.010000000,9000000000.030000000\n"

# 3000 at once: the order of requests with the same arrival is unique
{ echo $head; yes 5,10,1 | head -n 3000; } >many
succeeds "$inflight" run config.yaml --set workload.trace=many
counts 3000,3000,0,0
same "$(columns out/requests.csv request_id)" "$(seq 0 2999)" 'the order of equal stamps'
same "$(columns out/requests.csv first_token_s | sort -c 2>&1)" '' 'first come, first served'

# how a file is written
flies "$head\r\n0,10,5\r\n0,20,3\r\n" ''
requests "$both"
flies "\357\273\277$head\n0,10,5\n0,20,3" ''
requests "$both"
flies '"output_tokens","prompt_tokens","arrival_s"\n"5","10","0"\n' ''
requests "$alone"
flies "\n$head\n\n0,10,5\n\n" ''
requests "$alone"
printf "$head\n0,10,5\n0,20,3\n" | gzip -c >zipped
succeeds "$inflight" run config.yaml --set workload.trace=zipped
requests "$both"
printf "$head\n0,10,5\n" >trace
# shellcheck disable=SC2016 # the inner shell's
succeeds sh -c 'cat trace | "$1" run config.yaml --set workload.trace=/dev/stdin' - "$inflight"
requests "$alone"

# the conversations on the page on traces: a turn arrives after its think time; it finds the full blocks of 16
# tokens of the previous turn and answer, without the answer's last token
awk '/^```csv/ { shown = 1; next } /^```/ { shown = 0 } shown' "$INFLIGHT_DATA/docs/formats.md" >talks
succeeds "$inflight" run config.yaml --set workload.trace=talks --set serving.preset=vllm-v1-sync \
    --set serving.max_model_len=1024 --set serving.kv.prefix_cache=hash
same "$(columns out/requests.csv request_id,arrival_s,finish_s,cached_tokens)" \
    '0,0.000000000,1.000000000,0
1,0.500000000,1.300000000,0
3,3.800000000,4.400000000,368
2,6.000000000,7.200000000,288
4,9.000000000,9.320000000,0' 'the conversations of docs/formats.md'
same "$(columns out/summary.csv cached_prompt_frac)" "$(awk 'BEGIN { printf "%.9g", 656 / 1334 }')" \
    'what of the prompts was cached'

# how many
flies "$head\n0,10,5\n" 'note: *fewer than the limit of 10' --set workload.limit=10
counts 1,1,0,0
flies "$head\n0,10,5\n0,20,3\n" '' --set workload.limit=1
requests "$alone"
flies "$head\n3,1,1\n0,10,5\n" '' --set workload.skip=1
requests '1,finished,0.000000000,0.010000000,0.050000000\n'
flies "$head\n0,10,1\n" ''
same "$(columns out/requests.csv tpot_s,max_itl_s)" , 'gaps of a single token'

# What a preset needs here where no model says how wide K/V is, and to have a token a step.
settings_of() {
    case $1 in
        *-offload | *-lmcache | *-hicache | *-host-cache) echo --set cluster.links.token_bytes=65536 ;;
        *-eagle* | *-ngram) echo --set serving.draft=none ;;
    esac
}

# too long for the model of 256 tokens; with 4096, too long for the pool of 64 x 16 = 1024
for preset in "$INFLIGHT_DATA"/configs/serving/*.yaml; do
    name=$(basename "$preset" .yaml)
    flies "$head\n0,10,5\n0,2000,3\n1,200,100\n1,10,5\n" \
        'note: rejected requests: 2 longer than max_model_len, 256 tokens' --set serving.preset="$name" $(settings_of "$name")
    counts 4,2,2,0
    same "$(columns out/requests.csv request_id,status,first_scheduled_s,finish_s,ttft_s,e2e_s)" \
        "0,finished,0.000000000,0.050000000,0.010000000,0.050000000
1,rejected,,,,
2,rejected,,,,
3,finished,1.000000000,1.050000000,0.010000000,0.050000000" "the requests of $name"
done
for preset in vllm-v0 vllm-v0-swap sarathi; do
    flies "$head\n0,10,5\n0,2000,3\n1,800,300\n1,10,5\n" \
        'note: rejected requests: 2 larger than the KV pool, 1024 tokens' \
        --set serving.max_model_len=4096 --set serving.preset=$preset
    counts 4,2,2,0
done
# all of them: the note says so, and what the shortest prompt has
all='; all 2 requests were rejected, the shortest of these prompts has 900 tokens'
flies "$head\n0,2000,3\n1,900,300\n" "note: rejected requests: 2 larger than the KV pool, 1024 tokens$all" \
    --set serving.max_model_len=4096
counts 2,0,2,0
# three answers and two seats: the request behind such a group does not wait for it
for preset in "$INFLIGHT_DATA"/configs/serving/*.yaml; do
    name=$(basename "$preset" .yaml)
    flies "$head,samples\n0,10,5,1\n1,10,5,3\n2,10,5,1\n" \
        'note: rejected requests: 1 by batching *: the request has more sequences than max_seqs' \
        --set serving.preset="$name" --set serving.batching.max_seqs=2 $(settings_of "$name")
    same "$(columns out/requests.csv request_id,status,finish_s)" '0,finished,0.050000000
1,rejected,
2,finished,2.050000000' "the requests of $name"
done
# Three blocks, one of which admission leaves free. The request's 33rd token takes that block, and no spare one
# is left: the request is preempted in a plan without a step and cannot be admitted again. The last row of
# steps.csv has the preemption.
flies "$head\n0,30,10\n" 'note: failed requests: 1 by admit prompt-fits: it never fits' \
    --set serving.kv.num_blocks=3 --set serving.admit.watermark_frac=0.4 --set output.steps=true
counts 1,0,0,1
same "$(columns out/requests.csv preemptions)" 1 'preemptions of the request'
same "$(columns out/steps.csv start_s,duration_s,prefill_tokens,decode_tokens,preempted | tail -n 1)" \
    '0.040000000,0.000000000,0,0,1' 'the last row of steps.csv'
# max_model_len is reserved for every request: none fits
flies "$head\n0,10,5\n0,10,5\n" \
    'note: rejected requests: 2 by admit reserve: it never fits' \
    --set serving.max_model_len=4096 --set serving.preset=faster-transformer
counts 2,0,2,0
# a server with a limit of two rejects the third request, and admits the fourth, after the first two
flies "$head\n0,10,5\n0,20,3\n0.01,10,5\n1,10,5\n" \
    'note: shed requests: 1 turned away at the door (serving.max_queued_reqs, max_queued_tokens)' \
    --set serving.max_queued_reqs=2
counts 4,3,0,0
same "$(columns out/summary.csv aborted,timed_out,shed)" 0,0,1 'summary.csv counts it'
same "$(columns out/requests.csv request_id,status)" '0,finished
1,finished
2,shed
3,finished' 'what the door turns away'

# TensorRT-LLM's rule for its presets: 79.22 GiB minus 6,738,415,616 parameters, the activations of 4096 tokens
# and the workspace; 0.9 of that in tokens of 512 KiB, then in blocks of 64, rounded up
for preset in trtllm-no-evict trtllm-static trtllm-max-utilization; do
    flies "$head\n0,10,5\n" "note: serving.kv.num_blocks is 2000, more than the $(awk 'BEGIN {
        free = (79.22 - 0.26) * 2 ^ 30 - 2 * 6738415616 - 2 * 4096 * (3 * 11008 + 4 * 4096)
        print int((int(0.9 * free / 524288) + 63) / 64)
    }') that memory has room for" --set serving.preset=$preset --set serving.kv.num_blocks=2000 \
        --set model=llama-2-7b --set hardware=h100-sxm
done

# vLLM's, for a step of 8192 tokens and 1024 sequences, with 32000 logits of 37 bytes each and later 14.4: shares
# of 79.22 GiB, and 0.66, 0.25 and 0.25 GiB of context and libraries; at last 102 graphs of 32 layers
vllm_counts() {
    flies "$head\n0,10,5\n" "note: serving.kv.num_blocks is 9000, more than the $(awk -v util=$2 -v logit=$3 -v outside=$4 \
        -v n_graphs=$5 'BEGIN {
        sampler = 1024 * 32000 * logit + 8192 * 4096 * 2
        layer = 8192 * 2 * (3 * 11008 + 3 * 4096)
        graphs = n_graphs ? 0.19 * 2 ^ 30 + 0.205 * 2 ^ 20 * n_graphs * 32 : 0
        kv = (79.22 * util - 0.07 - outside) * 2 ^ 30 - 2 * 6738415616 - graphs
        print int((kv - (sampler > layer ? sampler : layer)) / 2 ^ 23)
    }') that memory has room for" --set serving.preset=$1 --set serving.kv.num_blocks=9000 \
        --set model=llama-2-7b --set hardware=h100-sxm
}
vllm_counts vllm-v1-2025-05 0.9 37 0.66 0
vllm_counts vllm-v1-2026-04 0.92 14.4 0.25 0
vllm_counts vllm-v1-2026-08 0.92 14.4 0.25 102
vllm_counts vllm-v1 0.92 14.4 0.25 102

# a rule that goes by what a step may hold, and a batching that does not say it
refuses 'config.yaml: serving.kv.sizing goes by serving.batching.max_batched_tokens and max_seqs, which mixed does not*' \
    "$inflight" run config.yaml --set serving.preset=vllm-v1-2026-08 --set 'serving.batching={policy: mixed}' \
    --set serving.kv.num_blocks=0 --set model=llama-2-7b --set hardware=h100-sxm

# counts that are too large for what they count
refuses 'inflight model: --length 99999999999: expected a whole number of at most 2147483647' \
    "$inflight" model qwen3-8b -l 99999999999
refuses 'inflight model: --batch 2147483648: expected a whole number of at most 2147483647' \
    "$inflight" model qwen3-8b --batch 2147483648
refuses 'inflight model: --price -1: expected a number from 0 on' "$inflight" model qwen3-8b --price -1
refuses 'inflight calibrate: --runs 99999999999: expected a whole number of at most 2147483647' \
    "$inflight" calibrate --engine cpu -o no.csv --runs 99999999999

# the end of time: 9.2e9 s fit into 63 bits of nanoseconds
printf "$head\n9.1e9,10,200\n" >trace
refuses 'config.yaml: step 100 takes 1e+06 s*, expected a run that ends before 9.2e9 s' \
    "$inflight" run config.yaml --set cost.step_s=1000000
finish
