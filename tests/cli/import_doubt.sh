#!/bin/sh
# What is imported where names, logs, command lines and answers say more or less than one thing, and
# what `inflight export --server` says that it loses.
. "$(dirname "$0")/expect.sh"
logs=$scripts/import

# unsaid TEXT: the last command did not print it.
unsaid() {
    if grep -qF -- "$1" logs/out logs/err; then complain "$ran" "    printed: $1"; fi
}
seats='--max-num-seqs 8 --max-num-batched-tokens 2048'

# ---- names ----

# A size behind the name is that of another model.
for name in /opt/llm/deepseek-r1-14b DeepSeek-R1-70B bigscience/bloom-7b1 bigscience/bloom-560m; do
    succeeds "$inflight" import -c "vllm serve $name $seats"
    printed "unknown       $name: the model of configs/models whose name begins so has another size"
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

finish
