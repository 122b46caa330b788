#!/bin/sh
# The command on a model small enough for a test: contents of a sheet, and refusals.
. "$(dirname "$0")/../cli/expect.sh"

INFLIGHT_ENGINE_DIR=$(dirname "$inflight")/gpu/cpu
export INFLIGHT_ENGINE_DIR
tiny=$INFLIGHT_DATA/tests/engine/tiny.yaml

refuses '--engine is "gpu", expected cpu or cuda' "$inflight" calibrate --engine gpu -o sheet.csv
refuses 'is no Llama-style decoder' "$inflight" calibrate --engine cpu --model opt-13b -o sheet.csv
refuses 'n_threads is 0' "$inflight" calibrate --engine cpu --model "$tiny" --threads 0 -o sheet.csv
refuses '--dtype is "fp64", expected auto or fp32' \
    "$inflight" calibrate --engine cpu --model "$tiny" --dtype fp64 -o sheet.csv
refuses 'dtype is bf16, executor cpu expects auto or fp32' \
    "$inflight" calibrate --engine cpu --model "$tiny" --dtype bf16 -o sheet.csv
refuses 'cannot write' "$inflight" calibrate --engine cpu --model "$tiny" -o nowhere/sheet.csv
try "$inflight" calibrate --engine cpu
[ $code -eq 2 ] || complain "no -o: exit $code"
same "$(ls)" "logs" "files of a command that was refused"

"$inflight" calibrate --engine cpu --model "$tiny" -o stopped.csv 2>logs/err &
child=$!
sleep 1
kill -INT $child
wait $child || code=$?
[ "$code" -eq 1 ] || complain "interrupted: exit $code"
same "$(ls)" "logs" "files of a command that was interrupted"

succeeds "$inflight" calibrate --engine cpu --model "$tiny" --dtype fp32 --runs 5 -o sheet.csv
for op in ceiling_copy ceiling_copy_out ceiling_copy_in ceiling_gemm gemm norm rotary activation \
    elementwise attention_decode attention_prefill attention_mixed step step_host swap_out swap_in \
    block_copy; do
    grep -q "^$op," sheet.csv || complain "no row of $op"
done
for remark in processor software engine model threads units memory_gib; do
    grep -q "^# $remark: ." sheet.csv || complain "no remark about the $remark"
done

grep -v '^#' sheet.csv >rows.csv
columns rows.csv op,median_s,min_s,spread_s,runs | awk -F, '
    $1 != "step_host" && !($2 > 0 && $3 > 0) || $2 < $3 || $4 < 0 || $5 != 5 { exit 1 }' ||
    complain "times that contradict each other"
# Swaps of 1 to 1024 blocks; a block of 16 tokens holds 2 x 2 layers x 2 heads x 8 numbers for each.
same "$(columns rows.csv op,blocks,bytes | grep -c '^swap_out,')" 22 "rows of swap_out"
same "$(columns rows.csv op,blocks,bytes | grep '^swap_in,1024,' | head -1)" \
    "swap_in,1024,$((1024 * 16 * 2 * 2 * 2 * 8 * 4))" "bytes of 1024 blocks"
# 2 m n k; the products of a layer: n = (4 + 2 x 2) 8, k = 32.
columns rows.csv op,m,n,k,flops,bytes | grep -q "^gemm,24,64,32,$((2 * 24 * 64 * 32)),$(
    )$((4 * (24 * 32 + 64 * 32 + 24 * 64)))\$" || complain "FLOPs or bytes of a product"
finish
