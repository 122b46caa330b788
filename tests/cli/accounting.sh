#!/bin/sh
# The reports agree with each other and with Little's law (A proof for the queuing formula L = lambda
# W, Operations Research 9(3), 1961), which holds for every schedule.
. "$(dirname "$0")/expect.sh"

# flies OUT [SETTING...]
flies() {
    out=$1
    shift
    succeeds "$inflight" run "$INFLIGHT_DATA/configs/quickstart.yaml" --quiet -o "$out" \
        --set workload.limit=200 --set serving.kv.num_blocks=400 --set output.steps=true \
        --set output.plots=false --set 'sweep.workload.arrivals.rate_rps=[0.5,4,16]' "$@"
}
flies out

same "$(head -n 1 out/requests.csv)" "$(printf %s \
    point,request_id,replica,status,arrival_s,first_scheduled_s,first_token_s,finish_s, \
    prompt_tokens,output_tokens,cached_tokens,ttft_s,tpot_s,e2e_s,max_itl_s,preemptions, \
    swap_outs,queue_s,prefill_s,decode_s,stalled_s,ttft_slo_s,tpot_slo_s)" 'the header of requests.csv'
same "$(head -n 1 out/steps.csv)" "$(printf %s \
    point,replica,step,start_s,duration_s,prefill_tokens,decode_tokens,prefill_seqs,decode_seqs, \
    context_tokens,running,waiting,swapped,preempted,blocks_out,blocks_in,kv_used_blocks, \
    kv_total_blocks,device_s,gap_s,kv_token_slots,kv_reserved_slots,kv_internal_slots, \
    kv_pool_slots,kv_shared_blocks)" 'the header of steps.csv'

# balances OUT TOKEN_NS
balances() {
    same "$(awk -F, -v events=events -v predictions=predictions -v token_ns="$2" \
        -f "$scripts/accounting.awk" "$1/requests.csv" "$1/steps.csv" "$1/summary.csv" | head)" '' \
        "the books of $1"

    # The integral of the number of requests in the system over time, from the sorted events alone.
    sort -k1,1n -k2,2n events | awk '
        $1 != point { if (NR > 1) printf "%d %.0f\n", point, area; point = $1; area = n = 0 }
        { area += n * ($2 - at); n += $3; at = $2 }
        END { printf "%d %.0f\n", point, area }' >areas
    same "$(awk '{ print $1, $2 }' predictions)" "$(cat areas)" \
        'sums of e2e, and integrals of the number in the system'
    same "$(awk '($3 / $2 - 1) ^ 2 > 1e-16' predictions)" '' \
        'throughput x mean e2e, and the mean number in the system'
    same "$(wc -l <areas | tr -d ' ')" 12 'points'
}
balances out 0

# with a front end the clients' times balance, and steps are the same but for when they are
flies front --set deployment.front_end.request_s=0.0123 \
    --set deployment.front_end.prompt_token_s=3.7e-6 --set deployment.front_end.token_s=0.0456
balances front 45600000
finish
