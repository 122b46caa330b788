#!/bin/sh
# Files of flags, values of charts, and resources that say by keys how a server is started. Their
# facts are those of the public files that are named; what a key becomes is what the chart's own
# template, or the server's own source, makes of it.
. "$(dirname "$0")/expect.sh"

# reads FILE [ARGUMENT...]
reads() {
    succeeds "$inflight" import --hardware h100-sxm "$@"
}
# wrong MESSAGE TEXT: a file of that text is refused with that message in one line
wrong() {
    printf '%s\n' "$2" >wrong.yaml
    expect 2 "$1" "$inflight" import --hardware h100-sxm wrong.yaml
}

# ---- vLLM's --config ----

# The example of docs/configuration/serve_args.md (vllm-project/vllm), with a model that is known;
# vllm/utils/argparse_utils.py, _pull_args_from_config: command line, then file, then default.
mkdir etc
cat >etc/config.yaml <<'END'
# config.yaml
model: meta-llama/Llama-3.1-8B-Instruct
host: "127.0.0.1"
port: 6379
uvicorn-log-level: "info"
tensor-parallel-size: 4
max-num-seqs: 64
no-such-flag: 1
enable-prefix-caching: false
served-model-name: [llama, "3.1"]
speculative-config:
  method: ngram
  num_speculative_tokens: 4
  prompt_lookup_max: 3
END
reads etc/config.yaml
printed 'maps          --model meta-llama/Llama-3.1-8B-Instruct -> model=llama-3-8b'
printed 'maps          --tensor-parallel-size 4 -> parallel.tensor=4'
printed 'maps          --max-num-seqs 64 -> serving.batching.max_seqs=64'
printed 'maps          --enable-prefix-caching False -> serving.kv.prefix_cache=none'
printed 'maps          speculative_config: num_speculative_tokens=4 -> serving.draft.tokens=4'
printed 'harmless      --served-model-name llama 3.1'
printed 'harmless      --port 6379'
printed 'unknown       --no-such-flag=1'
reads --command "$(cat etc/config.yaml)"
printed 'tensor: 4'
reads --command 'vllm serve Qwen/Qwen3-8B --config etc/config.yaml -tp 2'
printed '--config etc/config.yaml = ./etc/config.yaml: the flags of the command line count before those of this file'
printed '--model=meta-llama/Llama-3.1-8B-Instruct: the command line names the model'
printed 'model: qwen3-8b'
printed 'tensor: 2'
printed 'max_seqs: 64'
reads --command 'vllm serve --config etc/config.yaml'
printed 'model: llama-3-8b'
# The file beside, where a container has it elsewhere.
cp etc/config.yaml config.yaml
reads --command 'docker run -v .:/etc/vllm vllm/vllm-openai:v0.9.1 --config /etc/vllm/config.yaml'
printed '--config /etc/vllm/config.yaml = ./config.yaml'
printed 'tensor: 4'
cat >etc/compose.yaml <<'END'
image: vllm/vllm-openai:v0.9.1
command: --config /config.yaml --max-num-seqs 8
END
rm config.yaml
reads etc/compose.yaml # its own folder
printed 'tensor: 4'
printed 'max_seqs: 8'
# A file that the script writes.
reads --command "cat >serve.yaml <<'EOF'
max-num-seqs: 32
EOF
vllm serve Qwen/Qwen3-8B --config serve.yaml"
printed 'serve.yaml of the command line: the flags of the command line count'
printed 'max_seqs: 32'
# One that a ConfigMap of the manifest has.
reads --command 'apiVersion: v1
kind: ConfigMap
data:
  serve.yaml: |
    max-num-seqs: 16
    tensor-parallel-size: 2
---
kind: Deployment
spec:
  containers:
  - image: vllm/vllm-openai:v0.9.1
    args: [--model, Qwen/Qwen3-8B, --config, /etc/vllm/serve.yaml, --max-num-seqs, "4"]'
printed '--config /etc/vllm/serve.yaml = serve.yaml of a ConfigMap: the flags of the command line count'
printed 'max_seqs: 4'
printed 'tensor: 2'
expect 2 'serve.yaml of a ConfigMap:2:*: not valid YAML: *' "$inflight" import --command 'kind: ConfigMap
data: {serve.yaml: "a: [1"}
---
args: [vllm, serve, x, --config, serve.yaml]'
# Not at hand, and not read by the server ("--config" in args).
reads --command 'vllm serve Qwen/Qwen3-8B --config /nowhere/config.yaml'
printed 'not read      --config /nowhere/config.yaml: this file is not at hand, so the flags in it are missing here'
reads --command 'vllm serve Qwen/Qwen3-8B --config=etc/config.yaml'
printed 'not read      --config=etc/config.yaml: the server reads this file only if a blank stands in place of ='
unsaid 'tensor: 4'
expect 2 'inflight: the command line: a second file of flags (b.yaml), the first is a.yaml: expected one' \
    "$inflight" import --command 'vllm serve x --config a.yaml --config b.yaml'
printf 'a: [1' >bad.yaml
expect 2 './bad.yaml:*: not valid YAML: *' "$inflight" import --command 'vllm serve x --config bad.yaml'
echo '- a' >bad.yaml
expect 2 './bad.yaml:1:1: expected flags with their values, one a line' \
    "$inflight" import --command 'vllm serve x --config bad.yaml'

# SGLang, python/sglang/srt/server_args_config_parser.py: the same order.
cat >sglang.yaml <<'END'
model-path: Qwen/Qwen3-8B
tensor-parallel-size: 2
mem-fraction-static: 0.8
disable-radix-cache: true
END
reads sglang.yaml
printed 'SGLang'
printed 'tensor: 2'
printed '--disable-radix-cache True -> serving.kv.prefix_cache=none'
reads --command 'python3 -m sglang.launch_server --config sglang.yaml --tp 4'
printed 'model: qwen3-8b'
printed 'tensor: 4'

# TensorRT-LLM, tensorrt_llm/commands/serve.py: the file overwrites the command line.
cat >extra.yml <<'END'
kv_cache_config:
  dtype: fp8
  free_gpu_memory_fraction: 0.8
  event_buffer_max_size: 1024
cuda_graph_config: {max_batch_size: 64, enable_padding: true}
max_batch_size: 32
no_such_option: 1
END
reads --command 'trtllm-serve Qwen/Qwen3-8B --max_batch_size 64 --extra_llm_api_options=extra.yml'
printed '--extra_llm_api_options=extra.yml = ./extra.yml: the settings of this file count before those of the command line'
printed 'max_seqs: 32'
printed 'kv_dtype: fp8'
printed 'memory_utilization: 0.8'
printed 'harmless      --event_buffer_max_size 1024'
printed 'unknown       --no_such_option=1'

# ---- the values of vLLM's production-stack ----

# tutorials/assets/values-02-basic-config.yaml; helm/templates/deployment-vllm-multi.yaml
cat >values.yaml <<'END'
servingEngineSpec:
  runtimeClassName: ""
  modelSpec:
  - name: "llama3"
    repository: "vllm/vllm-openai"
    tag: "v0.9.1"
    modelURL: "meta-llama/Llama-3.1-8B-Instruct"
    replicaCount: 2
    requestGPU: 1
    pvcAccessMode:
      - ReadWriteOnce
    vllmConfig:
      maxModelLen: 4096
      dtype: "bfloat16"
      tensorParallelSize: 2
      extraArgs: ["--gpu-memory-utilization", "0.8"]
    lmcacheConfig:
      enabled: true
      cpuOffloadingBufferSize: "20"
    hf_token: hunter2
    colour: blue
routerSpec:
  routingLogic: session
END
reads values.yaml
printed 'vllm-v1-2025-05'
printed 'maps          --max-model-len 4096 -> serving.max_model_len=4096'
printed 'maps          --gpu-memory-utilization 0.8 -> serving.kv.memory_utilization=0.8'
printed 'assumed       --no-enable-prefix-caching: the chart writes it unless enablePrefixCaching is true'
printed 'serving.kv.prefix_cache=none'
printed 'tensor: 2'
printed 'LMCACHE_MAX_LOCAL_CPU_SIZE=20: K/V outside the GPU without a prefix cache'
printed 'not modelled  replicaCount: 2'
printed 'not modelled  routerSpec: '
printed 'unknown       colour'
printed 'harmless      hf_token'
unsaid hunter2
# tutorials/assets/values-05-cpu-offloading.yaml
try "$inflight" import --hardware h100-sxm --engine-version 0.8.5 --command 'servingEngineSpec:
  modelSpec:
  - repository: "lmcache/vllm-openai"
    modelURL: "Qwen/Qwen3-8B"
    requestGPUType: amd.com/gpu
    vllmConfig: {enablePrefixCaching: true, v0: "1", maxNumSeqs: 8}
    lmcacheConfig: {enabled: true, cpuOffloadingBufferSize: "20", diskOffloadingBufferSize: "80"}'
printed 'preset: vllm-v0'
printed 'not modelled  lmcacheConfig.diskOffloadingBufferSize'
printed "not modelled  amd.com/gpu: the server's device, which is no CUDA GPU"

# ---- the values of llm-d ----

# llm-d/llm-d, guides/inference-scheduling/ms-inference-scheduling/values.yaml;
# llm-d-incubation/llm-d-modelservice, templates/_helpers.tpl, vllmServeModelCommand
cat >llm-d.yaml <<'END'
multinode: false
modelArtifacts:
  uri: "hf://Qwen/Qwen3-32B"
  name: "Qwen/Qwen3-32B"
routing:
  proxy: {enabled: false}
decode:
  create: true
  parallelism: {tensor: 2, data: 1}
  replicas: 8
  containers:
    - name: "vllm"
      image: ghcr.io/llm-d/llm-d-cuda:v0.5.0
      modelCommand: vllmServe
      args:
        - "--disable-uvicorn-access-log"
        - "--gpu-memory-utilization=0.95"
      resources: {limits: {cpu: '32', nvidia.com/gpu: '2'}}
prefill:
  create: false
END
reads llm-d.yaml
printed 'model: qwen3-32b'
printed 'tensor: 2'
printed 'memory_utilization: 0.95'
printed 'not modelled  replicas: 8'
printed 'not modelled  routing: '
printed 'harmless      prefill: create: false'
printed 'harmless      resources.nvidia.com/gpu: 2: '
sed 's/create: false/containers: [{modelCommand: vllmServe}]/' llm-d.yaml >both.yaml
expect 2 'both.yaml:20:16: a second container starts a server, the first on line 12: expected one' \
    "$inflight" import both.yaml

# ---- KServe ----

# docs/model-serving/storage/modelcache (kserve/website), with the arguments of other samples;
# python/huggingfaceserver/huggingfaceserver/__main__.py
cat >kserve.yaml <<'END'
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata:
  name: huggingface-llama3
spec:
  predictor:
    minReplicas: 2
    model:
      modelFormat:
        name: huggingface
      args:
        - --model_name=llama3
        - --backend=vllm
        - --max_length=8192
        - --tensor_parallel_size=2
      storageUri: hf://meta-llama/Meta-Llama-3-8B-Instruct
      resources:
        limits:
          nvidia.com/gpu: "2"
END
reads kserve.yaml
printed 'model: llama-3-8b'
printed 'tensor: 2'
printed 'max-model-len 8192 -> serving.max_model_len'
printed 'harmless      --model_name=llama3'
printed 'harmless      --backend=vllm'
printed 'harmless      resources.nvidia.com/gpu: 2: how many of them the server uses is what its flags say'
printed 'not modelled  minReplicas: 2'
reads --command 'spec:
  predictor:
    model:
      modelFormat: {name: vLLM}
      args: [--model_id, Qwen/Qwen3-8B, --dtype, half]
      storageUri: pvc://models/other
      extra: 1
    workerSpec: {pipelineParallelSize: 2, tensorParallelSize: 4}'
printed 'model: qwen3-8b'
printed 'tensor: 4'
printed 'pipeline: 2'
printed 'unknown       extra'
# A runtime of its own, as OpenShift AI has it; the service's arguments stand behind the runtime's
# (pkg/controller/v1beta1/inferenceservice/utils/utils.go, MergeRuntimeContainers).
cat >runtime.yaml <<'END'
apiVersion: serving.kserve.io/v1alpha1
kind: ServingRuntime
metadata: {name: vllm-cuda-runtime}
spec:
  supportedModelFormats: [{name: vLLM, autoSelect: true}]
  containers:
  - name: kserve-container
    image: vllm/vllm-openai:v0.9.1
    command: [python, -m, vllm.entrypoints.openai.api_server]
    args:
    - --port=8080
    - --model=/mnt/models
    - --served-model-name={{.Name}}
    - --max-model-len=2048
    - --max-num-seqs=2
    env: [{name: HF_HOME, value: /tmp/hf_home}]
---
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: llm}
spec:
  predictor:
    model:
      modelFormat: {name: vLLM}
      runtime: vllm-cuda-runtime
      args: [--tensor-parallel-size=4, --max-num-seqs, "16"]
      storageUri: hf://Qwen/Qwen3-8B
END
reads runtime.yaml
printed 'preset: vllm-v1-2025-05'
printed 'model: qwen3-8b'
printed 'max_model_len: 2048'
printed 'max_seqs: 16'
printed 'tensor: 4'
printed 'harmless      --model=/mnt/models: KServe says its value'
printed 'harmless      --max-num-seqs 2: given again: the last one counts'
# docs/samples/llmisvc/dp-ep/deepseek-r1-gpu-rdma-roce/...-gpu-naive.yaml (kserve/kserve);
# config/llmisvcconfig/config-llm-worker-data-parallel.yaml
cat >llmisvc.yaml <<'END'
apiVersion: serving.kserve.io/v1alpha1
kind: LLMInferenceService
spec:
  model:
    uri: hf://Qwen/Qwen3-30B-A3B
    name: Qwen/Qwen3-30B-A3B
  replicas: 1
  parallelism: {data: 4, dataLocal: 4, expert: true, tensor: 1}
  router: {scheduler: {}}
  baseRefs: [{name: x}]
  template:
    containers:
      - name: main
        env:
          - name: VLLM_ADDITIONAL_ARGS
            value: "--gpu-memory-utilization 0.95 --max-model-len 8192 --enforce-eager"
          - name: NCCL_DEBUG
            value: WARN
  worker:
    containers: [{name: main}]
END
reads llmisvc.yaml
printed '--data-parallel-size 4 -> parallel.data=4'
printed '--enable-expert-parallel True -> parallel.expert=4'
printed 'memory_utilization: 0.95'
printed 'max_model_len: 8192'
printed 'not modelled  --enforce-eager'
printed 'harmless      worker: the same server on a further node'
printed 'unknown       baseRefs: settings of another resource'
# docs/samples/llm-sglang-example.yaml
reads --command 'kind: LLMInferenceService
spec: {runtime: sglang, model: {uri: "hf://Qwen/Qwen3-8B", name: q}, parallelism: {tensor: 2}}'
printed 'SGLang'
printed 'tensor: 2'

# ---- Ray Serve LLM ----

# doc/source/serve/llm (ray-project/ray); an application within a RayService of KubeRay
cat >ray.yaml <<'END'
apiVersion: ray.io/v1
kind: RayService
spec:
  serveConfigV2: |
    applications:
    - name: llms
      import_path: ray.serve.llm:build_openai_app
      route_prefix: "/"
      args:
        llm_configs:
        - model_loading_config:
            model_id: qwen
            model_source: Qwen/Qwen3-8B
          accelerator_type: L4
          runtime_env: {env_vars: {VLLM_USE_V1: "0"}}
          engine_kwargs:
            max_model_len: 4096
            tensor_parallel_size: 2
            gpu_memory_utilization: 0.88
            trust_remote_code: false
          deployment_config:
            autoscaling_config: {min_replicas: 1, max_replicas: 4}
            max_ongoing_requests: 32
          lora_config: {dynamic_lora_loading_path: s3://x}
END
succeeds "$inflight" import ray.yaml --engine-version 0.9.1
printed 'maps          accelerator_type: L4 -> hardware=l4'
printed 'model: qwen3-8b'
printed 'max_model_len: 4096'
printed 'tensor: 2'
printed 'preset: vllm-v0'
printed 'not modelled  deployment_config.max_ongoing_requests'
printed 'not modelled  autoscaling_config.max_replicas'
printed 'not modelled  lora_config'
reads --command 'base: &base {max_model_len: 4096, max_num_seqs: 8}
llm_configs:
- model_loading_config: {model_id: Qwen/Qwen3-8B}
  accelerator_type: H100
  engine_kwargs: {<<: *base, max_num_seqs: 16}'
printed 'unknown       accelerator_type: H100: no GPU, or several, have this name: set hardware'
printed 'max_seqs: 16'
printed 'max_model_len: 4096'
unsaid 'given again'

# ---- what cannot be read ----

wrong 'wrong.yaml:2:1: not valid YAML: *' 'servingEngineSpec: {modelSpec: [{modelURL: x'
wrong 'wrong.yaml:2:1: key model given twice, first on line 1' 'model: x
model: y'
wrong 'inflight: wrong.yaml: these flags may be those of several servers, expected a command that names the file: *' 'model: x
dtype: auto'
wrong 'wrong.yaml:1:21: modelSpec is 3, expected a list' 'servingEngineSpec: {modelSpec: 3}'
wrong 'wrong.yaml:1:33: an item of modelSpec is 3, expected a map' 'servingEngineSpec: {modelSpec: [3]}'
wrong 'wrong.yaml:1:43: vllmConfig is a list, expected a map' 'servingEngineSpec: {modelSpec: [{name: x, vllmConfig: [1]}]}'
wrong 'wrong.yaml:1:33: no modelURL, expected the name of a checkpoint' 'servingEngineSpec: {modelSpec: [{name: x}]}'
# tutorials/assets/values-04-multiple-models.yaml
wrong 'wrong.yaml:4:5: a second container starts a server, the first on line 3: expected one' 'servingEngineSpec:
  modelSpec:
  - modelURL: Qwen/Qwen3-8B
  - modelURL: Qwen/Qwen3-14B'
wrong 'wrong.yaml:1:*: --max-num-seqs and what follows are one word, *' \
    'servingEngineSpec: {modelSpec: [{modelURL: x, vllmConfig: {extraArgs: [--max-num-seqs 8]}}]}'
wrong 'wrong.yaml:2:1: spec is 3, expected a map' 'kind: LLMInferenceService
spec: 3'
wrong 'wrong.yaml:2:*: containers is a map, expected a list' 'kind: LLMInferenceService
spec: {model: {}, template: {containers: {a: b}}}'
wrong 'wrong.yaml:1:15: llm_configs names the file models/a.yaml, expected its keys: import that file' 'llm_configs: [models/a.yaml]'
wrong 'wrong.yaml:1:16: model_loading_config is x, expected a map' 'llm_configs: [{model_loading_config: x}]'
wrong 'wrong.yaml:1:*: engine_kwargs is a list, expected a map' \
    'llm_configs: [{model_loading_config: {model_id: Qwen/Qwen3-8B-AWQ}, engine_kwargs: [1]}]'
wrong 'wrong.yaml:1:*: << merges what is no map, expected one' \
    'llm_configs: [{model_loading_config: {model_id: x}, engine_kwargs: {<<: 3}}]'
wrong 'wrong.yaml, serveConfigV2 on line 1:*: not valid YAML: *' 'serveConfigV2: |
  a: [1'
wrong 'wrong.yaml:1:*: --backend is huggingface, expected vllm or auto' \
    'spec: {predictor: {model: {modelFormat: {name: huggingface}, args: [--backend, huggingface]}}}'
wrong 'wrong.yaml:1:*: modelFormat is huggingface, expected a map' 'spec: {predictor: {model: {modelFormat: huggingface}}}'
wrong 'wrong.yaml:2:10: containers is 3, expected a list' 'modelArtifacts: {name: a}
decode: {containers: 3}'
wrong 'wrong.yaml:1:4: an anchor that contains itself' 'a: &a [*a]'
expect 2 'b.yaml: a second command, the first is a.yaml' "$inflight" import a.yaml b.yaml
expect 2 'a.yaml: a second command, the first is that of --command' "$inflight" import a.yaml --command x
expect 2 'nowhere.yaml: cannot be opened: *' "$inflight" import nowhere.yaml
head -c 1100000 /dev/zero | tr '\0' a >huge.yaml
expect 2 'huge.yaml: larger than 1 MiB, expected a manifest' "$inflight" import huge.yaml
printf 'a: \0b' >zero.yaml
expect 2 'zero.yaml: a byte of 0, expected YAML' "$inflight" import zero.yaml

finish
