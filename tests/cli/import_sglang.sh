#!/bin/sh
# What only lines of SGLang's logs say: ranks, the memory of a GPU, its kind; and SGLang's share of memory for models with
# images. Sources of the logs: import/README.md.
. "$(dirname "$0")/expect.sh"
logs=$scripts/import

# keys: what the last command wrote, without the report
keys() { grep -v '^#' logs/out; }

# ---- ranks ----

# With attention in parallel, each TP rank belongs to one DP rank; K and V are 94.24 GB of 1,029,388 tokens, 98,304 bytes
# a token, so that each rank has all four heads of the 48 layers: 2 x 48 x 4 x 128 x 2 bytes.
succeeds "$inflight" import "$logs/sglang-dp4.log" --model qwen3-30b-a3b --hardware h200-sxm
printed 'parallel.data=4: no argument says how many groups compute attention'
printed 'parallel.expert=4: no argument says over how many GPUs experts are dealt out'
printed '    num_blocks: 1029388'
printed '    chunk_tokens: 2048'
unsaid '  tensor: '
unsaid 'replicas'
keys >by_log.yaml
dp4='sglang serve x --tp 4 --dp 4 --ep-size 4'
succeeds "$inflight" import -c "$dp4 --enable-dp-attention --max-total-tokens 1029388" --model qwen3-30b-a3b --hardware h200-sxm
keys >by_command.yaml
same_bytes by_log.yaml by_command.yaml
succeeds "$inflight" import "$logs/sglang-dp4.log" -c "$dp4 --enable-dp-attention" --model qwen3-30b-a3b --hardware h200-sxm
keys >by_both.yaml
same_bytes by_log.yaml by_both.yaml
succeeds "$inflight" import "$logs/sglang-dp4.log" -c 'sglang serve x --tp 8 --dp 8 --enable-dp-attention' --model qwen3-30b-a3b
printed 'maps          --dp 8 -> parallel.data=8'
refuses 'rank DP3 logs, but dp_size is 2' "$inflight" import "$logs/sglang-dp4.log" -c 'sglang serve x --tp 4 --dp 2'

# rank_log PREFIX...: each of these ranks allocates its pool
rank_log() {
    for prefix in "$@"; do echo "[2026-05-07 13:39:15 $prefix] KV Cache is allocated. #tokens: 100, K size: 47.12 GB, V size: 47.12 GB"; done
}
# has KEYS RANK...: what the log of these ranks has under parallel and cluster
has() {
    by_hand=$1
    shift
    rank_log "$@" >ranks.log
    succeeds "$inflight" import ranks.log --hardware h200-sxm
    same "$(keys | sed -n 's/^  \(tensor\|data\|expert\|pipeline\|replicas\): /\1=/p' | tr '\n' ' ')" "$by_hand" "ranks $*"
}
has 'tensor=2 data=2 ' 'DP0 TP0' 'DP0 TP1' 'DP1 TP2' 'DP1 TP3' # no EP: ep_size is 1
has 'tensor=2 data=3 ' 'DP1 TP3' 'DP2 TP4' 'DP0 TP1'           # TP5 has not logged
has 'tensor=2 replicas=2 ' 'DP0 TP0' 'DP0 TP1' 'DP1 TP0' 'DP1 TP1'
has 'replicas=2 ' 'DP0 TP0' 'DP1 TP0' # up to 0.4.5 TP is always there
has 'replicas=3 ' DP0 DP2 DP1
has 'tensor=2 pipeline=2 ' 'TP0 PP0' 'TP1 PP0' 'TP0 PP1' 'TP1 PP1'
has 'tensor=4 expert=4 ' 'TP0 EP0' 'TP1 EP1' 'TP2 EP2' 'TP3 EP3'
has 'tensor=2 ' 'DP0 PP0 ATTN_CP3 MOE_DP3 TP1 EP0' # other ranks than DP and CP
has '' 'DP0 TP0'
# Files of two nodes, and an argument that says that attention is not in parallel.
rank_log 'DP0 TP0' 'DP1 TP1' >node0.log
rank_log 'DP2 TP2' 'DP3 TP3' >node1.log
succeeds "$inflight" import node0.log node1.log
printed '  data: 4'
{
    echo "[2026-05-07 13:39:00] server_args=ServerArgs(model_path='x', tp_size=2, dp_size=2, enable_dp_attention=False)"
    rank_log 'DP0 TP0' 'DP1 TP1'
} >said.log
succeeds "$inflight" import said.log
printed '  replicas: 2'

# ---- the memory of a GPU, and its kind ----

# chunk TOKENS LOG ARGUMENT...: the default by the classes of server_args.py, _handle_gpu_memory_settings: 2048 below 35 GiB,
# 4096 below 60, 8192 below 160, else 16384
chunk() {
    by_hand=$1
    shift
    try "$inflight" import "$@"
    same "$code" 0 "$ran"
    same "$(keys | sed -n 's/^    chunk_tokens: //p')" "$by_hand" "the chunk of $*"
}
chunk 16384 "$logs/sglang-mi355x.log"
printed 'sglang-mi355x.log:1: a GPU with 283.68 GB before the weights -> serving.batching.chunk_tokens=16384'
chunk 16384 "$logs/sglang-mi355x.log" --hardware h100-sxm # to run it there changes no default of the server
chunk 2048 "$logs/sglang-16gb.log"
printed 'a GPU with 15.24 GB before the weights -> serving.batching.chunk_tokens=2048'
chunk 4096 "$logs/sglang-16gb.log" -c 'sglang serve x --chunked-prefill-size 4096'
sed 's/15.24/44.10/' "$logs/sglang-16gb.log" >l40s.log
chunk 4096 l40s.log
sed 1d "$logs/sglang-mi355x.log" | sed '/begin/d' >loaded.log # 209.98 + 73.58
chunk 16384 loaded.log
printed 'a GPU with 283.56 GB before the weights'
{
    echo 'GPU: NVIDIA H100 80GB HBM3'
    cat "$logs/sglang-16gb.log" # shared with another server
} >named.log
chunk 8192 named.log

note='no CUDA GPU, so neither memory nor kernels here are those of this server'
expect 0 "note: Using aiter_attn: $note" "$inflight" import "$logs/sglang-mi355x.log"
printed 'sglang-mi355x.log:4: CompressedTensorsWNA16TritonMoE (ROCm): the server'
{
    for module in rmsnorm gemm; do echo "[aiter] import [module_$module] under /sgl-workspace/aiter/aiter/jit/module_$module.so"; done
    grep -v -e aiter -e ROCm "$logs/sglang-mi355x.log"
} >aiter.log
expect 0 "note: [[]aiter]: $note" "$inflight" import aiter.log
same "$(grep -c 'not modelled' logs/out)" 1 'lines about the device'
expect 0 "note: attention_backend=aiter: $note" "$inflight" import -c 'sglang serve x --attention-backend aiter'
succeeds "$inflight" import "$logs/sglang-16gb.log"
unsaid 'CUDA GPU'

# sgl-project/sglang #17157: two groups on NPUs
{
    echo '[2026-01-15 13:56:49 DP0 TP0] The available memory for KV cache is 17.67 GB.'
    echo '[2026-01-15 13:56:49 DP0 TP0] KV Cache is allocated. #tokens: 192896, K size: 8.84 GB, V size: 8.84 GB'
    echo '[2026-01-15 13:56:50 DP0 TP0] Capture npu graph begin. This can take up to several minutes. avail mem=11.85 GB'
} >npu.log
expect 0 "note: Capture npu graph: $note" "$inflight" import npu.log
unsaid 'not read'

echo '[2026-02-26 05:19:58] WARNING server_args.py:1252: Setting page size to 1 for DeepSeek DSA on ROCm.' >>npu.log
grep -v npu npu.log >rocm.log
expect 0 "note: DeepSeek DSA on ROCm: $note" "$inflight" import rocm.log
printed 'maps          rocm.log:3: Setting page size to 1 -> serving.kv.block_tokens=1'

# ---- the format of K/V that `auto` has become ----

# pool_of DTYPE COMMAND: a server with that line and these flags
pool_of() {
    {
        grep -v -e aiter -e ROCm -e 'KV cache dtype' "$logs/sglang-mi355x.log"
        echo "[2026-02-26 16:41:18 TP0] Using KV cache dtype: torch.$1"
    } >pool.log
    succeeds "$inflight" import pool.log -c "sglang serve x --tp 8 $2"
}
pool_of float8_e4m3fn ''
printed 'Using KV cache dtype: torch.float8_e4m3fn -> engine.kv_dtype=fp8'
pool_of bfloat16 '--kv-cache-dtype auto'
printed 'Using KV cache dtype: torch.bfloat16 -> engine.kv_dtype, left as it is'
pool_of float8_e5m2 ''
printed 'not modelled  pool.log:8: Using KV cache dtype: torch.float8_e5m2: the width of K/V'
pool_of float8_e4m3fn '--kv-cache-dtype fp8_e4m3'
printed 'maps          --kv-cache-dtype fp8_e4m3 -> engine.kv_dtype=fp8'

# ---- images ----

# share FRACTION VERSION HARDWARE COMMAND: what of SGLang's memory is for weights and K/V
share() {
    succeeds "$inflight" import -c "sglang serve $4" --engine-version "$2" --hardware "$3"
    same "$(keys | sed -n 's/^    memory_utilization: //p')" "$1" "the share of $4 in $2"
}
# sgl-project/sglang #4826, 0.4.4: 131.08 GB free with the weights, 8.13 of weights, 108.24 of K/V: 1 - (131.08 - 108.24) / 139.21
share 0.836 0.4.4 h200-sxm google/gemma-3-4b-it # 0.95 x 0.88
printed 'assumed       image encoder: 0.95 of the share: SGLang leaves memory for the images of this model'
share 0.792 0.4.4.post4 h200-sxm google/gemma-3-4b-it # 0.9
share 0.88 0.4.4 h200-sxm google/gemma-3-1b-it        # no images
share 0.88 0.5.5 a100-80gb-sxm 'Qwen/Qwen3-8B --mem-fraction-static 0.88 --enable-multimodal'
printed 'harmless      --enable-multimodal'
# Gemma 3 has no images by default since 0.4.6: 27 x 1152^2 are 1.4238 of a ViT-L's 24 x 1024^2, 0.95 (1 - 0.04238) x 0.907
share 0.907 0.5.5 h200-sxm google/gemma-3-4b-it
share 0.825130849609375 0.5.5 h200-sxm 'google/gemma-3-4b-it --enable-multimodal'
printed 'maps          --enable-multimodal -> serving.kv.memory_utilization=0.825130849609375'

# vision FILE MEMBERS: a checkpoint of Qwen2.5-VL's shapes with that vision_config
vision() {
    mkdir -p "$1"
    printf '{"model_type": "qwen2_5_vl", "hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28,
        "num_hidden_layers": 28, "num_key_value_heads": 4, "vocab_size": 152064, "max_position_embeddings": 128000%s}\n' "$2" >"$1/config.json"
}
vision "$work/qwen" ', "vision_config": {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "out_hidden_size": 3584}'
vision "$work/text" ''
# #11830, 0.5.5: 0.76297 is 0.851 x 0.95 (1 - 0.05625), since the layers are not called num_hidden_layers; graphs of up to
# 1024 sequences make 0.851 of 0.857.
share 0.7629746875 0.5.5 b200-sxm "$work/qwen --cuda-graph-max-bs 1024"
printed 'assumed       image encoder: 0.8966 of the share'
share 0.7683540625 0.5.5 b200-sxm "$work/qwen"
share 0.857 0.5.5 b200-sxm "$work/text" # adjust_mem_fraction_for_vlm: without a vision_config
mkdir text-gemma-3-4b
sed 's/qwen2_5_vl/gemma3_text/; s/}$/, "head_dim": 128}/' "$work/text/config.json" >text-gemma-3-4b/config.json
share 0.88 0.4.4 h200-sxm "$work/text-gemma-3-4b" # whatever its name is
share 0.7389 0.4.9 b200-sxm "$work/qwen"
# The encoder is elsewhere, or not loaded; 0.835 since there are no graphs of prompts beside images.
share 0.7486296875 0.5.12 h100-sxm "$work/qwen"
share 0.835 0.5.12 h100-sxm "$work/qwen --language-only"
printed 'maps          --language-only -> serving.kv.memory_utilization=0.835'
share 0.83 0.5.18 h100-sxm "$work/qwen --language-model-only"
# --mem-fraction-static is what it says from 0.4.9 on.
share 0.665 0.4.3 h100-sxm "$work/qwen --mem-fraction-static 0.7"
share 0.63 0.4.8 h100-sxm "$work/qwen --mem-fraction-static 0.7"
share 0.7 0.4.9 h100-sxm "$work/qwen --mem-fraction-static 0.7"
# An encoder of a size that is not known.
share 0.835 0.5.5 h100-sxm OpenGVLab/InternVL3-8B
printed 'not modelled  image encoder: SGLang'
unsaid 'of the share'
share 0.792 0.4.5 h100-sxm OpenGVLab/InternVL3-8B
# Flags whose names are not those of the fields (add_argument with dest, in server_args.py).
share 0.665 0.4.3 h100-sxm "$work/qwen --mem-fraction-static 0.7 --fp8-gemm-backend triton --fp4-gemm-backend auto"
printed 'not modelled  --fp8-gemm-backend triton: kernels'
unsaid '^unknown'
# What the log says was left counts: sgl-project/sglang #3605, and the line of 0.4.9.post3 to 0.4.10.
reduced='Automatically reduce --mem-fraction-static to 0.665 because this is a multimodal model.'
adjusted='Multimodal model: Dynamically adjusted --mem-fraction-static from: 0.700 to: 0.665.'
for line in "$reduced" "$adjusted"; do
    {
        echo "[2025-02-16 10:00:00] server_args=ServerArgs(model_path='Qwen/Qwen2.5-VL-7B-Instruct', mem_fraction_static=0.7, tp_size=1)"
        echo "[2025-02-16 10:00:01 TP0] $line"
        rank_log TP0
    } >reduced.log
    for version in 0.4.3 0.5.5; do
        succeeds "$inflight" import reduced.log --engine-version $version --hardware h100-sxm
        printed ' 0.665 -> serving.kv.memory_utilization=0.665'
        same "$(keys | sed -n 's/^    memory_utilization: //p')" 0.665 "the share of: $line"
    done
done
sed -i 2d reduced.log
succeeds "$inflight" import reduced.log --engine-version 0.5.5 --hardware h100-sxm
printed 'mem_fraction_static=0.7 -> serving.kv.memory_utilization=0.7'

# Flags of 2026-08: test/registered/unit/server_args/test_server_args_docs_coverage.py of
# sgl-project/sglang lists those that its pages leave out.
succeeds "$inflight" import --hardware h100-sxm --command "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B
--min-free-slots-delay 4 --enable-session-radix-cache --mm-io-worker-num 4 --enable-response-store --dwdp-size 1
--prefill-decode-interval 3 --enable-w4a4-mxfp4-megamoe --enable-dense-mlp-attn-tp --weight-cache-mode off"
printed 'not modelled  --min-free-slots-delay 4: prompts that wait'
printed 'not modelled  --enable-session-radix-cache: which cached blocks stay'
printed 'not modelled  --prefill-decode-interval 3: steps without prompts'
printed 'not modelled  --enable-dense-mlp-attn-tp: layers that are cut over ranks in another way'
printed 'not modelled  --enable-w4a4-mxfp4-megamoe: kernels'
printed 'harmless      --dwdp-size 1'
printed 'harmless      --weight-cache-mode off'
unsaid unknown

finish
