#!/bin/sh
# Lines of logs that say in other words what a flag says, lines that cannot be read, and profiles
# that a user names by their path.
. "$(dirname "$0")/expect.sh"

# wrong MESSAGE ARGUMENT...: refused with that message in one line
wrong() {
    message=$1
    shift
    expect 2 "$message" "$inflight" import "$@"
}
# start CONFIG LINE...: a log of V1 with CONFIG in the configuration of its engine, too
start() {
    echo "(APIServer pid=7) INFO [api_server.py:12] vLLM API server version 0.16.0"
    echo "(EngineCore pid=9) INFO [core.py:97] Initializing a V1 LLM engine (v0.16.0) with config: model='Qwen/Qwen3-8B', max_seq_len=40960, $1"
    shift
    printf '%s\n' "$@" '(EngineCore pid=9) INFO [kv_cache_utils.py:1319] GPU KV cache size: 94,784 tokens'
}
budget='max_num_batched_tokens is not said, and its default goes by the GPU'
sglang_start() {
    echo "[2026-08-01 23:33:00] server_args=ServerArgs(model_path='poolside/Laguna-S-2.1-INT4', tp_size=1)"
}

# ---- the budget of a step ----

# The last end of the ranges that are compiled is the budget, and tells a small GPU by its default.
ranges="compilation_config={'mode': <CompilationMode.VLLM_COMPILE: 3>, 'compile_ranges_endpoints': [512, 2048], 'cudagraph_capture_sizes': [1, 2]}"
start "$ranges" >ranges.log
succeeds "$inflight" import ranges.log
printed 'assumed       ranges.log:2: ranges that end at 2048 tokens -> serving.batching.max_batched_tokens=2048'
printed 'assumed       serving.batching.max_seqs=256'
start "$(echo "$ranges" | sed 's/endpoints/split_points/; s/2048/8192/')" >ranges.log # up to 0.17
succeeds "$inflight" import ranges.log
printed 'serving.batching.max_batched_tokens=8192'
printed 'serving.batching.max_seqs=1024'
succeeds "$inflight" import ranges.log -c 'vllm serve Qwen/Qwen3-8B --max-num-seqs 8 --max-num-batched-tokens 4096' # a flag counts
printed 'max_batched_tokens: 4096'
unsaid 'ranges that end'
for none in '[]' None '[a]' '[2048'; do
    start "compilation_config={'compile_ranges_endpoints': $none}" >ranges.log
    if [ "$none" = '[2048' ]; then budget='ends within a value'; fi
    wrong "$budget" ranges.log
done
budget='max_num_batched_tokens is not said, and its default goes by the GPU'
start 'seed=0' 'INFO [backends.py:391] Compiling a graph for compile range (1, 512) takes 6.50 s' \
    'INFO [backends.py:391] Compiling a graph for compile range (513, 2048) takes 6.50 s' \
    'INFO [backends.py:391] Compiling a graph for compile range (1, 2147483647) takes 6.50 s' >ranges.log # of an image encoder
succeeds "$inflight" import ranges.log
printed 'ranges.log:4: ranges that end at 2048 tokens -> serving.batching.max_batched_tokens=2048'
# Guesses have tokens of their own beside the budget, and a line says what is left.
start "speculative_config=SpeculativeConfig(method='mtp', num_spec_tokens=1), $ranges" >drafts.log
wrong "$budget" drafts.log
echo 'WARNING [vllm.py:1648] max_num_scheduled_tokens is set to 1600 based on the speculative decoding settings.' >>drafts.log
succeeds "$inflight" import drafts.log -c 'vllm serve Qwen/Qwen3-8B --max-num-seqs 8'
printed 'max_num_scheduled_tokens is set to 1600 -> serving.batching.max_batched_tokens=1600'

# ---- arguments of an engine that a program starts ----

# https://github.com/runpod-workers/worker-vllm/issues/276 and https://github.com/vllm-project/vllm/issues/15744
cat >worker.log <<'END'
2026-03-11T17:57:27.811674918Z engine.py           :28   2026-03-11 17:57:27,811 Engine args: AsyncEngineArgs(model='openai/gpt-oss-120b', enable_return_routed_experts=False, model_weights='', served_model_name=None, dtype='auto', seed=2026, max_model_len=8192, tensor_parallel_size=2, max_num_batched_tokens=4096, max_num_seqs=17, gpu_memory_utilization=0.95)
INFO 03-11 17:58:27 [kv_cache_utils.py:1307] GPU KV cache size: 130,960 tokens
END
for named in 'Engine args: AsyncEngineArgs' 'Starting with engine args: AsyncEngineArgs' 'engine_args=EngineArgs'; do
    sed "s/Engine args: AsyncEngineArgs/$named/" worker.log >args.log
    succeeds "$inflight" import args.log --engine-version 0.16.0 --hardware h100-sxm
    printed 'args.log:1: model=openai/gpt-oss-120b -> model=gpt-oss-120b'
    printed 'args.log:1: max_model_len=8192 -> serving.max_model_len=8192'
    printed 'args.log:1: tensor_parallel_size=2 -> parallel.tensor=2'
    printed 'args.log:1: max_num_batched_tokens=4096 -> serving.batching.max_batched_tokens=4096'
    printed 'args.log:1: max_num_seqs=17 -> serving.batching.max_seqs=17'
    printed 'args.log:1: gpu_memory_utilization=0.95 -> serving.kv.memory_utilization=0.95'
    printed 'num_blocks: 16370'
    unsaid 'not read'
    unsaid 'unknown'
done
wrong 'args.log:1: max_num_seqs is 17, but the command line says 16' args.log --engine-version 0.16.0 --hardware h100-sxm \
    -c 'vllm serve openai/gpt-oss-120b --max-num-seqs 16'

# ---- the number of blocks ----

# Before memory is measured, a run without K/V of its own has a number that does not last.
start "$ranges" 'INFO [kv_cache_utils.py:829] Overriding num_gpu_blocks=0 with num_gpu_blocks_override=512' >measure.log
succeeds "$inflight" import measure.log
printed 'num_blocks: 5924'
start "$ranges" 'INFO [kv_cache_utils.py:829] Overriding num_gpu_blocks=900 with num_gpu_blocks_override=512' >measure.log
wrong 'num_gpu_blocks_override is 512, but the log says 5924 blocks' measure.log

# ---- servers that did not start ----

# failed LINE...: a log of V1 without a size of the K/V
failed() {
    start "$ranges" | head -2
    printf '%s\n' "$@"
}
lacks='(EngineCore_0 pid=5839) INFO 08-20 18:04:22 [gpu_worker.py:276] Available KV cache memory: -2.14 GiB'
fails='(EngineCore_0 pid=5839) ERROR 08-20 18:04:22 [core.py:700] EngineCore failed to start.'
failed "$lacks" "$fails" >failed.log # https://github.com/vllm-project/vllm/issues/23278
wrong 'failed.log:4: the server did not start: EngineCore failed to start (line 3 of failed.log: Available KV cache memory: -2.14 GiB), expected the log of one that did' failed.log
failed "$fails" >failed.log
wrong 'failed.log:3: the server did not start: EngineCore failed to start, expected' failed.log
failed "$lacks" >failed.log
wrong 'failed.log:3: the server did not start: Available KV cache memory: -2.14 GiB, expected' failed.log
failed 'ERROR [core.py:9] ValueError: No available memory for the cache blocks. Try increasing' \
    'RuntimeError: Engine core initialization failed. See root cause above.' >failed.log
wrong 'failed.log:4: the server did not start: Engine core initialization failed (line 3 of failed.log: No available memory' failed.log
for lack in '4.00 GiB KV cache is needed, which is larger than the available KV cache memory (0.65 GiB)' \
    'Free memory on device (59.32/79.15 GiB) on startup is less than desired GPU memory utilization (0.9, 71.24 GiB)' \
    'CUDA out of memory. Tried to allocate 2.00 GiB'; do
    failed "ValueError: $lack. Try" "$fails" >failed.log
    wrong "failed.log:4: the server did not start: EngineCore failed to start (line 3 of failed.log: $lack)" failed.log
done
{
    sglang_start
    echo '[2026-08-01 23:40:01] Scheduler hit an exception: Traceback (most recent call last):'
    echo 'RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.'
} >failed.log
wrong 'failed.log:2: the server did not start: Scheduler hit an exception (line 3 of failed.log: Not enough memory.' failed.log --hardware h100-sxm
# TensorRT-LLM has a pool for the run that measures memory: https://github.com/NVIDIA/TensorRT-LLM/issues/5872
trtllm="$scripts/import/trtllm-two-pools.log"
short='[TRT-LLM] [RANK 1] [E] Failed to initialize executor on rank 1: Executor creation failed due to insufficient GPU memory.'
{
    head -9 "$trtllm"
    echo "[07/08/2025-19:47:15] $short"
    echo 'RuntimeError: Executor worker returned error'
} >failed.log
wrong 'failed.log:10: the server did not start: Failed to initialize executor on rank 1 (line 10 of failed.log: Executor creation failed due to insufficient GPU memory)' failed.log
{
    head -3 "$trtllm"
    echo 'RuntimeError: Executor worker returned error'
} >failed.log
wrong 'failed.log:4: the server did not start: Executor worker returned error, expected the log of one that did' failed.log
{
    echo '[TensorRT-LLM][WARNING] Requested amount of GPU memory (69568823808 bytes) could not be allocated. There may not be enough'
    echo 'Error: tlc_init: [TensorRT-LLM][ERROR] Assertion failed: Failed to deserialize cuda engine. (tllmRuntime.cpp:135)'
} >failed.log # https://github.com/guidance-ai/llgtrt/issues/7
wrong 'failed.log:2: the server did not start: Failed to deserialize cuda engine (line 1 of failed.log: Requested amount of GPU memory (69568823808 bytes) could not be allocated)' failed.log
# What fails behind the size of the K/V is said in the report; memory alone names no server.
start "$ranges" 'CUDA out of memory. Tried to allocate 2.00 GiB' "$fails" >later.log
succeeds "$inflight" import later.log
printed 'unknown       later.log:3: CUDA out of memory. Tried to allocate 2.00 GiB: memory did not suffice'
printed 'unknown       later.log:4: EngineCore failed to start: the server did not start'
echo "$lacks" >memory.log
wrong 'memory.log: no line is of a server that is known' memory.log

# ---- a profile by its path ----

# profile NAME GIB: NAME.yaml, of a GPU with that memory
profile() {
    sed "s/^  memory_gib: .*/  memory_gib: $2/" "$INFLIGHT_DATA/configs/hardware/h100-sxm.yaml" >"$1.yaml"
}
serve='vllm serve meta-llama/Llama-3.1-8B-Instruct'
profile l4 22.03
profile h200-own 139.81
profile a100-own 79.25
for own in l4=2048,256 h200-own=8192,1024 a100-own=2048,256; do # A100s count as small since 0.9
    limits=${own#*=}
    succeeds "$inflight" import -c "$serve" --hardware "${own%=*}.yaml" --engine-version 0.11.0
    printed "assumed       serving.batching.max_batched_tokens=${limits%,*}: the default of a server on this GPU"
    printed "assumed       serving.batching.max_seqs=${limits#*,}: "
done
succeeds "$inflight" import -c "$serve" --hardware a100-own.yaml --engine-version 0.8.5
printed 'max_batched_tokens: 8192'
succeeds "$inflight" import -c "$serve" --hardware h200-own.yaml --engine-version 0.8.3 # by its name
printed 'max_batched_tokens: 8192'
profile mine 40
succeeds "$inflight" import -c 'python -m sglang.launch_server --model-path Qwen/Qwen3-8B' --hardware mine.yaml
printed ', mine -> serving.kv.memory_utilization='
unsaid 'no GPU is named'
echo 'gpu: 1' >broken.yaml
wrong 'broken.yaml:1:' -c "$serve" --hardware broken.yaml

# ---- SGLang's pools, and a model in place of the server's ----

sglang_log() {
    sglang_start
    echo '[2026-08-01 23:40:01] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 148717, K size: 10.21 GB, V size: 10.21 GB'
    echo '[2026-08-01 23:40:01] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 185897, K size: 4.25 GB, V size: 4.25 GB'
    echo "[2026-08-01 23:43:42] max_total_num_tokens=$1, chunked_prefill_size=8192, max_running_requests=48"
}
sglang_log 5 >sglang.log
wrong 'sglang.log:4: max_total_num_tokens is 5, but pools of 148717 to 185897 tokens are allocated' sglang.log --hardware h100-sxm
sglang_log 1858970 >sglang.log
wrong 'sglang.log:4: max_total_num_tokens is 1858970, but pools' sglang.log --hardware h100-sxm
sglang_log 185897 >sglang.log
succeeds "$inflight" import sglang.log --hardware h100-sxm --model qwen3-8b
printed 'num_blocks: 185897'
printed 'assumed       sglang.log:1: qwen3-8b for poolside/Laguna-S-2.1-INT4: --model'
succeeds "$inflight" import -c "$serve" --hardware h100-sxm --model llama-3-8b # the same
unsaid ': --model'

# ---- a checkpoint that --model names ----

# It counts as one that the server was started with: its profile, its length and its width.
start "$ranges" | sed "s|Qwen/Qwen3-8B|/models/1|" >path.log
succeeds "$inflight" import path.log --hardware h100-sxm --model Qwen/Qwen3-14B
printed 'maps          --model: Qwen/Qwen3-14B -> model=qwen3-14b'
printed 'assumed       path.log:2: qwen3-14b for /models/1: --model'
succeeds "$inflight" import --hardware h100-sxm --model /srv/Qwen3-30B-A3B-Instruct-2507-FP8 -c 'vllm serve --tensor-parallel-size 2'
printed 'model: qwen3-30b-a3b'
printed 'dtype: fp8'
printed 'serving.max_model_len=262144: the checkpoint'
succeeds "$inflight" import --hardware h100-sxm --model Qwen/Qwen3-14B -c 'vllm serve /models/q14-AWQ' # the folder says the width
printed 'maps          /models/q14-AWQ -> dtype=int4'
for name in Qwen/Qwen3-15B Foo/Bar /models/1; do
    wrong "--model is $name, expected a file, a folder with a config.json, or a name of configs/models or of a checkpoint of one" \
        path.log --hardware h100-sxm --model $name
done
wrong 'unknown model qwen3-15b' path.log --hardware h100-sxm --model qwen3-15b

# Blocks of layers with a window are counted by the model: 130,960 / 16 = 8,185 of each of two groups
# (https://blog.huikang.dev/2025/12/28/vllm-logs.html).
cat >windows.log <<'END'
(APIServer pid=90) INFO 11-28 11:45:51 [api_server.py:1977] vLLM API server version 0.11.2
(APIServer pid=90) INFO 11-28 11:45:51 [utils.py:253] non-default args: {'model': '/kaggle/input/gpt-oss-120b/transformers/default/1', 'max_model_len': 98304, 'gpu_memory_utilization': 0.96, 'max_num_seqs': 6}
(EngineCore_DP0 pid=120) INFO 11-28 11:56:30 [kv_cache_utils.py:1229] GPU KV cache size: 130,960 tokens
END
succeeds "$inflight" import windows.log --hardware h100-sxm
printed 'no model of configs/models has this name: import again with --model (a name or a config.json), because the number of blocks'
unsaid 'set model'
succeeds "$inflight" import windows.log --hardware h100-sxm --model openai/gpt-oss-120b
printed 'num_blocks: 16370'
printed 'windows: groups'

# ---- devices that are no CUDA GPU ----

foreign='no CUDA GPU, so neither memory nor kernels here are those of this server'
for device in cpu npu xpu hpu tpu rocm; do
    start "$ranges" "INFO [__init__.py:244] Automatically detected platform $device." >device.log
    expect 0 "note: platform $device: $foreign" "$inflight" import device.log
    printed "not modelled  device.log:3: platform $device: the server's device, which is no CUDA GPU"
done
start "device_config=cpu, $ranges" >device.log
expect 0 "note: device_config=cpu: $foreign" "$inflight" import device.log
sglang_log 185897 | sed "s/tp_size=1/device='npu', tp_size=1/" >device.log
expect 0 "note: device=npu: $foreign" "$inflight" import device.log --hardware h100-sxm
start "device_config=cuda, $ranges" 'INFO [__init__.py:244] Automatically detected platform cuda.' >device.log
succeeds "$inflight" import device.log
unsaid 'CUDA GPU'

# ---- what cannot be read ----

unread='expected a whole number of tokens, as in 38,944'
for size in 38.944 -38,944 inf; do
    start "$ranges" | sed "s/94,784/$size/" >size.log
    wrong "size.log:3: the K/V has a size of $size tokens, $unread" size.log
    echo 'INFO [kv_cache_utils.py:700] num_gpu_blocks is: 5924' >>size.log # another line says it
    succeeds "$inflight" import size.log
    printed "unknown       size.log:3: KV cache size: $size: this number cannot be read"
done

# A log that was cut while its server wrote begins with zeros.
start "$ranges" >whole.log
for zeros in 1 4096; do
    { head -c $zeros /dev/zero && cat whole.log; } >zeros.log
    succeeds "$inflight" import zeros.log
    printed 'num_blocks: 5924'
    printed "harmless      zeros.log:1: bytes of 0: $zeros are skipped"
done
sed 's/94,784/94,\x00784/' whole.log >zeros.log
wrong 'zeros.log:3: a byte of 0 within a number' zeros.log
# Old line ends.
tr '\n' '\r' <whole.log >ends.log
succeeds "$inflight" import ends.log
printed 'num_blocks: 5924'
printed 'ends.log:2: ranges that end at 2048 tokens'

# ---- ranks that cannot share the model ----

for n in 3 7; do
    wrong "what is imported is no configuration: parallel.tensor is $n, expected a number that shares the 32 query heads, 8 KV heads and 14336 FFN columns of llama-3-8b evenly" \
        -c "$serve -tp $n" --hardware h100-sxm
done
succeeds "$inflight" import -c "$serve -tp 4" --hardware h100-sxm
succeeds "$inflight" import -c 'vllm serve /models/mine -tp 3' --hardware h100-sxm # a model that is not known

# ---- what the card's profile has no times for ----

printf 'arrival_s,prompt_tokens,output_tokens\n0,10,5\n' >one.csv
# refused_later MESSAGE FLAGS HARDWARE: imported, with the words in which `run` refuses it
refused_later() {
    succeeds "$inflight" import -c "vllm serve Qwen/Qwen3-8B $2" --engine-version 0.20.0 --hardware "$3" -o later.yaml
    printed "not modelled  $1: \`inflight run\` refuses this"
    try "$inflight" run later.yaml --dry-run --set workload.trace=one.csv
    same "$code" 2 "$ran"
    same "$(grep -cF "$1" logs/err)" 1 "$ran"
}
refused_later 'parallel.pipeline is 2, expected 1 or a profile with send_recv, which b300 lacks' '-pp 2' b300
succeeds "$inflight" import -c 'vllm serve /models/mine -pp 2' --engine-version 0.20.0 --hardware b300
printed "which b300 lacks: \`inflight run\` refuses this"
for whole in '-tp 4:l4' '-tp 4:a10g' '-tp 2:a100-80gb-pcie' '-tp 2:h100-nvl' '-tp 8:h100-pcie' '-pp 2:h100-sxm' '-pp 2:l4' '-pp 4:rtx-4090'; do
    succeeds "$inflight" import -c "vllm serve Qwen/Qwen3-8B ${whole%:*}" --engine-version 0.20.0 --hardware "${whole#*:}"
    unsaid 'refuses this'
done
# ---- blocks as large as a state ----

# A state of Kimi Linear on two GPUs is as large as 942 tokens; blocks of latent attention are of 64. vLLM issue 28228, 0.11.1:
# 318 / (125 + 3) requests of 120,000 tokens, and a quarter of 318 blocks of 960.
printf '%s\n' 'INFO [kv_cache_utils.py:1229] GPU KV cache size: 75,840 tokens' \
    'INFO [kv_cache_utils.py:1234] Maximum concurrency for 120,000 tokens per request: 2.48x' >linear.log
succeeds "$inflight" import linear.log --hardware rtx-3090 --engine-version 0.11.1 \
    --model "$INFLIGHT_DATA/tests/cost/data/huggingface/kimi-linear-48b-a3b.json" \
    -c 'vllm serve cyankiwi/Kimi-Linear-48B-A3B-Instruct-AWQ-4bit --tensor-parallel-size 2 --max-model-len 120000 --max-num-seqs 8 --max-num-batched-tokens 64000'
printed 'serving.kv.block_tokens=960: blocks as large as the state of a layer'
printed 'num_blocks: 316'

# state_block TOKENS HARDWARE FLAG...: 268 tokens of Qwen3-Next on four GPUs are as large as a state, in 8 bits twice as many
state_block() {
    by_hand=$1
    profile=$2
    shift 2
    succeeds "$inflight" import -c "vllm serve Qwen/Qwen3-Next-80B-A3B-Instruct -tp 4 $*" --engine-version 0.13.0 --hardware "$profile"
    printed "serving.kv.block_tokens=$by_hand: blocks as large as the state of a layer"
}
state_block 272 h200-sxm
state_block 544 h200-sxm --kv-cache-dtype fp8
state_block 288 b200-sxm # FlashInfer's blocks
state_block 272 b200-sxm --attention-backend FLASH_ATTN

finish
