#!/bin/sh
# Commands in the manifests of containers: Docker Compose, Kubernetes, lists of words in YAML and JSON.
. "$(dirname "$0")/expect.sh"
logs=$scripts/import

# reads TEXT: it is a command
reads() {
    succeeds "$inflight" import --hardware h100-sxm --command "$1"
}
# wrong MESSAGE TEXT: refused with that message in one line
wrong() {
    expect 2 "$1" "$inflight" import --hardware h100-sxm --command "$2"
}
flags='--max-num-seqs 8 --max-num-batched-tokens 2048'

# ---- files ----

reads "$(cat "$logs/compose.yaml")"
printed 'maps          docker.io/vllm/vllm-openai:v0.26.0-cu129 -> serving.preset=vllm-v1-2026-08'
printed 'maps          Qwen/Qwen3-235B-A22B-FP8 -> model=qwen3-235b-a22b'
printed 'maps          --kv-cache-dtype fp8 -> engine.kv_dtype=fp8'
printed 'maps          --enable-expert-parallel -> parallel.expert=4'
printed 'maps          --tensor-parallel-size 4 -> parallel.tensor=4'
printed 'maps          --max-num-batched-tokens 8192 -> serving.batching.max_batched_tokens=8192'
printed 'maps          --max-num-seqs 32 -> serving.batching.max_seqs=32'
printed 'harmless      ports'
printed 'harmless      TZ=UTC'
printed 'unknown       VLLM_NEW_KNOB=1'
unsaid hunter2
unsaid nginx
reads "$(cat "$logs/kubernetes.yaml")"
printed 'maps          --model meta-llama/Llama-3.1-8B-Instruct -> model=llama-3-8b'
printed 'maps          --tensor-parallel-size 2 -> parallel.tensor=2'
printed 'maps          --max-num-seqs 8 -> serving.batching.max_seqs=8'
printed 'preset: vllm-v1-2025-05'
printed 'harmless      HUGGING_FACE_HUB_TOKEN'
printed 'not modelled  replicas: 2: this is the configuration of one server: cluster.replicas says how many'

# ---- lists ----

for list in '["vllm", "serve", "Qwen/Qwen3-8B", "--tensor-parallel-size", "2"]' \
    "[ 'vllm', 'serve', 'Qwen/Qwen3-8B', '-tp', 2 ]" '[vllm, serve, Qwen/Qwen3-8B, -tp=2]' \
    '{"spec": {"containers": [{"command": ["vllm", "serve"], "args": ["Qwen/Qwen3-8B", "-tp", "2"]}]}}' \
    '# words
- vllm
- serve
- Qwen/Qwen3-8B
- -tp
- 2' 'command: ["/bin/sh", "-c"]
args:
- |
  cd /app # isn'"'"'t
  exec vllm serve Qwen/Qwen3-8B \
      -tp 2' 'command: bash -c "vllm serve Qwen/Qwen3-8B -tp 2"'; do
    reads "$list"
    printed 'model: qwen3-8b'
    printed 'tensor: 2'
    unsaid unknown
done
# A value with blanks and quotes is one word.
reads 'args:
- vllm
- serve
- Qwen/Qwen3-8B
- --speculative-config
- '"'"'{"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3}'"'"
printed 'maps          speculative_config: num_speculative_tokens=4 -> serving.draft.tokens=4'
reads "args: ['vllm', 'serve', '/m/it''s']"
printed "/m/it's: no model of configs/models has this name"

# ---- images ----

# The image's program, unless the container replaces it.
reads "image: registry:5000/vllm/vllm-openai
command: Qwen/Qwen3-8B $flags"
printed 'vLLM 0.33: no version is named' # a port is no tag
printed 'model: qwen3-8b'
printed 'max_seqs: 8'
reads 'image: lmsysorg/sglang:v0.5.9
args: ["--model-path", "Qwen/Qwen3-8B", "--tp", "2"]'
printed 'tensor: 2'
printed 'SGLang 0.5.9, '
reads 'image: lmsysorg/sglang:v0.5.9
command: python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp 2'
printed 'tensor: 2'
# Words of a text are those of Compose, for which a line's end is a blank; what is merged counts.
reads "x-server: &server
  image: vllm/vllm-openai:v0.8.5
  environment: {VLLM_USE_V1: 0}
  command: |
    --model Qwen/Qwen3-8B
    --max-num-seqs
    8
services:
  one:
    <<: *server
    deploy: {replicas: 3}
    env_file: .env"
printed 'max_seqs: 8'
printed 'preset: vllm-v0'
printed 'not modelled  replicas: 3'
printed 'unknown       env_file: variables of another file'
unsaid '<<'

# ---- what cannot be read ----

none='no command and no args start a server that is known, expected vllm serve'
image='image: vllm/vllm-openai:v0.9.1'
wrong "the command line:1:1: $none" 'image: mine/llm
args: ["--model", "x"]'
wrong "the command line:1:1: $none" "$image
entrypoint: [./start.sh]
command: [--model, x]"
wrong "the command line:1:1: $none" "$image
command: [bash, -c, ./start.sh]
args: []"
wrong 'inflight: the command line: this YAML has no container with a command or args' "services: {vllm: {$image}}"
wrong 'the command line:3:3: a second container starts a server, the first on line 2: expected one' "services:
  a: {command: vllm serve x}
  b: {command: vllm serve y}"
wrong 'the command line:3:3: --tp and what follows are one word, expected a flag and its value as two items' "$image
args:
- --tp 2"
wrong 'the command line:3:3: --api-key and what follows are one word' "$image
args:
- --api-key hunter2"
unsaid hunter2
wrong 'the command line:2:17: an item of a command is a map, expected text in quotes' "$image
args: [--model, {a: b}]"
wrong 'the command line:2:1: a quote is not closed' "$image
command: --model 'x"
wrong 'the command line:2:1: not valid YAML: did not find expected' '["vllm", "serve", "Qwen/Qwen3-8B"'
wrong 'the command line:1: {{ is of a template without its values, expected what `helm template` or the like makes of it' \
    'image: {{ .Values.image }}
args: [--model, x]'
wrong 'the command line:4:1: a tag, expected a value without one' "$image
args: [x]
---
a: !b c"
wrong 'the command line: image: vllm/vllm-openai:v0.9.1 is of a manifest within other text, expected the manifest alone' \
    "kubectl apply -f - <<EOF
$image
args:
- --tensor-parallel-size=2
EOF"

# ---- variables ----

# shellcheck disable=SC2016 # inflight expands them
{
    sets='MODEL=Qwen/Qwen3-8B
TP=2
'
    for text in "${sets}vllm serve \$MODEL --tensor-parallel-size \${TP} --max-num-seqs \${SEQS:-8}" \
        "#!/bin/bash
set -euo pipefail
export ${sets}ARGS=(
    --tensor-parallel-size \"\$TP\" # of two cards
)
ARGS+=(--max-num-seqs 8)
exec vllm serve \"\$MODEL\" \"\${ARGS[@]}\" 2>&1 | tee log" \
        "docker run -e MODEL=Qwen/Qwen3-8B -e TP=2 vllm/vllm-openai:v0.9.1 bash -c 'vllm serve \$MODEL -tp \$TP --max-num-seqs 8'" \
        "${sets}services: {s: {image: 'vllm/vllm-openai:v0.9.1', command: '\$MODEL -tp \${TP:-1} --max-num-seqs 8'}}" \
        'services:
  s:
    image: vllm/vllm-openai:${TAG:-v0.9.1}
    environment: {MODEL: Qwen/Qwen3-8B, TP: 2}
    entrypoint: [sh, -c]
    command: ["vllm serve $$MODEL -tp $${TP} --max-num-seqs 8"]' \
        'containers:
- image: vllm/vllm-openai:v0.9.1
  env: [{name: MODEL, value: Qwen/Qwen3-8B}, {name: TP, value: "2"}]
  args: [--model, $(MODEL), -tp=$(TP), --max-num-seqs, "8"]'; do
        reads "$text"
        printed 'model: qwen3-8b'
        printed 'tensor: 2'
        printed 'max_seqs: 8'
        unsaid unknown
    done
    reads "$(cat "$logs/skypilot.yaml")"
    printed 'maps          vllm==0.9.1 -> serving.preset=vllm-v1-2025-05'
    printed 'model: qwen3-8b'
    printed 'tensor: 2'
    printed 'not modelled  replicas: 2'
    reads 'vllm serve Qwen/Qwen3-8B $EXTRA'
    printed 'unknown       $EXTRA: the text gives no value for it'
    wrong 'the command line: tensor_parallel_size is $TP, expected a whole number' 'vllm serve Qwen/Qwen3-8B -tp $TP'
    wrong 'the command line: the text gives no value for ${ARGS\[@\]}, or one under a condition, expected its words' \
        'ARGS=(-tp 2)
if [ "$EAGER" ]; then ARGS+=(--enforce-eager); fi
vllm serve Qwen/Qwen3-8B "${ARGS[@]}"'
}

# ---- what is none ----

# shellcheck disable=SC2016 # nothing is to be expanded
for command in '[ -f x ] && vllm serve Qwen/Qwen3-8B -tp 2' '[ "$a" ] && vllm serve Qwen/Qwen3-8B -tp 2' \
    '{ vllm serve Qwen/Qwen3-8B -tp 2; }' '# command: x
vllm serve Qwen/Qwen3-8B -tp 2' "docker run vllm/vllm-openai:v0.9.1 --model Qwen/Qwen3-8B -tp 2"; do
    reads "$command"
    printed 'tensor: 2'
done

# ---- servers on several nodes ----

# shellcheck disable=SC2016 # variables of the containers
reads 'leaderTemplate:
  containers:
  - image: lmsysorg/sglang:v0.5.5
    command: [python3, -m, sglang.launch_server, --model-path, Qwen/Qwen3-8B, --tp, "16", --node-rank, $(LWS_WORKER_INDEX)]
workerTemplate:
  containers:
  - image: lmsysorg/sglang:v0.5.5
    command: [python3, -m, sglang.launch_server, --model-path, Qwen/Qwen3-8B, --tp, "16", --node-rank, $(LWS_WORKER_INDEX)]'
printed 'harmless      container on line 7: the same server on a further node'
printed 'maps          --tp 16 -> parallel.tensor=16'

# ---- units of systemd and Quadlets of Podman ----

reads '# of a homelab
[Unit]
Description=vLLM, see [1]
After=network-online.target

[Container]
Image=docker.io/vllm/vllm-openai:v0.9.1
AddDevice=nvidia.com/gpu=all
Environment=HF_TOKEN=hunter2 "VLLM_USE_V1=0"
EnvironmentFile=/etc/vllm.env
PublishPort=8000:8000
Exec=--model Qwen/Qwen3-8B \
    --max-num-seqs 8 --max-num-batched-tokens 2048

[Install]
WantedBy=default.target'
printed 'maps          VLLM_USE_V1=0 -> serving.preset=vllm-v0'
printed 'maps          --model Qwen/Qwen3-8B -> model=qwen3-8b'
printed 'maps          --max-num-seqs 8 -> serving.batching.max_seqs=8'
printed 'unknown       EnvironmentFile: variables of another file'
printed 'harmless      AddDevice'
unsaid hunter2
reads "[Service]
Environment=TP=2
ExecStartPre=/bin/sleep 1
ExecStart=-/opt/vllm/bin/vllm serve Qwen/Qwen3-8B -tp \${TP} $flags"
printed 'maps          -tp 2 -> parallel.tensor=2'
wrong 'the command line starts no server that is known' '[Service]
ExecStart=/usr/bin/ollama serve'

finish
