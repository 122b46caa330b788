#!/bin/sh
# Costs that simulated durations leave out are named once on the terminal and in summary.csv. A run that
# leaves nothing out prints no such note.
. "$(dirname "$0")/expect.sh"

printf 'arrival_s,prompt_tokens,output_tokens\n0,100,4\n1,100,4\n' >trace.csv
cat >config.yaml <<'END'
model: mistral-7b
hardware: a100-80gb-sxm
workload: {trace: trace.csv}
serving: {preset: vllm-v0, kv: {num_blocks: 4096}}
output: {dir: out}
END
window='the window of 4096 tokens of mistral-7b'
pipeline='one step at a time in the 2 stages of parallel.pipeline'
linear='linear costs ignore the 2 stages'
divided='linear costs are divided by layers among the 2 stages'
serial='--set serving.in_flight.pipelined=false'

# tells WORDS TIMES [OPTION...]: a run prints the words so many times, and as often in summary.csv.
tells() {
    words=$1
    times=$2
    shift 2
    succeeds "$inflight" run config.yaml "$@"
    same "$(tr '\n' ' ' <logs/out | tr -s ' ' | grep -o "$words" | wc -l)" "$times" "the terminal: $words"
    same "$(grep -c "$words" out/summary.csv)" "$times" "summary.csv: $words"
}

tells "$window" 1
tells 'window' 0 --set serving.max_model_len=4096
tells 'window' 0 --set model=llama-2-7b
tells "$pipeline" 0 --set parallel.pipeline=2
tells "$pipeline" 1 --set parallel.pipeline=2 $serial
tells "$window" 1 --set parallel.pipeline=2
tells 'parallel.pipeline' 0
tells 'attention on K/V in fp8' 0
tells 'attention on K/V in fp8 has the cost of 16 bits with half the bytes' 1 --set engine.kv_dtype=fp8
tells 'attention on K/V in int4 has the cost of 16 bits with fewer bytes' 1 --set engine.kv_dtype=int4
tells "$linear" 1 --set cost.model=linear --set cost.step_s=0.01 --set parallel.pipeline=2 $serial
tells "$divided" 1 --set cost.model=linear --set cost.step_s=0.01 --set parallel.pipeline=2
tells 'window' 0 --set cost.model=linear --set cost.step_s=0.01 --set model=llama-2-7b

# A scheduler on kernels of another engine; a policy of no engine, and a profile of none, say nothing.
other='the scheduler of trtllm on kernels of vllm 0.14'
tells "$other" 1 --set serving.preset=trtllm-1.2-no-evict
tells "$other" 1 --set serving.preset=trtllm-static --set hardware=a10g --set serving.kv.num_blocks=800
for set in serving.preset=vllm-v1 serving.preset=sjf serving.preset=vtc serving.engine=vllm; do
    tells 'the scheduler of' 0 --set $set
done
tells 'the scheduler of' 0 --set serving.preset=trtllm-no-evict --set hardware=a100-80gb-sxm-trtllm1.0
tells 'the scheduler of' 0 --set serving.preset=trtllm-no-evict --set hardware=a100-80gb-sxm-vidur2024

# All-reduces of cards on the same path, whose numbers they are.
tells 'all-reduce as l40s, over PCIe 4 without NVLink bridges' 1 --set hardware=a100-80gb-pcie --set parallel.tensor=2
tells 'all-reduce of rtx-3090, between cards without peer-to-peer access' 1 --set hardware=a10g --set parallel.tensor=4
tells 'all-reduce of two cards as a100-80gb-sxm, over NVLink bridges' 1 --set hardware=h100-nvl --set parallel.tensor=2

# The same from a config.json that leaves its window out.
cat >config.json <<'END'
{"model_type": "mistral", "num_hidden_layers": 2, "hidden_size": 640, "num_attention_heads": 64,
 "intermediate_size": 96, "vocab_size": 100, "max_position_embeddings": 9000}
END
tells 'the window of 4096 tokens of config' 1 --set model=config.json
finish
