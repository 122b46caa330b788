#!/bin/sh
# Lines that real servers print and that are easily misread: lines of several servers, pools of a trial run, lists that a
# terminal broke, checkpoints of other lengths and widths. The lines are cut to what matters; sources: import/README.md.
. "$(dirname "$0")/expect.sh"

# ---- which server a log is of ----

# A line that several servers print shows none: what else the log says does.
vllm_log() {
    echo "INFO [core.py:58] Initializing a V1 LLM engine (v0.8.5) with config: model='Qwen/Qwen3-8B', max_seq_len=8192, tensor_parallel_size=${1:-1}"
    echo 'INFO [config.py:2003] Chunked prefill is enabled with max_num_batched_tokens=8192.'
    echo 'INFO [kv_cache_utils.py:634] GPU KV cache size: 200,000 tokens'
    cat
}
vllm_log >graphs.log <<'END'
Capturing CUDA graph shapes: 100%|##########| 67/67 [00:20<00:00,  3.3it/s]
Capturing CUDA graphs (mixed prefill-decode, PIECEWISE): 100%|##########| 67/67 [00:04<00:00, 15.06it/s]
INFO [gpu_model_runner.py:4880] Profiling CUDA graph memory: PIECEWISE=51 (largest=512), FULL=35 (largest=256)
INFO [model_runner.py:1518] Capturing the model for CUDA graphs. This may lead to unexpected consequences if the model is not static.
INFO [cuda.py:476] Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN', 'FLASHINFER'].
END
succeeds "$inflight" import graphs.log --hardware h100-sxm
printed 'harmless      graphs.log:4: CUDA graph'
printed 'num_blocks: 12500'
# in front of the line that names the server, and in a log of its own
{
    echo 'Capturing CUDA graph shapes: 100%'
    vllm_log </dev/null
} >before.log
succeeds "$inflight" import before.log --hardware h100-sxm
printed 'harmless      before.log:1: CUDA graph'
echo 'Capturing CUDA graph shapes: 100%' >alone.log
succeeds "$inflight" import alone.log graphs.log --hardware h100-sxm
printed 'harmless      alone.log:1: CUDA graph'
refuses 'alone.log: no line is of a server that is known' "$inflight" import alone.log
# a pipe is read as a file
mkfifo pipe
cat graphs.log >pipe &
succeeds "$inflight" import pipe --hardware h100-sxm
printed 'num_blocks: 12500'
cat >graphs_sglang.log <<'END'
[2026-06-09 03:34:36] server_args=ServerArgs(model_path='Qwen/Qwen3-8B', tp_size=1)
[2026-06-09 03:35:03] Using ascend_attn as multimodal attention backend.
[2026-06-09 03:35:03] Capture cuda graph begin. This can take up to several minutes.
[2026-06-09 03:35:09] max_total_num_tokens=712400, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=50, context_len=163840
END
succeeds "$inflight" import graphs_sglang.log
printed 'not modelled  graphs_sglang.log:2: Using ascend_attn as multimodal attention backend: kernels'
printed 'num_blocks: 712400'
cat graphs_sglang.log graphs.log >both.log
refuses 'both.log:5: this is of vLLM, but both.log:1 is of SGLang, expected one server' "$inflight" import both.log

# ---- TensorRT-LLM's two pools ----

# The PyTorch backend runs once with a small pool to measure memory, then takes the pool that it serves with.
cat >pools.log <<'END'
[TensorRT-LLM] TensorRT LLM version: 1.2.0rc4
[12/07/2025-00:20:15] [TRT-LLM] [I] Using LLM with PyTorch backend
[12/07/2025-00:20:42] [TRT-LLM] [W] Both free_gpu_memory_fraction and max_tokens are set (to 0.9 and 1088 with free memory 122.65985107421875GiB of total memory 139.80084228515625GiB, respectively). The smaller value will be used.
[TensorRT-LLM][INFO] Max KV cache blocks per sequence: 33 [window size=1025], tokens per block=32, primary blocks=34, secondary blocks=0, max sequence length=1025
[TensorRT-LLM][INFO] [MemUsageChange] Allocated 0.13 GiB for max tokens in paged KV cache (1088).
[12/07/2025-00:20:42] [TRT-LLM] [I] max_seq_len=1025, max_num_requests=32, max_num_tokens=1024, max_batch_size=32
[12/07/2025-00:20:58] [TRT-LLM] [I] Creating CUDA graph instances for 32 batch sizes.
[12/07/2025-00:21:00] [TRT-LLM] [I] Estimated max memory in KV cache : 109.96 GiB
[12/07/2025-00:21:00] [TRT-LLM] [W] Both free_gpu_memory_fraction and max_tokens are set (to 0.9 and 900796 with free memory 122.29071044921875GiB of total memory 139.80084228515625GiB, respectively). The smaller value will be used.
[TensorRT-LLM][INFO] Max KV cache blocks per sequence: 33 [window size=1025], tokens per block=32, primary blocks=28150, secondary blocks=0, max sequence length=1025
[TensorRT-LLM][INFO] [MemUsageChange] Allocated 109.96 GiB for max tokens in paged KV cache (900800).
END
succeeds "$inflight" import pools.log
printed 'num_blocks: 28150'
printed 'max_seqs: 32'
printed 'max_batched_tokens: 1024'
printed 'preset: trtllm-1.2-no-evict'
printed 'harmless      pools.log:4: tokens per block=32, primary blocks=34: of the run that measures memory'
sed -e 2d -e 's/1.2.0rc4/0.20.0/' pools.log >older.log # no line names the backend
succeeds "$inflight" import older.log
printed 'preset: trtllm-1.2-no-evict'
head -7 pools.log >measuring.log
refuses 'measuring.log:3: the K/V blocks of this run are those of a run that measures memory' "$inflight" import measuring.log
head -9 pools.log >measured.log
refuses 'measured.log: no line says how many K/V blocks there are' "$inflight" import measured.log

# Where the worker prints no lines of Python, the pool behind a whole one of the same server counts.
pools=$scripts/import/trtllm-two-pools.log
succeeds "$inflight" import "$pools" --model qwen3-8b --hardware rtx-5090
printed 'num_blocks: 1444'
printed "harmless      $pools:7: tokens per block=32, primary blocks=257: of the run that measures memory"
sed '/primary blocks=/p; /Allocated/p' "$pools" >ranks.log # two ranks
succeeds "$inflight" import ranks.log
printed 'num_blocks: 1444'
grep -v 'primary blocks=' "$pools" >allocated.log
succeeds "$inflight" import allocated.log
printed 'num_blocks: 1444'
sed 's/primary blocks=1444/primary blocks=2000/; s/46208/64000/' "$pools" >other.log
cat "$pools" other.log >servers.log
refuses 'servers.log:21: num_gpu_blocks is 257, but servers.log:12 says 1444' "$inflight" import servers.log
refuses "other.log:7: num_gpu_blocks is 257, but $pools:12 says 1444" "$inflight" import "$pools" other.log
cat "$pools" >third.log # a third pool is of no run that is known
sed -n 12,14p other.log >>third.log
refuses 'third.log:15: num_gpu_blocks is 2000, but third.log:12 says 1444' "$inflight" import third.log
# Pools of two windows are allocated together, and the C++ executor measures nothing.
grep -v ' 0.56 GiB ' "$pools" >windows.log
refuses 'windows.log:11: num_gpu_blocks is 1444, but windows.log:7 says 257' "$inflight" import windows.log
sed 's/1.2.0rc2/0.12.0/; /PyTorch/d' "$pools" >engine.log
refuses 'engine.log:11: num_gpu_blocks is 1444, but engine.log:6 says 257' "$inflight" import engine.log

# ---- lists that a terminal broke ----

cat >wrapped.log <<'END'
(APIServer pid=3761) INFO 09-03 02:11:14 [api_server.py:1805] vLLM API server version 0.10.1.1
(APIServer pid=3761) INFO 09-03 02:11:14 [utils.py:326] non-default args: {'model_tag': 'Qwen2-7B-Instruct', 'port': 8081, 'model': 'Qwe
n2-7B-Instruct', 'max_model_len': 16384, 'tensor_parallel_size': 2, 'gpu_memory_utilization': 0.5}
(APIServer pid=3761) INFO 09-03 02:11:29 [scheduler.py:222] Chunked prefill is enabled with max_num_batched_tokens=2048.
(EngineCore_0 pid=3902) INFO 09-03 02:11:44 [core.py:74] Initializing a V1 LLM engine (v0.10.1.1) with config: model='Qwen2-7B-Instruct'
, speculative_config=None, override_neuron_config={},
 tokenizer_revision=None, dtype=torch.bfl
oat16, max_seq_len=16384, tensor_parallel_si
ze=2, pipeline_parallel_size=1, compilation_config={"level":3,"pass_c
onfig":{},"max_capture_size":512}
(EngineCore_0 pid=3902) INFO 09-03 02:12:44 [kv_cache_utils.py:634] GPU KV cache size: 1,192,160 tokens
END
succeeds "$inflight" import wrapped.log --hardware h100-sxm
printed 'wrapped.log:2: lines 2 to 3 are one: the list of arguments goes on'
printed 'wrapped.log:5: lines 5 to 10 are one: '
printed 'memory_utilization: 0.5'
printed 'tensor: 2'
printed 'dtype: bf16'
printed 'not modelled  wrapped.log:5: compilation_config='
sed 3d wrapped.log >open.log
refuses 'open.log:2: the list of arguments ends within a value, and the line behind does not go on' "$inflight" import open.log

# ---- ranks ----

for rank in 1 6 0 7; do
    echo "[2025-02-17 05:27:24 TP$rank] max_total_num_tokens=712400, chunked_prefill_size=8192, max_running_requests=50, context_len=163840"
done >ranks.log
succeeds "$inflight" import ranks.log
printed 'assumed       ranks.log:4: parallel.tensor=8: no argument says how many GPUs share the model'
refuses 'ranks.log:4: rank TP7 logs, but tp_size is 4' "$inflight" import ranks.log -c 'sglang serve x --tp 4'
succeeds "$inflight" import ranks.log -c 'sglang serve x --tp 16'
printed 'tensor: 16'
echo '(VllmWorker TP1 pid=3975) INFO [pynccl.py:70] vLLM is using nccl==2.26.2' | vllm_log >worker.log
refuses 'worker.log:4: rank TP1 logs, but tensor_parallel_size is 1' "$inflight" import worker.log --hardware h100-sxm
echo '(Worker_TP1 pid=3975) INFO [pynccl.py:70] vLLM is using nccl==2.26.2' | vllm_log 2 >worker.log
succeeds "$inflight" import worker.log --hardware h100-sxm

# ---- values that are said twice ----

# the engine's own budget follows that of its configuration's default
{
    echo 'INFO 11-28 15:27:15 [scheduler.py:216] Chunked prefill is enabled with max_num_batched_tokens=2048.'
    vllm_log </dev/null
} >budgets.log
succeeds "$inflight" import budgets.log --hardware h100-sxm
printed 'max_batched_tokens: 8192'
# a draft model has a length of its own
draft_log() {
    echo "(APIServer pid=2) INFO [api_utils.py:273] non-default args: {'model': 'Qwen/Qwen3-8B', 'max_model_len': 65536$1}"
    echo '(APIServer pid=2) INFO [model.py:1776] Using max model len 65536'
    echo '(APIServer pid=2) INFO [model.py:1776] Using max model len 1048576'
    echo '(EngineCore pid=3) INFO [core.py:114] Initializing a V1 LLM engine (v0.25.1) with config: max_seq_len=65536'
    echo '(EngineCore pid=3) INFO [k.py:1] GPU KV cache size: 160,000 tokens'
}
draft_log ", 'speculative_config': {'method': 'eagle3', 'model': 'y', 'num_speculative_tokens': 3}" >drafts.log
succeeds "$inflight" import drafts.log --hardware h100-sxm
printed 'max_model_len: 65536'
draft_log '' >drafts.log
refuses 'drafts.log:3: max_model_len is 1048576, but 65536 before, and no argument names a draft model' \
    "$inflight" import drafts.log --hardware h100-sxm

# ---- what a rank says of its memory, and a library's defaults ----

# Every rank says what its GPU has and what share of it was asked for.
memory='Free memory on device (43.93/44.42 GiB) on startup. Desired GPU memory utilization is (0.9, 39.98 GiB). Actual usage is 27.72 GiB for weight, 1.4 GiB for peak activation, 0.21 GiB for non-torch memory, and 3.45 GiB for CUDAGraph memory.'
free_log() {
    for rank in 0 1; do echo "(Worker_TP${rank} pid=20) INFO 09-24 20:54:35 [gpu_worker.py:391] $memory"; done | vllm_log 2
}
free_log >free.log
succeeds "$inflight" import free.log
printed 'maps          free.log:4: Free memory on device (43.93/44.42 GiB) on startup. Desired GPU memory utilization is (0.9 -> serving.kv.memory_utilization=0.9'
printed 'max_seqs: 256' # that of a GPU of less than 70 GiB, which has no other name here
succeeds "$inflight" import free.log -c 'vllm serve Qwen/Qwen3-8B -tp 2 --gpu-memory-utilization 0.90'
refuses 'free.log:4: gpu_memory_utilization is 0.9, but the command line says 0.8' \
    "$inflight" import free.log -c 'vllm serve Qwen/Qwen3-8B -tp 2 --gpu-memory-utilization 0.8'

# A library takes four times a server's tokens by default, twice on a large GPU (engine/arg_utils.py,
# get_batch_defaults), so 8192 are those of a small one.
library='INFO 11-14 14:26:48 [llm.py:306] Supported_tasks: [generate]'
echo "$library" | vllm_log | sed 2d >library.log
succeeds "$inflight" import library.log --hardware l40s
printed 'assumed       serving.batching.max_batched_tokens=8192: the default of a library on this GPU'
succeeds "$inflight" import library.log --hardware h100-sxm
printed 'assumed       serving.batching.max_batched_tokens=16384: the default of a library on this GPU'
vllm_log </dev/null | sed 2d >server.log
succeeds "$inflight" import server.log --hardware l40s
printed 'assumed       serving.batching.max_batched_tokens=2048: the default of a server on this GPU'
echo "$library" | vllm_log >library.log
succeeds "$inflight" import library.log
printed 'max_seqs: 256'
echo 'INFO [async_llm.py:166] Torch profiler disabled.' | vllm_log >async.log # of a server
refuses 'async.log: max_num_seqs is not said, and its default goes by the GPU, which is not named' "$inflight" import async.log

# Arguments of SGLang before 0.5
old_sglang() {
    echo "[2025-01-23 19:34:55] server_args=ServerArgs(model_path='Qwen/Qwen3-8B', cpu_offload_gb=0, prefill_only_one_req=$1, tp_size=1, file_storage_pth='sglang_storage')"
    echo '[2025-01-23 19:35:27] max_total_num_tokens=444500, max_prefill_tokens=16384, max_running_requests=2049, context_len=131072'
}
old_sglang False >old.log
succeeds "$inflight" import old.log
printed 'harmless      old.log:1: file_storage_pth=sglang_storage'
printed 'prefill_only_one_req=False'
if grep -qE '^(unknown|not modelled) .*prefill' logs/out logs/err; then complain "$ran" '    a flag that is off counts'; fi
old_sglang True >old.log
succeeds "$inflight" import old.log
printed 'not modelled  old.log:1: prefill_only_one_req=True: one prompt in a prefill batch'

# ---- attention in parallel ----

# SGLang gives each group its part of seats and chunk, and 0.3 of the conservativeness (server_args.py,
# _handle_data_parallelism): 768 / 32 = 24, 32768 / 32 = 1024
groups='python3 -m sglang.launch_server --model-path x --max-running-requests 768 --chunked-prefill-size 32768
    --max-total-tokens 190976 --page-size 128 --tp 32 --dp-size 32 --enable-dp-attention'
divides() {
    printed '    max_seqs: 24'
    printed '    chunk_tokens: 1024'
    printed '    conservativeness: 0.3'
}
succeeds "$inflight" import -c "$groups" -o groups.yaml
cp groups.yaml logs/out
divides
cat >groups.log <<'END'
[2025-12-04 10:00:00] server_args=ServerArgs(model_path='x', max_running_requests=768, chunked_prefill_size=1024, schedule_conservativeness=0.3, page_size=128, tp_size=32, dp_size=32, enable_dp_attention=True)
[2025-12-04 10:01:00 DP31 TP31 EP31] max_total_num_tokens=190976, chunked_prefill_size=1024, max_prefill_tokens=458880, max_running_requests=24, context_len=8192
END
succeeds "$inflight" import groups.log
divides
succeeds "$inflight" import groups.log -c "$groups"
divides
succeeds "$inflight" import -c 'sglang serve x --tp 8 --dp 4 --enable-dp-attention --speculative-algorithm NGRAM'
printed 'assumed       serving.batching.chunk_tokens=2048: '
printed 'assumed       serving.batching.max_seqs=12: '
printf 'model: qwen3-30b-a3b\nparallel: {data: 4, expert: 4}\nserving: {preset: sglang-overlap, batching: {max_seqs: 24, chunk_tokens: 1024}, kv: {num_blocks: 100}}\n' >there.yaml
expect 0 '' "$inflight" export --server sglang there.yaml
printed ' --chunked-prefill-size 4096 '
printed ' --max-running-requests 96 '
printed ' --schedule-conservativeness 3.3333333333333335 '

# ---- checkpoints ----

# length and width that differ from the profile's: config.json of each
becomes_len() {
    succeeds "$inflight" import -c "vllm serve $1 --max-num-seqs 8 --max-num-batched-tokens 2048"
    printed "assumed       serving.max_model_len=$2: the checkpoint"
}
becomes_len meta-llama/Llama-3.1-8B-Instruct 131072
becomes_len /models/Meta-Llama-3.1-8B/ 131072
becomes_len Qwen/Qwen3-30B-A3B-Instruct-2507-FP8 262144
succeeds "$inflight" import -c 'sglang serve meta-llama/Llama-3.1-8B-Instruct'
printed '  max_model_len: 131072'
succeeds "$inflight" import -c 'sglang serve meta-llama/Llama-3.1-8B-Instruct --context-length 4096'
printed '  max_model_len: 4096'
for model in meta-llama/Meta-Llama-3-8B-Instruct Qwen/Qwen3-30B-A3B; do
    succeeds "$inflight" import -c "sglang serve $model"
    if grep -q max_model_len logs/out; then complain "$ran" '    says a length that is the profile'; fi
done
# engine V0 cuts prompts into chunks beyond 32,768 tokens
succeeds "$inflight" import -c 'VLLM_USE_V1=0 vllm serve meta-llama/Llama-3.1-8B-Instruct' --engine-version 0.8.4
printed 'preset: vllm-v0-chunked'

# has_width DTYPE MODEL-AND-FLAGS
has_width() {
    succeeds "$inflight" import -c "sglang serve $2"
    printed "-> dtype=$1"
    printed "dtype: $1"
}
has_width int4 Qwen/Qwen3-32B-AWQ
has_width int4 Qwen/Qwen3-32B-GPTQ-Int4
has_width int8 Qwen/Qwen3-32B-GPTQ-Int8
has_width int8 RedHatAI/Qwen3-32B-quantized.w8a8
has_width fp8 Qwen/Qwen3-32B-FP8
has_width fp8 'Qwen/Qwen3-32B --quantization fp8'
has_width int4 'Qwen/Qwen3-32B-AWQ --quantization compressed-tensors'
for of in nvidia/Qwen3-32B-NVFP4 'Qwen/Qwen3-32B --quantization modelopt_fp4' nvidia/Qwen3-32B-FP4 \
    'RedHatAI/Qwen3-32B-NVFP4 --quantization compressed-tensors'; do
    has_width nvfp4 "$of"
done
# MXFP4: four bits, with more scales than int4.
for of in 'Qwen/Qwen3-32B --quantization mxfp4' x/Qwen3-32B-MXFP4; do
    has_width int4 "$of"
    printed 'counted as int4: weights have 4.'
    printed 'they take 2% more memory than here; a step takes as long as with int4'
done
has_width int4 x/Qwen3-32B-FP4
printed '(MXFP4) or 4.5 (NVFP4)'
for model in Qwen/Qwen3-32B-GGUF /m/Qwen3-32B-Q4_K_M.gguf 'Qwen/Qwen3-32B-AWQ-W4A8' \
    'Qwen/Qwen3-32B --quantization bitsandbytes'; do
    succeeds "$inflight" import -c "sglang serve $model"
    printed ": quantised weights: a step takes as long as with those of the model's profile"
    if grep -q '^dtype' logs/out; then complain "$ran" '    says a dtype'; fi
done
{
    head -2 pools.log
    echo '[06/02/2026-03:50:11] [TRT-LLM] [I] Setting quant_algo=FP8 form HF quant config.'
    echo '[06/02/2026-03:50:11] [TRT-LLM] [I] Setting kv_cache_quant_algo=FP8 form HF quant config.'
    tail -9 pools.log
} >fp8.log
succeeds "$inflight" import fp8.log
printed 'kv_cache_quant_algo=FP8 -> engine.kv_dtype=fp8'
printed 'dtype: fp8'
for server in vllm sglang; do
    preset=$([ $server = vllm ] && echo vllm-v1 || echo sglang-overlap)
    printf 'model: qwen3-32b\ndtype: fp8\nserving: {preset: %s, kv: {num_blocks: 100}}\n' "$preset" >fp8.yaml
    expect 0 '' "$inflight" export --server $server fp8.yaml
    printed ' --quantization fp8'
    sed -i s/fp8/int4/ fp8.yaml
    expect 0 'note: no argument of * says dtype=int4' "$inflight" export --server $server fp8.yaml
done

# ---- the rule of memory ----

for rule in 0.8.5=vllm-0.8 0.9.0=vllm-0.8 0.9.1=vllm-0.9.1 0.11.2=vllm-0.9.1 0.12.0=vllm-0.12 0.13.0=vllm-0.12 0.14.0=vllm-0.14 0.16.0=vllm-0.14 0.17.0=vllm-0.17 0.19.1=vllm-0.17 0.20.0=vllm-0.20 0.33.0=vllm-0.20; do
    succeeds "$inflight" import -c 'vllm serve Qwen/Qwen3-8B' --hardware h100-sxm --engine-version ${rule%=*} -o rule.yaml
    same "$(sed -n 's/^    sizing: //p' rule.yaml)" ${rule#*=} "the rule of ${rule%=*}"
done
# a sampler that does not sort, which only rules with a sort ask about
printf 'arrival_s,prompt_tokens,output_tokens\n0,10,1\n' >one.csv
for version in 0.10.1 0.17.0; do
    succeeds "$inflight" import -c 'VLLM_USE_FLASHINFER_SAMPLER=1 vllm serve Qwen/Qwen3-8B' --hardware h100-sxm --engine-version $version -o rule.yaml
    same "$(grep -c 'flashinfer_sampler: true' rule.yaml)" $([ $version = 0.10.1 ] && echo 1 || echo 0) "the sampler of $version"
    succeeds "$inflight" run rule.yaml --dry-run --set workload.trace=one.csv
done
refuses 'serving.kv.flashinfer_sampler is true, expected with sizing vllm-0.8 to vllm-0.14 only' \
    "$inflight" run rule.yaml --dry-run --set workload.trace=one.csv --set serving.kv.flashinfer_sampler=true
# engine V0, and V1 before 0.8: worker/worker.py and v1/worker/gpu_worker.py of each
for rule in 0.6.0=vllm-0.3.1 0.6.3.post1=vllm-0.3.1 0.6.4.post1=vllm-0.6.4 0.6.5=vllm-0.6.5 0.7.3=vllm-0.6.5 0.10.0=vllm-0.6.5; do
    succeeds "$inflight" import -c 'VLLM_USE_V1=0 vllm serve Qwen/Qwen3-8B' --hardware h100-sxm --engine-version ${rule%=*} -o rule.yaml
    same "$(sed -n 's/^    sizing: //p' rule.yaml)" ${rule#*=} "the rule of ${rule%=*}"
done
succeeds "$inflight" import -c 'VLLM_USE_V1=1 vllm serve Qwen/Qwen3-8B --max-num-seqs 8 --max-num-batched-tokens 2048' --engine-version 0.7.2
printed '    sizing: vllm-0.7'
succeeds "$inflight" import "$scripts/import/vllm-0.6.4.log" -o rule.yaml
if grep -q sizing rule.yaml; then complain "$ran" '    a rule where the blocks are known'; fi
succeeds "$inflight" import graphs.log --hardware h100-sxm
if grep -q sizing logs/out; then complain "$ran" '    a rule where the blocks are known'; fi
succeeds "$inflight" import -c 'sglang serve Qwen/Qwen3-8B --mem-fraction-static 0.8'
printed '    sizing: sglang'
printed '    memory_utilization: 0.8'
# SGLang's default share goes by its release, the GPU and the flags (tests/import/data/sglang_defaults.csv)
succeeds "$inflight" import -c 'sglang serve Qwen/Qwen3-8B'
printed '    sizing: sglang'
printed 'assumed       SGLang 0.5.23, NVIDIA H100 80GB HBM3 -> serving.kv.memory_utilization=0.83: no GPU and no version is named'
succeeds "$inflight" import -c 'docker run lmsysorg/sglang:v0.5.9-cu129 python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B' --hardware h100-sxm
printed 'assumed       SGLang 0.5.9, NVIDIA H100 80GB HBM3 -> serving.kv.memory_utilization=0.835: the default of this release on this GPU'
# share FRACTION CHUNK VERSION HARDWARE FLAGS: 0.4.7 by ranks; 0.5.2 (24564 - (2.8 + 0.4) 1024) / 24564; 0.5.12 of 24564 less 512 +
# 3072 + 2 x 24 + 128 + 42 x 8; a chunk of attention in parallel counts whole: of 143771 less 512 + 12288 + 1024 + 1024 + 2 x 512 x 4.5
share() {
    succeeds "$inflight" import -c "sglang serve ${model:-Qwen/Qwen3-8B} $5" --engine-version "$3" --hardware "$4"
    printed "    memory_utilization: $1"
    printed "    chunk_tokens: $2"
}
share 0.85 8192 0.4.7 a100-80gb-sxm '--tp 4'
share 0.867 2048 0.5.2 rtx-4090 '--tp 4'
share 0.833 2048 0.5.12 rtx-4090 ''
model=Qwen/Qwen3-30B-A3B share 0.865 4096 0.5.12 h200-sxm '--tp 8 --dp 2 --enable-dp-attention'
share 0.835 8192 0.5.12 h100-sxm --disable-piecewise-cuda-graph
share 0.836 8192 0.5.12 h100-sxm '--cuda-graph-max-bs 8'
succeeds "$inflight" import -c 'sglang serve Qwen/Qwen3-8B' --engine-version 0.3.0 --hardware h100-sxm
printed 'assumed       SGLang 0.4.0, '

# ---- commands ----

# the last of several, as Python's argparse takes it
succeeds "$inflight" import -c 'vllm serve Qwen/Qwen3-8B --max-num-seqs 8 --max-num-batched-tokens 2048 --max-num-seqs 16 --max-num-seqs 12'
printed '    max_seqs: 12'
printed 'harmless      --max-num-seqs 8: given again: the last one counts'
printed 'maps          --max-num-seqs 12 -> serving.batching.max_seqs=12'
# a list of Kubernetes
succeeds "$inflight" import -c 'command:
  - python3
  - -m
  - sglang.launch_server
  - --model-path
  - /models
  - --max-running-requests
  - "20"
  # of all nodes
  - --tp
  - "16" # Size of Tensor Parallelism
  - --trust-remote-code'
printed '  tensor: 16'
printed '    max_seqs: 20'
# V1 before 0.8.5 knows H100 and H200 by their names; its seats are 1024 up to 0.8.0, in 0.8.4 on these two alone
limits() {
    succeeds "$inflight" import -c 'VLLM_USE_V1=1 vllm serve Qwen/Qwen3-8B' --engine-version "$1" --hardware "$2"
    printed "    max_batched_tokens: $3"
    printed "    max_seqs: $4"
}
limits 0.7.0 h100-sxm 8192 1024
limits 0.7.3 a100-80gb-sxm 2048 1024
limits 0.8.0 a100-80gb-sxm 2048 1024
limits 0.8.3 h200-sxm 8192 1024
limits 0.8.4 a100-80gb-sxm 2048 256
limits 0.8.2 a100-80gb-sxm 2048 256
printed 'serving.batching.max_seqs=256: its default on this GPU between 0.8.0 (1024) and 0.8.4 (256) is not known'
refuses 'max_num_batched_tokens is not said, and its default goes by the GPU' \
    "$inflight" import -c 'VLLM_USE_V1=1 vllm serve Qwen/Qwen3-8B' --engine-version 0.7.0

# The host of the version, unless the profile has times of its own for it
deployed() { # DEPLOYMENT HARDWARE VERSION COMMAND
    succeeds "$inflight" import -c "$4" --engine-version "$3" --hardware "$2" -o deployed.yaml
    same "$(sed -n 's/^deployment: //p' deployed.yaml)" "$1" "the deployment of $4 $3 on $2"
}
qwen='vllm serve Qwen/Qwen3-8B'
deployed vllm-0.6 h100-sxm 0.7.3 "$qwen"
deployed vllm-0.8 h100-sxm 0.11.0 "$qwen"
deployed vllm-0.20 h100-sxm 0.20.1 "$qwen"
deployed vllm-0.8 h100-sxm 0.20.1 "$qwen --no-async-scheduling"
deployed '' b300 0.20.1 "$qwen"
deployed trtllm-1.2 h100-sxm-trtllm1.2 1.2 'trtllm-serve Qwen/Qwen3-8B'
deployed '' h100-sxm-trtllm1.2 0.12 'trtllm-serve Qwen/Qwen3-8B --backend tensorrt'
deployed '' h100-sxm 0.5.12 'sglang serve Qwen/Qwen3-8B'

# Weights in fp8 on a GPU that has no products in fp8
succeeds "$inflight" import -c 'vllm serve Qwen/Qwen3-30B-A3B-FP8' --engine-version 0.11.0 --hardware a100-80gb-sxm -o marlin.yaml
printed 'assumed       dtype=int8: this GPU multiplies no fp8: its weights are unpacked, as those of int8'
succeeds "$inflight" import -c 'vllm serve Qwen/Qwen3-30B-A3B-FP8' --engine-version 0.11.0 --hardware h200-sxm -o native.yaml
same "$(sed -n 's/^dtype: //p' marlin.yaml native.yaml | tr '\n' ' ')" 'int8 fp8 ' 'weights in fp8'
mkdir -p checkpoints/quantised
printf '{"model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4, "num_hidden_layers": 2,
    "num_key_value_heads": 4, "vocab_size": 1000, "max_position_embeddings": 2048,
    "quantization_config": {"quant_method": "fbgemm_fp8"}}' >checkpoints/quantised/config.json
succeeds "$inflight" import -c "vllm serve $PWD/checkpoints/quantised" --engine-version 0.11.0 --hardware a100-80gb-sxm -o own.yaml
same "$(sed -n 's/^dtype: //p' own.yaml)" int8 'weights in fp8 by the config.json, on a GPU without'

# K/V in fp8 by the checkpoint's scales, from the releases on that follow them
mkdir -p checkpoints/scaled checkpoints/scheme
sed 's/"max_position_embeddings": 2048,/"max_position_embeddings": 2048}/; /quantization_config/d' checkpoints/quantised/config.json >checkpoints/scaled/config.json
echo '{"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}' >checkpoints/scaled/hf_quant_config.json
sed 's/}$/,/' checkpoints/scaled/config.json >checkpoints/scheme/config.json
echo '"quantization_config": {"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float"},
    "config_groups": {"a": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int"}}}}}' >>checkpoints/scheme/config.json
kv_of() { # CHECKPOINT VERSION [ARGUMENT]
    succeeds "$inflight" import -c "vllm serve $PWD/checkpoints/$1 ${3-}" --engine-version "$2" --hardware h100-sxm -o kv.yaml
    sed -n 's/^  kv_dtype: //p' kv.yaml
}
same "$(kv_of scaled 0.13.0)" '' "Model Optimizer's scales in 0.13"
same "$(kv_of scaled 0.14.0)" fp8 "Model Optimizer's scales in 0.14"
same "$(kv_of scaled 0.14.0 '--kv-cache-dtype bfloat16')" bf16 "Model Optimizer's scales, and another format"
same "$(kv_of scheme 0.14.1)" '' 'a kv_cache_scheme in 0.14'
same "$(kv_of scheme 0.15.0)" fp8 'a kv_cache_scheme in 0.15'
same "$(kv_of quantised 0.15.0)" '' 'no scales for K/V'

# K/V of a model with an indexer has 8 bits, unless another width is asked for.
succeeds "$inflight" import -c 'vllm serve deepseek-ai/DeepSeek-V3.2 -tp 8' --engine-version 0.13.0 --hardware h200-sxm -o sparse.yaml
printed 'assumed       engine.kv_dtype=fp8: '
succeeds "$inflight" import -c 'vllm serve deepseek-ai/DeepSeek-V3.2 -tp 8 --kv-cache-dtype bfloat16' --engine-version 0.13.0 --hardware h200-sxm -o plain.yaml
same "$(sed -n 's/^model: //p; s/^  kv_dtype: //p' sparse.yaml plain.yaml | tr '\n' ' ')" 'deepseek-v3.2 fp8 deepseek-v3.2 bf16 ' 'K/V of DeepSeek-V3.2'

# A folder with a config.json is a model
mkdir -p checkpoints/tiny
printf '{"model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4, "num_hidden_layers": 2,
    "num_key_value_heads": 4, "vocab_size": 1000, "max_position_embeddings": 2048}' >checkpoints/tiny/config.json
succeeds "$inflight" import -c "vllm serve $PWD/checkpoints/tiny" --engine-version 0.11.0 --hardware h100-sxm -o tiny.yaml
printed "assumed       model=$PWD/checkpoints/tiny: the folder has a config.json"
# With an image encoder, which profiles lack, also where a profile has its name.
vl=$PWD/checkpoints/Qwen3-VL-8B-Instruct
mkdir "$vl"
printf '{"model_type": "qwen3_vl", "text_config": {"hidden_size": 4096, "num_hidden_layers": 36, "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 12288, "vocab_size": 151936, "max_position_embeddings": 262144},
    "vision_config": {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "out_hidden_size": 4096, "patch_size": 16}}' >"$vl/config.json"
for size in '' ' --max-model-len 8192'; do
    succeeds "$inflight" import -c "vllm serve $vl$size" --engine-version 0.11.0 --hardware h100-sxm
    printed "assumed       model=$vl: the folder has a config.json"
    unsaid 'not counted'
    unsaid 'not that of the profile'
done
sed -i 's/qwen3_vl/qwen3_vl_text/' "$vl/config.json" # no type that is read
for name in "$vl" Qwen/Qwen3-VL-8B-Instruct; do
    succeeds "$inflight" import -c "vllm serve $name" --engine-version 0.11.0 --hardware h100-sxm
    printed "maps          $name -> model=qwen3-8b"
    printed 'assumed       serving.max_model_len=262144'
    printed 'not modelled  image encoder: the image encoder is not counted'
done
succeeds "$inflight" import -c "vllm serve $PWD/checkpoints/none" --engine-version 0.11.0 --hardware h100-sxm
printed "unknown       $PWD/checkpoints/none: no model of configs/models has this name"
printf 'model: nosuch\nserving: {preset: vllm-v1}\n' >nosuch.yaml
refuses 'nosuch.yaml: unknown model nosuch' "$inflight" export --server vllm nosuch.yaml

finish
