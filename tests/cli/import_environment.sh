#!/bin/sh
# Environment variables in front of a server's command, and in the environment of its container.
. "$(dirname "$0")/expect.sh"

# of COMMAND: it is imported
of() {
    succeeds "$inflight" import --hardware h100-sxm --command "$1"
}
vllm='vllm serve Qwen/Qwen3-8B --max-num-seqs 8 --max-num-batched-tokens 2048'
sglang='python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B'

# ---- variables of another server ----

of "VLLM_USE_V1=1 VLLM_USE_FLASHINFER_SAMPLER=0 TLLM_LOG_LEVEL=INFO $sglang"
printed 'harmless      VLLM_USE_V1=1: SGLang does not read it'
printed 'harmless      VLLM_USE_FLASHINFER_SAMPLER=0: SGLang does not read it'
printed 'harmless      TLLM_LOG_LEVEL=INFO: SGLang does not read it'
of "SGLANG_SET_CPU_AFFINITY=1 SGL_ENABLE_JIT_DEEPGEMM=1 VLLM_USE_V1=1 $vllm"
printed 'harmless      SGLANG_SET_CPU_AFFINITY=1: vLLM does not read it'
printed 'harmless      SGL_ENABLE_JIT_DEEPGEMM=1: vLLM does not read it'
printed 'maps          VLLM_USE_V1=1 -> serving.preset=vllm-v1'
of 'VLLM_USE_V1=0 trtllm-serve Qwen/Qwen3-8B'
printed 'harmless      VLLM_USE_V1=0: TensorRT-LLM does not read it'

# The server is the one that a shell in the container starts.
of "docker run -e VLLM_USE_V1=1 lmsysorg/sglang:v0.5.9 bash -c '$sglang --tp 2'"
printed 'harmless      VLLM_USE_V1=1: SGLang does not read it'

# ---- variables of scripts ----

# The command has the value, or does without it.
of "SGLANG_MODEL=Qwen/Qwen3-8B SGLANG_TP=4 SGLANG_NEW_KNOB=1 $sglang"
printed 'harmless      SGLANG_MODEL=Qwen/Qwen3-8B: SGLang does not read it'
printed 'harmless      SGLANG_TP=4: SGLang does not read it'
printed 'unknown       SGLANG_NEW_KNOB=1'
unsaid 'parallel.tensor=4'
# shellcheck disable=SC2016 # variables of the command
of 'export VLLM_MODEL=Qwen/Qwen3-8B VLLM_TP=2
vllm serve $VLLM_MODEL -tp $VLLM_TP --max-num-seqs 8 --max-num-batched-tokens 2048'
printed 'harmless      VLLM_MODEL=Qwen/Qwen3-8B: vLLM does not read it'
printed 'maps          Qwen/Qwen3-8B -> model=qwen3-8b'
printed 'maps          -tp 2 -> parallel.tensor=2'

# ---- variables that are known ----

of "VLLM_LOGGING_LEVEL=DEBUG NCCL_DEBUG=INFO NCCL_P2P_DISABLE=1 OMP_NUM_THREADS=1 VLLM_USE_DEEP_GEMM=0
VLLM_ALL2ALL_BACKEND=pplx PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True VLLM_SOMETHING=1 $vllm"
printed 'harmless      VLLM_LOGGING_LEVEL=DEBUG'
printed 'harmless      NCCL_DEBUG=INFO'
printed 'not modelled  NCCL_P2P_DISABLE=1: communication'
printed 'not modelled  OMP_NUM_THREADS=1: threads of the host'
printed 'not modelled  VLLM_USE_DEEP_GEMM=0: kernels'
printed 'not modelled  VLLM_ALL2ALL_BACKEND=pplx: communication'
printed 'harmless      PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True'
printed 'unknown       VLLM_SOMETHING=1'
# python/sglang/srt/environ.py of 2026-08
of "SGLANG_OPT_USE_TOPK_V2=0 SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK=256 SGLANG_DG_CACHE_DIR=/x
SGLANG_DISAGGREGATION_BOOTSTRAP_TIMEOUT=600 SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION=1024 SGLANG_MAMBA_SSM_DTYPE=bfloat16
SGLANG_SET_CPU_AFFINITY=1 SGLANG_REQ_WAITING_TIMEOUT=30 SGLANG_SIMULATE_ACC_LEN=2.5 SGLANG_TEST_RETRACT=0
SGLANG_DSV4_REASONING_EFFORT=low $sglang"
printed 'not modelled  SGLANG_OPT_USE_TOPK_V2=0: kernels'
printed 'not modelled  SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK: communication'
printed 'not modelled  SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION: a constant of the scheduler'
printed 'not modelled  SGLANG_MAMBA_SSM_DTYPE=bfloat16: the dtype of states'
printed 'not modelled  SGLANG_SET_CPU_AFFINITY=1: threads of the host'
printed 'not modelled  SGLANG_REQ_WAITING_TIMEOUT=30: requests that a server gives up'
printed 'not modelled  SGLANG_SIMULATE_ACC_LEN=2.5: how guesses are made'
printed 'harmless      SGLANG_DSV4_REASONING_EFFORT=low'
unsaid unknown
of "VLLM_API_KEY=hunter2 $vllm"
unsaid hunter2

finish
