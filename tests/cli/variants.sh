#!/bin/sh
# Sweeps with maps as values, and variants: their points, their names in reports, and keys of a file that no variant
# gives.
. "$(dirname "$0")/expect.sh"

cat >config.yaml <<'END'
workload: {trace: six.csv}
serving: {preset: vllm-v0, max_model_len: 2048, kv: {num_blocks: 40}}
cost: {model: linear, step_s: 0.01, prefill_token_s: 0.0001}
slo: {ttft_s: 0.5}
output: {dir: out, steps: true, timeline: true, plots: false}
sweep:
  variants:
    whole:
    "small pool": {serving: {kv: {num_blocks: 8}}}
    sarathi: {serving: {preset: sarathi, batching: {chunk_tokens: 32}}, slo: {ttft_s: 2}}
    slow: {cost: {step_s: 0.05}}
  cost.prefill_token_s: [0.0001, 0.001]
END
printf 'arrival_s,prompt_tokens,output_tokens\n0,10,5\n0,60,30\n0.1,30,40\n0.2,70,20\n0.2,50,9\n0.3,16,7\n' >six.csv
reports='config.yaml quantiles.csv requests.csv steps.csv summary.csv timeline.json'

alike() {
    for report in $reports; do
        same_bytes "$1/$report" "$2/$report"
    done
}

# points are the product, named by variant
succeeds "$inflight" run config.yaml --quiet -o whole
same "$(head -n 1 whole/summary.csv | cut -d, -f1-2)" variant,cost.prefill_token_s 'the swept keys'
same "$(columns whole/summary.csv variant,cost.prefill_token_s | tr '\n' '|')" \
    'whole,0.0001|whole,0.001|small pool,0.0001|small pool,0.001|sarathi,0.0001|sarathi,0.001|slow,0.0001|slow,0.001|' \
    'the points of variants'

# each point is what the file says with the variant laid over it
alone() {
    point=$1
    shift
    succeeds "$inflight" run config.yaml --quiet -o alone --set sweep=null --set cost.prefill_token_s=0.001 "$@"
    awk -F, -v point="$point" 'NR == 1 || $1 == point' whole/requests.csv | cut -d, -f2- >point.csv
    cut -d, -f2- alone/requests.csv >alone.csv
    same_bytes point.csv alone.csv
}
alone 1
alone 3 --set serving.kv.num_blocks=8
alone 5 --set serving.preset=sarathi --set serving.batching.chunk_tokens=32 --set slo.ttft_s=2
alone 7 --set cost.step_s=0.05

# threads, the written configuration, and what a killed run leaves
succeeds "$inflight" run config.yaml --quiet -o threads -j 3
alike whole threads
succeeds "$inflight" run whole/config.yaml --quiet -o again
alike whole again
mkfifo gate.csv
gated='sweep.variants.last={workload: {trace: gate.csv, format: inflight}}'
"$inflight" run config.yaml --quiet -o cut --set "$gated" 2>/dev/null &
run=$!
n_waits=0
while [ ! -e cut/.parts/record-000007 ] && [ $n_waits -lt 200 ]; do
    sleep 0.05
    n_waits=$((n_waits + 1))
done
kill -9 $run
wait $run 2>/dev/null
[ -e cut/.parts/record-000007 ] || complain 'no record of the last variant before the gate'
rm gate.csv
cp six.csv gate.csv
succeeds "$inflight" run config.yaml --quiet -o gated --set "$gated"
succeeds "$inflight" run config.yaml --quiet -o cut --resume --set "$gated"
alike cut gated
same "$(columns gated/summary.csv variant | grep -c '^last$')" 2 'a variant of the command line'

# an edit of a key comes last in variants, too; others of the same map stay
succeeds "$inflight" run config.yaml --quiet -o edited --set serving.kv.num_blocks=24 --set cost.step_s=0.02
same "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } { print $at["kv_total_blocks"] }' edited/steps.csv |
    sort -u | tr '\n' ' ')" '24 kv_total_blocks ' 'the blocks of an edited sweep'
awk -F, '$1 == 0 || $1 == 6' edited/requests.csv | sed 's/^[06],/0,/' | sort | uniq -c |
    awk '$1 != 2' | grep -q . && complain 'an edited variant differs from the file'
succeeds "$inflight" run edited/config.yaml --quiet -o edited-again
alike edited edited-again
succeeds "$inflight" run config.yaml --quiet -o fewer --set sweep.variants.slow=null \
    --set sweep.variants.sarathi.slo.ttft_s=3
same "$(columns fewer/summary.csv cost.prefill_token_s | wc -l)" 6 'the points without a variant'
grep -q '^ *ttft_s: 3$' fewer/config.yaml || complain 'a key of a variant was not edited'
succeeds "$inflight" run config.yaml --quiet -o none --set sweep.variants=null
same "$(head -n 1 none/summary.csv | cut -d, -f1)" cost.prefill_token_s 'a sweep without variants'

# maps as values of a key, and names of values
succeeds "$inflight" run config.yaml --quiet -o maps --set 'sweep.variants=null' --set sweep.cost.prefill_token_s=null \
    --set 'sweep.serving.kv=[{num_blocks: 30}, {num_blocks: 50, block_tokens: 8}]' \
    --set 'sweep.slo.ttft_s={strict: 0.1, loose: 9}'
same "$(cut -d, -f1-5 maps/summary.csv | tr '\n' '|')" \
    'serving.kv,slo.ttft_s,requests,finished,rejected|num_blocks 30,strict,6,6,0|num_blocks 30,loose,6,6,0|"num_blocks 50, block_tokens 8",strict,6,6|"num_blocks 50, block_tokens 8",loose,6,6|' \
    'points of maps'
succeeds "$inflight" run maps/config.yaml --quiet -o maps-again
alike maps maps-again

# variants of pools, and pools that only a variant has; what is written has the same bytes again
cat >pools.yaml <<'END'
workload: {trace: six.csv}
serving: {preset: vllm-v0, max_model_len: 2048, kv: {num_blocks: 40}}
cost: {model: linear, step_s: 0.01, prefill_token_s: 0.0001}
cluster: {pools: {big: {count: 1, serving: {kv: {num_blocks: 100}}}, small: {count: 2}}}
output: {dir: pools, steps: true, timeline: true, plots: false}
sweep:
  variants:
    fewer: {serving: {kv: {num_blocks: 10}}}
    as it is:
    sarathi: {cluster: {pools: {small: {serving: {preset: sarathi}}}}}
    third: {cluster: {pools: {third: {count: 1}}}}
END
succeeds "$inflight" run pools.yaml --quiet
succeeds "$inflight" run pools/config.yaml --quiet -o pools-again
alike pools pools-again
same "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { print $1, $at["pool"], $at["kv_total_blocks"] }' pools/steps.csv | sort -u | grep '^[01] ' | tr '\n' '|')" \
    '0 big 100|0 small 10|1 big 100|1 small 40|' 'blocks of pools under two variants'
for only in 'as it is' third; do
    sed '/^sweep/,$d' pools.yaml >one.yaml
    [ "$only" = third ] && sed -i 's/small: {count: 2}/small: {count: 2}, third: {count: 1}/' one.yaml
    succeeds "$inflight" run one.yaml --quiet -o alone
    awk -F, -v point="$([ "$only" = third ] && echo 3 || echo 1)" 'NR == 1 || $1 == point' pools/requests.csv | cut -d, -f2- >point.csv
    cut -d, -f2- alone/requests.csv >alone.csv
    same_bytes point.csv alone.csv
done
sed '/^cluster/d' one.yaml >plain.yaml
succeeds "$inflight" run plain.yaml --quiet -o plain --set 'sweep.variants.two={cluster: {pools: {a: {}, b: {count: 2}}}}' \
    --set 'sweep.variants.one={cluster: {pools: {a: {}}}}'
succeeds "$inflight" run plain/config.yaml --quiet -o plain-again
alike plain plain-again
refuses 'variant one has no pools, unlike the first point, expected pools at all points or at none' \
    "$inflight" run plain.yaml --quiet --set 'sweep.variants.two={cluster: {pools: {a: {}}}}' --set 'sweep.variants.one={}'
refuses 'there is no pool smal in cluster.pools, did you mean small?' "$inflight" run pools.yaml --quiet \
    --set 'sweep.variants={wrong: {cluster: {pools: {smal: {serving: {preset: sarathi}}}}}}'
refuses 'pool small: a pool has no key servin, did you mean serving?' "$inflight" run pools.yaml --quiet \
    --set 'sweep.variants={wrong: {cluster: {pools: {small: {servin: {preset: sarathi}}}}}}'
# a key of a variant that is not there
refuses 'sweep.variants.smal pool.slo.ttft_s=3: there is no variant smal pool in sweep.variants, expected one that is there, '\
'or a map of keys for a new one; did you mean small pool[?]' "$inflight" run config.yaml --quiet --set 'sweep.variants.smal pool.slo.ttft_s=3'
refuses 'there is no variant a in sweep.variants, expected one that is there, or a map of keys for a new one' \
    "$inflight" run config.yaml --quiet --set sweep=null --set sweep.variants.a.output.steps=true
refuses 'variant a is 3, expected a map of keys' "$inflight" run config.yaml --quiet --set sweep.variants.a=3

# the reports that follow
succeeds "$inflight" table whole --where variant=sarathi --columns mean_ttft_s
same "$(head -n 1 logs/out)" '| prefill\_token\_s | TTFT, mean (s) |' 'a table of a variant'
refuses 'no point has variant sarati, did you mean sarathi?' "$inflight" table whole --where variant=sarati
succeeds "$inflight" compare whole --between variant=whole,slow
printed 'other  whole, variant slow'
succeeds "$inflight" report whole -o page.html
grep -q '"small pool"' page.html || complain 'the page has no name of a variant'
grep -q 'variant=small pool' whole/timeline.json || complain 'the timeline has no name of a variant'
finish
