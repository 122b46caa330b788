#!/bin/sh
# Fleets of random size, load, preset, router and trace: replicas that fly apart give the bytes of
# replicas that plan each step together.
. "$(dirname "$0")/expect.sh"

routers='round-robin least-outstanding power-of-two prefix random session remaining-steps rotating-least scores block-cost prefix-tree prefix-trie cached'
presets='vllm-v0 vllm-v1 vllm-v0-swap vllm-v0-priority sarathi sglang fastserve orca-max vtc vtc-rpm trtllm-static sjf-ageing'

# draw SEED: a line of the fleet's options, and its trace. Stamps are coarse, so that events coincide. Some traces are
# so long that mailboxes of replicas fill up.
draw() {
    awk -v seed="$1" -v routers="$routers" -v presets="$presets" '
    function below(n) { return int(rand() * n) }
    BEGIN {
        srand(seed)
        n_routers = split(routers, router, " ")
        n_presets = split(presets, preset, " ")
        n = 2 + below(7)
        printf "%s %s %d %d ", preset[1 + below(n_presets)], router[1 + below(n_routers)], n, 150 + below(3) * 400
        print "arrival_s,prompt_tokens,output_tokens,priority,client,prefix_group,prefix_tokens,abort_s" >"trace.csv"
        patient = below(2)
        n_requests = seed % 5 ? 120 : 1200
        at = 0
        for (i = 0; i < n_requests; i++) {
            at += below(4) ? below(40) / 100 / n : 0
            prompt = 5 + below(300)
            group = below(4)
            printf "%.2f,%d,%d,%d,%d,%d,%d,%s\n", at, prompt, 1 + below(120), below(3), below(4), group,
                group ? int(prompt * 3 / 4) : 0, patient || below(4) ? "" : below(500) / 100 >"trace.csv"
        }
        old = below(2)
        print old * 0.01 * 10 ^ below(3), old * 0.01 * below(8)
    }'
}

cat >base.yaml <<'E1'
model: llama-2-7b
hardware: a100-80gb-sxm
workload: {trace: trace.csv, format: inflight}
serving: {max_model_len: 2048}
E1

# fly DIR OPTION...
fly() {
    dir=$1
    shift
    # shellcheck disable=SC2086 # words on purpose
    try "$inflight" run base.yaml --quiet -o "$dir" $fleet "$@"
    [ "$code" -eq 0 ] || complain "$ran" "    exit code $code: $(cat logs/err)"
}

for seed in $(seq 1 "${FLEETS:-40}"); do
    # shellcheck disable=SC2046 # words on purpose
    set -- $(draw "$seed")
    fleet="--set serving.preset=$1 --set cluster.router.policy=$2 --set cluster.replicas=$3 --set serving.kv.num_blocks=$4"
    fleet="$fleet --set cluster.news.interval_s=$5 --set cluster.news.delay_s=$6"
    fly apart
    fly rows --set output.steps=true
    fly together --set output.steps=true --set serving.steady_runs=false
    for report in requests quantiles summary; do
        same_bytes "apart/$report.csv" "together/$report.csv"
        same_bytes "rows/$report.csv" "together/$report.csv"
    done
    same_bytes rows/steps.csv together/steps.csv
done
finish
