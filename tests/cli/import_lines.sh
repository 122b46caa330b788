#!/bin/sh
# Lines of logs that say in other words what a flag says, lines that cannot be read, and profiles
# that a user names by their path.
. "$(dirname "$0")/expect.sh"

# unsaid TEXT: the last command did not print it.
unsaid() {
    if grep -qF -- "$1" logs/out logs/err; then complain "$ran" "    printed: $1"; fi
}
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

# ---- the number of blocks ----

# Before memory is measured, a run without K/V of its own has a number that does not last.
start "$ranges" 'INFO [kv_cache_utils.py:829] Overriding num_gpu_blocks=0 with num_gpu_blocks_override=512' >measure.log
succeeds "$inflight" import measure.log
printed 'num_blocks: 5924'
start "$ranges" 'INFO [kv_cache_utils.py:829] Overriding num_gpu_blocks=900 with num_gpu_blocks_override=512' >measure.log
wrong 'num_gpu_blocks_override is 512, but the log says 5924 blocks' measure.log

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
    echo "[2026-08-01 23:33:00] server_args=ServerArgs(model_path='poolside/Laguna-S-2.1-INT4', tp_size=1)"
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
refused_later 'parallel.pipeline is 2, expected 1 or a profile with send_recv, which l4 lacks' '-pp 2' l4
refused_later 'parallel.tensor is 4, expected 1 or a profile with an all-reduce (allreduce_2, allreduce_4, allreduce_8), which a10g lacks, or a deployment with all_reduce' '-tp 4' a10g
succeeds "$inflight" import -c 'vllm serve /models/mine -pp 2' --engine-version 0.20.0 --hardware l4
printed "which l4 lacks: \`inflight run\` refuses this"
for whole in '-tp 4:l4' '-pp 2:h100-sxm'; do
    succeeds "$inflight" import -c "vllm serve Qwen/Qwen3-8B ${whole%:*}" --engine-version 0.20.0 --hardware "${whole#*:}"
    unsaid 'refuses this'
done
finish
