#!/bin/sh
# Another preset than the one that ran: that is said, by the name of the one that did, and with the right one it is not.
. "$(dirname "$0")/expect.sh"

cat >config.yaml <<'EOC'
model: llama-2-7b
hardware: a100-80gb-sxm
workload: {trace: trace.csv}
serving: {preset: vllm-v1-2026-08, max_model_len: 4096}
output: {plots: false}
EOC
says() { grep -q -e "$1" logs/out || complain "$ran" "    did not print: $1"; }
silent() { if grep -q -e "$1" logs/out; then complain "$ran" "    printed: $1"; fi; }
run_of() { # PRESET
    succeeds "$inflight" run config.yaml -q --set "serving.preset=$1" --set deployment.host.step_s=0.0015 \
        --set deployment.front_end.request_s=0.008 -o "ran-$1"
}

succeeds "$inflight" trace generate -n 300 --seed 5 --prompt lognormal:800,0.8,16,3000 \
    --output-tokens lognormal:150,0.6,4,600 --process poisson --rate 4 -o trace.csv
for preset in vllm-v0 sarathi vllm-v1-2026-08; do run_of $preset; done

# ---- the other way round, too, and in the deployment that is written ----
succeeds "$inflight" identify config.yaml ran-vllm-v0/requests.csv -o found.yaml
says 'vllm-v0.*the deployment has another preset than vllm-v1-2026-08'
printed 'of a wrong model'
grep -q 'of a wrong model: the runs are rather of preset' found.yaml || complain 'the deployment does not say that its model is wrong'
cp logs/out first
succeeds "$inflight" identify config.yaml ran-vllm-v0/requests.csv -o again.yaml
cmp -s logs/out first || complain 'the table has other bytes the second time'
cmp -s found.yaml again.yaml || complain 'the deployment has other bytes the second time'
succeeds "$inflight" identify config.yaml ran-vllm-v1-2026-08/requests.csv --set serving.preset=vllm-v0
says 'vllm-v1.*the deployment has another preset than vllm-v0'
succeeds "$inflight" identify config.yaml ran-sarathi/requests.csv --set serving.preset=vllm-v0
says 'sarathi.*the deployment has another preset than vllm-v0'

# ---- a configuration that names the modules of its preset, and limits of a batch ----
succeeds "$inflight" identify config.yaml ran-vllm-v0/requests.csv \
    --set 'serving.batching={policy: unified, max_seqs: 256, max_batched_tokens: 8192}'
says 'vllm-v0.*the deployment has another preset than vllm-v1-2026-08'

# ---- the right one, and one that no run tells from it ----
for preset in vllm-v0 sarathi vllm-v1-2026-08; do
    succeeds "$inflight" identify config.yaml ran-$preset/requests.csv --set serving.preset=$preset
    silent 'another preset than'
done
succeeds "$inflight" identify config.yaml ran-vllm-v1-2026-08/requests.csv --set serving.preset=vllm-v1-2026-08-priority
silent 'another preset than'

finish
