#!/bin/sh
# What is imported where names, logs, command lines and answers say more or less than one thing, and
# what `inflight export --server` says that it loses.
. "$(dirname "$0")/expect.sh"
logs=$scripts/import

seats='--max-num-seqs 8 --max-num-batched-tokens 2048'

# ---- names ----

# A size behind the name is that of another model.
for name in /opt/llm/deepseek-r1-14b DeepSeek-R1-70B bigscience/bloom-7b1 bigscience/bloom-560m; do
    succeeds "$inflight" import -c "vllm serve $name $seats"
    printed "unknown       $name: the model of configs/models with a name that begins so has another size"
    unsaid '-> model='
done
# A length is taken, or said not to be.
succeeds "$inflight" import -c "vllm serve 01-ai/Yi-34B-200K $seats"
printed 'serving.max_model_len=200000: the checkpoint'
succeeds "$inflight" import -c "vllm serve togethercomputer/LLaMA-2-7B-32K $seats"
printed 'serving.max_model_len=32768: the checkpoint'
succeeds "$inflight" import -c "vllm serve Yukang/Llama-2-7b-longlora-100k-ft $seats"
printed 'unknown       Yukang/Llama-2-7b-longlora-100k-ft: the name may tell a length beyond'
unsaid 'serving.max_model_len='
# A shorter one than the profile's is of something else, as of the samples of a fine-tuning.
succeeds "$inflight" import -c "vllm serve x/Llama-2-7b-guanaco-1k $seats"
unsaid 'max_model_len'
# A flag's length beyond the checkpoint's is taken and named; its own is not.
succeeds "$inflight" import -c "vllm serve meta-llama/Llama-2-7b-hf --max-model-len 4097 $seats"
printed 'unknown       serving.max_model_len=4097: beyond the length of the model'
printed 'max_model_len: 4097'
succeeds "$inflight" import -c "python -m sglang.launch_server --model meta-llama/Llama-2-7b-hf --context-length 8192"
printed 'unknown       serving.max_model_len=8192: beyond the length of the model'
succeeds "$inflight" import -c "vllm serve meta-llama/Llama-2-7b-hf --max-model-len 4096 $seats"
unsaid 'beyond'
succeeds "$inflight" import -c "vllm serve togethercomputer/LLaMA-2-7B-32K --max-model-len 32768 $seats"
unsaid 'beyond'

# ---- contradictions ----

# wrong MESSAGE ARGUMENT...: refused with that message in one line
wrong() {
    message=$1
    shift
    expect 2 "$message" "$inflight" import "$@" --hardware h100-sxm
}
# blocks_log MODEL LINE...: a log of V1 with 6,144 tokens a request and blocks of 16
blocks_log() {
    echo "INFO [core.py:76] Initializing a V1 LLM engine (v0.10.2) with config: model='$1', max_seq_len=6144"
    echo "non-default args: {'block_size': 16, 'max_num_seqs': 8, 'max_num_batched_tokens': 2048}"
    shift
    printf '%s\n' "$@"
}
size='GPU KV cache size: 94,784 tokens'
requests='Maximum concurrency for 6,144 tokens per request: 15.43x'
count='num_gpu_blocks is: 5924'
moe=Qwen/Qwen3-30B-A3B-Instruct-2507
blocks_log $moe "$size" "$requests" "$count" >whole.log
succeeds "$inflight" import whole.log --hardware h100-sxm
printed 'serving.kv.num_blocks=5924'
succeeds "$inflight" import whole.log --hardware h100-sxm -c 'vllm serve /models/mine' # a path may be of any model
for other in Qwen/Qwen3-8B Qwen/Qwen2.5-72B-Instruct; do
    wrong "whole.log:1: the model is $moe, but the command line says $other" whole.log -c "vllm serve $other"
done
blocks_log $moe 'GPU KV cache size: 84,784 tokens' "$requests" "$count" >size.log
wrong 'size.log:5: num_gpu_blocks is 5924, but line 3 says K/V of 84784 tokens, in blocks of 16' size.log
blocks_log $moe "$size" "$requests" 'num_gpu_blocks is: 6924' >count.log
wrong 'count.log:5: num_gpu_blocks is 6924, but line 3 says K/V of 94784 tokens, in blocks of 16' count.log
blocks_log $moe "$size" 'Maximum concurrency for 6,144 tokens per request: 25.43x' "$count" >requests.log
wrong 'requests.log:4: 25.43 requests of 6144 tokens, but there are 5924 blocks of 16 tokens' requests.log
# A model that is not known may have several kinds of layers, but not where count and concurrency agree.
blocks_log x "$size" 'Maximum concurrency for 6,144 tokens per request: 25.43x' "$count" >kinds.log
succeeds "$inflight" import kinds.log --hardware h100-sxm
printed 'several kinds of K/V layers'
blocks_log x 'GPU KV cache size: 84,784 tokens' "$requests" "$count" >kinds.log
wrong 'kinds.log:5: num_gpu_blocks is 5924, but line 3 says' kinds.log
# Layers with a window alone need less than max_model_len.
blocks_log mistralai/Mistral-7B-v0.1 "$size" 'Maximum concurrency for 6,144 tokens per request: 20.00x' "$count" >window.log
succeeds "$inflight" import window.log --hardware h100-sxm

# ---- releases that are not known ----

sglang='python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B'
for release in 0.9.9=0.5.23 1.0=0.5.23 0.3.9=0.4.0; do
    succeeds "$inflight" import -c "$sglang" --engine-version ${release%=*} --hardware h100-sxm
    printed "SGLang ${release%=*}, counted as ${release#*=}: this release is not known"
    printed 'the default of the nearest release that is known'
    unsaid 'of this release'
done
succeeds "$inflight" import -c "docker run lmsysorg/sglang:v0.9.9 $sglang" --hardware h100-sxm
printed 'SGLang 0.9.9, counted as 0.5.23: this release is not known'
for version in 0.4.0 0.5.23; do
    succeeds "$inflight" import -c "$sglang" --engine-version $version --hardware h100-sxm
    printed "SGLang $version, NVIDIA H100 80GB HBM3 -> serving.kv.memory_utilization="
    unsaid 'not known'
done
for version in 9.9 1.3; do
    succeeds "$inflight" import -c 'trtllm-serve Qwen/Qwen3-8B' --engine-version $version --hardware h100-sxm
    printed "TensorRT-LLM $version: this release is not known: its scheduler is that of 1.2 here"
done
for version in 0.13.0 1.2.0rc4; do
    succeeds "$inflight" import -c 'trtllm-serve Qwen/Qwen3-8B' --engine-version $version --hardware h100-sxm
    unsaid 'not known'
done

# ---- pools that one line tells ----

# sgl-project/sglang #11309 and #18263, vllm-project/vllm #21348
for pool in '[2025-10-07 23:17:19 DP0 TP0] KV Cache is allocated. #tokens: 975424, KV size: 43.67 GB' \
    '[2026-07-15 13:14:54] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1669816, K size: 76.44 GB, V size: 76.44 GB' \
    'KV Cache is allocated. #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB'; do
    tokens=$(echo "$pool" | sed 's/.*#tokens: \([0-9]*\).*/\1/')
    echo "$pool" >pool.log
    succeeds "$inflight" import pool.log --hardware h100-sxm
    printed "pool.log:1: KV Cache is allocated"
    printed "-> serving.kv.num_blocks=$tokens"
    succeeds "$inflight" import pool.log --hardware h100-sxm -c "$sglang --tp 4"
    printed "num_blocks: $tokens"
done
echo 'KV Cache is allocated. #tokens: 367404, K size: 8.23 GB' >>pool.log # of another rank
succeeds "$inflight" import pool.log --hardware h100-sxm
echo 'KV Cache is allocated. #tokens: 36740, K size: 8.23 GB' >>pool.log
wrong 'pool.log:3: a pool of 36740 tokens, but one of 367404 on line 1, and no line says which counts' pool.log
# The message names the log that says too little.
echo "[2025-01-23 19:34:55] server_args=ServerArgs(model_path='Qwen/Qwen3-8B', tp_size=1)" >short.log
wrong 'short.log: no line says how many tokens of K/V there are' short.log -c "$sglang"
# NVIDIA/TensorRT-LLM #224 and #1400: a block that is not full counts (gptSession.cpp).
for pool in 10718=168 132608=2072; do
    echo "[TensorRT-LLM][INFO] Using ${pool%=*} tokens in paged KV cache." >session.log
    succeeds "$inflight" import session.log --hardware h100-sxm
    printed "Using ${pool%=*} tokens in paged KV cache -> serving.kv.num_blocks=${pool#*=}"
done

# ---- what TensorRT-LLM was started with ----

cat >args.log <<'END'
[12/07/2025-00:20:20] [TRT-LLM] [I] Using LLM with PyTorch backend
[TensorRT-LLM][INFO] Max KV cache blocks per sequence: 33 [window size=1025], tokens per block=32, primary blocks=28150, secondary blocks=0, max sequence length=1025
[12/07/2025-00:21:00] [TRT-LLM] [I] max_seq_len=1025, max_num_requests=32, max_num_tokens=1024, max_batch_size=32
[12/07/2025-00:21:01] [TRT-LLM] [I] LLM Args:
model='meta-llama/Meta-Llama-3-8B-Instruct' tokenizer=None tokenizer_mode='auto' skip_tokenizer_init=False tensor_parallel_size=2 dtype='auto' moe_expert_parallel_size=-1 load_format=<LoadFormat.AUTO: 0> kv_cache_config=KvCacheConfig(enable_block_reuse=True, max_tokens=900796, free_gpu_memory_fraction=0.8, host_cache_size=None, dtype='fp8', tokens_per_block=32) enable_chunked_prefill=True scheduler_config=SchedulerConfig(capacity_scheduler_policy=<CapacitySchedulerPolicy.MAX_UTILIZATION: 'MAX_UTILIZATION'>, context_chunking_policy=None) max_batch_size=32 max_seq_len=1024 max_num_tokens=1024 backend='pytorch'
[12/07/2025-00:21:01] [TRT-LLM] [I] get signal from executor worker
END
succeeds "$inflight" import args.log --hardware h100-sxm
printed 'args.log:5: model=meta-llama/Meta-Llama-3-8B-Instruct -> model=llama-3-8b'
printed 'args.log:5: tensor_parallel_size=2 -> parallel.tensor=2'
printed 'args.log:5: free_gpu_memory_fraction=0.8 -> serving.kv.memory_utilization=0.8'
printed 'not modelled  args.log:5: enable_block_reuse=True'
printed '-> serving.preset=trtllm-1.2-max-utilization'
printed 'args.log:5: enable_chunked_prefill=True -> serving.batching.chunking=first-come'
printed 'args.log:5: kv_cache_dtype=fp8 -> engine.kv_dtype=fp8'
printed '    num_blocks: 28150'
unsaid 'unknown'
wrong 'args.log:5: the model is meta-llama/Meta-Llama-3-8B-Instruct, but the command line says Qwen/Qwen3-8B' \
    args.log -c 'trtllm-serve Qwen/Qwen3-8B'

# ---- answers ----

echo 'sglang:max_total_num_tokens{m="x"} 12345.0' >metrics.txt
for owner in sglang inflight; do # the latter names no server that is known
    echo '{"object":"list","data":[{"id":"x","owned_by":"'$owner'","root":"llama-3-8b","max_model_len":4096}]}' >models.json
    for order in 'models.json metrics.txt' 'metrics.txt models.json'; do
        succeeds "$inflight" import --answer "${order% *}" --answer "${order#* }" --hardware h100-sxm
        printed 'models.json:1: model=llama-3-8b -> model=llama-3-8b'
        printed 'models.json:1: max_model_len=4096 -> serving.max_model_len=4096'
    done
done

# The null block is one of num_gpu_blocks and of serving.kv.num_blocks.
printf 'model: llama-3-8b\nhardware: h100-sxm\nserving: {preset: vllm-v1-2026-08, kv: {num_blocks: 12345}}\n' >live.yaml
asks_a_server() {
    "$inflight" serve live.yaml --port 0 -o served >serve.log 2>&1 &
    server=$!
    trap 'kill "$server" 2>/dev/null; leave' EXIT
    within_a_minute grep -q 'serving at' serve.log || complain 'the server did not start' "$(cat serve.log)"
    url=$(sed -n 's|.*serving at \(http://[^/]*\)/.*|\1|p' serve.log)
    succeeds "$inflight" import --server "$url" --hardware h100-sxm --engine-version 0.30
    printed 'num_gpu_blocks=12345 -> serving.kv.num_blocks=12345'
    kill "$server"
    wait "$server" 2>/dev/null
    trap leave EXIT
}
case $("$inflight" serve missing.yaml 2>&1) in
*'has no server'*) ;; # built without libevent
*) asks_a_server ;;
esac

# ---- what a key has become ----

succeeds "$inflight" import -c "vllm serve Qwen/Qwen3-8B --enable-lora --watermark 0.1 $seats" --engine-version 0.30.0
printed '--enable-lora -> serving.admit.policy=adapter-slots'
printed '--watermark 0.1 -> serving.admit.watermark_frac=0.1'

# ---- what an export loses ----

# The share of a rule that no server has comes back as another number of blocks.
printf 'model: llama-3-8b\nserving: {preset: sglang-overlap, kv: {memory_utilization: 0.7}}\n' >share.yaml
expect 0 'note: no argument of SGLang says serving.kv.sizing=memory, serving.kv.memory_utilization=0.7' \
    "$inflight" export --server sglang share.yaml
printf 'model: llama-3-8b\nserving: {preset: vllm-v0}\n' >rule.yaml
expect 0 'note: no argument of vLLM says serving.kv.sizing=memory' "$inflight" export --server vllm rule.yaml
printf 'model: llama-3-8b\nserving: {preset: sglang-overlap, kv: {sizing: sglang, memory_utilization: 0.7}}\n' >share.yaml
succeeds "$inflight" export --server sglang share.yaml
printed '--mem-fraction-static 0.7'

# ---- a key of another module ----

printf 'model: llama-3-8b\nhardware: h100-sxm\nworkload: {trace: none.csv}\nserving: {preset: vllm-v1-2026-11, batching: {max_long_partial_prefills: 1}}\n' >key.yaml
refuses 'key.yaml:4:*: unknown key serving.batching.max_long_partial_prefills, expected one of max_seqs, ' \
    "$inflight" run key.yaml --dry-run

finish
