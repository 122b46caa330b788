#!/bin/sh
# What a deployment found in its prefix cache: flown as a share of each prompt, found again from a run, written down for
# other configurations. A cache on one side alone, recorded or simulated, is said, and so is another preset.
. "$(dirname "$0")/expect.sh"

cat >config.yaml <<'EOF'
model: llama-2-7b
hardware: a100-80gb-sxm
workload: {trace: plain.csv}
serving: {preset: vllm-v1-2026-08, max_model_len: 4096}
output: {plots: false}
EOF

# ---- flown: the first whole blocks of a prompt are not computed ----
# 0.4 x 1000 tokens are 25 blocks of 16: 600 tokens at 0.1 ms beside 10 ms. 0.4 x 30 tokens are no block: 13 ms.
printf 'arrival_s,prompt_tokens,output_tokens\n0,1000,1\n1,30,1\n' >two.csv
cat >linear.yaml <<'EOF'
workload: {trace: two.csv}
serving: {preset: vllm-v1-2026-11, max_model_len: 4096, kv: {num_blocks: 300}}
cost: {model: linear, step_s: 0.01, prefill_token_s: 0.0001}
output: {plots: false}
EOF
succeeds "$inflight" run linear.yaml -q --set deployment.cache.hit_frac=0.4 -o given
same "$(columns given/requests.csv cached_tokens | paste -sd ' ')" '400 0' 'tokens found'
same "$(columns given/requests.csv ttft_s | paste -sd ' ')" '0.070000000 0.013000000' 'first tokens'
succeeds "$inflight" run linear.yaml -q --set serving.kv.tiers.store.hit_frac=0.4 -o store
same "$(columns given/requests.csv finish_s)" "$(columns store/requests.csv finish_s)" 'as a store that others fill'
grep -q store_tokens given/requests.csv && complain 'columns of tiers without a tier'
refuses 'serving.kv.prefix_cache is none, expected hash or radix, where deployment.cache.hit_frac is above 0' \
    "$inflight" run linear.yaml -q --set deployment.cache.hit_frac=0.4 --set serving.kv.prefix_cache=none -o no
refuses 'serving.kv.tiers.store is set, expected one of the two' \
    "$inflight" run linear.yaml -q --set deployment.cache.hit_frac=0.4 --set serving.kv.tiers.store.hit_frac=0.4 -o no
refuses 'deployment.cache.hit_frac is 1.5, expected' "$inflight" run linear.yaml -q --set deployment.cache.hit_frac=1.5 -o no

# ---- found again, and named by another configuration ----
succeeds "$inflight" trace generate -n 240 --seed 5 --prompt lognormal:1000,0.8,16,3500 \
    --output-tokens lognormal:100,0.5,4,400 --process poisson --rate 1.5 -o plain.csv
awk -F, -v OFS=, 'NR == 1 { print $0, "prefix_group,prefix_tokens"; next } { print $0, NR % 2 ? "a," int(0.9 * $2) : "," }' \
    plain.csv >half.csv
awk -F, -v OFS=, 'NR == 1 { print $0, "prefix_group,prefix_tokens"; next } { print $0, "a", int(0.9 * $2) }' plain.csv >all.csv
succeeds "$inflight" run config.yaml -q --set deployment.cache.hit_frac=0.4 -o share
cp share/requests.csv share.csv
succeeds "$inflight" identify config.yaml share.csv --free cache.hit_frac -o found.yaml
same "$(awk '$1 == "cache.hit_frac" && /not alone: the requests share nothing/ { print ($3 < 0.4 && 0.4 < $5 && $5 - $3 < 0.1) }' logs/out)" 1 \
    '0.4 in an interval of less than 0.1'
same "$(awk '$1 == "after" { sub("%", "", $2); print ($2 * $2 < 9) }' logs/out)" 1 'TTFT of the rest within 3%'
grep -q '  hit_frac: .*# 90%: ' found.yaml || complain 'no share in found.yaml'
grep -q '    hit_frac: \[' found.yaml || complain 'no interval of the share in found.yaml'
succeeds "$inflight" run config.yaml -q --set deployment=./found.yaml -o with-found
same "$(columns with-found/requests.csv cached_tokens | awk '$1 > 0 { n++ } END { print (n > 200) }')" 1 \
    'a run with the deployment found'
succeeds "$inflight" run config.yaml -q --set deployment=./found.yaml --set cost.ensemble=3 -o members
refuses 'serving.kv.prefix_cache is none, expected hash or radix, where cache.hit_frac is looked for' \
    "$inflight" identify config.yaml share.csv --free cache.hit_frac --set serving.kv.prefix_cache=none
refuses 'did you mean cache.hit_frac' "$inflight" identify config.yaml share.csv --free cache.hitfrac

# ---- a cache that the recorded server had ----
succeeds "$inflight" identify config.yaml share.csv
printed 'of the simulated rate: the rest was found in a cache, of which the flown requests know nothing'
printed '--free cache.hit_frac looks for a share'
succeeds "$inflight" identify config.yaml share.csv --set serving.kv.prefix_cache=none
printed 'which the configuration lacks (serving.kv.prefix_cache is none)'
succeeds "$inflight" run config.yaml -q --set workload.trace=half.csv -o hits
succeeds "$inflight" identify config.yaml hits/requests.csv
printed 'of the requests that met no other prompt had their first token in less than half the time that their own takes'
succeeds "$inflight" identify config.yaml hits/requests.csv --requests half.csv
silent() { grep -q "$1" logs/out && complain "$ran" "    printed: $1"; }
silent 'cache,'

# ---- requests that were sent before the run: flown, and neither fitted nor judged ----
# a quarter of the run's prompts begin as one of 60 that the server had computed before
awk -F, -v OFS=, 'NR == 1 { print "request_id", $0, "prefix_group,prefix_tokens"; next }
    { i = NR - 2; row[i] = i OFS ($1 + 100) OFS $2 OFS $3 OFS (i % 4 ? "," : i / 4 OFS int(0.9 * $2)) }
    i % 4 == 0 { print 1000 + i / 4, i / 4, $2, 20, i / 4, int(0.9 * $2) }
    END { for (i = 0; i in row; i++) print row[i] }' plain.csv >before.csv
succeeds "$inflight" run config.yaml -q --set workload.trace=before.csv --set deployment.host.step_s=0.004 -o before
awk -F, 'NR == 1 || $2 < 1000' before/requests.csv >behind.csv
awk -F, 'NR == 1 || $1 < 1000' before.csv >without.csv
expect 0 'note: behind.csv: 60 requests that were sent before the run are flown, and not judged' \
    "$inflight" identify config.yaml behind.csv --share 1 --hold kernels.prompt_frac --requests before.csv
printed '240 requests of 1 recorded runs fitted'
same "$(awk '$1 == "host.step_s" && $NF == "determined" { print ($4 < 4 && 4 < $6) }' logs/out)" 1 '4 ms in the interval'
first_tokens() { awk -v most="$1" '$1 == "after" { sub("%", "", $5); print ($5 < most) }' logs/out; }
same "$(first_tokens 4)" 1 'TTFT of the median request within 4%'
silent 'cache,'
succeeds "$inflight" identify config.yaml behind.csv --share 1 --hold kernels.prompt_frac --requests without.csv
same "$(first_tokens 5)" 0 'TTFT within 5% without what was sent before'
# the same trace drives a run, and validate leaves out what is not recorded
succeeds "$inflight" validate before behind.csv --no-plots
printed 'paired     240 by request_id'
printed '60 simulated and 0 measured alone'
# the run's own rows say so by their ids, and are the last
cut -d, -f2- before.csv >nameless.csv
refuses 'nameless.csv: no recorded run has these requests' "$inflight" identify config.yaml behind.csv --requests nameless.csv
awk -F, -v OFS=, 'NR > 1 && $1 >= 1000 { $2 += 1000 } 1' before.csv >after.csv
refuses 'after.csv: no recorded run has these requests' "$inflight" identify config.yaml behind.csv --requests after.csv

# ---- a pool that forgets what a larger one would find ----
# 24 prompts, each computed ten times in a pool of 600 blocks, and once in one without an end, which is in use by half
awk -F, -v OFS=, 'NR == 1 { print $0, "prefix_group,prefix_tokens"; next }
    { i = NR - 2; print (i < 24 ? 2 * i : 48 + $1 / 3), 960 + i % 7 * 40, $3, i % 24, 900 }' plain.csv >turns.csv
succeeds "$inflight" run config.yaml -q --set workload.trace=turns.csv --set serving.kv.num_blocks=600 -o turns
succeeds "$inflight" identify config.yaml turns/requests.csv --requests turns.csv --hold kernels.prompt_frac
same "$(awk '$1 == "num_blocks" && $NF == "determined" { print ($2 > 590 && $2 < 610) }' logs/out)" 1 '600 blocks, within ten'
# what is given is written as it was given, the null block among it
succeeds "$inflight" identify config.yaml turns/requests.csv --requests turns.csv --hold kernels.prompt_frac \
    --set serving.kv.num_blocks=600 -o given-blocks.yaml
grep -q '^num_blocks: 600 ' given-blocks.yaml || complain 'num_blocks is not what was given' "$(cat given-blocks.yaml)"

# ---- a cache that it had not ----
succeeds "$inflight" run config.yaml -q -o none
for flown in half all; do
    succeeds "$inflight" identify config.yaml none/requests.csv --requests $flown.csv
    printed 'the deployment has no such cache (serving.kv.prefix_cache: none)'
    same "$(awk '$NF == "determined" { n++ } END { print n + 0 }' logs/out)" 0 'parameters determined by a wrong model'
    printed 'of a wrong model'
done
succeeds "$inflight" identify config.yaml none/requests.csv
silent 'cache'

# ---- another preset, under a load at which presets differ ----
succeeds "$inflight" trace generate -n 300 --seed 9 --prompt lognormal:1200,0.8,16,3500 \
    --output-tokens lognormal:200,0.5,4,600 --process poisson --rate 5 -o busy.csv
for preset in vllm-v0 faster-transformer; do
    succeeds "$inflight" run config.yaml -q --set serving.preset=$preset --set workload.trace=busy.csv -o $preset
    succeeds "$inflight" identify config.yaml $preset/requests.csv
    printed 'another preset'
    silent 'found in a cache'
done
finish
