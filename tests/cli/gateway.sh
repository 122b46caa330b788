#!/bin/sh
# What the gateway holds back and drops (cluster.gateway), by pencil.
. "$(dirname "$0")/expect.sh"

cat >config.yaml <<'E1'
workload: {trace: trace.csv}
serving: {preset: vllm-v0, max_model_len: 256, batching: {max_seqs: 1}, kv: {num_blocks: 64, swap_gib: 0}}
cost: {model: linear, step_s: 1}
output: {dir: out}
E1
# fly EXPECTED EDIT...: the requests' ids, statuses and starts.
fly() {
    wanted_rows=$1
    shift
    try "$inflight" run config.yaml --quiet "$@"
    [ "$code" -eq 0 ] || complain "$ran" "    $(cat logs/err)"
    same "$(columns out/requests.csv request_id,status,first_scheduled_s | sed 's/00000000$//' | tr '\n' ' ')" \
        "$wanted_rows" "$ran"
}

# One seat, answers of 4 s. Two that wait saturate the replica. At 0 row 0 is sent (saturation 0) and row 1 (0.5); then
# it is 1, and the others are held. Row 0 starts, one is waiting, so that one more is sent; the next as row 1 starts at 4.
cat >trace.csv <<'E1'
arrival_s,prompt_tokens,output_tokens,priority
0,10,4,5
0,10,4,5
0,10,4,5
0,10,4,5
0,10,4,0
E1
first='0,finished,0.0 1,finished,4.0 2,finished,8.0 3,finished,12.0 4,finished,16.0 '
fly "$first"
fly "$first" --set cluster.gateway.hold=true --set cluster.gateway.queue_depth=2
# A gateway for one: row 2 is held, rows 3 and 4 are shed.
fly '0,finished,0.0 1,finished,4.0 2,finished,8.0 3,shed, 4,shed, ' --set cluster.gateway.hold=true \
    --set cluster.gateway.queue_depth=2 --set cluster.gateway.max_held=1
# Where one that waits saturates it, rows 1 to 4 are held, and by priority row 4 is the first to leave the gateway; with
# room for one of each priority, rows 2 and 3 are shed.
fly '0,finished,0.0 1,finished,8.0 2,finished,12.0 3,finished,16.0 4,finished,4.0 ' --set cluster.gateway.hold=true \
    --set cluster.gateway.queue_depth=1 --set cluster.gateway.order=priority
fly '0,finished,0.0 1,finished,8.0 2,shed, 3,shed, 4,finished,4.0 ' --set cluster.gateway.hold=true \
    --set cluster.gateway.queue_depth=1 --set cluster.gateway.max_held=1 --set cluster.gateway.order=priority
expect 0 'shed requests: 2 by a full gateway (cluster.gateway.max_held)' "$inflight" run config.yaml \
    --set cluster.gateway.hold=true --set cluster.gateway.queue_depth=2 --set cluster.gateway.max_held=1
# A client that is held leaves the gateway, and its place, in time.
fly '0,finished,0.0 1,finished,4.0 2,aborted, 3,aborted, 4,aborted, ' --set cluster.gateway.hold=true \
    --set cluster.gateway.queue_depth=1 --set 'workload.patience={process: constant, mean_s: 8}'

# Three replicas in turn, one seat each, steps of 1000 s; rows 0 to 2 run, and rows 11 and 12 leave at once. What waits as
# row 14 comes: rows 3, 6, 9; 4, 7, 10, 13; 5, 8. With a depth of 3 that is a mean of 1, of thirds that are less as doubles:
# row 14 is held, and row 15 is one too many. With a depth of 4 both are sent.
awk 'BEGIN {
    print "arrival_s,prompt_tokens,output_tokens,abort_s"
    for (row = 0; row < 16; row++)
        print row "," 10 "," 1 "," (row == 11 || row == 12 ? 0.5 : "")
}' >trace.csv
set -- --set cost.step_s=1000 --set cluster.replicas=3 --set cluster.gateway.hold=true --set cluster.gateway.kv_frac=1 \
    --set cluster.gateway.max_held=1
for depth in 3 4; do
    succeeds "$inflight" run config.yaml --quiet "$@" --set cluster.gateway.queue_depth=$depth -o thirds
    columns thirds/requests.csv status | awk '$1 == "shed" { n++ } END { print n + 0 }' >>thirds/shed
done
same "$(tr '\n' ' ' <thirds/shed)" '1 0 ' 'a mean of 1 of thirds'

# Blocks in use: the first holds 8 of 10 from 0 to 4, which is kv_frac; the second, which would fit, is held until then.
printf 'arrival_s,prompt_tokens,output_tokens\n0,125,4\n1,10,1\n' >trace.csv
set -- --set serving.kv.num_blocks=10 --set serving.batching.max_seqs=4 --set serving.admit.watermark_frac=0
fly '0,finished,0.0 1,finished,1.0 ' "$@"
fly '0,finished,0.0 1,finished,4.0 ' "$@" --set cluster.gateway.hold=true
fly '0,finished,0.0 1,finished,1.0 ' "$@" --set cluster.gateway.hold=true --set cluster.gateway.kv_frac=0.85

# Four idle replicas, news each 0.5 s: a report counts for 0.2 s. What comes at 0.3 and 0.45 waits for that of 0.5.
printf 'arrival_s,prompt_tokens,output_tokens\n0.1,10,1\n0.3,10,1\n0.45,10,1\n0.6,10,1\n' >trace.csv
set -- --set cluster.replicas=4 --set cluster.news.interval_s=0.5
fly '0,finished,0.1 1,finished,0.3 2,finished,0.450000000 3,finished,0.6 ' "$@"
fly '0,finished,0.1 1,finished,0.5 2,finished,0.5 3,finished,0.6 ' "$@" --set cluster.gateway.hold=true
# With a delay of 0.1 s the report of 0.5 comes at 0.6, and is 0.1 old.
fly '0,finished,0.1 1,finished,0.6 2,finished,0.6 3,finished,0.6 ' "$@" --set cluster.gateway.hold=true \
    --set cluster.news.delay_s=0.1
fly '0,finished,0.1 1,finished,0.3 2,finished,0.450000000 3,finished,0.6 ' "$@" --set cluster.gateway.hold=true \
    --set cluster.gateway.stale_s=0.5

# Drop early, 100 tokens/s, a first token within 1 s. Tokens that wait with one's own: 60, 90, 110, 95: the third is shed.
printf 'arrival_s,prompt_tokens,output_tokens,ttft_slo_s\n0,60,1,1\n0,30,1,1\n0,20,1,1\n0,5,1,1\n0,200,1,\n' >trace.csv
set -- --set cost.step_s=0 --set cost.prefill_token_s=0.01
fly '0,finished,0.0 1,finished,0.6 2,finished,0.9 3,finished,1.1 4,finished,1.150000000 ' "$@"
fly '0,finished,0.0 1,finished,0.6 2,shed, 3,finished,0.9 4,finished,0.950000000 ' "$@" \
    --set cluster.gateway.prefill_tokens_s=100
expect 0 'shed requests: 1 whose first token would be late (cluster.gateway.prefill_tokens_s)' "$inflight" run config.yaml \
    "$@" --set cluster.gateway.prefill_tokens_s=100
expect 0 'shed requests: 3 by a full queue (serving.max_waiting_reqs)' "$inflight" run config.yaml \
    --set serving.max_waiting_reqs=2

# More than 10 tokens to compute hold rows 1 and 2 until row 0 has its first token; the latest goes first, and fills the
# queue. Row 1, which is as urgent, is shed then, not row 2, though it came to the gateway before it; row 3 sheds row 2.
set -- --set cluster.router.policy=block-cost --set cluster.router.queue_tokens=10 --set cluster.gateway.order=latest \
    --set serving.max_waiting_reqs=1 --set serving.shed=worst
printf 'arrival_s,prompt_tokens,output_tokens,priority\n0,20,4,5\n0,10,1,5\n0.5,10,1,5\n' >trace.csv
fly '0,finished,0.0 1,shed, 2,finished,4.0 ' "$@"
echo 2,10,1,4 >>trace.csv
fly '0,finished,0.0 1,shed, 2,shed, 3,finished,4.0 ' "$@"

# By pencil: 5 blocks of 4 tokens. Rows 0 and 1 take two each, at 0 and 1, and a third at 3, when there is one: row 1 gives way.
# Its client left at 2.5, so that it stays for the step until 4 (next_step), and is not shed for row 2, which is more urgent and
# comes to a full queue: row 2 is.
cat >trace.csv <<'E1'
arrival_s,prompt_tokens,output_tokens,priority,abort_s
0,7,6,0,
0.5,7,6,5,2
3.5,4,1,0,
E1
succeeds "$inflight" run config.yaml --quiet --set serving.batching.max_seqs=4 --set serving.admit.watermark_frac=0 \
    --set serving.kv.block_tokens=4 --set serving.kv.num_blocks=5 --set serving.leave=next_step \
    --set serving.max_waiting_reqs=1 --set serving.shed=worst
same "$(columns out/requests.csv status,left_s,preemptions | sort | sed 's/0000000//' | tr '\n' ' ')" \
    'aborted,4.00,1 finished,,0 shed,3.50,0 ' 'a request without a client is not shed'

# A pool that is saturated holds back those alone that no other pool may have.
cat >trace.csv <<'E1'
arrival_s,prompt_tokens,output_tokens,model
0,10,4,llama-2-7b
0,10,4,llama-2-7b
0,10,4,llama-3-8b
0,10,4,
E1
cat >pools.yaml <<'E1'
workload: {trace: trace.csv}
serving: {preset: vllm-v0, max_model_len: 256, batching: {max_seqs: 1}, kv: {num_blocks: 64, swap_gib: 0}}
cost: {model: linear, step_s: 1}
cluster:
  gateway: {hold: true, queue_depth: 1}
  router: least-outstanding
  pools: {a: {model: llama-2-7b}, b: {model: llama-3-8b}}
output: {dir: pools}
E1
# Row 0 saturates a, so row 1 is held; row 2 goes to b; then both are saturated, so row 3 is held. Both start, and
# nothing waits: row 1 goes to a, and row 3, with a at 1 and b at 0, a mean below 1, where the fewest are: to b.
succeeds "$inflight" run pools.yaml --quiet
same "$(columns pools/requests.csv request_id,pool,first_scheduled_s | sed 's/0000000//g' | tr '\n' ' ')" \
    '0,a,0.00 1,a,4.00 2,b,0.00 3,b,4.00 ' 'pools'

# Classes: of each the first alone is asked about. b computes row 1 until 2, so that row 2, the first of its class, stays, and
# row 3 behind it, for which a is free from 1 on. Row 2 leaves at 1.5: row 3 goes.
cat >trace.csv <<'E1'
arrival_s,prompt_tokens,output_tokens,model,abort_s
0,100,1,llama-2-7b,
0,200,1,llama-3-8b,
0,10,1,llama-3-8b,1.5
0.5,10,1,llama-2-7b,
E1
succeeds "$inflight" run pools.yaml --quiet --set cost.step_s=0 --set cost.prefill_token_s=0.01 \
    --set 'cluster.gateway={classes: "0:100"}' --set 'cluster.router={policy: block-cost, queue_tokens: 1}'
same "$(columns pools/requests.csv request_id,pool,status,first_scheduled_s | sed 's/00000000//g' | tr '\n' ' ')" \
    '0,a,finished,0.0 1,b,finished,0.0 2,,aborted, 3,a,finished,1.5 ' 'the first of a class leaves'

refuses 'cluster.gateway.stale_s is not above cluster.news.delay_s' "$inflight" run config.yaml --quiet \
    --set cluster.gateway.hold=true --set cluster.news.interval_s=1 --set cluster.news.delay_s=0.3
refuses 'cluster.gateway.queue_depth is 0, expected a whole number from 1' "$inflight" run config.yaml --quiet \
    --set cluster.gateway.queue_depth=0
refuses 'cluster.gateway.kv_frac is 2, expected a number from 0.01 to 1' "$inflight" run config.yaml --quiet \
    --set cluster.gateway.kv_frac=2
refuses 'cluster.gateway.order is fifo, expected one of arrival, priority' "$inflight" run config.yaml --quiet \
    --set cluster.gateway.order=fifo
refuses 'cluster.gateway.max_held is -1, expected a whole number from 0' "$inflight" run config.yaml --quiet \
    --set cluster.gateway.max_held=-1
refuses 'cluster.gateway.prefill_tokens_s is fast, expected a number' "$inflight" run config.yaml --quiet \
    --set cluster.gateway.prefill_tokens_s=fast
refuses 'cluster.gateway.stale_s is 0, expected' "$inflight" run config.yaml --quiet --set cluster.gateway.stale_s=0
refuses 'serving.max_waiting_reqs is -1, expected a whole number from 0' "$inflight" run config.yaml --quiet \
    --set serving.max_waiting_reqs=-1
refuses 'serving.shed is best, expected one of arrival, worst' "$inflight" run config.yaml --quiet --set serving.shed=best
refuses 'unknown key cluster.gateway.holds, did you mean cluster.gateway.hold[?]' "$inflight" run config.yaml --quiet \
    --set cluster.gateway.holds=true

# Dynamo's queue (queue_tokens): one seat, a step of 1 s is a prompt and its token; what comes later is held while more
# than 1 token is to be computed.
cat >trace.csv <<'E2'
arrival_s,prompt_tokens,output_tokens
0,8,1
0.1,12,1
0.2,4,1
0.3,20,1
E2
set -- --set cluster.preset=dynamo --set cluster.router.queue_tokens=1 --set serving.preset=sarathi
fly '0,finished,0.0 1,finished,1.0 2,finished,2.0 3,finished,3.0 ' "$@"
fly '0,finished,0.0 1,finished,3.0 2,finished,2.0 3,finished,1.0 ' "$@" --set cluster.gateway.order=latest
fly '0,finished,0.0 1,finished,2.0 2,finished,1.0 3,finished,3.0 ' "$@" --set cluster.gateway.order=shortest
fly '0,finished,0.0 1,finished,2.0 2,finished,1.0 3,finished,3.0 ' "$@" --set cluster.gateway.classes=0:8,10:8
# One a class is held: row 3 would be the second of its own.
fly '0,finished,0.0 1,finished,2.0 2,finished,1.0 3,shed, ' "$@" --set cluster.gateway.classes=0:8,10:8 \
    --set cluster.gateway.max_held=1
for list in 1:8 0:8,0:4 0:8, 0:0 0 0:8:4 a 0:8,-1:4; do
    expect 2 "cluster.gateway.classes is $list, expected FROM:QUANTUM of up to 16 classes" "$inflight" run config.yaml "$@" \
        --set cluster.gateway.classes=$list
done
# A pool with a closed door takes no held request. Row 0 runs in `a`, which takes one; row 1 runs in `b` and row 2
# waits there, which saturates it. Row 3 is held until row 0 leaves at 4, with `a` as with `b` behind its door.
cat >config.yaml <<'E1'
workload: {trace: trace.csv}
serving: {preset: vllm-v0, max_model_len: 256, kv: {num_blocks: 64, swap_gib: 0}}
cost: {model: linear, step_s: 1}
cluster:
  router: least-outstanding
  pools:
    a: {count: 1, serving: {max_queued_reqs: 1}}
    b: {count: 1, serving: {batching: {max_seqs: 1}}}
  gateway: {hold: true, queue_depth: 1, kv_frac: 1}
output: {dir: out}
E1
printf 'arrival_s,prompt_tokens,output_tokens\n0,10,4\n0.1,10,8\n0.2,10,8\n0.3,10,4\n' >trace.csv
fly '0,finished,0.0 1,finished,0.1 2,finished,8.1 3,finished,4.0 '
fly '0,finished,0.0 1,finished,0.1 2,finished,8.1 3,finished,4.0 ' --set 'cluster.gateway.classes="0:1"'
# By prompts without an answer: the door opens as the step of 0 ends at 1, before `a` plans, so that row 3 is in its next step.
fly '0,finished,0.0 1,finished,0.1 2,finished,8.1 3,finished,1.0 ' --set cluster.pools.a.serving.max_queued_reqs=0 \
    --set cluster.pools.a.serving.max_queued_tokens=10

finish
