#!/bin/sh
# The times of a known host are found again from its run; runs that cannot be fitted are refused in one line.
. "$(dirname "$0")/expect.sh"

cat >config.yaml <<'EOF'
model: llama-2-7b
hardware: a100-80gb-sxm
workload: {trace: trace.csv}
serving: {preset: vllm-v1-2026-08, max_model_len: 4096}
output: {plots: false}
EOF
succeeds "$inflight" trace generate -n 240 --seed 3 --prompt lognormal:400,0.8,8,2000 \
    --output-tokens lognormal:150,0.6,4,600 --process poisson --rate 4 -o trace.csv
succeeds "$inflight" run config.yaml -q --set deployment.host.step_s=0.004 -o truth
cp truth/requests.csv run.csv

# ---- found again, with the same bytes twice, and written down ----
succeeds "$inflight" identify config.yaml run.csv -o found.yaml
cp logs/out first
printed '120 requests of 1 recorded runs fitted'
printed 'not determined: no request waits for memory'
printed 'not determined: acts as host.step_s'
same "$(awk '$1 == "host.step_s" && $NF == "determined" { print ($4 < 4 && 4 < $6) }' first)" 1 '4 ms in the interval'
same "$(awk '$1 == "after" { sub("%", "", $3); print ($3 * $3 < 0.25) }' first)" 1 'TPOT of the rest within 0.5%'
succeeds "$inflight" identify config.yaml run.csv -o again.yaml
cmp -s logs/out first || complain 'the table has other bytes the second time'
cmp -s found.yaml again.yaml || complain 'the deployment has other bytes the second time'
grep -q '  step_s: .*# 90%: ' found.yaml || complain "no interval in found.yaml"
succeeds "$inflight" run config.yaml -q --set deployment=./found.yaml -o with-found
succeeds "$inflight" identify config.yaml run.csv --share 1 --predict run.csv
printed '240 requests predicted'

# ---- a configuration without a trace is of the recorded requests ----
grep -v '^workload' config.yaml >bare.yaml
cp first kept
succeeds "$inflight" identify bare.yaml run.csv
cmp -s logs/out kept || complain 'the table is another without workload.trace'

# ---- prompts of one length, nearly of one length, and steps of one sequence: what acts alike is not told apart ----
of_lengths() { # PROMPTS OUTPUTS PROCESS: identifies a run of them
    succeeds "$inflight" trace generate -n 240 --seed 3 --prompt "$1" --output-tokens "$2" --process "$3" --rate "$4" -o trace.csv
    succeeds "$inflight" run config.yaml -q --set deployment.host.step_s=0.004 -o alike
    succeeds "$inflight" identify config.yaml alike/requests.csv
    if grep -q -w -e nan -e inf logs/out; then complain "no number: $(grep -w -e nan -e inf logs/out)"; fi
    same "$(awk '$1 == "host.step_s" { print ($2 > 3.95 && $2 < 4.05) }' logs/out)" 1 "4 ms of $1"
}
cp trace.csv kept.csv
of_lengths fixed:400 lognormal:150,0.6,4,600 poisson 4
printed 'not determined: acts as front_end.request_s where all prompts have 400 tokens'
of_lengths uniform:399,401 lognormal:150,0.6,4,600 poisson 4
of_lengths fixed:400 fixed:50 constant 0.5
printed 'not determined: the recordings leave it no interval; moves the rest'
cp kept.csv trace.csv

# ---- requests that the configuration cannot serve ----
refuses 'run.csv: 240 of 240 requests are longer than the 8 tokens that the configuration serves, the first is request 1 with *: expected the model, or the serving.max_model_len, of the recorded run' \
    "$inflight" identify config.yaml run.csv --set serving.max_model_len=8
longest=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { n = $at["prompt_tokens"] + $at["output_tokens"]; if (n > most) most = n } END { print most }' run.csv)
refuses "run.csv: 1 of 240 requests are longer than the $((longest - 1)) tokens that the configuration serves" \
    "$inflight" identify config.yaml run.csv --set serving.max_model_len=$((longest - 1))
{ head -1 run.csv && sed 1d run.csv | awk -F, -v OFS=, -v at="$(head -1 run.csv | tr ',' '\n' | grep -nx prompt_tokens | cut -d: -f1)" 'NR == 1 { $at = 200000; $(at + 1) += 1 } 1'; } >long.csv # not the requests of run.csv
refuses 'long.csv: 1 of 240 requests are longer than the 4096 tokens' "$inflight" identify bare.yaml run.csv --predict long.csv

# ---- values that explain the run stay, and so does a pool that the configuration says ----
succeeds "$inflight" identify config.yaml run.csv --set deployment.host.step_s=0.004 \
    --hold host.step_s --hold host.seq_s --hold front_end.request_s --hold front_end.prompt_token_s
same "$(awk '$1 == "kernels.prompt_frac" { print $2, $3 }' logs/out)" '1 given:' 'kernels of an exact fit'
same "$(awk '$1 == "after" { gsub("[-+]", ""); print $2, $3, $4 }' logs/out)" '0.0% 0.0% 0.0%' 'an exact fit'
awk -F, -v OFS=, -v a="$(head -1 run.csv | tr ',' '\n' | grep -nx ttft_s | cut -d: -f1)" \
    -v b="$(head -1 run.csv | tr ',' '\n' | grep -nx e2e_s | cut -d: -f1)" 'NR > 1 { $a *= 1000; $b *= 1000 } 1' run.csv >ms.csv
succeeds "$inflight" identify config.yaml ms.csv --set serving.kv.num_blocks=700
same "$(awk '$1 == "num_blocks" { print $2, $4, $5, $6, $7 }' logs/out)" '700 given: the configuration says' 'blocks of the configuration'

# ---- a few preemptions say that the pool is no larger than what seems to be in use ----
succeeds "$inflight" run config.yaml -q --set deployment.host.step_s=0.004 --set serving.kv.num_blocks=800 -o few-preempted
succeeds "$inflight" identify config.yaml few-preempted/requests.csv
printed 'for memory; at least'
same "$(awk '$1 == "num_blocks" { sub(".*at least ", ""); print ($1 + 0 <= 800) }' logs/out)" 1 'the bound of a pool of 800 blocks'

# ---- what a parameter is called, and what stays as it is ----
succeeds "$inflight" identify config.yaml run.csv --hold host.seq_s
printed 'given: held'
succeeds "$inflight" identify config.yaml run.csv --hold host.layer_s
[ "$(grep -c 'given: held' logs/out)" = 1 ] || complain 'a parameter that is held is not said to be'
refuses 'free host.layer_s: acts as host.step_s in every step' "$inflight" identify config.yaml run.csv --free host.layer_s
refuses 'free num_blocks: --hold num_blocks contradicts it' "$inflight" identify config.yaml run.csv \
    --hold num_blocks --free num_blocks
refuses 'run.csv: the same run as run.csv, expected another' "$inflight" identify config.yaml run.csv run.csv
awk -F, -v OFS=, 'NR > 1 { $3 += 1 } { print }' trace.csv >other.csv
refuses 'other.csv: no recorded run has these requests' "$inflight" identify config.yaml run.csv --requests other.csv
refuses 'did you mean host.step_s' "$inflight" identify config.yaml run.csv --hold host.step
refuses 'expected more than 0 and at most 1' "$inflight" identify config.yaml run.csv --share 1.5
try "$inflight" identify config.yaml
same "$code" 2 'exit code without a recording'

# ---- recordings that no fit would mean anything for ----
head -40 run.csv >few.csv
refuses '20 requests to fit, of 39, expected at least 30' "$inflight" identify config.yaml few.csv
column() { head -1 run.csv | tr ',' '\n' | grep -nx "$1" | cut -d: -f1; }
awk -F, -v OFS=, -v c="$(column arrival_s)" 'NR == 121 { $c -= 20 } 1' run.csv >jumps.csv
refuses 'a clock that jumps' "$inflight" identify config.yaml jumps.csv
awk -F, -v OFS=, -v c="$(column arrival_s)" 'NR > 121 { $c += 3600 } 1' run.csv >forward.csv
refuses 'a clock that jumps, or two runs' "$inflight" identify config.yaml forward.csv
awk -F, -v OFS=, -v c="$(column e2e_s)" 'NR == 21 { $c += 1e9 } 1' run.csv >gap.csv
refuses 'for its next token, in the mean, and the median one 0.0' "$inflight" identify config.yaml gap.csv
awk -F, -v OFS=, -v t="$(column ttft_s)" -v c="$(column e2e_s)" 'NR == 201 { $t += 3600; $c += 3600 } 1' run.csv >late.csv
refuses 'for its first token, and the median one 0.0' "$inflight" identify config.yaml late.csv
succeeds "$inflight" run config.yaml -q --set serving.max_model_len=900 -o failing
refuses 'a run with failures' "$inflight" identify config.yaml failing/requests.csv
refuses 'without measured latencies' "$inflight" identify config.yaml trace.csv
gzip -c run.csv | head -c 3000 >cut.csv.gz
refuses 'cut.csv.gz' "$inflight" identify config.yaml cut.csv.gz
succeeds "$inflight" run config.yaml -q --set deployment.host.step_s=0.03 -o slow
refuses 'not of one deployment' "$inflight" identify config.yaml run.csv slow/requests.csv
refuses 'nowhere/found.yaml' "$inflight" identify config.yaml run.csv slow/requests.csv -o nowhere/found.yaml
refuses 'expected one: a recorded run has no sweep' "$inflight" identify config.yaml run.csv \
    --set 'sweep={deployment.host.step_s: [0, 0.001]}'

finish
