#!/bin/sh
# Keys that are right by themselves and do not go together, and files and plug-ins that are not what they must be:
# exit code 2 and one line with what was found and what was expected. A row of each table is one way to go wrong.
. "$(dirname "$0")/expect.sh"

printf 'arrival_s,prompt_tokens,output_tokens\n0,10,5\n1,20,3\n2,30,4\n' >three.csv
awk -F, -v OFS=, 'NR == 1 { print $0, "adapter"; next } { print $0, "a" NR }' three.csv >adapters.csv
cat >linear.yaml <<'END'
workload: {trace: three.csv, arrivals: {process: poisson, rate_rps: 2}}
cost: {model: linear, step_s: 0.01}
serving: {preset: vllm-v0, max_model_len: 512, kv: {num_blocks: 64}}
output: {dir: out}
END
cat >model.yaml <<'END'
model: llama-2-7b
hardware: a100-80gb-sxm
workload: {trace: three.csv, arrivals: {process: poisson, rate_rps: 2}}
serving: {preset: vllm-v0}
output: {dir: out}
END
cat >pools.yaml <<'END'
workload: {trace: three.csv, arrivals: {process: poisson, rate_rps: 2}}
cost: {model: linear, step_s: 0.01}
serving: {preset: vllm-v0, max_model_len: 512, kv: {num_blocks: 64}}
cluster: {pools: {a: {count: 1}, b: {count: 2}}}
output: {dir: out}
END

# with COMMAND PATTERN FILE EDIT...: the command refuses the configuration with these edits
with() {
    command=$1
    pattern=$2
    file=$3
    shift 3
    for edit; do
        set -- "$@" --set "$edit"
        shift
    done
    refuses "$pattern" "$inflight" "$command" "$file" --quiet "$@"
    [ ! -e out ] || complain "$command $file $*: left out with $(ls out)"
}
for file in linear model pools; do
    succeeds "$inflight" run $file.yaml --quiet
    rm -r out
done

# cost
mkdir empty
with run 'cost.ensemble is above 0, expected 0 where the costs were not fitted' linear.yaml cost.ensemble=3
with run 'empty: 0 files that end in ' model.yaml cost.model=table cost.dir=empty
with run 'llama-2-70b does not fit on a100-80gb-sxm at parallel.tensor 1: *expected room for one' model.yaml \
    model=llama-2-70b

# cost tables with too few rows, with one too many, and with a file too many
tables=$INFLIGHT_DATA/configs/costs/vidur-llama-2-7b-a100
for name in linear attn_prefill attn_decode; do
    mkdir table-$name
    for other in linear attn_prefill attn_decode; do
        keep=100000
        [ $other = $name ] && keep=2
        gzip -dc "$tables/${other}_ms_per_layer.csv.gz" | head -$keep >table-$name/${other}_ms_per_layer.csv
    done
done
table() { # PATTERN DIR EDIT...
    pattern=$1
    dir=$2
    shift 2
    with run "$pattern" model.yaml cost.model=table "cost.dir=$dir" "$@"
}
table 'table-linear/linear_ms_per_layer.csv: no row for num_tokens 16, or for 10, expected one for each step' table-linear
printf 'arrival_s,prompt_tokens,output_tokens\n0,16,5\n' >padded.csv
table 'table-linear/linear_ms_per_layer.csv: no row for num_tokens 16, expected one for each step' table-linear \
    workload.trace=padded.csv workload.arrivals.process=trace
table 'table-attn_prefill/attn_prefill_ms_per_layer.csv: no row for kv_rounded64 0 and chunk 10, expected one' \
    table-attn_prefill
table 'table-attn_decode/attn_decode_ms_per_layer.csv: no row for batch_size 1 and kv_rounded64 64, expected one' \
    table-attn_decode
sed -n 2p table-linear/linear_ms_per_layer.csv >>table-linear/linear_ms_per_layer.csv
table 'table-linear/linear_ms_per_layer.csv:3: a second row for the same step, expected one' table-linear
cp table-linear/linear_ms_per_layer.csv table-linear/more_linear_ms_per_layer.csv
table 'table-linear: 2 files that end in linear_ms_per_layer.csv or linear_ms_per_layer.csv.gz, expected one' table-linear
printf 'arrival_s,prompt_tokens,output_tokens\n0,60,60\n0,60,60\n' >swapped.csv
table 'model.yaml: cost.model is table, which has no time for blocks that are swapped, expected serving.preempt.fate' \
    "$tables" serving.preset=vllm-v0-swap serving.kv.num_blocks=10 workload.trace=swapped.csv \
    workload.arrivals.process=trace

# models of the user's own
shapes='layers: 4\nd_model: 128\nd_ffn: 64\nvocab: 100\nmax_model_len: 2048\nn_q_heads: '
shape() { # PATTERN LINES EDIT...
    pattern=$1
    printf "$shapes$2\n" >mine.yaml
    shift 2
    with run "$pattern" model.yaml model=./mine.yaml "$@"
}
shape './mine.yaml:6:1: d_head is not given and 3 query heads do not divide d_model, 128, expected d_head' 3
shape './mine.yaml:9:1: mlp_bias is set, expected no biases beside dense layers and shared experts' \
    '4\nn_experts: 4\nexperts_per_token: 2\nmlp_bias: true\nshared_experts: 1'
shape './mine.yaml:7:1: window_layers is 5, expected at most the 4 layers' '4\nwindow_layers: 5\nwindow_tokens: 8'
shape './mine.yaml:7:1: window_layers is 2, expected window_tokens beside it' '4\nwindow_layers: 2'
shape './mine.yaml:7:1: state_layers is 4, expected fewer than the 4 layers' '4\nstate_layers: 4'
shape './mine.yaml:7:1: state_k_heads is 0 with state_layers 3, expected both or neither' '4\nstate_layers: 3'
shape './mine.yaml:7:1: quantization is mxfp4, expected another one without n_experts' '4\nquantization: mxfp4'
shape 'model.yaml: model mine has window_layers, expected layers that are alike' '4\nwindow_layers: 2\nwindow_tokens: 8' \
    executor=cpu
shape 'model.yaml: model mine has 2 layers with states, expected attention in all' \
    '4\nstate_layers: 2\nstate_k_heads: 1\nstate_v_heads: 1\nstate_k_dim: 8\nstate_v_dim: 8' executor=cpu
shape 'model.yaml: mine has fp8 weights, expected a profile with gemm_fp8, which a100-80gb-sxm lacks' \
    '4\nquantization: fp8'
shape 'model.yaml: model mine is quantised, expected one that is not: engines run no other' '4\nquantization: int4' \
    executor=cpu

# deployments
deployment() { with run "$1" model.yaml "deployment={base: vllm, intervals: {$2}}"; }
deployment 'unknown key deployment.intervals.host.zzzzzz, expected num_blocks or a number of a section' \
    'host: {zzzzzz: [1, 2]}'
deployment 'unknown key deployment.intervals.zzzzzz, expected num_blocks or a number of a section' 'zzzzzz: [1, 2]'
deployment 'unknown key deployment.intervals.host.stpe_s, did you mean step_s[?]' 'host: {stpe_s: [1, 2]}'
deployment 'intervals.host.step_s is a list of another length, expected [[]low, high], the ends of its 90%' \
    'host: {step_s: [1, 2, 3]}'
deployment 'intervals.host.step_s is 3, expected [[]low, high], the ends of its 90%' 'host: {step_s: 3}'
deployment 'correlations has a list of another length, expected [[]number, number, correlation]' \
    'correlations: [[host.step_s, 0.5]]'
deployment 'correlations has 3, expected [[]number, number, correlation]' 'correlations: [3]'
deployment 'correlations has host.step_s twice in a row' 'correlations: [[host.step_s, host.step_s, 0.5]]'
with run 'deployment.base is a list, expected the name of a deployment or a path' model.yaml 'deployment={base: [vllm]}'
with run 'deployment.base is a path of more than 512 bytes' model.yaml "deployment=./$(printf 'x%.0s' $(seq 600))"

# factors on top of a profile
{ cat "$INFLIGHT_DATA/configs/hardware/a100-80gb-sxm.yaml" && echo 'corrections: factors.csv'; } >profile.yaml
factors() { # PATTERN ROW...
    pattern=$1
    shift
    { echo op,n,k,size,factor && printf '%s\n' "$@"; } >factors.csv
    with run "./factors.csv$pattern" model.yaml hardware=./profile.yaml
}
factors ': two rows for gemm of n 5, k 6 and size 1, expected each once' gemm,5,6,1,1.1 gemm,5,6,1,1.2
# shellcheck disable=SC2046 # a row each
factors ': 513 rows, expected at most 512' $(seq -f 'gemm,5,6,%.0f,1.1' 513)
factors ':2:1: op is "gem", expected gemm, gemm_fp8, prefill, decode or elementwise' gem,5,6,1,1.1

# arrivals, prices and names
with run 'workload.arrivals.pieces holds a list of another length, expected pairs [[]from_s, rate_rps]' linear.yaml \
    'workload.arrivals.pieces=[[0, 1, 2]]'
with run 'capacity.usd_per_gpu_hour is a list, expected a number or a map of at most 32 names to prices' linear.yaml \
    'capacity.usd_per_gpu_hour=[3]'
with run 'a name of variants is not one line, expected a line of text' linear.yaml \
    'sweep={variants: {"a\nb": {serving.preset: sarathi}}}'
with run 'unknown key zzzqqq.xyzzy, see `inflight list keys`' linear.yaml zzzqqq.xyzzy=3
grep -v 'preset' linear.yaml >none.yaml
with run 'none.yaml:1:1: serving.batching.policy is missing, expected serving.preset, or a policy of each kind' none.yaml
printf 'serving: {kv: {num_blocks: 64}}\n' >some.yaml
with run 'serving.batching.policy is missing, expected the preset or you to name one' linear.yaml serving.preset=./some.yaml
printf 'arrival_s,prompt_tokens,output_tokens,samples\n0,30,5,3\n' >samples.csv
with run 'serving.kv.keep.method gives up K/V and a request has 3 samples, expected 1: they share the K/V of their prompt' \
    linear.yaml workload.trace=samples.csv workload.arrivals.process=trace serving.kv.keep.method=streaming-llm \
    serving.kv.keep.budget_tokens=16
long=$(printf 'x%.0s' $(seq 700))
refuses ': the path has more than 639 characters' "$inflight" trace generate -n 1 -o "$long"
printf 'arrival_s,prompt_tokens,output_tokens,session,think_s\n0,10,5,a,\n,10,5,a,9.1e9\n,10,5,a,9.1e9\n' >talk.csv
with run 'row 3 thinks for 9.1e+09 s from 9.1e+09 s on, expected an arrival before 9.2e9 s' linear.yaml \
    workload.trace=talk.csv workload.arrivals.process=trace

# speculation
with run 'serving.speculation.verify is real, expected drawn where no engine executes' linear.yaml \
    'serving.draft={policy: fixed}' serving.speculation.verify=real
with run "serving.speculation.clients has 'code', expected NAME=RATES;NAME=RATES, where RATES is one rate from 0 to 1, or up to" linear.yaml \
    'serving.draft={policy: fixed}' 'serving.speculation.clients=chat=0.5;code'
with run 'serving.speculation.clients names absent, expected at most * clients of the trace' linear.yaml \
    'serving.draft={policy: fixed}' 'serving.speculation.clients=absent=0.5'

# what is shared
for interval_s in 0 0.0009; do
    with run 'cluster.news.delay_s is above 0, expected an interval_s beside it, and at most 1000 times that' \
        linear.yaml cluster.replicas=2 cluster.news.delay_s=1 cluster.news.interval_s=$interval_s
done
with run 'parallel.data is 2, expected 1 for llama-2-7b, which has no experts' model.yaml parallel.data=2
with run 'parallel.expert is 2, expected 1 for llama-2-7b, which has no experts' model.yaml parallel.expert=2 \
    parallel.tensor=2
with run 'parallel.expert is 3, expected a divisor of the 4 ranks of parallel.tensor x parallel.data and of the 8' \
    model.yaml model=mixtral-8x7b parallel.tensor=4 parallel.expert=3
with run 'the pool has no block for each of 4 virtual engines (serving.in_flight.batches)' linear.yaml \
    serving.in_flight.batches=engines serving.in_flight.pipelined=true parallel.pipeline=4 serving.kv.num_blocks=3

# a router of two replicas for a request, and no roles
for router in pair conductor mixed-pools; do
    with run "--set cluster.router=$router: cluster.router is $router, which sends a request to a replica for its prompt and to another" \
        linear.yaml cluster.replicas=2 cluster.router=$router
    with run "--set cluster.router=$router: cluster.router is $router, which sends a request to a replica for its prompt and to another" \
        pools.yaml cluster.router=$router
done
{ cat linear.yaml && printf 'cluster:\n  replicas: 2\n  router:\n    policy: conductor\n'; } >keyed.yaml
with run 'keyed.yaml:8:5: cluster.router is conductor' keyed.yaml
succeeds "$inflight" run linear.yaml --quiet --set cluster.router=conductor
rm -r out

# adapters
with run 'serving.adapters.memory is pool with serving.kv.allocator buddy, expected paged: adapters take single' \
    linear.yaml workload.trace=adapters.csv adapters.ranks=8 serving.preset=orca-max serving.adapters.memory=pool \
    serving.kv.allocator=buddy
with run 'serving.adapters.max_cpu_loras is 1, expected 0 or max_loras (2) or more' linear.yaml \
    workload.trace=adapters.csv adapters.ranks=8 serving.adapters.max_loras=2 serving.adapters.max_cpu_loras=1
with run 'adapters.matrices is all, and the model has experts, expected qv or qkvo' model.yaml \
    workload.trace=adapters.csv adapters.ranks=8 model=mixtral-8x7b parallel.tensor=4 adapters.matrices=all
with run 'adapters on deepseek-v2-lite are not modelled: its attention is latent' model.yaml \
    workload.trace=adapters.csv adapters.ranks=8 model=deepseek-v2-lite

# latent attention
with run 'the rule vllm-0.6.4 has no latent attention, that of deepseek-v2-lite, expected one of vLLM from 0.7.1 on' \
    model.yaml model=deepseek-v2-lite serving.kv.sizing=vllm-0.6.4
with run 'model deepseek-v2-lite has latent attention (kv_lora_rank 512), expected heads with keys and values of' \
    model.yaml model=deepseek-v2-lite executor=cpu serving.kv.num_blocks=64

# pools
with run 'a pool has no key colour, expected count, role, model, hardware, dtype, or a key of' pools.yaml \
    cluster.pools.a.colour=3
with run 'cluster.pools has 70001 replicas in all, ranks of parallel.data counted, expected 1 to 65536' pools.yaml \
    cluster.pools.a.count=60000 cluster.pools.b.count=10001
with run 'pool a: cost.model is recorded, expected another one in a cluster with pools' pools.yaml \
    cluster.pools.a.cost.model=recorded cluster.pools.a.cost.dir=empty
with run 'only some points have pools, expected all or none' linear.yaml \
    'sweep.cluster={one: {replicas: 1}, two: {pools: {a: {count: 1}}}}'
cp linear.yaml sweep.yaml
printf 'sweep: {variants: {}}\n' >>sweep.yaml
with run 'sweep of variants is an empty map, expected a map of names to configurations' sweep.yaml

# capacity
with capacity 'workload.arrivals.process has no rate, expected poisson, gamma or constant where capacity is searched' \
    linear.yaml workload.arrivals.process=trace slo.ttft_s=1
with capacity 'workload.arrivals.pieces fix the rate that is searched' linear.yaml \
    'workload.arrivals.pieces=[[0, 2]]' slo.ttft_s=1

# sizes that take more memory than there is; a sanitizer reserves more than any limit
if ! ldd "$inflight" 2>&1 | grep -q san; then
    short() { # PATTERN EDIT...
        pattern=$1
        shift
        # shellcheck disable=SC2016
        expect 1 "$pattern" sh -c 'ulimit -v 2000000 && exec "$@"' sh "$inflight" run linear.yaml --quiet "$@"
    }
    short 'replica 0 has 2000000000 K/V blocks of 1 tokens (serving.kv.num_blocks), 2000000000 more in host memory' \
        --set serving.preset=vllm-v0-swap --set serving.kv.num_blocks=2000000000 --set serving.kv.block_tokens=1
    short 'out of memory: serving.kv.tiers.host of replica 0 has 1000000000 K/V blocks' \
        --set serving.kv.prefix_cache=hash --set serving.kv.tiers.host.blocks=1000000000
    short "--set cluster.router=scores: out of memory: the router's index has 31250 blocks for each of 60000 replicas, 83.6 GB "\
'(cluster.router.lru_blocks)' --set cluster.replicas=60000 --set cluster.router=scores --set serving.kv.num_blocks=8
    awk 'BEGIN { print "arrival_s,prompt_tokens,output_tokens,client"; for (i = 0; i < 500; i++) print i ",10,5," i }' >clients.csv
    short 'serving.admit={policy: rate-limit, max_rpm: 1048576}: out of memory: init of admit policy rate-limit' \
        --set workload.trace=clients.csv --set 'serving.admit={policy: rate-limit, max_rpm: 1048576}'
fi

# keys that have no effect without another one; they are accepted where that one says that it is off, and at their default
alone() { # KEY=VALUE KEY NEEDED EXPECTED
    with run "$2 is set and $3 is not, so that it has no effect, expected $4" linear.yaml "$1"
}
alone 'workload.patience={mean_s: 5}' workload.patience.mean_s workload.patience.process 'a process beside it'
alone workload.patience.cv=2 workload.patience.cv workload.patience.process 'a process beside it'
alone workload.retry.backoff_s=5 workload.retry.backoff_s workload.retry.most 'most beside it'
alone 'workload.retry={factor: 3}' workload.retry.factor workload.retry.most 'most beside it'
alone serving.shed=worst serving.shed serving.max_waiting_reqs 'serving.max_waiting_reqs beside it'
alone cluster.gateway.max_held=5 cluster.gateway.max_held cluster.gateway.hold \
    'hold beside it, or a router that holds requests back'
alone cluster.gateway.classes=0:100 cluster.gateway.classes cluster.gateway.hold \
    'hold beside it, or a router that holds requests back'
alone cluster.gateway.queue_depth=2 cluster.gateway.queue_depth cluster.gateway.hold 'hold beside it'
alone 'cluster.router={policy: block-cost, index_blocks: 5}' cluster.router.index_blocks cluster.router.cached \
    'cached: guesses beside it'
alone 'cluster.router={policy: block-cost, guess_s: 5}' cluster.router.guess_s cluster.router.cached 'cached: guesses beside it'
alone 'cluster.router={policy: least-outstanding, counts_sent: false}' cluster.router.counts_sent cluster.news.interval_s \
    'cluster.news.interval_s beside it'
alone 'cluster.router={policy: scores, busy_score: 0.5}' cluster.router.busy_score cluster.router.active \
    'the weight active beside it'
alone cluster.migration.max_moves=2 cluster.migration.max_moves cluster.migration.interval_s 'interval_s beside it'
timed='workload.arrivals={process: null, rate_rps: null' # as the trace has it
alone "$timed, concurrency: 8}" workload.arrivals.concurrency workload.arrivals.process 'process closed beside it'
alone "$timed, cv: 2}" workload.arrivals.cv workload.arrivals.process 'process gamma beside it'
alone workload.arrivals.process=null workload.arrivals.rate_rps workload.arrivals.process \
    'process poisson, gamma or constant beside it'
alone workload.arrivals.sine_period_s=5 workload.arrivals.sine_period_s workload.arrivals.sine_amplitude_frac \
    'sine_amplitude_frac beside it'
alone workload.predictor.sigma=1 workload.predictor.sigma workload.predictor.model 'model lognormal beside it'
alone workload.beams.fork_frac=0.5 workload.beams.fork_frac workload.beams.search 'search beside it'
alone serving.swap_block_s=0.001 serving.swap_block_s serving.swap 'serving.swap overlap beside it'
alone serving.kv.publish=scheduled serving.kv.publish serving.kv.prefix_cache 'prefix_cache beside it'
alone serving.kv.keep.method=h2o serving.kv.keep.method serving.kv.keep.budget_tokens 'budget_tokens beside it'
alone serving.kv.keep.sink_tokens=8 serving.kv.keep.sink_tokens serving.kv.keep.method 'method beside it'
alone serving.speculation.acceptance=0.5 serving.speculation.acceptance serving.draft.policy 'a policy that guesses tokens'
alone serving.kv.tiers.host.latency_s=0.001 serving.kv.tiers.host.latency_s serving.kv.tiers.host.blocks \
    'a size beside it (blocks, gib or device_ratio)'
sed 's/kv: {/kv: {prefix_cache: hash, /' linear.yaml >cached.yaml
below() { # MAP KEY NEEDED EXPECTED
    with run "$2 is set and $3 is not, so that it has no effect, expected $4" cached.yaml cluster.links.token_bytes=1000 "$1"
}
below 'serving.kv.tiers={host: {blocks: 8}, store: {loads: before}}' serving.kv.tiers.store.loads \
    serving.kv.tiers.store.blocks 'a size beside it (blocks, gib or device_ratio, or hit_frac)'
below 'serving.kv.tiers={host: {blocks: 8}, disk: {blocks: 8, prefetch_tokens: 5}}' serving.kv.tiers.disk.prefetch_tokens \
    serving.kv.tiers.disk.prefetch 'prefetch beside it'
alone engine.kv_scale_bytes=2 engine.kv_scale_bytes engine.kv_dtype 'kv_dtype int8 or int4 beside it'
alone cluster.handover.order=push cluster.handover.order cluster.pools 'pools with roles'
alone cluster.links.preset=nvlink3 cluster.links.preset cluster.pools 'pools with roles, or cluster.migration.interval_s'
alone output.timeline_every=5 output.timeline_every output.timeline 'timeline beside it'
alone live.faults.stall_s=5 live.faults.stall_s live.faults.stall_every_s 'stall_every_s beside it'
with run 'serving.in_flight.waits is set and serving.in_flight.pipelined is not, so that it has no effect, expected pipelined' \
    linear.yaml serving.preset=tgi serving.in_flight.waits=true
# of a pool, and where a variant says it
with run 'serving.swap_block_s is set and serving.swap is not, so that it has no effect' pools.yaml \
    cluster.pools.a.serving.swap_block_s=0.001
with run 'serving.swap_block_s is set and serving.swap is not, so that it has no effect' linear.yaml \
    'sweep.variants={plain: {}, slow: {serving: {swap_block_s: 0.001}}}'
with run 'output.timeline_to_s is before output.timeline_from_s, expected a later time, or 0: to the end' linear.yaml \
    output.timeline_from_s=5 output.timeline_to_s=4
accepts() {
    succeeds "$inflight" run linear.yaml --quiet "$@"
    rm -r out
}
accepts --set 'sweep={workload.patience.process: [none, constant]}' --set workload.patience.mean_s=5
accepts --set 'sweep.variants={chat: {workload: {arrivals: {process: closed}}}, open: {}}' --set workload.arrivals.concurrency=2
accepts --set 'sweep.serving.preset=[vllm-v0, vllm-v1-offload]' --set serving.kv.tiers.host.latency_s=0.001 \
    --set cluster.links.token_bytes=1000
accepts --set 'workload.arrivals={process: poisson, concurrency: 8}' --set 'serving={swap: step, swap_block_s: 0.001}' \
    --set 'serving.kv.tiers.host={blocks: 0, latency_s: 0.001}'
accepts --set serving.preset=sglang-hicache --set serving.kv.tiers=null --set serving.kv.num_blocks=64
accepts --set 'workload.retry={most: 0, backoff_s: 5}' --set 'cluster.gateway={hold: false, max_held: 5}' \
    --set serving.shed=worst --set serving.max_waiting_reqs=0
accepts --set workload.retry.backoff_s=0.5 --set serving.shed=arrival --set cluster.gateway.max_held=0
accepts --set output.timeline=true --set output.timeline_from_s=5 --set output.timeline_to_s=0

accepts --set 'cluster.router={policy: exploit-explore, index_blocks: 5}' --set cluster.replicas=2
accepts --set 'cluster.router={policy: least-outstanding, counts_sent: false}' --set cluster.news.interval_s=0
accepts --set 'cluster.router={policy: block-cost, index_blocks: 5}' --set 'sweep.cluster.router.cached=[events, guesses]'
accepts --set cluster.preset=dynamo-approx --set cluster.router.index_blocks=5

# what is without effect, because another key says so, or the trace: a note
notes() { # PATTERN EDIT...
    pattern=$1
    shift
    for edit; do
        set -- "$@" --set "$edit"
        shift
    done
    "$inflight" run linear.yaml "$@" >said 2>&1 || complain "run linear.yaml $*: $(cat said)"
    rm -r out
    tr -s ' \n' '  ' <said >line
    case $(cat line) in
    *"$pattern"*) ;;
    *) complain "run linear.yaml $*: no note $pattern, but $(cat line)" ;;
    esac
}
notes 'cluster.router.index_blocks is 5 and has no effect: cluster.router.cached is events' \
    'cluster.router={policy: block-cost, index_blocks: 5, cached: events}' cluster.replicas=2
notes 'cluster.router.guess_s is 5 and has no effect: cluster.router.cached is events' cluster.preset=dynamo \
    cluster.router.guess_s=5
notes 'cluster.router.max_missing_tokens is 5 and has no effect: cluster.router.by_cache is false' \
    'cluster.router={policy: cached, by_cache: false, max_missing_tokens: 5}'
notes 'all weights of cluster.router scores are 0: it draws a replica at random' \
    'cluster.router={policy: scores, queue: 0, kv: 0, prefix: 0}' cluster.replicas=2
notes 'cluster.gateway.prefill_tokens_s is 100 and has no effect: no request has a ttft_slo_s' \
    cluster.gateway.prefill_tokens_s=100
printf 'arrival_s,prompt_tokens,output_tokens,ttft_slo_s\n0,10,5,\n1,20,3,9\n' >due.csv
for edit in slo.ttft_s=9 workload.trace=due.csv; do
    "$inflight" run linear.yaml --set cluster.gateway.prefill_tokens_s=100 --set $edit >said 2>&1 || complain "$(cat said)"
    rm -r out
    ! grep -q 'no effect' said || complain "$edit: $(cat said)"
done

# presets
printf 'serving: fast\n' >word.yaml
with run 'word.yaml:1:1: serving is not a map, expected one' linear.yaml serving.preset=./word.yaml

# plug-ins with a wrong list of policies
plugin() { # PATTERN ABI BYTES N POLICIES KIND
    printf '#include <inflight/policy.h>
static const struct ifl_policy one = {.kind = (enum ifl_kind)%s, .name = "one", .doc = "none"};
const struct ifl_policy_list ifl_policies_v3 = {%s, %s, %s, {%s}};\n' "$6" "$2" "$3" "$4" "$5" >list.c
    cc -std=c17 -shared -fPIC -I"$INFLIGHT_DATA/include" list.c -o list.so || complain "a plug-in does not compile"
    refuses "list.so: $1" "$inflight" list policies --plugin ./list.so
}
whole='sizeof(struct ifl_policy)'
plugin 'policy ABI 99, expected 3: build it anew' 99 "$whole" 1 '&one' 0
plugin 'struct ifl_policy of 8 bytes, expected ' IFL_POLICY_ABI 8 1 '&one' 0
plugin 'a list of 0 policies, expected 1 to 16' IFL_POLICY_ABI "$whole" 0 '&one' 0
plugin 'a list of 17 policies, expected 1 to 16' IFL_POLICY_ABI "$whole" 17 '&one' 0
plugin 'policy 1 of its list is NULL' IFL_POLICY_ABI "$whole" 1 NULL 0
plugin 'policy 1 of its list, unknown one, ' IFL_POLICY_ABI "$whole" 1 '&one' 77
printf 'extern const int ifl_policies_v1;\nconst int ifl_policies_v1 = 2;\n' >old.c
cc -std=c17 -shared -fPIC old.c -o old.so
refuses 'old.so: policy ABI 2 or before, expected 3: bring it to the headers of today' \
    "$inflight" list policies --plugin ./old.so

finish
