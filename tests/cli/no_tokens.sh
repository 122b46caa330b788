#!/bin/sh
# A build without tokenizers says so, and counts nothing.
. "$(dirname "$0")/expect.sh"
fixtures=$INFLIGHT_DATA/tests/tokenizers/fixtures
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME

without="$fixtures/llama3.json.gz: this inflight was built without tokenizers"
refuses "$without" "$inflight" trace tokens "$fixtures/texts.json" --tokenizer "$fixtures/llama3.json.gz" -o table.csv
cat >config.yaml <<END
workload: {trace: $fixtures/texts.json, tokenizer: $fixtures/llama3.json.gz, arrivals: {process: burst}}
serving: {preset: vllm-v0, max_model_len: 4096, kv: {num_blocks: 512}}
cost: {model: linear, step_s: 0.01}
output: {dir: out}
END
refuses "$without" "$inflight" run config.yaml
[ ! -e table.csv ] && [ ! -e cache ] || complain 'something was written'
succeeds "$inflight" run config.yaml --quiet --set workload.tokenizer=null
finish
