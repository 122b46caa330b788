#!/bin/sh
# The same configuration gives the same bytes: twice, on any number of threads, with and without
# steady runs, whether blocks have numbers or are counted, and from the config.yaml that a run has
# written.
. "$(dirname "$0")/expect.sh"

reports='config.yaml quantiles.csv requests.csv steps.csv summary.csv'
presets=$(cd "$INFLIGHT_DATA/configs/serving" && ls ./*.yaml | sed 's|.*/||; s|\.yaml$||' | tr '\n' ' ')

# fly DIR CONFIG [OPTION...]
fly() {
    dir=$1
    config=$2
    shift 2
    succeeds "$inflight" run "$config" --quiet -o "$dir" "$@"
}

# 300 requests of four clients, one of them greedy, of three priorities, with and without deadlines,
# most of which share a prefix with others
awk 'BEGIN {
    print "prompt_tokens,output_tokens,priority,client,ttft_slo_s,tpot_slo_s,prefix_group,prefix_tokens"
    for (i = 0; i < 300; i++) {
        prompt = 10 + i * 37 % 250
        printf "%d,%d,%d,%d,%s,%s,%d,%d\n", prompt, 4 + i * 53 % 250, i % 3, i % 7 < 4 ? 0 : i % 7 - 3,
            i % 5 ? (i % 5) * 2 : "", i % 4 ? (i % 4) / 20 : "", i * 11 % 5, i * 11 % 5 ? int(prompt * 3 / 4) : 0
    }
}' >crowd.csv

# into a pool that is too small for them: every preset preempts, and the queue grows
quickstart() {
    dir=$1
    shift
    fly "$dir" "$INFLIGHT_DATA/configs/quickstart.yaml" --set workload.trace="$work/crowd.csv" \
        --set serving.kv.num_blocks=300 --set output.steps=true --set output.plots=false "$@"
}

# The two runs agree in the reports named.
agree() {
    one=$1
    other=$2
    shift 2
    for report in "$@"; do
        same_bytes "$one/$report" "$other/$report"
    done
}

# each preset alone
for preset in $presets; do
    one="--set sweep=null --set serving.preset=$preset --set workload.arrivals.rate_rps=12"
    # shellcheck disable=SC2086 # words on purpose
    quickstart "$preset" $one
    # shellcheck disable=SC2086
    quickstart "$preset-again" $one
    # shellcheck disable=SC2086
    quickstart "$preset-planned" $one --set serving.steady_runs=false
    # shellcheck disable=SC2086
    quickstart "$preset-checked" $one --set serving.check_steady=true
    # shellcheck disable=SC2086
    quickstart "$preset-numbered" $one --set output.work=true
    fly "$preset-rerun" "$preset/config.yaml"
    # shellcheck disable=SC2086
    agree "$preset" "$preset-again" $reports
    agree "$preset" "$preset-planned" quantiles.csv requests.csv steps.csv summary.csv
    agree "$preset" "$preset-checked" quantiles.csv requests.csv steps.csv summary.csv
    agree "$preset" "$preset-numbered" quantiles.csv requests.csv steps.csv summary.csv
    # shellcheck disable=SC2086
    agree "$preset" "$preset-rerun" $reports
done
# the pool was too small: there were preemptions, by recompute and by swap
[ "$(columns vllm-v0/summary.csv preemptions)" -gt 0 ] || complain 'vllm-v0 preempts no request'
[ "$(columns vllm-v0-swap/summary.csv swap_outs)" -gt 0 ] || complain 'vllm-v0-swap swaps no request'
# presets differ: all presets of a line except the last differ from the last in their decisions
while read -r others; do
    plain=${others##* }
    for preset in ${others% *}; do
        cut -d, -f3- "$preset/requests.csv" >other.csv
        cut -d, -f3- "$plain/requests.csv" | cmp -s - other.csv && complain "$preset decides as $plain does"
    done
done <<'LINES'
vtc vtc-rpm vtc-drr s-lora
vtc-lcf vtc-oracle vtc-predict vtc-profile vtc-weighted vtc
vllm-v0-priority vllm-v0
vllm-v1-priority vllm-v1 vllm-v1-sync
vllm-v1-2026-08-priority vllm-v1-2026-08
sglang-lpm sglang-dfs-weight sglang
edf qoserve sarathi
LINES

# all of them in a sweep
axes=$(echo "$presets" | sed 's/ $//; s/ /,/g')
sweep="--set sweep.serving.preset=[$axes] --set sweep.workload.arrivals.rate_rps=[2,12,32]"
# shellcheck disable=SC2086
quickstart sweep $sweep
# shellcheck disable=SC2086
quickstart sweep-again $sweep -j 2
# shellcheck disable=SC2086
quickstart sweep-planned $sweep -j 7 --set serving.steady_runs=false
fly sweep-rerun sweep/config.yaml -j 2
# shellcheck disable=SC2086
agree sweep sweep-again $reports
agree sweep sweep-planned quantiles.csv requests.csv steps.csv summary.csv
# shellcheck disable=SC2086
agree sweep sweep-rerun $reports

# a point of the sweep equals the run of that point alone, except for its number and for columns that only other points
# fill, which stand behind the others
for preset in $presets; do
    n_columns=$(head -n 1 "$preset/requests.csv" | tr , '\n' | grep -c '')
    n=$(columns sweep/summary.csv serving.preset,workload.arrivals.rate_rps |
        awk -F, -v preset="$preset" '$1 == preset && $2 == 12 { print NR - 1 }')
    awk -F, -v point="$n" 'NR == 1 || $1 == point' sweep/requests.csv | cut -d, -f2-"$n_columns" >point.csv
    cut -d, -f2- "$preset/requests.csv" >alone.csv
    same_bytes point.csv alone.csv
done

# Three replicas, of which steps end at the same times and send K/V to one store; a small store, in which the order of
# what arrives at one time decides what is found.
awk 'BEGIN {
    print "arrival_s,prompt_tokens,output_tokens,prefix_group,prefix_tokens"
    for (i = 0; i < 300; i++) {
        prompt = 33 + i * 37 % 64
        printf "%.3f,%d,1,%d,%d\n", int(i / 3) * 0.01, prompt, i * 7 % 5, prompt
    }
}' >equal_times.csv
cat >store.yaml <<YAML
workload: {trace: $work/equal_times.csv, format: inflight, arrivals: {process: trace}}
serving:
  preset: vllm-v1-2026-08
  max_model_len: 4096
  batching: {max_seqs: 2}
  kv: {num_blocks: 14, tiers: {store: {blocks: 12, stores: evicted, evict: fifo, loads: before, latency_s: 0.001}}}
cluster: {replicas: 3}
cost: {model: linear, step_s: 0.01}
output: {steps: true, plots: false}
YAML
fly store store.yaml
fly store-planned store.yaml --set serving.steady_runs=false
fly store-checked store.yaml --set serving.check_steady=true
fly store-worked store.yaml --set output.work=true
fly store-alone store.yaml --set output.steps=false
for other in store-planned store-checked store-worked; do
    agree store "$other" moves.csv quantiles.csv requests.csv steps.csv summary.csv
done
agree store store-alone moves.csv quantiles.csv requests.csv summary.csv
fly store-sizes store.yaml --set 'sweep.serving.kv.tiers.store.blocks=[8,12,16,20]'
fly store-sizes-again store.yaml --set 'sweep.serving.kv.tiers.store.blocks=[8,12,16,20]' -j 4
# shellcheck disable=SC2086
agree store-sizes store-sizes-again moves.csv $reports
columns store/requests.csv store_tokens | grep -q '^[1-9]' || complain 'the store is never read'

# another seed is another run
quickstart other --set sweep=null --set workload.arrivals.seed=8
cmp -s other/requests.csv vllm-v0/requests.csv && complain 'the seed changes nothing'
finish
