#!/bin/sh
# A server's start-up log and command line as a configuration, and back: real logs against configurations
# written by hand, every kind of flag, and input that is wrong. Sources of the logs: import/README.md.
. "$(dirname "$0")/expect.sh"
logs=$scripts/import

# Without the report that stands in front of the keys.
keys() { grep -v '^#' "$1"; }

# becomes NAME WANTED ARGUMENT...: the log NAME, with further arguments, is the configuration WANTED.yaml.
becomes() {
    log=$1
    by_hand=$2
    shift 2
    succeeds "$inflight" import "$logs/$log.log" "$@" -o got.yaml
    keys got.yaml >got.keys
    keys "$logs/$by_hand.yaml" | diff - got.keys >logs/diff ||
        complain "$log.log is not $by_hand.yaml" "$(cat logs/diff)"
}

# ---- logs ----

becomes vllm-0.6.4 vllm-0.6.4
printed "$logs/vllm-0.6.4.log:7: GPU blocks: 1207 -> serving.kv.num_blocks=1207"
printed "$logs/vllm-0.6.4.log:1: max_seq_len=2048 -> serving.max_model_len=2048"
printed "$logs/vllm-0.6.4.log:3: Using XFormers backend: kernels"
printed "$logs/vllm-0.6.4.log: 1 line: 2"
printed 'assumed       serving.batching.max_seqs=256'
becomes vllm-0.6.6-a100 vllm-0.6.6-a100 --engine-version 0.6.6 --model llama-3-8b \
    --hardware a100-40gb-sxm
becomes vllm-0.6-rtx3090 vllm-0.6-rtx3090 --engine-version 0.6.4 \
    -c 'vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 20000'

# latent K/V: blocks of 16 tokens where the log's concurrency says so, and of 64 where FlashMLA is the default
becomes vllm-0.7.3-deepseek-r1 vllm-0.7.3-deepseek-r1 --engine-version 0.7.3 \
    -c 'VLLM_USE_V1=0 vllm serve deepseek-ai/DeepSeek-R1 --tensor-parallel-size 16'
succeeds "$inflight" import --engine-version 0.9.2 --hardware h200-sxm -o got.yaml \
    -c 'vllm serve cognitivecomputations/DeepSeek-R1-AWQ --tensor-parallel-size 8'
printed 'assumed       serving.kv.block_tokens=64: FlashMLA'
printed 'cognitivecomputations/DeepSeek-R1-AWQ -> dtype=int4'
succeeds "$inflight" import --engine-version 0.9.2 --hardware a100-80gb-sxm -o got.yaml \
    -c 'vllm serve deepseek-ai/DeepSeek-V2-Lite --block-size 32'
printed '32 -> serving.kv.block_tokens=32'
succeeds "$inflight" import --engine-version 0.5.12 --hardware h100-sxm -o got.yaml \
    -c 'python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V2-Lite'
printed 'SGLang 0.5.12, NVIDIA H100 80GB HBM3 -> serving.kv.memory_utilization=0.831'

# V1 before its null block, then with it
becomes vllm-0.7-v1 vllm-0.7-v1 --engine-version 0.7.1 \
    -c 'VLLM_USE_V1=1 vllm serve neuralmagic/Meta-Llama-3.1-70B-Instruct-quantized.w8a8 --max-model-len 2048
        --gpu-memory-utilization 0.98 --max-num-seqs 1024 --max-num-batched-tokens 2048'
becomes vllm-0.9.0-l4 vllm-0.9.0-l4
printed 'NVIDIA L4 -> hardware=l4'
printed 'num_gpu_blocks is: 2114 -> serving.kv.num_blocks=2114'
sed 's/NVIDIA[ _]L4/Tesla T4/' "$logs/vllm-0.9.0-l4.log" >t4.log # which has no profile
succeeds "$inflight" import t4.log
printed 'Tesla T4 -> hardware, left as it is'

# one server, its blocks logged as blocks and as tokens: 127,626 x 16 = 2,042,016
for form in blocks tokens; do
    becomes vllm-$form vllm-blocks --engine-version 0.7.3 --hardware h100-sxm \
        -c 'VLLM_USE_V1=1 vllm serve x --max-num-seqs 1024 --max-num-batched-tokens 8192'
done

becomes sglang-qwen3-8b sglang-qwen3-8b
printed 'max_total_num_tokens=1707904 -> serving.kv.num_blocks=26686'
becomes sglang-tuning sglang-tuning --hardware h100-sxm -c 'python3 -m sglang.launch_server --model-path \
    meta-llama/Llama-3.1-8B-Instruct --tp 2 --schedule-policy lpm --disable-overlap-schedule'
becomes trtllm-memory trtllm-memory
becomes trtllm-tp2 trtllm-tp2 -c 'trtllm-serve engine --tp_size 2 --max_batch_size 8 --max_seq_len 8000
    --capacity_scheduler_policy MAX_UTILIZATION --enable_chunked_prefill'
printed 'KV cache secondary pool: 10728: K/V outside the GPU'

# Since 0.21 the size is int(blocks / blocks a request x length). 5,000 blocks, requests of 10,001 tokens are 626
# blocks: 5000 / 626 = 7.9872 requests, x 10001 = 79880.2 tokens. One block is the null block.
cat >new.log <<'END'
(APIServer pid=1) INFO [utils.py:1] vLLM API server version 0.33.0
(EngineCore pid=2) INFO [c.py:1] GPU KV cache size: 79,880 tokens, Maximum concurrency for 10,001 tokens per request: 7.99x
END
succeeds "$inflight" import new.log --hardware h200-sxm --model qwen3-8b
printed '    num_blocks: 5000'
printed '    max_seqs: 1024'
printed '    max_batched_tokens: 8192'
printed 'preset: vllm-v1-2026-11'
succeeds "$inflight" import new.log --hardware a100-80gb-sxm
printed '    max_seqs: 256'
printed '    max_batched_tokens: 2048'
succeeds "$inflight" import new.log --hardware b300
printed '    max_batched_tokens: 16384'

# Two workers of one engine: all take what the poorer can. Colours and carriage returns do not count.
printf 'INFO vLLM API server version 0.8.5\r\nINFO [core.py:1] \033[32mInitializing a V1 LLM engine (v0.8.5) with config:\033[0m tensor_parallel_size=2, max_seq_len=1600\nGPU KV cache size: 16,000 tokens\nGPU KV cache size: 15,984 tokens\nMaximum concurrency for 1,600 tokens per request: 10.00x\nMaximum concurrency for 1,600 tokens per request: 9.99x\n' >two.log
succeeds "$inflight" import two.log -c 'vllm serve x --max-num-seqs 8 --max-num-batched-tokens 2048 -tp 2'
printed '    num_blocks: 999'

# a log in two files
head -2 two.log >first.log
tail -4 two.log >second.log
succeeds "$inflight" import first.log second.log -c 'vllm serve x --max-num-seqs 8 --max-num-batched-tokens 2048'
printed '    num_blocks: 999'

# ---- flags ----

succeeds "$inflight" import -c 'docker run --gpus all -e VLLM_USE_V1=1 -e HF_TOKEN=secret vllm/vllm-openai:v0.9.1 \
    --model meta-llama/Llama-2-7b-chat-hf --max_num_seqs=64 --max-num-batched-token 1k -tp=2 -q awq --no-enable-prefix-caching \
    --speculative-config '\''{"num_speculative_tokens": 3}'\'' -O3 --port 8000 --api-key secret --frobnicate 7 \
    --max-model-len 4K --block-size 32 --num-gpu-blocks-override 1001 2>&1 | tee log'
printed 'maps          --max_num_seqs 64 -> serving.batching.max_seqs=64'
printed 'maps          --max-num-batched-token 1k -> serving.batching.max_batched_tokens=1000'
printed 'maps          -tp 2 -> parallel.tensor=2'
printed 'maps          --no-enable-prefix-caching -> serving.kv.prefix_cache=none'
printed 'maps          --max-model-len 4K -> serving.max_model_len=4096'
printed 'maps          --block-size 32 -> serving.kv.block_tokens=32'
printed 'maps          --num-gpu-blocks-override 1001 -> serving.kv.num_blocks=1001'
printed 'maps          -q awq -> dtype=int4'
printed 'not modelled  --speculative-config {"num_speculative_tokens": 3}: speculative decoding'
printed 'not modelled  -O3 3: CUDA graphs'
printed 'harmless      --port 8000'
printed 'unknown       --frobnicate 7'
printed 'model: llama-2-7b'
printed 'preset: vllm-v1-2025-05'
if grep -q secret logs/out; then complain "$ran" '    a secret is printed'; fi

# ranks that share one model are no replicas
succeeds "$inflight" import -c 'vllm serve Qwen/Qwen3-30B-A3B --tensor-parallel-size 8 --data-parallel-size 2
    --enable-expert-parallel -dcp 2 --max-num-seqs 8 --max-num-batched-tokens 2048'
printed 'maps          --data-parallel-size 2 -> parallel.data=2'
printed 'maps          --enable-expert-parallel -> parallel.expert=16'
printed 'maps          -dcp 2 -> parallel.context=2'
if grep -q 'replicas: 2' logs/out; then complain "$ran" '    made replicas of the ranks'; fi
succeeds "$inflight" import -c 'vllm serve Qwen/Qwen3-8B --data-parallel-size 2 --max-num-seqs 8 --max-num-batched-tokens 2048'
printed 'replicas: 2'
succeeds "$inflight" import -c 'python -m sglang.launch_server --model-path Qwen/Qwen3-30B-A3B --tp 8 --dp 8
    --enable-dp-attention --mem-fraction-static 0.8 --chunked-prefill-size -1'
printed 'maps          --enable-dp-attention -> parallel.data=8'
printed 'maps          --mem-fraction-static 0.8 -> serving.kv.memory_utilization=0.8'
printed 'chunk_tokens: 0'
if grep -q 'replicas: 8' logs/out; then complain "$ran" '    made replicas of the ranks'; fi
succeeds "$inflight" import -c 'python -m sglang.launch_server --model-path Qwen/Qwen3-30B-A3B --tp 8 --dp 2
    --enable-dp-attention --ep-size 4 --chunked-prefill-size -1'
printed 'maps          --dp 2 -> parallel.data=2'
printed 'maps          --ep-size 4 -> parallel.expert=4'
printed 'maps          --tp 8 -> parallel.tensor=4'
succeeds "$inflight" import -c 'python -m sglang.launch_server --model-path Qwen/Qwen3-30B-A3B --tp 8
    --moe-a2a-backend deepep --chunked-prefill-size -1'
printed 'maps          --moe-a2a-backend deepep -> parallel.expert=8'
refuses 'inflight: the command line: dp_size is 3, expected a divisor of tp_size (8)' "$inflight" import -c 'python -m
    sglang.launch_server --model-path Qwen/Qwen3-30B-A3B --tp 8 --dp 3 --enable-dp-attention'

# the PyTorch executor of trtllm-serve 1.x, and the C++ one
echo '[TensorRT-LLM] TensorRT LLM version: 1.2.0' >trt.log
echo '[TensorRT-LLM][INFO] Max KV cache blocks per sequence: 65 [window size=2051], tokens per block=32, primary blocks=116617, secondary blocks=0' >>trt.log
succeeds "$inflight" import trt.log -c 'trtllm-serve serve Qwen/Qwen3-30B-A3B --tp_size 4 --ep_size 2'
printed 'preset: trtllm-1.2-no-evict'
printed 'num_blocks: 116617'
printed 'maps          --ep_size 2 -> parallel.expert=2'
succeeds "$inflight" import -c 'trtllm-serve Qwen/Qwen3-8B --backend tensorrt'
printed 'preset: trtllm-no-evict'
succeeds "$inflight" import -c 'trtllm-build --checkpoint_dir c --max_batch_size 8'
printed 'preset: trtllm-no-evict'

# what a server took counts, whatever it was asked for
printf '[core.py:1] Initializing a V1 LLM engine (v0.9.1) with config: dtype=torch.float16, enable_prefix_caching=False\nGPU KV cache size: 16,000 tokens\n' >took.log
succeeds "$inflight" import took.log -c 'vllm serve x --dtype bfloat16 --enable-prefix-caching --max-num-seqs 8
    --max-num-batched-tokens 512 --enable-chunked-prefill True'
printed '--dtype bfloat16 -> engine.dtype=fp16'
printed '--enable-prefix-caching -> serving.kv.prefix_cache=none'

# K/V in fp8; another format of eight bits is not modelled
succeeds "$inflight" import -c 'vllm serve Qwen/Qwen3-8B --kv-cache-dtype fp8 --max-num-seqs 8 --max-num-batched-tokens 2048
    --num-gpu-blocks-override 900' -o fp8.yaml
same "$(grep -c '^  kv_dtype: fp8$' fp8.yaml)" 1 'kv_dtype of fp8.yaml'
succeeds "$inflight" export --server vllm fp8.yaml
printed '--kv-cache-dtype fp8_e4m3'
succeeds "$inflight" import -c 'vllm serve Qwen/Qwen3-8B --kv-cache-dtype fp8_e5m2 --max-num-seqs 8 --max-num-batched-tokens 2048'
printed 'not modelled  --kv-cache-dtype fp8_e5m2: the width of K/V'
succeeds "$inflight" import -c 'vllm serve Qwen/Qwen3-8B --kv-cache-dtype auto --max-num-seqs 8 --max-num-batched-tokens 2048'
printed 'harmless      --kv-cache-dtype auto'

# Guesses. A preset is what its own flags are read as; how many guesses hold is said by no server.
serves_qwen() {
    succeeds "$inflight" import -c "vllm serve ${model:-Qwen/Qwen3-8B} --max-num-seqs 8 --max-num-batched-tokens 2048 $1"
}
serves_qwen "--speculative-config '{\"method\":\"ngram\",\"num_speculative_tokens\":5,\"prompt_lookup_max\":4,\"prompt_lookup_min\":2}'"
printed '"prompt_lookup_min":2} -> serving.draft.policy=ngram'
printed 'maps          speculative_config: num_speculative_tokens=5 -> serving.draft.tokens=5'
printed 'maps          speculative_config: prompt_lookup_max=4 -> serving.speculation.longest_match=4'
printed 'maps          speculative_config: prompt_lookup_min=2 -> serving.speculation.shortest_match=2'
printed 'assumed       serving.speculation.acceptance=0.7: '
printed 'assumed       serving.in_flight.ahead=0: '
printed '    lookahead_tokens: 0'
# EAGLE's and MTP's guesses go with asynchronous scheduling, others do not; a member of its own flag is one of the object
serves_qwen "--speculative-config.method eagle3 --speculative-config.num_speculative_tokens 3
    --speculative-config.draft_tensor_parallel_size 1 --speculative-config.frobnicate 1"
printed 'maps          speculative_config: method=eagle3 -> serving.draft.policy=fixed'
printed 'harmless      speculative_config: draft_tensor_parallel_size=1'
printed 'unknown       speculative_config: frobnicate=1'
printed 'assumed       serving.in_flight.ahead=1: '
printed '    lookahead_tokens: -1'
printed '    proposer: head'
serves_qwen "--speculative-config '{\"method\":\"qwen3_next_mtp\"}'"
printed 'assumed       serving.draft.tokens=1: one layer'
serves_qwen "--speculative-config '{\"method\":\"medusa\",\"num_speculative_tokens\":4}'"
printed '    layers: 0'
printed '    ahead: 0'
serves_qwen "--speculative-config '{\"model\":\"Qwen/Qwen3-8B\",\"num_speculative_tokens\":4,\"num_speculative_tokens_per_batch_size\":[[1,8,4],[9,32,1]]}'"
printed '    model: qwen3-8b'
printed "    table: '1-8:4,9-32:1'"
printed '    draft_input_tokens: 1'
serves_qwen "--speculative-config '{\"method\":\"suffix\",\"num_speculative_tokens\":4}'"
printed '"num_speculative_tokens":4}: speculative decoding with a method that serving.draft'
serves_qwen '--speculative-config eagle'
printed 'not modelled  --speculative-config eagle: speculative decoding: this is no object'
serves_qwen "--speculative-config '{\"model\":\"tiny\",\"num_speculative_tokens\":4}'"
printed ': speculative decoding: no model of configs/models has the draft model'
if grep -q 'draft:' logs/out; then complain "$ran" '    guesses what it cannot'; fi
succeeds "$inflight" import --engine-version 0.6.4 -c 'vllm serve facebook/opt-66b --speculative-model facebook/opt-13b
    --num-speculative-tokens 5 --speculative-disable-by-batch-size 8'
printed 'maps          --num-speculative-tokens 5 -> serving.draft.tokens=5'
printed 'maps          --speculative-disable-by-batch-size 8 -> serving.draft.table=1-7:5,8-:0'
printed '    model: opt-13b'
printed '    prompts_look_ahead: false'
# a log prints the object in other words than the command line
printf "vLLM API server version 0.9.1\nInitializing a V1 LLM engine (v0.9.1) with config: model='x', speculative_config=SpeculativeConfig(method='eagle3', model='y', num_spec_tokens=3), max_seq_len=1600\nGPU KV cache size: 16,000 tokens\n" >draft.log
succeeds "$inflight" import draft.log -c 'vllm serve x --max-num-seqs 8 --max-num-batched-tokens 512'
printed '    tokens: 3'
printed 'draft.log:2: speculative_config: num_spec_tokens=3 -> serving.draft.tokens=3'
guesses() {
    succeeds "$inflight" import -c "python -m sglang.launch_server --model-path $1 --speculative-algorithm $2"
}
guesses Qwen/Qwen3-8B 'EAGLE3 --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4'
printed 'maps          --speculative-num-draft-tokens 4 -> serving.draft.tokens=3'
printed '    lookahead_tokens: 4'
printed 'assumed       serving.batching.max_seqs=48: '
printed 'assumed       serving.in_flight.ahead=0: as the preset sglang-eagle'
# 5 steps of 4 branches: 2 x max(5 x 4, 8) - 8 = 32
guesses meta-llama/Llama-2-7b-chat-hf EAGLE
printed 'assumed       serving.draft.tokens=7: '
printed '    lookahead_tokens: 32'
printed '    acceptance: 0.7,0.7,0.7,0.7,0.7'
guesses Qwen/Qwen3-8B NEXTN
printed 'assumed       serving.draft.tokens=3: '
guesses Qwen/Qwen3-8B NGRAM
printed '    tokens: 11'
guesses Qwen/Qwen3-32B 'STANDALONE --speculative-draft-model-path Qwen/Qwen3-8B'
printed '    model: qwen3-8b'
guesses Qwen/Qwen3-8B DFLASH
printed 'not modelled  --speculative-algorithm DFLASH: speculative decoding with an algorithm'

# K/V below the device: 32 GiB = 34359738368 bytes; SGLang's 30 GB of each of 2 GPUs are 60e9 / 2^30 = 55.8793544769287 GiB
serves_qwen '--kv-offloading-size 32'
printed 'maps          --kv-offloading-size 32 -> serving.kv.tiers.host.gib=32'
printed 'assumed       serving.kv.tiers.host.gb_per_s=25: PCIe'
printed '        loads: apart'
serves_qwen "--kv-transfer-config '{\"kv_connector\":\"OffloadingConnector\",\"kv_role\":\"kv_both\",\"kv_connector_extra_config\":{\"cpu_bytes_to_use\":34359738368,\"block_size\":64,\"store_threshold\":2}}'"
printed '}} -> serving.kv.tiers.host.gib=32'
printed '        unit_tokens: 64'
printed '        store_after: 2'
serves_qwen '--kv-transfer-config.kv_connector OffloadingConnector --kv-transfer-config.kv_connector_extra_config.num_cpu_blocks 1000'
printed '        blocks: 1000'
serves_qwen "-tp 2 --kv-transfer-config '{\"kv_connector\":\"LMCacheConnectorV1\",\"kv_role\":\"kv_both\"}'"
printed 'assumed       serving.kv.tiers.host.gib=10: '
printed '        unit_tokens: 256'
printed '        loads: before'
printed '        begin_first: true'
succeeds "$inflight" import -c "LMCACHE_MAX_LOCAL_CPU_SIZE=20 LMCACHE_CHUNK_SIZE=128 vllm serve Qwen/Qwen3-8B --max-num-seqs 8
    --max-num-batched-tokens 2048 --kv-transfer-config '{\"kv_connector\":\"LMCacheConnectorV1\",\"kv_role\":\"kv_both\"}'"
printed 'maps          LMCACHE_MAX_LOCAL_CPU_SIZE=20 -> serving.kv.tiers.host.gib=20'
printed 'maps          LMCACHE_CHUNK_SIZE=128 -> serving.kv.tiers.host.unit_tokens=128'
serves_qwen "--kv-transfer-config '{\"kv_connector\":\"OffloadingConnector\"}'"
printed '"}: K/V outside the GPU: its size is missing'
serves_qwen '--kv-offloading-size 32 --no-enable-prefix-caching'
printed 'not modelled  --kv-offloading-size 32: K/V outside the GPU without a prefix cache'
serves_qwen "--kv-offloading-size 32 --speculative-config '{\"method\":\"eagle\",\"num_speculative_tokens\":3}'"
printed 'not modelled  --kv-offloading-size 32: K/V outside the GPU beside speculative decoding'
serves_qwen '--kv-offloading-size 32 -pp 2'
printed 'not modelled  --kv-offloading-size 32: K/V outside the GPU in a pipeline'
model=Qwen/Qwen3-30B-A3B serves_qwen '--kv-offloading-size 32 -dp 2 --enable-expert-parallel'
printed 'not modelled  --kv-offloading-size 32: K/V outside the GPU with parallel.data'

# ---- what a model cannot have ----

serves_qwen '--enable-expert-parallel -dp 2 --no-async-scheduling --no-enable-chunked-prefill'
printed 'harmless      --enable-expert-parallel: the model has no experts'
printed 'maps          -dp 2 -> cluster.replicas=2'
printed 'maps          --no-async-scheduling -> serving.in_flight.ahead=0'
printed 'not modelled  --no-enable-chunked-prefill: engine V1 without chunks'
refuses 'parallel.context is 2, expected a divisor of the 1 ranks that hold the same of the 8 KV heads' \
    "$inflight" import -c 'vllm serve Qwen/Qwen3-8B --decode-context-parallel-size 2 -tp 8' --hardware h100-sxm
refuses 'parallel.data is 2, expected 1 for qwen3-8b, which has no experts' \
    "$inflight" import -c 'sglang serve Qwen/Qwen3-8B --tp 8 --dp 2 --enable-dp-attention'

# ---- tiers of SGLang ----

# the host launches the kernels of prompts: a floor where a layer has many of them, unless the profile has a host of its own
floor='assumed       deployment.host.prompt_floor_layer_s=2e-3'
serves() { # MODEL
    succeeds "$inflight" import --hardware b200-sxm --engine-version 0.5.6 -c "python -m sglang.launch_server --tp 8 --model-path $1"
}
serves deepseek-ai/DeepSeek-R1
printed "$floor"
serves Qwen/Qwen3-Next-80B-A3B-Instruct
printed "$floor"
serves Qwen/Qwen3-235B-A22B
! grep -q prompt_floor logs/out || complain 'a floor for prompts of Qwen3-235B'
printed 'assumed       deployment.front_end.request_s=0.03'
printed 'assumed       deployment.intervals.front_end.request_s=[0.01, 0.07]'

sglang_serves() {
    succeeds "$inflight" import -c "python -m sglang.launch_server --model-path Qwen/Qwen3-8B $1"
}
sglang_serves '--enable-hierarchical-cache --hicache-ratio 3 --hicache-write-policy write_through_selective'
printed 'maps          --hicache-ratio 3 -> serving.kv.tiers.host.device_ratio=3'
printed '        store_after: 2'
printed '        answers: true'
sglang_serves '--tp 2 --enable-hierarchical-cache --hicache-size 30 --hicache-write-policy write_back'
printed 'maps          --hicache-size 30 -> serving.kv.tiers.host.gib=55.8793544769287'
printed '        stores: evicted'
sglang_serves '--hicache-ratio 3'
printed 'harmless      --hicache-ratio 3'
sglang_serves '--enable-hierarchical-cache --disable-radix-cache'
printed 'not modelled  --enable-hierarchical-cache: K/V outside the GPU without a prefix cache'
succeeds "$inflight" import -c 'trtllm-serve Qwen/Qwen3-8B --tp_size 2 --host_cache_size 17179869184'
printed 'maps          --host_cache_size 17179869184 -> serving.kv.tiers.host.gib=32'
printed '        stores: evicted'

# a server for prompts or for answers alone is one pool
serves_qwen "--kv-transfer-config '{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_producer\"}'"
printed '-> cluster.pools, left as it is: this is a pool with role prefill and this preset, under cluster.preset vllm-nixl'
serves_qwen "--kv-transfer-config '{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}'"
printed 'this is a pool with role prefill or decode, as the proxy uses it'
serves_qwen "--kv-transfer-config '{\"kv_connector\":\"P2pNcclConnector\",\"kv_role\":\"kv_producer\"}'"
printed '"}: K/V that moves between servers in a way that no cluster.preset has'
sglang_serves '--disaggregation-mode prefill'
printed 'this is a pool with role prefill and preset sglang-pd-prefill, under cluster.preset sglang-pd'
sglang_serves '--disaggregation-mode decode'
printed 'this is a pool with role decode and preset sglang-pd-decode, under cluster.preset sglang-pd'
sglang_serves '--disaggregation-mode null'
printed 'harmless      --disaggregation-mode null'

# no word of a shell is run or expanded
# shellcheck disable=SC2016 # nothing is to be expanded
succeeds "$inflight" import -c 'vllm serve $(touch ran) --max-num-seqs 8 --max-num-batched-tokens 512 `touch ran` *'
[ ! -e ran ] || complain "$ran" '    a word was run'
printed 'unknown       *'

# what is imported flies
printf 'arrival_s,prompt_tokens,output_tokens\n0,10,5\n0,200,30\n1,30,4\n' >three.csv
succeeds "$inflight" import "$logs/vllm-0.6.4.log" -o fly.yaml
succeeds "$inflight" run fly.yaml --quiet --set workload.trace=three.csv --set cost.model=linear \
    --set cost.step_s=0.01 -o flown

# ---- there and back ----

# Under a command line's import the same requests take the same steps as under the preset.
fly() {
    succeeds "$inflight" run "$1" --quiet --set workload.trace=three.csv --set cost.model=linear \
        --set cost.step_s=0.01 --set output.steps=true --set workload.arrivals.process=burst -o "$2"
}
# Several steps at once, and several prompts, of engine V0; adapters of engine V1.
succeeds "$inflight" import -c 'VLLM_USE_V1=0 vllm serve meta-llama/Llama-2-7b-chat-hf --num-scheduler-steps 8' --engine-version 0.8.4 -o steps.yaml
printed 'maps          --num-scheduler-steps 8 -> serving.batching.num_scheduler_steps=8'
succeeds "$inflight" import -c 'VLLM_USE_V1=0 vllm serve meta-llama/Llama-2-7b-chat-hf --enable-chunked-prefill --max-num-partial-prefills 4
    --max-long-partial-prefills 2 --long-prefill-token-threshold 500 --num-scheduler-steps 8' --engine-version 0.8.4 -o partial.yaml
printed 'maps          --max-num-partial-prefills 4 -> serving.batching.max_partial_prefills=4'
printed 'maps          --max-long-partial-prefills 2 -> serving.batching.max_long_partial_prefills=2'
printed 'maps          --long-prefill-token-threshold 500 -> serving.batching.long_prefill_tokens=500'
grep -q 'not modelled .*several steps at once with chunks' logs/out || complain 'steps at once with chunks are modelled'
succeeds "$inflight" import -c 'vllm serve meta-llama/Llama-2-7b-chat-hf --enable-lora --max-loras 4 --lora-modules a=b' --hardware h100-sxm -o lora.yaml
printed 'maps          --max-loras 4 -> serving.adapters.max_loras=4'
grep -q 'adapter-slots' lora.yaml || complain 'no admission adapter-slots in lora.yaml'
for preset in "$INFLIGHT_DATA"/configs/serving/vllm-v*.yaml "$INFLIGHT_DATA"/configs/serving/sglang*.yaml; do
    name=$(basename "$preset" .yaml)
    case $name in sglang*) server=sglang ;; *) server=vllm ;; esac
    case $name in *-pd-*) continue ;; esac # a pool of several
    rm -rf there back
    printf 'model: llama-2-7b\nparallel: {tensor: 2}\nserving: {preset: %s, max_model_len: 512, kv: {num_blocks: 17}, batching: {max_seqs: 3}}\n' \
        "$name" >there.yaml
    succeeds "$inflight" export --server $server there.yaml -o command
    succeeds "$inflight" import --command "$(cat command)" -o back.yaml
    grep -q '^unknown *no GPU' logs/out || complain "$name: the GPU is not said to be missing"
    succeeds "$inflight" export --server $server back.yaml -o again
    same_bytes command again
    fly there.yaml there
    fly back.yaml back
    same_bytes there/requests.csv back/requests.csv
    same_bytes there/steps.csv back/steps.csv
    # a tier without a size is none, whatever else a preset says of it
    for side in there back; do
        grep -v -e '  preset:' -e '^  dir:' $side/config.yaml | awk '
            function put() { if (!none) printf "%s", block; block = "" }
            /^      (host|disk|store):$/ { put(); inside = none = 1 }
            inside && !/^        / && !/^      (host|disk|store):$/ { put(); inside = none = 0 }
            inside && /^        (blocks|gib|device_ratio): / && $2 != 0 { none = 0 }
            { block = block $0 "\n" }
            END { put() }' >$side.keys
    done
    same_bytes there.keys back.keys
done
# what is read of these flags is written with them again: no note, and the second time the same words
returns() {
    succeeds "$inflight" import --command "$2" -o there.yaml
    expect 0 '' "$inflight" export --server "$1" there.yaml -o command
    grep -qF -- "$3" command || complain "$2" "    is written as $(cat command)"
    succeeds "$inflight" import --command "$(cat command)" -o back.yaml
    succeeds "$inflight" export --server "$1" back.yaml -o again
    same_bytes command again
}
qwen='vllm serve Qwen/Qwen3-8B --max-num-seqs 8 --max-num-batched-tokens 2048'
llama='python -m sglang.launch_server --model-path meta-llama/Llama-2-7b-chat-hf --tp 2'
returns vllm "$qwen --speculative-config '{\"method\":\"medusa\",\"num_speculative_tokens\":4}'" '"method":"medusa","num_speculative_tokens":4,'
returns vllm "$qwen --speculative-config '{\"method\":\"ngram\",\"num_speculative_tokens\":4,\"prompt_lookup_max\":3}'" '"prompt_lookup_min":3'
returns vllm "$qwen --speculative-config '{\"model\":\"Qwen/Qwen3-8B\",\"num_speculative_tokens\":4,\"num_speculative_tokens_per_batch_size\":[[1,8,4],[9,32,1]]}'" \
    '[[1,8,4],[9,32,1]]'
returns vllm "$qwen -tp 2 --kv-transfer-config '{\"kv_connector\":\"LMCacheConnectorV1\",\"kv_role\":\"kv_both\"}'" \
    '{"lmcache.max_local_cpu_size":5.0}'
returns vllm "$qwen --kv-transfer-config '{\"kv_connector\":\"OffloadingConnector\",\"kv_connector_extra_config\":{\"num_cpu_blocks\":100,\"block_size\":64}}'" \
    '{"num_cpu_blocks":100,"block_size":64}'
returns sglang "$llama --speculative-algorithm EAGLE" \
    '--speculative-num-steps 5 --speculative-eagle-topk 4 --speculative-num-draft-tokens 8'
returns sglang "$llama --speculative-algorithm NGRAM" 'NGRAM --speculative-num-draft-tokens 12'
returns sglang "$llama --speculative-algorithm STANDALONE --speculative-draft-model-path Qwen/Qwen3-8B" \
    'STANDALONE --speculative-draft-model-path Qwen/Qwen3-8B'
returns sglang "$llama --enable-hierarchical-cache --hicache-size 30 --hicache-write-policy write_back" '--hicache-size 30 '
printf 'model: llama-2-7b\nserving: {preset: vllm-v1-eagle, speculation: {acceptance: 0.5}}\n' >half.yaml
expect 0 'note: no argument of vLLM says serving.speculation.acceptance=0.5' "$inflight" export --server vllm half.yaml
printf 'model: llama-2-7b\nserving: {preset: vllm-v1-offload, kv: {tiers: {host: {gb_per_s: 50}}}}\n' >fast.yaml
expect 0 'note: no argument of vLLM says serving.kv.tiers.host.gb_per_s=50' "$inflight" export --server vllm fast.yaml
printf 'model: llama-2-7b\nserving: {preset: vllm-v1, admit: {policy: chunk-fits, room_for: prompt, watermark_frac: 0.25}, evict: {policy: lfu}}\n' >odd.yaml
expect 0 'note: no argument of vLLM says serving.evict.policy=lfu' "$inflight" export --server vllm odd.yaml
printed ' --watermark 0.25 '
printf 'serving: {preset: orca-max}\n' >orca.yaml
expect 0 'note: no argument of vLLM says *serving.kv.allocator=buddy' "$inflight" export --server vllm orca.yaml
refuses 'orca.yaml: serving.batching.policy is mixed, which SGLang has not' \
    "$inflight" export --server sglang orca.yaml
printf 'model: llama-2-7b\nserving: {preset: sglang, max_waiting_reqs: 40, kv: {num_blocks: 100}}\n' >queue.yaml
expect 0 '' "$inflight" export --server sglang queue.yaml
printed ' --max-queued-requests 40'
refuses 'inflight export: --server is trtllm, expected vllm or sglang' "$inflight" export --server trtllm odd.yaml
refuses 'none.yaml: cannot be opened' "$inflight" export --server vllm none.yaml

# ---- several kinds of K/V layers ----

# 33.04 requests of 32768 tokens are 67,665 blocks of 16; since 0.21 the size is that of such requests: 567,978 / 16
succeeds "$inflight" import "$logs/vllm-0.19-hybrid.log" --engine-version 0.19.0 -c 'vllm serve Qwen3.5-27B --trust-remote-code
    --max-model-len 32768 --max-num-seqs 16 --max-num-batched-token 16384 --load-format dummy'
printed '    num_blocks: 67665'
printed 'vllm-0.19-hybrid.log:1: several kinds of K/V layers: size and concurrency are not those of one kind.'
head -4 "$logs/vllm-0.24-hybrid.log" >hybrid.log # its last line is cut
succeeds "$inflight" import hybrid.log --engine-version 0.24.0
printed '    num_blocks: 35498'
printed 'not modelled  hybrid.log:2: several kinds of K/V layers: '
# blocks that are as large as a state: 567,978 / 800; the line counts whatever was said of blocks before
{
    echo '(EngineCore pid=107) INFO 07-06 22:52:01 [interface.py:551] Setting kv cache block size to 16 for FLASH_ATTN backend.'
    echo '(EngineCore pid=107) INFO 07-06 22:52:02 [interface.py:931] Setting attention block size to 800 tokens to ensure that attention page size is >= mamba page size.'
    cat hybrid.log
} >states.log
succeeds "$inflight" import states.log --engine-version 0.24.0
printed '    block_tokens: 800'
printed '    num_blocks: 709'
# without the concurrency there is nothing to tell them by, and a request that does not fit at all is none
sed 's/4.33x/0.00x/; s/567,978/9/' hybrid.log >tiny.log
refuses 'tiny.log:2: the size of the K/V and the concurrency of 0 do not fit blocks of 16 tokens' \
    "$inflight" import tiny.log --engine-version 0.24.0

# ---- wrong input: one line, exit code 2, no configuration ----

rm -f got.yaml
# wrong PATTERN ARGUMENT...
wrong() {
    pattern_of=$1
    shift
    refuses "$pattern_of" "$inflight" import "$@" -o got.yaml
    [ ! -e got.yaml ] || complain "$ran" '    wrote a configuration'
}
try "$inflight" import
same "$code" 2 "$ran"
wrong 'vllm-0.8.1-cut.log:6: the list of arguments ends within a value, where the log ends' "$logs/vllm-0.8.1-cut.log"
head -4 "$logs/vllm-0.24-hybrid.log" >hybrid.log # its last line is cut
wrong 'vllm-0.24-hybrid.log:5: the list of arguments ends within a value, where the log ends' "$logs/vllm-0.24-hybrid.log"
wrong 'vllm-tokens.log: no line says which version of vLLM this is: give --engine-version' "$logs/vllm-tokens.log"
for version in 0.5.4 0.99 1.0 dev; do
    wrong "vLLM $version is not known, expected 0.6 to 0.33" "$logs/vllm-tokens.log" --engine-version $version
done
wrong 'max_num_seqs is not said, and its default goes by the GPU' -c 'vllm serve x --max-num-batched-tokens 512'
wrong 'two.log:2: tensor_parallel_size is 2, but the command line says 4' two.log -c 'vllm serve x -tp 4'

log() { printf 'vLLM API server version 0.9.1\n'; cat; }
log >counts.log <<'END'
GPU KV cache size: 16,000 tokens
GPU KV cache size: 32,000 tokens
END
wrong 'counts.log:3: K/V of 32,000 tokens, but line 2 of counts.log says 16,000, expected one size' counts.log \
    -c 'vllm serve x --max-num-seqs 8 --max-num-batched-tokens 512'
log >blocks.log <<'END'
# GPU blocks: 1000, # CPU blocks: 0
# GPU blocks: 1001, # CPU blocks: 0
END
wrong 'blocks.log:3: num_gpu_blocks is 1001, but blocks.log:2 says 1000' blocks.log
log >size.log <<'END'
args: Namespace(block_size=16, max_num_seqs=8, max_num_batched_tokens=512)
GPU KV cache size: 16,000 tokens
END
wrong 'size.log:2: block_size is 16, but the command line says 32' size.log -c 'vllm serve x --block-size 32'
log >override.log <<'END'
GPU KV cache size: 16,000 tokens
END
wrong 'the command line: num_gpu_blocks_override is 900, but the log says 1000 blocks of 16 tokens' override.log \
    -c 'vllm serve x --num-gpu-blocks-override 900 --max-num-seqs 8 --max-num-batched-tokens 512'
cat two.log two.log >servers.log
wrong 'servers.log:8: a second server starts here, the first on line 2 of servers.log' servers.log
cat two.log "$logs/sglang-tuning.log" >mixed.log
wrong 'mixed.log:7: this is of SGLang, but mixed.log:1 is of vLLM, expected one server' mixed.log
wrong 'this is of SGLang, but the command line is of vLLM' "$logs/sglang-tuning.log" -c 'vllm serve x'
wrong 'three.csv: no line is of a server that is known' three.csv
wrong 'none.log: cannot be opened: No such file' none.log
wrong 'logs: cannot be read: Is a directory' logs
LC_ALL=C tr -d '0-9' <"$inflight" | head -c 4096 >junk.log # a 0 between digits is another error
wrong 'junk.log: no line is of a server that is known' junk.log
dd if=/dev/zero bs=1048576 count=3 2>/dev/null | tr '\0' 'x' >long.log
wrong 'long.log:1: a line of more than 1 MiB' long.log
wrong 'the command line starts no server that is known' -c 'llama-server -m x'
wrong 'the command line: a quote is not closed' -c "vllm serve 'x"
wrong 'the command line: --max-num-seqs expects a value' -c 'vllm serve x --max-num-seqs --port 8000'
wrong 'the command line: --speculative-config is not JSON' -c "vllm serve x --speculative-config '{num: 3'"
wrong 'the command line: max_num_seqs is many, expected a whole number' \
    -c 'vllm serve x --max-num-batched-tokens 512 --max-num-seqs many'
wrong 'the command line: hicache_write_policy is never, expected write_back, write_through or write_through_selective' \
    -c 'python -m sglang.launch_server --model-path x --enable-hierarchical-cache --hicache-write-policy never'
wrong 'the command line: kv_offloading_size is much, expected a number' \
    -c 'vllm serve x --max-num-batched-tokens 512 --max-num-seqs 8 --kv-offloading-size much'
wrong 'num_speculative_tokens_per_batch_size has a row of 1 numbers or too many rows, expected the first' \
    -c "$qwen --speculative-config '{\"method\":\"eagle\",\"num_speculative_tokens\":3,\"num_speculative_tokens_per_batch_size\":[[1]]}'"
wrong 'what is imported is no configuration: unknown order policy best' \
    -c 'vllm serve x --max-num-seqs 8 --max-num-batched-tokens 512 --scheduling-policy best'
wrong 'unknown hardware profile h100-sxn, did you mean h100-sxm[?]' -c 'vllm serve x' --hardware h100-sxn

finish
