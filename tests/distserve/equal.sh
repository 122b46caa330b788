#!/bin/sh
# Runs of DistServe's own simulator again: its requests, its latency lines, its worker as a plug-in. The time to the
# first token and the time per output token of every request differ by at most a microsecond.
#
# simdistserve.py made the data; reports/reproductions/distserve has the modules and the configurations.
. "$(dirname "$0")/../cli/expect.sh"
rules=$INFLIGHT_DATA/reports/reproductions/distserve/simulator
plugin=$PLUGIN

# Its simulator decodes once more than there are output tokens.
equals() {
    zcat "$scripts/data/$1.csv.gz" >theirs.csv
    awk -F, -v OFS=, 'NR > 1 { $3++ } { print $1, $2, $3 }' theirs.csv >requests.csv
    succeeds "$inflight" run "$rules/$1.yaml" --plugin "$plugin" --set workload.trace="$work/requests.csv" --quiet -o "$1" \
        --set serving.check_steady="$2"
    columns "$1/requests.csv" ttft_s,tpot_s | sed 1i- >ours.csv
    same "$(paste -d, ours.csv theirs.csv | awk -F, '
        function off(s, ms) { return s * 1e3 > ms ? s * 1e3 - ms : ms - s * 1e3 }
        NR > 1 { n++; far += off($1, $6) > 1e-3 || off($2, $7) > 1e-3 }
        END { print n, far + 0 }')" '500 0' "$1, requests and those that differ by a microsecond"
}

equals distserve false
equals vllm true
finish
