#!/bin/sh
# --dry-run says the points, the blocks, what is assumed and the defaults that the run then has, and writes nothing.
. "$(dirname "$0")/expect.sh"

cat >config.yaml <<'END'
model: mistral-7b
hardware: a100-80gb-sxm
workload: {trace: traces/data/sharegpt-8k-lengths.csv.gz, limit: 60, arrivals: {process: poisson, rate_rps: 3}}
serving: {preset: vllm-v0}
slo: {ttft_s: 1}
output: {dir: out, plots: false}
sweep:
  serving.preset: [vllm-v0, sarathi]
  workload.arrivals.rate_rps: [2, 4, 8]
END
ls >before
succeeds "$inflight" run config.yaml --dry-run
cp logs/out said
ls >after
same "$(diff before after | grep '^[<>]' | tr '\n' ' ')" '> after > said ' 'files that were written'
line() {
    sed -n "s/^$1 *//p" said
}
same "$(line config)" config.yaml 'the configuration'
same "$(line points)" 6 'points'
grep -q '^          workload.arrivals.rate_rps: 2 4 8$' said || complain 'the values of an axis'

# The run has as many points, the same blocks and the same assumptions.
succeeds_with_notes() {
    try "$@"
    same "$code" 0 "$*"
}
succeeds_with_notes "$inflight" run config.yaml
same "$(tail -n +2 out/summary.csv | wc -l)" 6 'rows of summary.csv'
assumed=$(line assumed | head -n 1)
grep -qF "${assumed%% (from*}" out/summary.csv || complain "summary.csv does not say: $assumed"
line blocks | sed 's/^[^:]*: //; s/ (from .*//' >arithmetic
[ -s arithmetic ] || complain 'no arithmetic of blocks'
while read -r sentence; do
    grep -qF "$sentence" logs/err || complain "the run does not say: $sentence"
done <arithmetic

# What is said to be a default is one: set to it, nothing changes. What is set is none.
defaults=$(line defaults)
for key in serving.batching.chunking serving.kv.block_tokens; do
    case " $defaults " in *" $key="*) complain "$key is set by the preset" ;; esac
done
case " $defaults " in *' slo.ttft_s='*) complain 'slo.ttft_s is set by the file' ;; esac
case " $defaults " in *' workload.arrivals.cv=1, '*) ;; *) complain "workload.arrivals.cv is a default: $defaults" ;; esac
sets=
for default in $(echo "$defaults" | sed 's/, /\n/g' | grep -v " "); do
    case $default in
    *=none | *=required | *"the "* | *=\'*) ;;
    *.*=[0-9a-z]*) sets="$sets --set $default" ;;
    esac
done
[ "$(echo "$sets" | wc -w)" -gt 60 ] || complain "few defaults: $sets"
cp out/requests.csv requests.csv
# shellcheck disable=SC2086 # words on purpose
succeeds "$inflight" run config.yaml --quiet --set sweep.serving.preset='[vllm-v0]' $sets
head -n "$(wc -l <out/requests.csv)" requests.csv >first
same_bytes first out/requests.csv

# the cost: of a part of each point
case $(line cost) in
'about '*' s of processor time, without the files: '*' s a point, from parts of 6 of 6 points') ;;
*) complain "the cost: $(line cost)" ;;
esac
succeeds "$inflight" run config.yaml --dry-run --set executor=cpu --set model=llama-15m --set sweep=null \
    --set serving.max_model_len=128 --set serving.kv.num_blocks=64
printed 'cost      not estimated: an engine flies in wall time'

# vLLM V0 profiles itself with max(max_model_len, 2048) tokens, or those of a chunk: of 4096, three rows of the MLP's 14336 and
# six of 4096 in 16 bits are 0.52 GiB; 256 sequences of 32000 words come to 0.28 and 0.02 beside 2048; 0.07 more.
succeeds "$inflight" run config.yaml --dry-run --set sweep=null --set serving.kv.sizing=vllm-0.3.1 --set serving.max_model_len=4096
printed '0.59 activations (a layer)'
succeeds "$inflight" run config.yaml --dry-run --set sweep=null --set serving.preset=vllm-v0-chunked --set serving.kv.sizing=vllm-0.6.5
printed '0.37 activations (logits of 256 sequences)'

# searches
rm -r out
succeeds "$inflight" capacity config.yaml --dry-run --set 'sweep={serving.preset: [vllm-v0, sarathi]}' \
    --set capacity.criterion=goodput
printed 'searches  2'
[ ! -e out ] || complain 'capacity --dry-run has written'
case $(cat logs/out) in *capacity.attainment_frac=*) ;; *) complain 'no defaults of capacity' ;; esac
refuses 'workload.arrivals.rate_rps is swept' "$inflight" capacity config.yaml --dry-run
refuses 'unknown model mistral-7c' "$inflight" run config.yaml --dry-run --set model=mistral-7c
finish
