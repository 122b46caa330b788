#!/bin/sh
# Presets of routers: each flies, keys beside it override its own, what is written is what was read, and what is wrong
# with one is said.
. "$(dirname "$0")/expect.sh"

cat >base.yaml <<'E1'
model: llama-2-7b
hardware: a100-80gb-sxm
workload:
  trace: traces/data/mooncake-conversation.jsonl.gz
  limit: 200
  arrivals: {process: poisson, rate_rps: 12, seed: 3}
serving: {preset: vllm-v1, max_model_len: 131072}
cluster: {replicas: 4}
output: {dir: out}
E1

# One that hands requests over needs replicas with roles.
sed 's/replicas: 4/pools: {p: {role: prefill, count: 2}, d: {role: both, count: 2}}/' base.yaml >roles.yaml
for file in "$INFLIGHT_DATA"/configs/routing/*.yaml; do
    name=$(basename "$file" .yaml)
    config=base.yaml
    if grep -q '^  handover:' "$file"; then config=roles.yaml; fi
    succeeds "$inflight" run $config --quiet --set cluster.preset="$name" -o by
    succeeds "$inflight" run by/config.yaml --quiet -o again
    same_bytes by/config.yaml again/config.yaml
    same_bytes by/requests.csv again/requests.csv
    [ "$(columns by/requests.csv replica | sort -u | wc -l)" -gt 1 ] || complain "$name uses one replica"
done

# A preset is what its keys say: the router and the news.
succeeds "$inflight" run base.yaml --quiet --set cluster.preset=vllm-dp -o by
succeeds "$inflight" run base.yaml --quiet --set cluster.router=rotating-least --set cluster.news.interval_s=0.1 -o spelt
same_bytes by/requests.csv spelt/requests.csv
succeeds "$inflight" run base.yaml --quiet --set cluster.preset=vllm-dp --set cluster.router=round-robin \
    --set cluster.news.interval_s=0 -o over
succeeds "$inflight" run base.yaml --quiet -o plain
same_bytes over/requests.csv plain/requests.csv

# In a sweep each point has its own preset under the keys of the file, also when its config.yaml is flown again.
succeeds "$inflight" run base.yaml --quiet --set 'sweep.cluster.preset=[llm-d, vllm-dp, production-stack]' \
    --set cluster.news.delay_s=0.01 --set cluster.news.interval_s=0.2 -o swept
succeeds "$inflight" run swept/config.yaml --quiet -o again
same_bytes swept/requests.csv again/requests.csv
succeeds "$inflight" run base.yaml --quiet --set cluster.preset=vllm-dp --set cluster.news.delay_s=0.01 \
    --set cluster.news.interval_s=0.2 -o one
columns swept/requests.csv point,request_id,replica | sed -n 's/^1,//p' >of_sweep
columns one/requests.csv request_id,replica >alone
same_bytes of_sweep alone

refuses 'unknown preset of a router vllm-pd, did you mean vllm-dp?' \
    "$inflight" run base.yaml --set cluster.preset=vllm-pd
cat >mine.yaml <<'E1'
cluster: {router: round-robin, replicas: 3}
E1
refuses 'mine.yaml:1:32: cluster.replicas in a preset, expected router, news, handover or migration' \
    "$inflight" run base.yaml --set cluster.preset=./mine.yaml
echo 'serving: {order: fcfs}' >mine.yaml
refuses 'mine.yaml:1:1: unknown key serving' "$inflight" run base.yaml --set cluster.preset=./mine.yaml
printf 'extends: none-such\ncluster: {router: random}\n' >mine.yaml
refuses 'mine.yaml:1:1: unknown preset of a router none-such' \
    "$inflight" run base.yaml --set cluster.preset=./mine.yaml
printf 'cluster: {preset: llm-d, router: random}\n' >mine.yaml
refuses 'a preset in a preset, expected `extends` at its top' \
    "$inflight" run base.yaml --set cluster.preset=./mine.yaml

# Every rule keeps to the pools that serve a request's model.
cat >pools.yaml <<'E1'
workload: {trace: models.csv, arrivals: {process: trace}}
serving: {preset: vllm-v0, max_model_len: 512, kv: {num_blocks: 300}}
cost: {model: linear, step_s: 0.01}
cluster:
  pools:
    small: {count: 2, model: llama-2-7b, hardware: a100-80gb-sxm, serving: {kv: {num_blocks: 40}}}
    large: {count: 3, model: llama-2-13b, hardware: a100-80gb-sxm}
E1
awk 'BEGIN {
    print "arrival_s,prompt_tokens,output_tokens,prefix_group,prefix_tokens,session,model"
    for (i = 0; i < 300; i++)
        printf "%.3f,%d,%d,%d,%d,%s,%s\n", i / 200, 8 + i * 37 % 200, 1 + i % 20, 1 + i % 4, 8, i % 3 ? i % 5 + 1 : "",
            i % 7 ? i % 2 ? "llama-2-7b" : "llama-2-13b" : ""
}' >models.csv
for router in block-cost cached exploit-explore prefix-tree prefix-trie remaining-steps rotating-least scores; do
    for interval_s in 0 0.05; do
        succeeds "$inflight" run pools.yaml --quiet --set cluster.router=$router \
            --set cluster.news.interval_s=$interval_s -o pools
        same "$(columns pools/requests.csv replica,pool | sort -u | tr '\n' ' ')" \
            '0,small 1,small 2,large 3,large 4,large ' "pools of $router"
        columns pools/requests.csv request_id,pool | sort -n -t, | awk -F, 'NR == FNR { asked[FNR - 2] = $7; next }
            asked[$1] == "llama-2-7b" && $2 != "small" || asked[$1] == "llama-2-13b" && $2 != "large" { print }
            ' models.csv - >strays
        [ ! -s strays ] || complain "$router: $(head -1 strays) is of another model"
    done
done
finish
