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
