#!/bin/sh
# Models in which some layers have a window of attention: their K/V in groups of layers, and the logs and flags of
# servers that have such groups.
. "$(dirname "$0")/expect.sh"

# The same of the last command's output where its lines may break anywhere.
disclosed() {
    tr -s '\n ' ' ' <logs/out | grep -qF -- "$1" || complain "$ran" "    did not disclose: $1"
}

undisclosed() {
    if tr -s '\n ' ' ' <logs/out | grep -qF -- "$1"; then complain "$ran" "    disclosed: $1"; fi
}

# ---- blocks by pencil ----

# 16 requests of 120 tokens and 2 more end with 121 slots, 8 blocks, and as many of 12 layers with a window of 128: the
# 127 tokens before the last one lie in up to 9 blocks of 16. Two of them have 32 of 40 blocks, a third has no room. Where
# all layers hold all tokens, five have.
{
    echo prompt_tokens,output_tokens
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do echo 120,2; done
} >trace.csv
cat >config.yaml <<'END'
model: gpt-oss-20b
hardware: h100-sxm
workload: {trace: trace.csv, arrivals: {process: burst}}
serving: {preset: vllm-v1-sync, kv: {num_blocks: 41, prefix_cache: none}}
output: {dir: out, steps: true, plots: false}
END
most() { awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "running") at = i; next } $at > n { n = $at } END { print n }' out/steps.csv; }
succeeds "$inflight" run config.yaml
same "$(most)" 2 'requests at once where layers with a window have blocks of their own'
succeeds "$inflight" run config.yaml --set serving.kv.windows=hold
same "$(most)" 5 'requests at once where all layers hold all tokens'
printf 'prompt_tokens,output_tokens\n160,4\n' >one.csv
succeeds "$inflight" run config.yaml --set serving.kv.windows=hold --set workload.trace=one.csv
disclosed 'not the window of 128 tokens of gpt-oss-20b'
# A window is no more than the request: 17 slots, 2 blocks in either group.
printf 'prompt_tokens,output_tokens\n16,2\n' >short.csv
expect 0 'larger than the KV pool' "$inflight" run config.yaml --set workload.trace=short.csv --set serving.kv.num_blocks=4
succeeds "$inflight" run config.yaml --set workload.trace=short.csv --set serving.kv.num_blocks=5
expect 2 'serving.kv.allocator is buddy and serving.kv.windows is groups, expected hold for gpt-oss-20b' \
    "$inflight" run config.yaml --set serving.kv.allocator=buddy
# 2048 tokens are 128 blocks of 768 KiB; in groups 128 and 9 of 384 KiB. 100 tokens are 7 blocks, and 7 in either group.
# Of Qwen3-Next 128 blocks, and 3 states of 34, of 2 x 2 x 256 elements of two bytes in 12 layers, 384 KiB.
succeeds "$inflight" model gpt-oss-20b
printed '96.00 MiB for 2048 tokens, 51.38 MiB with serving.kv.windows: groups'
succeeds "$inflight" model gpt-oss-20b --length 100
printed '5.25 MiB for 100 tokens, 5.25 MiB with serving.kv.windows: groups'
succeeds "$inflight" model qwen3-next-80b-a3b --hardware b200-sxm
printed '48.00 MiB for 2048 tokens, 86.25 MiB with serving.kv.windows: groups'
succeeds "$inflight" model mistral-7b
unsaid 'groups'

# A model without windows, and one with a window in all layers, have one kind of blocks.
for model in llama-2-7b mistral-7b llama-4-scout; do
    for windows in hold groups; do
        succeeds "$inflight" run config.yaml --set model=$model --set serving.kv.windows=$windows --set parallel.tensor=8
        cp out/requests.csv $windows.csv
    done
    cmp -s hold.csv groups.csv || complain "$model" "    serving.kv.windows changes its requests"
done

# A state takes as many blocks from the first token on: 34 of 16 tokens in each of three groups, 102 beside one of its own.
succeeds "$inflight" run config.yaml --set model=qwen3-next-80b-a3b --set hardware=b200-sxm --set workload.trace=short.csv \
    --set serving.kv.num_blocks=105
undisclosed 'gated delta rule'
expect 0 'larger than the KV pool' "$inflight" run config.yaml --set model=qwen3-next-80b-a3b --set hardware=b200-sxm \
    --set workload.trace=short.csv --set serving.kv.num_blocks=104
succeeds "$inflight" run config.yaml --set model=qwen3-next-80b-a3b --set workload.trace=short.csv --set serving.kv.num_blocks=105 \
    --set hardware=a100-80gb-sxm --set parallel.tensor=4
disclosed 'the gated delta rule of a B200'
succeeds "$inflight" run config.yaml --set model=nemotron-nano-9b-v2 --set hardware=b200-sxm --set workload.trace=short.csv \
    --set serving.kv.num_blocks=400
disclosed 'no kernel of theirs was measured'
succeeds "$inflight" import -c 'vllm serve nvidia/NVIDIA-Nemotron-Nano-9B-v2' --engine-version 0.11.0 --hardware b200-sxm
printed 'block_tokens: 672'
succeeds "$inflight" import -c 'vllm serve nvidia/NVIDIA-Nemotron-Nano-9B-v2 --mamba-ssm-cache-dtype float32' --engine-version 0.11.0 --hardware b200-sxm
printed 'not modelled  --mamba-ssm-cache-dtype float32'
succeeds "$inflight" import -c 'vllm serve Qwen/Qwen3-Next-80B-A3B-Instruct' --engine-version 0.15.0 --hardware b200-sxm
printed 'block_tokens: 544'
printed 'prefix_cache: none'

# A hand-over moves 160 tokens of 12 layers and the last 128 of 12 others, of 2 x 8 x 64 elements of two bytes; where all hold
# all, 160 of 24. Of Qwen3-Next K/V of 12 layers, 2 x 2 x 256 elements, in its blocks, and 36 states of 1,097,728 bytes.
cat >pools.yaml <<'END'
model: gpt-oss-20b
hardware: h100-sxm
workload: {trace: one.csv, arrivals: {process: burst}}
serving: {preset: vllm-v1, kv: {num_blocks: 1000}}
cluster:
  preset: vllm-nixl
  links: {preset: rdma-200g}
  pools: {prompts: {role: prefill, count: 1}, decodes: {role: decode, count: 1}}
output: {dir: out, plots: false}
END
bytes() { awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "bytes") at = i; next } { n += $at } END { printf "%d\n", n }' out/moves.csv; }
succeeds "$inflight" run pools.yaml --set serving.kv.windows=groups
same "$(bytes)" $(((160 + 128) * 12 * 2 * 8 * 64 * 2)) 'bytes that move of layers with and without a window'
succeeds "$inflight" run pools.yaml --set serving.kv.windows=hold
same "$(bytes)" $((160 * 24 * 2 * 8 * 64 * 2)) 'bytes that move of layers that hold all tokens'
succeeds "$inflight" run pools.yaml --set model=qwen3-next-80b-a3b --set hardware=b200-sxm
same "$(bytes)" $((160 * 12 * 2 * 2 * 256 * 2 + 36 * 1097728)) 'bytes that move of states'

# ---- logs ----

# log NAME LINE...: a log of vLLM.
log() {
    name=$1
    shift
    for line; do echo "INFO 09-10 10:00:00 [kv_cache_utils.py:829] $line"; done >"$name"
}
# vLLM 0.10.1.1, gpt-oss-120b on four A100, https://github.com/dennislee22/vLLM-benchmarking, log/: 2,640,144 tokens are
# half of 330,018 blocks of 16, which the log names, too.
server='vllm serve gpt-oss-120b --port 8081 --max-model-len 16384 --tensor-parallel-size 4 --gpu-memory-utilization 0.8'
log tokens.log 'GPU KV cache size: 2,640,144 tokens' 'Maximum concurrency for 16,384 tokens per request: 284.25x'
log both.log 'GPU KV cache size: 2,640,144 tokens' 'Maximum concurrency for 16,384 tokens per request: 284.25x' 'num_gpu_blocks is: 330018'
for log in tokens.log both.log; do
    succeeds "$inflight" import $log --engine-version 0.10.1 --hardware a100-80gb-sxm -c "$server"
    printed 'num_blocks: 330018'
    printed 'windows: groups'
    unsaid 'several kinds'
done
# The same since 0.21: int(concurrency x 16384), where a request has 1024 blocks of one group and, with a budget of 2048,
# 137 of the other: 330,018 / 1161 x 16384 = 4,657,205.
log new.log 'GPU KV cache size: 4,657,205 tokens'
succeeds "$inflight" import new.log --engine-version 0.22.0 --hardware a100-80gb-sxm -c "$server --max-num-batched-tokens 2048"
printed 'num_blocks: 330018'
# gemma-3-4b-it on an A100, https://github.com/ovg-project/kvcached/issues/215: one group of 5 layers and six with
# windows; 102.78 requests of 3072 tokens, of 192 + 6 x 193 blocks each, are 138,750 blocks; / 7 x 16 = 317,136 tokens.
log gemma.log 'GPU KV cache size: 317,136 tokens' 'Maximum concurrency for 3,072 tokens per request: 102.78x'
succeeds "$inflight" import gemma.log --engine-version 0.11.0 --hardware a100-80gb-sxm -c 'vllm serve google/gemma-3-4b-it --max-model-len 3072'
printed 'num_blocks: 138747'

# ---- flags and releases ----

for other in '--engine-version 0.9.0' '--engine-version 0.12.0 -c --disable-hybrid-kv-cache-manager'; do
    flag=${other#* -c } version=${other%% -c *}
    [ "$flag" != "$other" ] || flag=
    # shellcheck disable=SC2086
    succeeds "$inflight" import $version --hardware h100-sxm -c "vllm serve google/gemma-2-9b-it $flag"
    printed 'windows: hold'
done
printed 'maps          --disable-hybrid-kv-cache-manager -> serving.kv.windows'
succeeds "$inflight" import --engine-version 0.12.0 --hardware h100-sxm -c 'vllm serve meta-llama/Llama-4-Scout-17B-16E-Instruct -tp 8'
unsaid 'windows:'
# Experts in mxfp4 are the model's own.
succeeds "$inflight" import --engine-version 0.12.0 --hardware h100-sxm -c 'vllm serve openai/gpt-oss-20b --quantization mxfp4'
printed 'maps          --quantization mxfp4 -> model'
unsaid 'dtype: int4'
# Without a log there are no blocks to count: the rule of the release counts them.
for version in 0.20.0 0.22.0 0.33.0; do
    succeeds "$inflight" import --engine-version $version --hardware h100-sxm -c 'vllm serve openai/gpt-oss-20b'
    printed 'assumed       serving.kv.windows=groups'
    unsaid num_blocks
done
succeeds "$inflight" import --engine-version 0.22.0 --hardware h100-sxm -c 'vllm serve openai/gpt-oss-20b --num-gpu-blocks-override 3000'
printed 'num_blocks: 3000'
succeeds "$inflight" import --engine-version 0.15.1 --hardware h100-sxm -c 'vllm serve openai/gpt-oss-20b --kv-offloading-size 20'
printed 'windows: hold'
# What the log says of concurrency, where it is not that of the blocks.
log odd.log 'GPU KV cache size: 2,640,144 tokens' 'Maximum concurrency for 16,384 tokens per request: 500.00x'
succeeds "$inflight" import odd.log --engine-version 0.10.1 --hardware a100-80gb-sxm -c "$server"
printed 'requests of max_model_len that fit: the log'
# A model without windows has nothing to turn off, and an unknown one may have.
succeeds "$inflight" import --engine-version 0.12.0 --hardware h100-sxm -c 'vllm serve Qwen/Qwen3-8B --disable-hybrid-kv-cache-manager'
printed 'harmless      --disable-hybrid-kv-cache-manager'
succeeds "$inflight" import --engine-version 0.12.0 --hardware h100-sxm -c 'vllm serve mine --disable-hybrid-kv-cache-manager'
printed 'not modelled  --disable-hybrid-kv-cache-manager'
printf 'model: gpt-oss-20b\nhardware: h100-sxm\nserving: {preset: vllm-v1, kv: {windows: hold}}\n' >hold.yaml
succeeds "$inflight" export --server vllm hold.yaml
printed '--disable-hybrid-kv-cache-manager'
# Checkpoints of 32 bits are cast to 16, and those of 16 to 32 where the server is told so.
mkdir -p wide
printf '{"model_type": "gemma2", "torch_dtype": "float32"}' >wide/config.json
succeeds "$inflight" import --engine-version 0.12.0 --hardware h100-sxm -c 'vllm serve ./wide'
printed 'dtype=bf16: a checkpoint of 32 bits is cast to 16'
succeeds "$inflight" import --engine-version 0.12.0 --hardware h100-sxm -c 'vllm serve ./wide --dtype float32'
unsaid 'dtype=bf16'
succeeds "$inflight" import --engine-version 0.12.0 --hardware h100-sxm -c 'vllm serve google/gemma-3-12b-it --dtype float32'
printed 'dtype: fp32'
sglang='python3 -m sglang.launch_server --model-path'
succeeds "$inflight" import --engine-version 0.5.9 --hardware h200-sxm -c "$sglang openai/gpt-oss-20b"
printed 'a second pool, of layers with a window: all layers'
succeeds "$inflight" import --engine-version 0.5.9 --hardware h200-sxm -c "$sglang Qwen/Qwen3-Next-80B-A3B-Instruct"
printed 'the pool of states: K/V has its memory here'
# One line for a model that is not known.
succeeds "$inflight" import --engine-version 0.12.0 --hardware h100-sxm -c 'vllm serve mine'
printed 'unknown       mine: no model'
unsaid 'left as it is'
finish
