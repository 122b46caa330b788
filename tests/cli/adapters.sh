#!/bin/sh
# Adapters at the prompt: the generator's column, reports only where there are adapters, errors, and what loads cost.
. "$(dirname "$0")/expect.sh"

succeeds "$inflight" trace generate -n 2000 --adapters 8 --prompt fixed:100 --output-tokens fixed:20 --process poisson --rate 20 -o even.csv
succeeds "$inflight" trace generate -n 2000 --adapters 8 --adapter-alpha 0.5 --prompt fixed:100 --output-tokens fixed:20 --process poisson --rate 20 -o first.csv
# alpha 0.5: adapter floor(8 u^2) is 0 for u below sqrt(1/8), 707 of 2000; evenly 250. Five standard deviations.
share() { awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } $at["adapter"] == "\"0\"" { n++ } END { print n + 0 }' "$1"; }
[ "$(share even.csv)" -gt 176 ] && [ "$(share even.csv)" -lt 324 ] || complain "evenly" "    $(share even.csv)"
[ "$(share first.csv)" -gt 600 ] && [ "$(share first.csv)" -lt 814 ] || complain "alpha 0.5" "    $(share first.csv)"
succeeds "$inflight" trace convert even.csv -o again.csv
same_bytes even.csv again.csv
refuses 'alpha is 0, expected a number above 0' "$inflight" trace generate -n 5 --adapters 8 --adapter-alpha 0 -o bad.csv

cat >config.yaml <<'Y'
model: llama-2-7b
hardware: a10g
workload: {trace: even.csv, format: inflight}
serving: {preset: vllm-v1-lora, max_model_len: 512, kv: {num_blocks: 700}, adapters: {max_loras: 2, max_cpu_loras: 4}}
output: {dir: out, plots: false, steps: true}
Y
succeeds "$inflight" run config.yaml --quiet -o slots
head -n 1 slots/requests.csv | grep -q ',adapter$' || complain 'requests.csv has no column adapter'
head -n 1 slots/steps.csv | grep -q ',adapters,adapter_loads$' || complain 'steps.csv has no columns of adapters'
awk -F, 'NR > 1 { if ($26 > 2) bad = 1; n += $27 } END { exit bad || n < 8 }' slots/steps.csv ||
    complain 'more than two adapters in a step, or none was loaded'
# Without the admission a step is of more adapters than there are slots, which a note says.
expect 0 'a step had * adapters, more than serving.adapters.max_loras (2)' \
    "$inflight" run config.yaml -o crowded --set serving.admit=prompt-fits
# Rows of requests have the trace's names.
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { gsub("\"", "", $at["adapter"]); print $at["adapter"] }' even.csv >said
awk -F, 'NR > 1 { print $2 "," $NF }' slots/requests.csv | sort -t, -n | cut -d, -f2 >found
same_bytes said found
# So have those of requests that no replica took: shed by the full gateway of the door, and longer than the model.
cat >turned.csv <<'Y'
arrival_s,prompt_tokens,output_tokens,adapter
0,10,100,x
0.001,10,10,y
0.002,500,100,z
Y
succeeds "$inflight" run config.yaml --quiet -o turned --set workload.trace=turned.csv --set workload.arrivals=null \
    --set serving.max_queued_reqs=1
same "$(awk -F, 'NR > 1 { print $4 "," $NF }' turned/requests.csv | tr '\n' ' ')" 'finished,x shed,y rejected,z ' 'adapters of requests turned away'
# One load is 33,554,432 bytes (4 x 2 x 4096 x 16 x 32 x 2) over 25 GB/s, and 1 GB/s of the disk: the first step has one.
first() { awk -F, 'NR == 2 { printf "%.6f", $5 }' "$1/steps.csv"; }
succeeds "$inflight" run config.yaml --quiet -o disk --set serving.adapters.disk_gb_per_s=1
awk -v a="$(first slots)" -v b="$(first disk)" 'BEGIN { d = b - a - 0.033554432; exit d > 1e-5 || d < -1e-5 }' ||
    complain "the disk takes $(first disk) - $(first slots) s"

# Without adapters no report has a word of them.
cut -d, -f1-3 even.csv | awk -F, -v OFS=, 'NR == 1 { print; next } { print }' >plain.csv
succeeds "$inflight" run config.yaml --quiet -o plain --set workload.trace=plain.csv
for file in requests steps summary; do
    ! grep -q adapter plain/$file.csv || complain "$file.csv names adapters"
done

refuses "adapters.ranks is '8,x' from 'x' on" "$inflight" run config.yaml --set "adapters.ranks='8,x'"
refuses 'adapters.ranks has 32, expected at most serving.adapters.max_rank (16)' "$inflight" run config.yaml --set "adapters.ranks='8,32'"
refuses 'max_cpu_loras is 1, expected 0 or max_loras (2) or more' "$inflight" run config.yaml --set serving.adapters.max_cpu_loras=1
refuses 'expected paged' "$inflight" run config.yaml --set serving.adapters.memory=pool --set serving.kv.allocator=buddy
finish
