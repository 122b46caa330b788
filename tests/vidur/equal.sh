#!/bin/sh
# Vidur's own runs again: its requests, its scheduler as a preset, its tables of operations. The times of
# every request, end to end and to the end of its prompt, differ from Vidur's by at most 30 microseconds and
# the rounding of the seven digits that Vidur prints. The restarts are equal.
#
# data/README.md says where the runs come from.
. "$(dirname "$0")/../cli/expect.sh"
tolerance_s=0.00003

# Columns of Vidur's file: 1 id, 2 end to end, 3 prompt done, 9 restarts.
cat >differ.awk <<'AWK'
function rounding(s) { # half a unit of the seventh digit
    return s <= 0 ? 0 : 0.5 * 10 ^ (int(log(s) / log(10) + 1e-12 + 100) - 100 - 6)
}
function off(ours, theirs) {
    return (ours > theirs ? ours - theirs : theirs - ours) - rounding(theirs)
}
NR == FNR { e2e[$1] = $2; ttft[$1] = $3; restarts[$1] = $4; n++; next }
FNR > 1 {
    n_theirs++
    if (!($1 in e2e))
        print "request " $1 " did not finish"
    else if (off(e2e[$1], $2) > tolerance || off(ttft[$1], $3) > tolerance || restarts[$1] != $9)
        print "request " $1 ": " e2e[$1] " " ttft[$1] " " restarts[$1] ", Vidur " $2 " " $3 " " $9
}
END { print n, n_theirs }
AWK

# equals RUN PRESET RATE [OPTION...]
equals() {
    run=$1
    cat >config.yaml <<YAML
model: llama-2-7b
hardware: a100-80gb-sxm
workload: {trace: $scripts/data/requests_q$3.csv.gz, format: vidur}
serving: {preset: $2}
cost: {model: table, dir: configs/costs/vidur-llama-2-7b-a100}
output: {dir: out}
YAML
    shift 3
    succeeds "$inflight" run config.yaml --quiet --set "output.dir=$run" "$@"
    columns "$run/requests.csv" request_id,e2e_s,ttft_s,preemptions >ours.csv
    zcat "$scripts/data/$run.csv.gz" >theirs.csv
    same "$(awk -F, -v tolerance="$tolerance_s" -f differ.awk ours.csv theirs.csv | tail -n 5)" \
        '1000 1000' "$run, inflight and Vidur, the last five lines"
}

equals vllm_1000req_q2 vidur-vllm 2
equals vllm_1000req_q4 vidur-vllm 4
equals sarathi_1000req_q2 vidur-sarathi 2
equals sarathi_1000req_q4 vidur-sarathi 4
equals sarathi_1000req_q2_700blocks vidur-sarathi 2 --set serving.kv.num_blocks=700
finish
