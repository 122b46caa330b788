#!/bin/sh
# serving.kv.keep: a budget of all, or above all, changes no byte; steady runs and the checking mode agree with plain
# plans; steps say what is given up; and what does not go together is refused.
. "$(dirname "$0")/expect.sh"

"$inflight" trace generate -n 400 --prompt lognormal:600,1.0,16,4000 --output-tokens lognormal:150,0.8,2,900 \
    -o load.csv >/dev/null
cat >config.yaml <<'E1'
model: llama-3-8b
hardware: a100-80gb-sxm
workload: {trace: load.csv, arrivals: {process: poisson, rate_rps: 6, seed: 1}}
serving: {preset: vllm-v1-sync, max_model_len: 8192, kv: {num_blocks: 2500, prefix_cache: none}}
output: {dir: out, steps: true, plots: false}
E1
succeeds "$inflight" run config.yaml --quiet

# ---- a budget that nothing exceeds ----
for method in snapkv pyramidkv h2o streaming-llm; do
    for budget in 0 8192 100000; do
        succeeds "$inflight" run config.yaml --quiet -o all --set serving.kv.keep.method=$method \
            --set serving.kv.keep.budget_tokens=$budget
        for file in requests steps summary quantiles; do
            same_bytes out/$file.csv all/$file.csv
        done
    done
    # The longest prompt and answer have 4900 tokens: nothing is given up, and the columns say so.
    succeeds "$inflight" run config.yaml --quiet -o wide --set serving.kv.keep.method=$method \
        --set serving.kv.keep.budget_tokens=5000
    same_bytes out/requests.csv wide/requests.csv
    columns wide/steps.csv kv_given_up_tokens,kv_kept_slots | sort -u >given_up
    same "$(cat given_up)" 0,0 "what $method gives up of prompts below the budget"
done

# ---- in every mode the same bytes ----
for keep in snapkv pyramidkv h2o streaming-llm; do
    for place in gather in-place; do
        for mode in steady_runs=true steady_runs=false check_steady=true; do
            succeeds "$inflight" run config.yaml --quiet -o "$keep-$mode" --set serving.kv.keep.method=$keep \
                --set serving.kv.keep.budget_tokens=256 --set serving.kv.keep.place=$place --set serving.$mode
        done
        for file in requests steps summary quantiles; do
            same_bytes "$keep-steady_runs=true/$file.csv" "$keep-steady_runs=false/$file.csv"
            same_bytes "$keep-steady_runs=true/$file.csv" "$keep-check_steady=true/$file.csv"
        done
    done
done

# ---- what a sweep writes has the same columns at each point ----
succeeds "$inflight" run config.yaml --quiet -o swept --set 'sweep={serving.kv.keep.method: [all, h2o]}' \
    --set serving.kv.keep.budget_tokens=256
same "$(awk -F, '{ print NF }' swept/steps.csv | sort -u)" 27 'columns of steps.csv'

# ---- a budget that no request can exceed, since the model's length is smaller ----
awk -F, 'NR == 1 || $2 + $3 <= 2048' load.csv | head -40 >short.csv
has_columns() { # PATH WANTED WHAT
    same "$(head -n 1 "$1/steps.csv" | grep -c kv_given_up_tokens)" "$2" "columns of what is given up, $3"
}
short() { # OUT EDIT...
    to=$1
    shift
    for edit; do
        set -- "$@" --set "$edit"
        shift
    done
    succeeds "$inflight" run config.yaml --quiet -o "$to" --set workload.trace=short.csv --set serving.max_model_len=0 "$@"
}
short opt model=opt-13b serving.preset=snapkv
has_columns opt 0 'at a budget of all 2,048 tokens of the model'
short opt-less model=opt-13b serving.preset=snapkv serving.kv.keep.budget_tokens=2047
has_columns opt-less 1 'at a budget below them'
short llama serving.preset=snapkv
has_columns llama 1 'where the model has 8,192'
short pools serving.preset=snapkv 'cluster.pools={a: {serving: {kv: {keep: {method: all}}}}}'
has_columns pools 0 'where no pool gives up any'
short pools-some 'cluster.pools={a: {}, b: {serving: {preset: snapkv}}}'
has_columns pools-some 1 'where one pool does'

# ---- integers of 8 and 4 bits ----
# A byte an element is a byte an element: of fp8, of int8 with a scale for all, of int4 where 32 elements share 16 bytes.
squeeze='--set serving.kv.num_blocks=0 --set serving.preset=vllm-v0-swap --set serving.max_model_len=4096 --set engine.kv_dtype'
succeeds "$inflight" run config.yaml --quiet -o fp8 $squeeze=fp8
succeeds "$inflight" run config.yaml --quiet -o int8 $squeeze=int8 --set engine.kv_scale_bytes=0
succeeds "$inflight" run config.yaml --quiet -o int4 $squeeze=int4 --set engine.kv_scale_bytes=16 \
    --set engine.kv_group_elements=32
for file in requests steps quantiles; do
    same_bytes fp8/$file.csv int8/$file.csv
    same_bytes fp8/$file.csv int4/$file.csv
done
# 16 bits: 2 bytes. int4 with 4 bytes for 64 elements: 0.5625, 3.56 times as many tokens.
for dtype in fp16 int4; do
    succeeds "$inflight" run config.yaml --quiet -o $dtype $squeeze=$dtype --set engine.kv_group_elements=64
    columns $dtype/steps.csv kv_total_blocks | sed -n 2p >$dtype.blocks
done
same "$(awk '{ print int(100 * $1 / '"$(cat fp16.blocks)"' + 0.5) }' int4.blocks)" 356 'blocks of int4 for 100 of fp16'

# ---- what does not go together ----
keeps='--set serving.kv.keep.method=snapkv --set serving.kv.keep.budget_tokens=256'
refuses 'serving.kv.keep.budget_tokens is not above window_tokens, expected more' \
    "$inflight" run config.yaml $keeps --set serving.kv.keep.window_tokens=256
refuses 'serving.kv.keep.budget_tokens is not above sink_tokens, expected more' \
    "$inflight" run config.yaml $keeps --set serving.kv.keep.method=streaming-llm --set serving.kv.keep.sink_tokens=300
refuses 'serving.kv.keep.kernel_tokens is even, expected an odd number' \
    "$inflight" run config.yaml $keeps --set serving.kv.keep.kernel_tokens=4
refuses 'serving.kv.prefix_cache is radix, expected none or hash' \
    "$inflight" run config.yaml $keeps --set serving.kv.prefix_cache=radix
refuses 'serving.kv.prefix_cache is hash, expected none' \
    "$inflight" run config.yaml $keeps --set serving.kv.keep.method=h2o --set serving.kv.prefix_cache=hash
refuses 'serving.kv.allocator is buddy, expected paged' \
    "$inflight" run config.yaml $keeps --set serving.kv.allocator=buddy
refuses 'serving.in_flight.pipelined is true, expected one step at a time' \
    "$inflight" run config.yaml $keeps --set parallel.pipeline=2
refuses 'workload.beams.search is true, expected no beams' \
    "$inflight" run config.yaml $keeps --set workload.beams.search=true
refuses 'gives up K/V and requests move between replicas, expected all where K/V moves between replicas' \
    "$inflight" run config.yaml $keeps --quiet --set 'cluster={router: pair, links: {preset: rdma-200g},
    pools: {prompts: {role: prefill, count: 1}, decodes: {role: decode, count: 1}}}'
refuses 'serving.kv.keep.method is snap, expected one of all, snapkv, pyramidkv, h2o, streaming-llm' \
    "$inflight" run config.yaml --set serving.kv.keep.method=snap
sed 's/$/,2/; 1s/,2$/,samples/' load.csv >samples.csv
refuses 'a request has 2 samples, expected 1' \
    "$inflight" run config.yaml $keeps --quiet --set workload.trace=samples.csv
finish
