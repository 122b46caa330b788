#!/bin/sh
# On a terminal, what takes long says how much is done, at a rate that is measured what is left, and leaves no
# trace of it; elsewhere, or with --quiet, it says nothing.
. "$(dirname "$0")/expect.sh"
command -v python3 >logs/found || exit 77
escape=$(printf '\033')
TERM=xterm
export TERM

# shown COMMAND...: all that came to a terminal, a drawn line a line
shown() {
    python3 "$scripts/on_terminal.py" 120 "$inflight" "$@" >logs/out 2>logs/err
    same "$?" 0 "$*: $(tail -n 3 logs/out)"
    tr '\r' '\n' <logs/out | sed "s/$escape\[[0-9;]*[mK]//g" >drawn
}
# drew PATTERN: at least two lines like that, and the percentages never fall
drew() {
    [ "$(grep -cE "$1" drawn)" -ge 2 ] || complain "$of: fewer than two lines like $1: $(head -n 5 drawn)"
    grep -oE '^\[[#.]*\] +[0-9]+%' drawn | grep -oE '[0-9]+' | sort -nc 2>logs/order || complain "$of: progress falls"
}
says_nothing() {
    succeeds "$inflight" "$@"
    ! grep -qE ' left| so far' logs/out logs/err || complain "$*: progress in a file"
}

"$inflight" trace generate -n 600000 --seed 3 --prompt lognormal:400,0.8,8,2000 \
    --output-tokens lognormal:150,0.6,4,600 --process poisson --rate 4 -o long.csv
head -n 1501 long.csv >short.csv
cat >config.yaml <<'END'
model: llama-2-7b
hardware: a100-80gb-sxm
workload: {trace: long.csv}
serving: {preset: vllm-v1-2026-08, max_model_len: 4096}
output: {dir: out, plots: false}
END

of='run of a point'
shown run config.yaml
drew '^\[[#.]*\] +[0-9]+%  0 of 1 points, [0-9]+ requests, [0-9]+ s left$'
of='run of a sweep'
sweep='sweep={serving.batching.max_seqs: [31, 32, 33, 34, 35, 36, 37, 38]}'
shown run config.yaml --set "$sweep" --set workload.limit=80000
drew '^\[[#.]*\] +[0-9]+%  [1-7] of 8 points, [0-9]+ requests, [0-9]+ s left$'
says_nothing run config.yaml --set workload.limit=20000 --quiet
try "$inflight" run config.yaml --set workload.limit=20000
! grep -qE ' left| so far' logs/out logs/err || complain 'run: progress in a file'
shown run config.yaml --quiet
[ ! -s drawn ] || complain "run --quiet: $(cat drawn)"

of='capacity'
shown capacity config.yaml --set workload.limit=8000 --set workload.arrivals='{process: poisson, rate_rps: 1}' \
    --set capacity='{criterion: delay, delay_s: 0.1}'
drew '0 of 1 searches, [0-9]+ trials, [0-9]+ requests, [0-9]+ s (left|so far)$'
grep -qE '%  0 of 1 searches, .* left$' drawn || complain 'capacity: no remaining time though the bracket is known'

of='identify'
succeeds "$inflight" run config.yaml -q --set workload.trace=short.csv -o truth
shown identify config.yaml truth/requests.csv
drew '^[0-9]+ flights, [0-9]+ requests, [0-9]+ s so far$'
try "$inflight" identify config.yaml truth/requests.csv --share 0.1
! grep -qE ' left| so far' logs/out logs/err || complain 'identify: progress in a file'

of='validate'
succeeds "$inflight" run config.yaml -q
cp -r out again
shown validate out again/requests.csv --no-plots
drew '^(reading the (simulated|recorded) run|comparing them), [0-9]+ s so far$'
cp drawn validated
succeeds "$inflight" validate out again/requests.csv --no-plots
grep -vE 'so far$|^$' validated | sed 's/^ *//' >table
sed 's/^ *//' logs/out | grep -v '^$' | diff - table >logs/difference || complain "validate on a terminal: $(cat logs/difference)"

of='fit'
shown fit "$INFLIGHT_DATA"/configs/hardware/data/aic_a100_vllm0.14.0_[cg]*n.csv.gz --like a100-80gb-sxm
drew '^\[[#.]*\] +[0-9]+%  [0-9]+ of [0-9]+ rows fitted(, [0-9]+ s left)?$'
says_nothing fit "$INFLIGHT_DATA"/configs/hardware/data/aic_a100_vllm0.14.0_[cg]*n.csv.gz --like a100-80gb-sxm
finish
