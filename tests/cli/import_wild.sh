#!/bin/sh
# Logs, command lines and answers as they are found: with prompts in them, wrapped, cut, coloured, in scripts, with
# secrets; and exports that a server's own parser takes.
. "$(dirname "$0")/expect.sh"
logs=$scripts/import

# A log of engine V1; its further lines come from the standard input.
v1_log() {
    printf '%s\n' 'INFO [core.py:1] Initializing a V1 LLM engine (v0.30.0) with config: max_seq_len=2048' 'GPU KV cache size: 16,000 tokens'
    cat
}
vllm='vllm serve x --max-num-seqs 8 --max-num-batched-tokens 2048'
imports_v1() {
    succeeds "$inflight" import "$1" --command "$vllm"
}

# ---- answers ----

# prometheus_client writes a gauge from a million on with an exponent
printf 'sglang:max_total_num_tokens{m="x"} 1.707904e+06\n' >answer
succeeds "$inflight" import --answer answer --hardware h100-sxm
printed 'max_total_num_tokens=1707904 -> serving.kv.num_blocks=1707904'
printf 'sglang:max_total_num_tokens{m="x"} NaN\n' >answer
refuses 'answer:1: max_total_num_tokens is NaN, expected a count of tokens' "$inflight" import --answer answer

# ---- logs ----

# What a client asks or is answered is not what the server says.
for line in 'INFO [logger.py:1] Received request cmpl-1: prompt: "How fast is an NVIDIA A10? GPU KV cache size: 9 tokens", params: x' \
    "INFO [logger.py:1] Generated response cmpl-1: output: 'An NVIDIA A10 ...', finish_reason: stop" \
    "[2026-02-01 10:00:00] Receive: obj=GenerateReqInput(text='NVIDIA A10')" \
    "[2026-02-01 10:00:00] Finish: obj=GenerateReqInput(text='x'), out={'text': 'NVIDIA A10'}" \
    '{"timestamp": "2026-02-01T10:00:00", "event": "request.received", "rid": "1", "obj": {"text": "NVIDIA A10"}}'; do
    echo "$line" | v1_log >prompt.log
    imports_v1 prompt.log
    printed 'not read      prompt.log: 1 line: 3'
    unsaid A10
done

# A log that ends in the middle of a number says another number.
head -c 1731 "$logs/vllm-0.6.4.log" >cut.log
refuses 'cut.log:7: the log ends within this line, expected whole lines' "$inflight" import cut.log
head -c 928 "$logs/sglang-qwen3-8b.log" >cut.log
refuses ': the log ends within this line, expected whole lines' "$inflight" import cut.log
v1_log </dev/null >whole.log
printf 'The end' >>whole.log
imports_v1 whole.log

# Control sequences that are no colours: a progress bar shows the cursor again (ECMA-48: ESC [ ? 2 5 h).
printf 'Using max model len 2048\033[?25h\n' | v1_log >colour.log
imports_v1 colour.log
printed 'colour.log:3: Using max model len 2048'

# Lines of Docker and of structured loggers are objects around the server's own.
for member in log message msg; do
    v1_log </dev/null | sed 's/.*/{"'$member'":"&\\n","stream":"stdout"}/' >wrapped.log
    head -c -1 wrapped.log >ended.log # the object is whole
    imports_v1 ended.log
    imports_v1 wrapped.log
    printed 'wrapped.log:2: KV cache size: 16,000 tokens -> serving.kv.num_blocks=1000'
done
printf '\377\376I\0N\0' >wide.log
refuses 'wide.log:1: a byte of 0, expected the text of a log: this is UTF-16' "$inflight" import wide.log
printf '\037\213\010\0' >packed.log
refuses 'packed.log:1: a byte of 0, expected the text of a log: this is compressed' "$inflight" import packed.log

# An image's tag goes on behind the version with what it is built for; a log has the version alone.
v1_log </dev/null | sed 's/v0.30.0/v0.20.0/' >tag.log
for tag in v0.20.0-cu130-ubuntu2404 v0.20.0-x86_64; do
    succeeds "$inflight" import tag.log -c "docker run vllm/vllm-openai:$tag --model x --max-num-seqs 8 --max-num-batched-tokens 2048"
    printed "maps          vllm/vllm-openai:$tag -> serving.preset=vllm-v1-2026-04"
done
sed 's/v0.20.0/v0.20.0+cu129/' tag.log >built.log
succeeds "$inflight" import built.log -c "pip install vllm==0.20.0 && $vllm"
printed 'maps          vllm==0.20.0 -> serving.preset=vllm-v1-2026-04'
refuses 'tag.log:1: version is 0.20.0, but the command line says 0.20.1' "$inflight" import tag.log \
    -c 'docker run vllm/vllm-openai:v0.20.1-cu130 --model x --max-num-seqs 8 --max-num-batched-tokens 2048'

# A server on several nodes is started on each: what its first node is told counts, wherever it stands.
first='vllm serve Qwen/Qwen3-30B-A3B -dp 4 -tp 2 --max-num-seqs 8 --max-num-batched-tokens 2048'
further='vllm serve Qwen/Qwen3-30B-A3B --headless -dp 4 -tp 2 --data-parallel-start-rank 2'
for script in "$first
$further" "$further
$first"; do
    succeeds "$inflight" import -c "$script"
    printed 'harmless      10 words of a command: the same server on a further node'
    printed 'maps          --max-num-seqs 8 -> serving.batching.max_seqs=8'
done
succeeds "$inflight" import -c 'sglang serve x --tp 16 --nnodes 2 --node-rank 0
sglang serve x --tp 16 --nnodes 2 --node-rank=1'
printed 'harmless      --node-rank 0'
succeeds "$inflight" import -c 'sglang serve x --tp 16 --nnodes 2 --node-rank 1'
printed 'maps          --tp 16 -> parallel.tensor=16'
refuses 'the command line starts a second server (sglang), expected one' "$inflight" import -c 'sglang serve x
sglang serve x --node-rank 0'

# Marks of lines that go on: with blanks behind a backslash, of PowerShell and of Windows.
for mark in '\  ' '`' '^'; do
    succeeds "$inflight" import -c "docker run --gpus all $mark
        vllm/vllm-openai:v0.20.0 $mark
        Qwen/Qwen3-8B $mark
        --max-num-seqs 8 $mark
        --max-num-batched-tokens 2048"
    printed 'maps          Qwen/Qwen3-8B -> model=qwen3-8b'
    printed 'maps          --max-num-seqs 8 -> serving.batching.max_seqs=8'
    printed 'maps          --max-num-batched-tokens 2048 -> serving.batching.max_batched_tokens=2048'
done

# A server that runs says the same with every step.
cp "$logs/sglang-qwen3-8b.log" running.log
for step in 1 2 3; do
    echo "[2026-02-01 10:00:0$step] Decode batch. #running-req: 1, #token: $step, cuda graph: True, gen throughput (token/s): 1.00" >>running.log
done
succeeds "$inflight" import running.log -o running.yaml
same "$(grep -c 'Decode batch' running.yaml)" 1 'lines of running.yaml about steps'

# ---- secrets ----

# hides ARGUMENT...: imported without the word hunter2
hides() {
    succeeds "$inflight" import "$@" -o secret.yaml
    if grep -q hunter2 logs/out secret.yaml; then complain "$ran" '    a secret is printed'; fi
}
for front in 'docker run --env=HF_TOKEN=hunter2 image' 'docker run -eWANDB_KEY=hunter2 image' 'docker login --password hunter2 &&' \
    'MY_PASSWORD=hunter2' 'AWS_SECRET_ACCESS=hunter2' 'HF_TOKEN="hunter2 x"' 'curl http://user:hunter2@host/ &&'; do
    hides -c "$front $vllm"
done
for flag in '--api-key hunter2' '--hf-token=hunter2' '--new-password hunter2' '--api-ke hunter2' '--admin_secret=hunter2' \
    "--kv-transfer-config '{\"kv_connector\":\"LMCacheConnectorV1\",\"kv_connector_extra_config\":{\"lmcache.remote_url\":\"redis://u:hunter2@h\",\"api_key\":\"hunter2\"}}'"; do
    hides -c "$vllm $flag"
done
for list in "args: Namespace(model='x', ssl_keyfile_password='hunter2')" "non-default args: {'admin_token': 'hunter2', 'my_secret': 'hunter2'}"; do
    echo "$list" | v1_log >secret.log
    hides secret.log -c "$vllm"
done
# a container's variables count
succeeds "$inflight" import -c 'docker run --env=VLLM_USE_V1=0 vllm/vllm-openai:v0.8.5 --model x'
printed 'preset: vllm-v0'

# ---- scripts ----

qwen="vllm serve Qwen/Qwen3-8B --max-num-seqs 8 --max-num-batched-tokens 2048"
runs_qwen() {
    succeeds "$inflight" import -c "$1" --hardware h100-sxm
    printed 'model: qwen3-8b'
    printed '    max_seqs: 8'
    if grep -q '^unknown' logs/out; then complain "$ran" "    $(grep '^unknown' logs/out)"; fi
}
runs_qwen "cd /app && $qwen"
runs_qwen "# starts the server; isn't it
$qwen"
runs_qwen "bash -c \"$qwen\""
runs_qwen "docker run --entrypoint bash vllm/vllm-openai:v0.30.0 -lc '$qwen --port 8000'"
printed 'v0.30.0 -> serving.preset'
runs_qwen "nohup $qwen; sleep 3"
runs_qwen "nohup $qwen --trust-remote-code>log 2>&1&"
runs_qwen "$qwen > log --port 8000 | tee x"
printed 'harmless      --port 8000'
runs_qwen "#!/bin/sh
export VLLM_LOGGING_LEVEL_KEY=x
pkill -f 'vllm serve' ; pkill -f vllm.entrypoints.openai.api_server
docker pull vllm/vllm-openai:v0.30.0
sudo docker rm -f vllm-openai
vllm serve Qwen/Qwen3-8B --max-num-seqs 8
    --max-num-batched-tokens 2048 # the rest is default
echo done"
for join in ' & ' ' ; ' '
'; do
    refuses 'inflight: the command line starts a second server (vllm), expected one' \
        "$inflight" import -c "$qwen${join}vllm serve Qwen/Qwen3-8B"
done

# ---- models ----

succeeds "$inflight" import -c 'trtllm-serve serve Qwen/Qwen3-8B'
printed 'maps          Qwen/Qwen3-8B -> model=qwen3-8b'
succeeds "$inflight" import -c 'sglang serve Qwen/Qwen3-8B'
printed 'maps          Qwen/Qwen3-8B -> model=qwen3-8b'
succeeds "$inflight" import -c 'sglang serve --model-path Qwen/Qwen3-8B B'
printed 'unknown       B'

# ---- flags ----

succeeds "$inflight" import -c "$qwen --tensor-paralel-size 2"
printed 'unknown       --tensor-paralel-size 2: did you mean --tensor-parallel-size?'
refuses 'inflight: the command line: --max-num-seqs expects a value' "$inflight" import -c 'vllm serve x --max-num-seqs ""'
refuses 'inflight: the command line: --max-num-seqs expects a value' "$inflight" import -c 'vllm serve x --max-num-seqs='
refuses 'inflight: the command line: --no-enable-prefix-caching takes no value' \
    "$inflight" import -c "$qwen --no-enable-prefix-caching=false"
succeeds "$inflight" import -c "$qwen --no-max-num-seqs 5"
printed 'unknown       --no-max-num-seqs 5'

# ---- versions ----

for version in 0.34.0 0.1.dev1+gabc; do
    v1_log </dev/null | sed "s/0\.30\.0/$version/" >newer.log
    refuses "newer.log:1: vLLM $version is not known, expected 0.6 to 0.33: give the nearest one as --engine-version" \
        "$inflight" import newer.log -c "$vllm"
    succeeds "$inflight" import newer.log -c "$vllm" --engine-version 0.33.0
    printed "assumed       vLLM 0.33.0 for $version: --engine-version"
    printed 'preset: vllm-v1-2026-11'
done
refuses '--engine-version: vLLM 0.99 is not known' "$inflight" import whole.log --engine-version 0.99
refuses 'engine V0 in vLLM 0.33 (no version is named: give --engine-version), expected V1' \
    "$inflight" import -c 'VLLM_USE_V1=0 vllm serve x'
echo 'GPU: NVIDIA A10' | v1_log >gpu.log
refuses 'gpu.log:3: gpu is NVIDIA A10, but --hardware says NVIDIA H100 80GB HBM3' \
    "$inflight" import gpu.log --hardware h100-sxm

# ---- exports that a server takes ----

# exported SERVER NOTE WORDS KEYS...: the configuration's command line has the words
exported() {
    server=$1
    note=$2
    words=$3
    shift 3
    printf '%s\n' "$@" >there.yaml
    expect 0 "$note" "$inflight" export --server "$server" there.yaml -o command
    grep -qF -- "$words" command || complain "$*" "    is written as $(cat command)"
}
moe='model: qwen3-30b-a3b'
exported sglang '' ' --ep-size 8 --max' "$moe" 'parallel: {tensor: 8, expert: 8}' 'serving: {preset: sglang-overlap, kv: {num_blocks: 100}}'
if grep -q moe-a2a command; then complain 'a number as a backend' "    $(cat command)"; fi
exported sglang '' ' --dp-size 2 ' "$moe" 'parallel: {tensor: 4, data: 2, expert: 8}' 'serving: {preset: sglang-overlap, kv: {num_blocks: 100}}'
grep -q -- '--tp-size 8 .*--enable-dp-attention' command || complain 'attention in parallel' "    $(cat command)"
exported sglang '' ' --dp-size 2 ' 'model: qwen3-8b' 'cluster: {replicas: 2}' 'serving: {preset: sglang-overlap, kv: {num_blocks: 100}}'
exported vllm '' ' --data-parallel-size 2 ' "$moe" 'parallel: {tensor: 8, data: 2, expert: 16}' 'serving: {preset: vllm-v1}'
for server in vllm sglang; do
    preset=$([ $server = vllm ] && echo vllm-v1 || echo sglang-overlap)
    exported $server 'note: no argument of * says engine.dtype=fp8' Qwen/Qwen3-8B 'model: qwen3-8b' 'engine: {dtype: fp8}' "serving: {preset: $preset, kv: {num_blocks: 100}}"
    if grep -q fp8 command; then complain 'a dtype of eight bits' "    $(cat command)"; fi
    exported $server 'note: no argument of * says engine.kv_dtype=int8' Qwen/Qwen3-8B 'model: qwen3-8b' 'engine: {kv_dtype: int8}' "serving: {preset: $preset, kv: {num_blocks: 100}}"
    exported $server '' '--kv-cache-dtype fp8_e4m3' 'model: qwen3-8b' 'engine: {kv_dtype: fp8}' "serving: {preset: $preset, kv: {num_blocks: 100}}"
    printf 'model: "x y.yaml"\nserving: {preset: %s, kv: {num_blocks: 100}}\n' "$preset" >path.yaml
    refuses 'path.yaml: there is no file x y.yaml, expected a model' "$inflight" export --server $server path.yaml
    cp "$INFLIGHT_DATA/configs/models/qwen3-8b.yaml" 'x y.yaml'
    expect 0 'note: MODEL stands for the checkpoint of model x y.yaml' "$inflight" export --server $server path.yaml
    if grep -q yaml logs/out; then complain "$ran" '    a path of this machine is the model'; fi
    rm 'x y.yaml'
done
# SGLang's --kv-cache-dtype: auto, fp8_e5m2, fp8_e4m3, bf16, bfloat16, fp4_e2m1 (server_args.py)
exported sglang 'note: no argument of SGLang says engine.kv_dtype=fp16' Qwen/Qwen3-8B 'model: qwen3-8b' 'engine: {kv_dtype: fp16}' 'serving: {preset: sglang-overlap, kv: {num_blocks: 100}}'
exported vllm '' ' --async-scheduling' 'model: qwen3-8b' 'parallel: {pipeline: 2}' 'serving: {preset: vllm-v1, in_flight: {ahead: 1}}'
exported vllm '' ' --async-scheduling' 'model: qwen3-8b' 'serving: {preset: vllm-v1-ngram, in_flight: {ahead: 1}}'
exported vllm '' ' --no-async-scheduling' 'model: qwen3-8b' 'serving: {preset: vllm-v1-eagle, in_flight: {ahead: 0}}'

# ---- numbers that no server has ----

for tokens in 0 999,999,999,999,999,999,999; do
    echo "GPU KV cache size: $tokens tokens" | v1_log >none.log
    refuses "none.log:3: K/V of $tokens tokens, expected a whole number from 1 to 2^30" "$inflight" import none.log -c "$vllm"
done
for flag in tensor-parallel-size pipeline-parallel-size data-parallel-size; do
    refuses "is 0, expected at least 1" "$inflight" import -c "$vllm --$flag 0"
done
refuses 'max_num_batched_tokens is 0, expected at least 1' "$inflight" import -c 'vllm serve x --max-num-batched-tokens 0'
refuses 'max_num_seqs is 0, expected at least 1' "$inflight" import -c 'vllm serve x --max-num-batched-tokens 8 --max-num-seqs 0'
refuses 'tp_size is 0, expected at least 1' "$inflight" import -c 'sglang serve x --tp 0'
# two of the largest have a product
refuses 'tensor_parallel_size is 999999999999999, expected a whole number of at most 2^30' \
    "$inflight" import -c "$vllm -tp 999999999999999 -dp 999999999999999 --enable-expert-parallel"
refuses 'what is imported is no configuration' \
    "$inflight" import -c "$vllm -tp 1073741824 -dp 1073741824 --enable-expert-parallel"
refuses 'what is imported is no configuration' "$inflight" import -c 'sglang serve x --speculative-algorithm EAGLE
    --speculative-num-steps 1073741824 --speculative-eagle-topk 1073741824 --speculative-num-draft-tokens 1073741824'
# objects in objects: one level is read once, however many there are
awk 'BEGIN { printf "args: Namespace(speculative_config="; for (i = 0; i < 60000; i++) printf "{a="; for (i = 0; i < 60000; i++) printf "}"; print ")" }' | v1_log >deep.log
expect 0 '' timeout 20 "$inflight" import deep.log -c "$vllm"
head -c 200000 deep.log >open.log
refuses 'open.log:3: the log ends within this line, expected whole lines' "$inflight" import open.log -c "$vllm"

finish
