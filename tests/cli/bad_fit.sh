#!/bin/sh
# Measurements, recordings and options that fit, model, identify and compare refuse: exit code 2 and one line with
# what was found and what was expected; no profile is written.
. "$(dirname "$0")/expect.sh"

reduce=$INFLIGHT_DATA/configs/hardware/data/aic_h100_vllm0.24.0_custom_allreduce.csv.gz
gemm=$INFLIGHT_DATA/configs/hardware/data/aic_h100_vllm0.24.0_gemm.csv.gz

# fit_fails PATTERN FILE OPTION...: a table of a known kind is fitted from the profile of an H100
fit_fails() {
    pattern=$1
    shift
    refuses "$pattern" "$inflight" fit --like h100-sxm -o made.yaml "$@"
    [ ! -e made.yaml ] || complain "$*: left a profile"
}

# options
refuses 'no file is a sheet of inflight calibrate, so --like is missing: it gives the peaks' \
    "$inflight" fit "$reduce" -o made.yaml
for hold in allreduce_2.latency_us allreduce_2.latency_us= allreduce_2.latency_us=x allreduce_2.latency_us=nan \
    allreduce_2.latency_us=inf allreduce_2.latency_us=-1 =3; do
    case $hold in
        =3) fit_fails '--hold : no such parameter, expected one such as gemm.wave_frac' "$reduce" --hold "$hold" ;;
        *)
            fit_fails "--hold $hold: expected SECTION.FIELD=NUMBER, a number from 0 on, as gemm.wave_frac=0" \
                "$reduce" --hold "$hold"
            ;;
    esac
done
fit_fails '--hold allreduce_2.latncy_us: no such parameter, did you mean allreduce_2.latency_us[?]' "$reduce" \
    --hold allreduce_2.latncy_us=1
# shellcheck disable=SC2046 # an option each
fit_fails '--hold: 17 of them, expected at most 16' "$reduce" $(seq -f '--hold=gemm.wave_frac=%.0f' 17)
for where in 'm>' '>3' 'm~3' m; do
    fit_fails "--where \"$where\", expected COLUMN, one of < <= > >= = !=, and a number or a column" "$reduce" \
        --where "$where"
done

# what a table lacks
gzip -dc "$reduce" | head -9 >few.csv
fit_fails 'rows do not determine allreduce_2.bulk_from_bytes, expected at least 8 different sizes' few.csv
gzip -dc "$gemm" | head -5 >few.csv
fit_fails '4 rows do not determine the * numbers of gemm, from launch_us on; expected at least ' few.csv
fit_fails '--corrections: no row of gemm, gemm_fp8, prefill, decode or elementwise, expected some' "$reduce" \
    --corrections factors.csv
refuses '--corrections: * different products and sizes, expected at most 512; leave some out with --where' \
    "$inflight" fit --evaluate h100-sxm "$gemm" --corrections factors.csv
[ ! -e factors.csv ] || complain 'refused corrections are written'
printf 'a,b\n1,2\n' >other.csv
fit_fails 'other.csv:1: no known table has the columns "a" ... "b", expected those of a table that inflight fit --tables' \
    other.csv
printf 'a"b,c\n1,2\n' >other.csv
fit_fails 'other.csv:1: a stray or open quote, expected quotes closed on their line and doubled inside' other.csv
printf 'a,b\n' >other.csv
fit_fails 'other.csv: no rows, expected a header and rows' other.csv
printf '%s,' $(seq 300) >other.csv
fit_fails 'other.csv:1: the header has 301 columns, expected at most 256' other.csv

# a model on a GPU
model_fails() { # PATTERN OPTION...
    pattern=$1
    shift
    refuses "inflight model: $pattern" "$inflight" model llama-2-7b "$@"
}
model_fails '--batch 0: expected a whole number from 1 on' --batch 0
model_fails '--length 0: expected a whole number from 1 on' --length 0
model_fails '--block 0: expected a whole number from 1 on' --block 0
for utilization in 0 2; do
    model_fails "--utilization $utilization: expected a number above 0, at most 1" --utilization $utilization
done

# recordings of which no deployment can be found
cat >config.yaml <<'END2'
model: llama-2-7b
hardware: a100-80gb-sxm
workload: {trace: trace.csv}
serving: {preset: vllm-v1, max_model_len: 4096}
output: {plots: false}
END2
succeeds "$inflight" trace generate -n 70 --process poisson --rate 4 -o trace.csv
succeeds "$inflight" run config.yaml -q -o truth
identify_fails() { # PATTERN RECORDED OPTION...
    pattern=$1
    shift
    refuses "$pattern" "$inflight" identify config.yaml "$@" -o found.yaml
    [ ! -e found.yaml ] || complain "$*: left a deployment"
}
recording() { # EDIT: the run with a change of the awk program
    awk -F, -v OFS=, "NR == 1 { for (i = 1; i <= NF; i++) at[\$i] = i } NR > 1 { $1 } 1" truth/requests.csv >run.csv
}
identify_fails 'config.yaml: an engine executes, expected executor sim, whose parameters are looked for' \
    truth/requests.csv --set executor=cpu
identify_fails 'config.yaml: cost.model is another, expected cost.model roofline, whose parameters are looked for' \
    truth/requests.csv --set cost.model=linear --set cost.step_s=0.01
identify_fails 'trace.csv: a trace without measured latencies, expected a recorded run' trace.csv
recording 'if (NR == 5) $at["e2e_s"] = $at["finish_s"] = ""'
identify_fails 'run.csv: request 4 has no end: a run with failures, expected one in which all requests finish' run.csv
recording 'if (NR == 5) $at["ttft_s"] = ""'
identify_fails 'run.csv: request 4 has no first token: a run with failures, expected one in which all' run.csv
recording '$at["output_tokens"] = 1; $at["tpot_s"] = ""; $at["finish_s"] = $at["first_token_s"]; $at["e2e_s"] = $at["ttft_s"]'
identify_fails 'run.csv: no request has two tokens, expected answers that show a time per token' run.csv
printf '{"input_lens": [5], "output_lens": [2], "ttfts": [0.1], "itls": [[0.1]]}' >bench.json
identify_fails 'bench.json: no request says when it arrived, expected a recorded run with stamps' bench.json

# runs that are compared
mkdir one
succeeds "$inflight" run config.yaml -q -o one
# shellcheck disable=SC2046 # a word each
refuses 'one is one run or value too many to compare, expected at most 64' "$inflight" compare $(yes one | head -65)
# shellcheck disable=SC2046 # a word each
refuses 'inflight plot: more than 256 files' "$inflight" plot $(yes one | head -257)
refuses 'trace.csv: a trace without outcomes, expected a run* or a recorded run (inflight list traces)' \
    "$inflight" validate one trace.csv --no-plots
cat >many.yaml <<'END2'
workload: {trace: trace.csv, limit: 5}
cost: {model: linear, step_s: 0.01}
serving: {preset: vllm-v0, max_model_len: 4096, kv: {num_blocks: 4096}}
output: {plots: false}
END2
succeeds "$inflight" run many.yaml -q -o many --set "sweep={cost.step_s: [$(seq -s, 65)]}"
refuses 'step_s has more than 64 values, too many columns' "$inflight" table many --columns cost.step_s
finish
