#!/bin/sh
# timeline.json and work.csv agree with requests.csv and steps.csv: every prompt token is in a chunk, every
# preemption that ended is a stall, and slices nest.
check=$(cd "$(dirname "$3")" && pwd)/$(basename "$3")
set -- "$1" "$2"
. "$(dirname "$0")/expect.sh"

# 200 requests into a pool that is too small for them, by recompute and by swap, on one replica or two:
# tells PRESET REPLICAS [SETTING...]
tells() {
    preset=$1
    replicas=$2
    shift 2
    succeeds "$inflight" run "$INFLIGHT_DATA/configs/quickstart.yaml" --quiet -o out \
        --set sweep=null --set serving.preset="$preset" --set workload.limit=200 \
        --set serving.kv.num_blocks=250 --set workload.arrivals.rate_rps=16 \
        --set cluster.replicas="$replicas" --set output.plots=false --set output.steps=true \
        --set output.work=true --set output.timeline=true "$@"
    awk -F, -v OFS=' ' '
        FNR == 1 { n_files++; split("", at); for (i = 1; i <= NF; i++) at[$i] = i; next }
        n_files == 1 { requests++; stalls += $at["preemptions"] }
        n_files == 2 { steps++; prefill += $at["prefill_tokens"]; decode += $at["decode_tokens"]
                       key = $at["replica"] "/" $at["step"]
                       p[key] = $at["prefill_tokens"]; d[key] = $at["decode_tokens"] }
        n_files == 3 { key = $at["replica"] "/" $at["step"]
                       p[key] -= $at["prefill_tokens"]; d[key] -= $at["decode_tokens"] }
        END { for (key in p) if (p[key] || d[key]) print "step " key ": work.csv is not its sum"
              print "steps " steps, "requests " requests, "chunk_tokens " prefill,
                    "stalls " stalls, "counters " 3 * steps }' \
        out/requests.csv out/steps.csv out/work.csv >told
    same "$("$check" out/timeline.json)" "$(cat told)" "the timeline of $preset on $replicas"
    grep -q 'stalls 0 ' told && complain "$preset preempts no request"
    cp out/requests.csv out/summary.csv out/steps.csv .
    # the timeline changes no other report
    succeeds "$inflight" run out/config.yaml --quiet -o plain --set output.work=false \
        --set output.timeline=false
    for report in requests summary steps; do
        same_bytes $report.csv plain/$report.csv
    done
}

tells vllm-v0 1
tells vllm-v0-swap 2
tells sarathi 1
# steps in flight, and chunks of a prompt, overlap: the slices of a row and of a request do not
tells vllm-v1-sync 1 --set workload.limit=100 --set parallel.pipeline=4 --set serving.batching.max_batched_tokens=64
grep -q '"chunk".*"local":"[0-9]*[.]' out/timeline.json || complain "no chunk overlaps another"
tells sarathi 2 --set workload.limit=100 --set parallel.pipeline=2 --set serving.kv.num_blocks=200
# phases end with the steps, not when clients have the tokens, which may be several steps later
tells vllm-v0 1 --set deployment.front_end.request_s=0.03 --set deployment.front_end.token_s=0.2

# a window and a sample are smaller, and whole
succeeds "$inflight" run out/config.yaml --quiet -o part --set output.timeline_from_s=2 \
    --set output.timeline_to_s=4 --set output.timeline_every=5
part=$("$check" part/timeline.json) || complain "$part"
[ "$(wc -c <part/timeline.json)" -lt "$(($(wc -c <out/timeline.json) / 5))" ] ||
    complain "a fifth of a part of the timeline is too large: $part"
finish
