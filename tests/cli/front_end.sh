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
finish
