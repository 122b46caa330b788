#!/bin/sh
# A front end of zeros changes no byte, and one that a recording was made with is found again.
. "$(dirname "$0")/expect.sh"
quickstart=$INFLIGHT_DATA/configs/quickstart.yaml

# fly OUT [SETTING...]
fly() {
    out=$1
    shift
    succeeds "$inflight" run "$quickstart" --quiet -o "$out" --set sweep=null --set workload.limit=100 \
        --set output.plots=false --set output.steps=true --set output.work=true "$@"
}

for replicas in 1 3; do
    fly "plain$replicas" --set cluster.replicas="$replicas"
    fly "zeros$replicas" --set cluster.replicas="$replicas" --set deployment.front_end.request_s=0 \
        --set deployment.front_end.prompt_token_s=0 --set deployment.front_end.token_s=0
    for report in requests steps work summary quantiles; do
        same_bytes "plain$replicas/$report.csv" "zeros$replicas/$report.csv"
    done
done

# every request waits for its own
fly front --set deployment.front_end.request_s=0.25 --set deployment.front_end.token_s=0.5
same "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $at["queue_s"] < 0.25 || $at["prefill_s"] < 0.5' front/requests.csv)" '' 'requests that waited less'

# A client's patience ends where its request is: what the engine has done by then counts, although tokens are on their way
# to the client for a second more.
cat >leaves.csv <<'E1'
arrival_s,prompt_tokens,output_tokens,abort_s
0,10,2,2.5
100,10,2,1.5
E1
cat >leaves.yaml <<'E1'
workload: {trace: leaves.csv}
deployment: {front_end: {token_s: 1}}
serving: {preset: vllm-v0, max_model_len: 1024, kv: {num_blocks: 100}}
cost: {model: linear, step_s: 1}
output: {dir: leaves, plots: false}
E1
succeeds "$inflight" run leaves.yaml --quiet
same "$(columns leaves/requests.csv status,first_token_s,finish_s,output_tokens,left_s | sed 's/0000000//g' | tr '\n' ' ')" \
    'finished,2.00,3.00,2, aborted,102.00,,1,102.00 ' 'clients that leave'

# a recording made with it, against a run without: what requests that met no other waited longer
fly alone --set workload.limit=40 --set workload.arrivals.rate_rps=0.005
fly recorded --set workload.limit=40 --set workload.arrivals.rate_rps=0.005 \
    --set deployment.front_end.request_s=0.004 --set deployment.front_end.prompt_token_s=5e-6 \
    --set deployment.front_end.token_s=0.001
succeeds "$inflight" validate alone recorded/requests.csv -o validation --no-plots
if command -v python3 >/dev/null; then
    found=$(python3 "$scripts/../oracle/front_end.py" residuals validation/validation_requests.csv)
    case $found in
    *': request_s 0.005, prompt_token_s 5e-06, '*) ;;
    *) complain "a front end of 5 ms and 5 us a token is taken for: $found" ;;
    esac
fi
# ---- requests that ends cause to be sent ----

# NAME KEYS: a configuration over the trace NAME.csv, of requests whose steps take 50 ms.
caused() {
    cat >"$1.yaml" <<END
workload: {trace: $1.csv$2}
serving:
  batching: {policy: mixed, max_seqs: $3}
  order: fcfs
  admit: {policy: reserve, for: declared}
  preempt: {policy: tail, fate: never}
  max_model_len: 512
  max_queued_reqs: $4
  kv: {block_tokens: 16, num_blocks: 100, null_blocks: 0, prefix_cache: none}
cost: {model: linear, step_s: 0.05}
END
}

# Row 1 is shed at 0.22. Its retry is sent at 0.62, 10 ms before row 2, and is worked on first: each takes 0.1 s,
# and 0.02 s more to the engine.
printf '%s\n' request_id,arrival_s,prompt_tokens,output_tokens 0,0,5,4 1,0.05,5,1 2,0.63,5,1 >shed.csv
caused shed ', retry: {most: 1, backoff_s: 0.4, jitter_frac: 0}' 4 1
succeeds "$inflight" run shed.yaml --quiet -o out --set 'deployment.front_end={request_s: 0.02, serial_s: 0.1}'
same "$(columns out/requests.csv request_id,first_scheduled_s | tr '\n' ' ')" \
    '0,0.120000000 1, 4,0.740000000 2,0.840000000 ' 'a retry before a row of the trace that is sent later'

# Rows 1 to 3 are shed together, the latest first. Their retries are sent together, in the order of their arrival.
printf '%s\n' request_id,arrival_s,prompt_tokens,output_tokens,ttft_slo_s 0,0,5,10, 1,0.1,8,1,0.2 2,0.2,7,1,0.1 \
    3,0.3,6,1,0.1 >together.csv
caused together ', retry: {most: 1, backoff_s: 0.4, jitter_frac: 0}' 1 0
for front in 0 0.02; do
    succeeds "$inflight" run together.yaml --quiet -o out --set "deployment.front_end.request_s=$front" --set cost.step_s=0.1 \
        --set serving.kv.num_blocks=4 \
        --set 'cluster.gateway={hold: true, queue_depth: 1, kv_frac: 0.25, order: latest, prefill_tokens_s: 100000}'
    same "$(columns out/requests.csv request_id,status | tail -3 | tr '\n' ' ')" '5,finished 6,shed 7,shed ' \
        "retries that are sent together, request_s $front"
done

# The client leaves as its request would reach the engine: clients leave first.
printf '%s\n' request_id,arrival_s,prompt_tokens,output_tokens,abort_s 0,0,5,10, 1,0.1,8,1,0.05 >leaves.csv
caused leaves '' 1 0
succeeds "$inflight" run leaves.yaml --quiet -o out --set deployment.front_end.request_s=0.05
same "$(columns out/requests.csv request_id,replica,status | tail -1)" '1,,aborted' 'a client that leaves in time'

finish
