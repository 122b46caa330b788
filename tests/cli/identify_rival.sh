#!/bin/sh
# A server without a prefix cache, of which the configuration has one: that is said, whatever else the fit would stand for.
. "$(dirname "$0")/expect.sh"

cat >config.yaml <<'EOF'
model: llama-2-7b
hardware: a100-80gb-sxm
workload: {trace: shared.csv}
serving: {preset: vllm-v1-2026-08, max_model_len: 4096}
output: {plots: false}
EOF
silent() { grep -q "$1" logs/out && complain "$ran" "    printed: $1"; }

# long answers hide the prompts' time in the host, and a small pool the hits: neither stands for the lack of a cache
for flown in 'lognormal:700,0.6,16,3000 lognormal:200,0.6,4,600 4 6 500' 'lognormal:2500,0.2,1600,3900 lognormal:60,0.5,4,200 1.2 12 1500'; do
    # shellcheck disable=SC2086 # words on purpose
    set -- $flown
    succeeds "$inflight" trace generate -n 240 --seed 7 --prompt "$1" --output-tokens "$2" --process poisson --rate "$3" -o bare.csv
    awk -F, -v OFS=, -v groups="$4" -v most="$5" 'NR == 1 { print $0, "prefix_group,prefix_tokens"; next }
        { print $0, NR % groups, $2 - 1 < most ? $2 - 1 : most }' bare.csv >shared.csv
    succeeds "$inflight" run config.yaml -q --set workload.trace=shared.csv --set serving.kv.prefix_cache=none \
        --set deployment.host.step_s=0.0015 --set deployment.front_end.request_s=0.008 -o uncached
    succeeds "$inflight" identify config.yaml uncached/requests.csv --requests shared.csv -o uncached.yaml
    printed 'the deployment has no such cache (serving.kv.prefix_cache: none)'
    silent 'was found in a cache'
    grep -q 'of a wrong model' uncached.yaml || complain 'the deployment does not say that its model is wrong'
    succeeds "$inflight" identify config.yaml uncached/requests.csv --requests shared.csv --set serving.kv.prefix_cache=none
    same "$(awk '$1 == "host.step_s" && $NF == "determined" { print ($4 <= 1.5 && 1.5 <= $6) }' logs/out)" 1 '1.5 ms without the cache'
    succeeds "$inflight" run config.yaml -q --set workload.trace=shared.csv --set deployment.host.step_s=0.0015 -o cached
    succeeds "$inflight" identify config.yaml cached/requests.csv --requests shared.csv
    silent 'such cache'
    silent 'found in a cache'
done

finish
