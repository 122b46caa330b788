#!/bin/sh
# A wrong configuration or command line: exit code 2 and one line with the place, the value found, and the
# value expected.
. "$(dirname "$0")/expect.sh"

printf 'arrival_s,prompt_tokens,output_tokens\n0,10,5\n1,20,3\n2,30,4\n' >three.csv
cat >good.yaml <<'END'
model: llama-2-7b
hardware: a100-80gb-sxm
workload:
  trace: three.csv
  arrivals: {process: poisson, rate_rps: 2}
serving:
  preset: vllm-v0
  kv: {num_blocks: 64}
output: {dir: out}
END

# line N TEXT PATTERN: with TEXT as line N bad.yaml is refused; the pattern matches the message behind the
# file's name.
line() {
    awk -v n="$1" -v text="$2" 'NR == n { print text; next } 1' good.yaml >bad.yaml
    refuses "bad.yaml:$3" "$inflight" run bad.yaml --quiet
}

# edit EDIT PATTERN
edit() {
    refuses "--set $1: $2" "$inflight" run good.yaml --quiet --set "$1"
}

succeeds "$inflight" run good.yaml --quiet

# names
line 1 'modle: llama-2-7b' '1:1: unknown key modle, did you mean model[?]'
line 8 '  kv: {num_blokcs: 64}' '8:8: unknown key serving.kv.num_blokcs, did you mean num_blocks[?]'
line 8 '  flux_capacitor: 3' '8:3: unknown key serving.flux_capacitor'
line 5 '  zzz: 1' '5:3: unknown key workload.zzz, expected one of *, filter, arrivals, *'
line 1 'model: lama-2-7b' '1:1: unknown model lama-2-7b, did you mean llama-2-7b[?]'
line 2 'hardware: a100-80-sxm' '2:1: *a100-80-sxm, did you mean a100-80gb-sxm[?]'
line 7 '  preset: vlm-v0' '7:3: unknown preset vlm-v0, did you mean vllm-v0[?]'
line 8 '  order: {policy: fcsf}' '8:11: unknown order policy fcsf, did you mean fcfs[?]'
line 8 '  order: {policy: zzzzzzzz}' '8:11: unknown order policy zzzzzzzz, expected one of *sjf'
line 8 '  batching: {max_seq: 3}' '8:14: *serving.batching.max_seq, did you mean max_seqs[?]'
line 5 '  format: azur' '5:3: workload.format is azur, expected one of *did you mean azure[?]'
line 7 '  preset: zzzzzzzz' '7:3: unknown preset zzzzzzzz, expected one of those that `inflight list presets`'
refuses 'good.yaml:7:3: unknown preset vllm-v0: there is no configs/serving here and none in /nowhere;' \
    env INFLIGHT_DATA=/nowhere "$inflight" run good.yaml
line 4 '  trace: four.csv' '4:3: there is no file four.csv, expected a trace'

# a program that is not installed finds the data of its source tree, from any working directory
mkdir -p tree/build tree/configs/serving
cp "$inflight" tree/build
cp "$INFLIGHT_DATA/configs/serving/vllm-v0.yaml" tree/configs/serving/mine.yaml
expect 0 '' env -u INFLIGHT_DATA tree/build/inflight list presets
printed 'mine'
rm -r tree

# values
line 8 '  max_model_len: many' '8:3: *max_model_len is many, expected a whole number from 0'
line 8 '  max_model_len: 1.5' '8:3: *max_model_len is 1.5, expected a whole number'
line 8 '  max_model_len: "64"' '8:3: *max_model_len is "64", expected *quotes make it text'
line 8 '  max_model_len: [64]' '8:3: *max_model_len is a list, expected a whole number'
line 8 '  kv: 64' '8:3: serving.kv is 64, expected a map'
line 8 '  steady_runs: yes' '8:3: *steady_runs is yes, expected true or false'
line 8 '  kv: {num_blocks: -1}' '8:8: *num_blocks is -1, expected a whole number from 0 to'
line 8 '  kv: {num_blocks: 4294967297}' '8:8: *num_blocks is 4294967297, expected *2147483647'
line 8 '  kv: {memory_utilization: 1.5}' '8:8: *is 1.5, expected a number from 0.01 to 1'
line 8 '  kv: {num_blocks: 2147483647}' ' *room for 34359738352 tokens, expected at most 2147483647'
for value in .nan nan NaN .inf -.inf inf 1e999; do
    line 9 "slo: {ttft_s: $value}" "9:7: slo.ttft_s is $value, expected a number from 0"
done
line 5 '  patience: {process: constant, mean_s: 0}' '5:33: workload.patience.mean_s is 0, expected a number from 1e-09'
line 5 '  limit: 99999999999999999999' '5:3: *is 99999999999999999999, expected a whole number'
line 5 '  arrivals: {process: poison}' '5:14: *process is poison, expected one of *poisson[?]'
line 5 '  arrivals: {process: gamma}' '5:*rate_rps is missing or 0, expected a rate above 0'
line 8 '  order: null' '8:3: serving.order is null, expected a policy: null takes away that of serving.preset'
line 8 '  order: {policy: null}' '8:11: serving.order.policy is null, expected a policy: null takes away'
edit serving.batching=null 'serving.batching is null, expected a policy: null takes away that of serving.preset'
line 4 '  limit: 3' '3:1: workload.trace is missing, expected text*: the trace file, plain or gzipped'
line 8 '  order: {policy: drr, quantum_tokens: 0.001}' \
    '8:11: serving.order.quantum_tokens is 0.001, expected at least the cost of a token'
edit 'engine.dtype=fp8' 'engine.dtype is fp8, expected auto, fp32, bf16 or fp16 where executor is sim'
line 9 'engine: {dtype: fp8}
executor: cpu' '9:10: engine.dtype is fp8, expected auto or fp32 where executor is cpu'
line 9 'engine: {dtype: fp8}
executor: cuda' '9:10: engine.dtype is fp8, expected auto, bf16 or fp16 where executor is cuda'
edit 'engine.kv_dtype=int2' \
    'engine.kv_dtype is int2, expected auto, fp32, bf16, fp16, fp8, int8 or int4 where executor is sim'
line 9 'engine: {kv_dtype: int8}
executor: cpu' '9:10: engine.kv_dtype is int8, expected auto, fp32 or fp8 where executor is cpu'
line 9 'engine: {kv_dtype: int4}
executor: cuda' '9:10: engine.kv_dtype is int4, expected auto, bf16, fp16 or fp8 where executor is cuda'
line 9 'engine: {kv_dtype: fp4}
executor: cuda' '9:10: engine.kv_dtype is fp4, expected auto, bf16, fp16 or fp8 where executor is cuda'
refuses 'serving.batching.max_active_seqs is 9, expected at most max_seqs, which is 8' \
    "$inflight" run good.yaml --quiet --set 'serving.preset=vllm-v1' \
    --set 'serving.batching={max_seqs: 8, max_active_seqs: 9}'
line 9 'executor: gpu' '*executor is gpu, expected one of sim, cpu, cuda'

# costs
refuses 'good.yaml:1:1: cost.dir is missing, expected the directory' \
    "$inflight" run good.yaml --quiet --set 'cost={model: table}'
edit 'cost={model: table, dir: none}' 'there is no directory none, expected one with tables'
refuses '0 files that end in linear_ms_per_layer.csv or linear_ms_per_layer.csv.gz, expected one' \
    "$inflight" run good.yaml --quiet --set 'cost={model: table, dir: logs}'
refuses 'parallel.tensor is above 1, expected 1 where cost.model is table' \
    "$inflight" run good.yaml --quiet --set parallel.tensor=2 \
    --set 'cost={model: table, dir: configs/costs/vidur-llama-2-7b-a100}'
refuses 'parallel.pipeline is above 1, expected 1 where an engine executes' \
    "$inflight" run good.yaml --quiet --set parallel.pipeline=2 --set executor=cuda
refuses 'serving.in_flight.batches is engines, expected shared or slots where an engine executes' \
    "$inflight" run good.yaml --quiet --set parallel.pipeline=2 --set executor=cpu --set serving.in_flight.pipelined=true \
    --set serving.in_flight.batches=engines
refuses 'engine.window_tokens is set, expected 0 where engine.weights is a directory' \
    "$inflight" run good.yaml --quiet --set executor=cpu \
    --set 'engine={weights: logs, window_tokens: 24}'
refuses 'workload.beams.search is true, expected false where an engine executes' \
    "$inflight" run good.yaml --quiet --set workload.beams.search=true --set executor=cpu
refuses 'workload.beams.search is true and serving.kv.allocator is buddy, expected paged' \
    "$inflight" run good.yaml --quiet --set workload.beams.search=true --set serving.preset=orca-max
refuses 'parallel.pipeline is 33, expected at most the number of layers, 32' \
    "$inflight" run good.yaml --quiet --set parallel.pipeline=33
refuses 'parallel.stage_layers is 16,15, expected 2 numbers from 1 up with commas between them and the sum 32' \
    "$inflight" run good.yaml --quiet --set parallel.pipeline=2 --set 'parallel.stage_layers="16,15"'
for list in abc 0 '"-1,3"' '"16,16,"' '"16;16"' 32 '"8,8,16"'; do
    edit "parallel={pipeline: 2, stage_layers: $list}" "parallel.stage_layers is *, expected 2 numbers from 1 up"
done
# without a model there are no layers: steps are cut evenly
cat >linear.yaml <<'END'
workload: {trace: three.csv}
serving: {preset: vllm-v0, max_model_len: 256, kv: {num_blocks: 64}}
cost: {model: linear, step_s: 0.01}
parallel: {pipeline: 2}
output: {dir: out}
END
succeeds "$inflight" run linear.yaml --quiet
sed 's/pipeline: 2/pipeline: 2, stage_layers: abc/' linear.yaml >bad.yaml
refuses 'bad.yaml:4:25: parallel.stage_layers is abc, expected 2 numbers' "$inflight" run bad.yaml --quiet
sed 's/pipeline: 2/pipeline: 2, stage_layers: "1,3"/' linear.yaml >bad.yaml
refuses 'bad.yaml:4:25: parallel.stage_layers is set, expected none where no model is named' \
    "$inflight" run bad.yaml --quiet
refuses 'serving.in_flight.pipelined is true and parallel.pipeline above 1, expected false where workload.beams' \
    "$inflight" run good.yaml --quiet --set parallel.pipeline=2 --set workload.beams.search=true
refuses 'serving.in_flight.pipelined is true and parallel.pipeline above 1, expected false where parallel.data' \
    "$inflight" run good.yaml --quiet --set parallel.pipeline=2 --set parallel.data=2 --set model=mixtral-8x7b
refuses 'serving.in_flight.ahead is above 1, expected at most 1 where no pipeline' \
    "$inflight" run good.yaml --quiet --set serving.in_flight.ahead=2
steps_at_once='{num_scheduler_steps: 4, append_rule: touched}'
for batches in shared slots; do
    refuses 'serving.batching.num_scheduler_steps is 4 with several steps of a pipeline in flight, expected 1 or' \
        "$inflight" run good.yaml --quiet --set parallel.pipeline=2 --set "serving.in_flight.batches=$batches" \
        --set "serving.batching=$steps_at_once"
done
succeeds "$inflight" run good.yaml --quiet --set parallel.pipeline=2 --set "serving.batching=$steps_at_once"
refuses 'parallel.pipeline is 2, expected 1 or a profile with send_recv, which b300 lacks' \
    "$inflight" run good.yaml --quiet --set parallel.pipeline=2 --set hardware=b300

# 15 rounded down to a multiple of 32 is 0: no prompt would ever get a token
refuses 'high_chunk_tokens is 15, which is rounded to a multiple of 32, expected at least 17' \
    "$inflight" run good.yaml --quiet --set serving.preset=sarathi-dynamic \
    --set serving.batching.high_chunk_tokens=15

# keys that mean nothing without another one (bad_combinations.sh), and times in the wrong order
line 4 '  trace: three.csv
  retry: {backoff_s: 5}' '5:11: workload.retry.backoff_s is set and'
line 9 'output: {dir: out, timeline_from_s: 5, timeline_to_s: 4}' '9:40: output.timeline_to_s is before output.timeline_from'

# YAML
line 9 'model: llama-2-13b' '9:1: key model given twice, first on line 1'
line 8 '  kv: {num_blocks: 64' '9:*not valid YAML'
line 8 '\tmax_model_len: 64' '8:1: not valid YAML: found a tab character'
line 8 '  kv: *nobody' '8:*not valid YAML: found undefined alias'
line 9 '---' '[0-9]*a second document, expected only one'
: >empty.yaml
refuses 'empty.yaml:1:1: nothing here, expected keys' "$inflight" run empty.yaml
printf '\377\376\001' >binary.yaml
refuses 'binary.yaml:1:*not valid YAML' "$inflight" run binary.yaml
refuses 'none.yaml: cannot be opened: No such file' "$inflight" run none.yaml
refuses 'logs: cannot be read: Is a directory' "$inflight" run logs

# sweeps
line 9 'sweep: {serving.kv.blocks: [1]}' '9:9: unknown key serving.kv.blocks'
line 9 'sweep: {slo.ttft_s: 3}' '9:9: sweep of slo.ttft_s is 3, expected a list'
line 9 'sweep: {slo.ttft_s: []}' '9:9: sweep of slo.ttft_s is an empty list, expected a list of val'
line 9 'sweep: {slo.ttft_s: [1, x]}' '9:25: slo.ttft_s is x, expected a number'
line 9 'sweep: {serving.preset: [vllm-v0, orka]}' '9:35: unknown preset orka'
line 9 'sweep: {serving.kv: [{num_blocks: 3}, 4]}' '9:*serving.kv is 4, expected a map of keys'
line 9 'sweep: {serving.kv: [{num_blocks: 3}, {num_blocks: 3}]}' '9:39: two values of serving.kv are both num_blocks 3'
line 9 'sweep: {serving.kv: {few: {num_block: 3}}}' '9:28: unknown key serving.kv.num_block, did you mean'
line 9 'sweep: {varients: {a: {}}}' '9:9: unknown key varients, did you mean variants[?]'
line 9 'sweep: {variants: {a: , b: {serving: {kv: {num_blok: 3}}}}}' '9:44: unknown key serving.kv.num_blok, did you'
line 9 'sweep: {variants: {a: {servng: {}}}}' '9:24: unknown key servng, did you mean serving[?]'
line 9 'sweep: {variants: {a: {serving: {preset: orka}}}}' '9:34: unknown preset orka'
line 9 'sweep: {variants: {a: 3}}' '9:20: variant a is 3, expected a map of keys'
line 9 'sweep: {variants: {}}' '9:9: sweep of variants is an empty map, expected a map of names'
line 9 'sweep: {variants: [a, b]}' '9:9: sweep of variants is a list, expected a map of names'
line 9 'sweep: {variants: {a: {output: {dir: x}}}}' '9:24: variant a sets output, expected keys that points'
line 9 'sweep: {variants: {a: {slo: {ttft_s: 1}}}, slo.ttft_s: [1]}' '9:30: slo.ttft_s is set in a variant and swept'
line 9 'sweep: {variants: {a: {serving: {batching: mixed}}}, serving.batching: [mixed]}' '9:34: *set in a variant and'
line 9 'sweep: {output.dir: [a, b]}' '9:9: output.dir is swept, expected one output'

# edits
edit model 'not an edit, expected path.to.key=value'
edit '=3' 'not an edit, expected path.to.key=value'
edit slo.ttft_s= 'no value'
edit 'slo.ttft_s={' 'not valid YAML'
edit slo.tfft_s=3 'unknown key slo.tfft_s, did you mean slo.ttft_s[?]'
edit slo.ttft_s=soon 'slo.ttft_s is soon, expected a number'
edit serving=fast 'serving is fast, expected a map'
edit model=lama-2-7b 'unknown model lama-2-7b, did you mean llama-2-7b[?]'

# the machine is too small
fits="--set serving.kv.num_blocks=0 --quiet"
# 2 bytes a parameter: 69.0e9 parameters are 128.5 GiB of a GPU of 80
# shellcheck disable=SC2086 # words on purpose
refuses 'good.yaml: llama-2-70b does not fit on a100-80gb-sxm*GiB x 0.9*128.48 weights' \
    "$inflight" run good.yaml $fits --set model=llama-2-70b
# shellcheck disable=SC2086
refuses 'good.yaml: parallel.tensor is 3, expected a number that shares the 32 query heads' \
    "$inflight" run good.yaml $fits --set parallel.tensor=3

# the command line
refuses 'inflight run: unknown option --sett, did you mean --set[?]' \
    "$inflight" run good.yaml --sett a=b
refuses 'inflight run: unknown option --frobnicate, expected one of --set,' \
    "$inflight" run good.yaml --frobnicate
refuses 'inflight run: --set expects a value' "$inflight" run good.yaml --set
refuses 'inflight run: unknown option --sett, did you mean --set[?]' "$inflight" run good.yaml --sett=a=b
refuses 'inflight run: --quiet takes no value' "$inflight" run good.yaml --quiet=yes
refuses 'inflight run: --jobs two: expected a whole number' "$inflight" run good.yaml --jobs=two
refuses 'inflight run: -j 0: expected a whole number from 1 on' "$inflight" run good.yaml -j 0
refuses 'inflight run: -j two: expected a whole number' "$inflight" run good.yaml -j two
refuses 'usage: inflight run CONFIG.yaml' "$inflight" run
refuses 'usage: inflight run CONFIG.yaml' "$inflight" run good.yaml good.yaml
refuses 'inflight list: unknown topic colours, expected one of policies, presets, ' "$inflight" list colours
refuses 'inflight list: unknown topic keyz, did you mean keys[?]' "$inflight" list keyz
refuses 'inflight: unknown command trace stat, did you mean trace stats[?]' "$inflight" trace stat
refuses 'inflight: unknown command trace stat, did you mean trace stats[?]' "$inflight" help trace stat
refuses 'unknown key traces' "$inflight" list keys traces
refuses 'three.csv: not a plug-in' "$inflight" list keys --plugin three.csv
refuses 'there is no reports/plot here and none in /nowhere; INFLIGHT_DATA may name a folder that has it, such as the source tree' \
    env INFLIGHT_DATA=/nowhere "$inflight" plot out
refuses 'usage: inflight trace stats FILE' "$inflight" trace stats
refuses 'none.so: there is no such file' "$inflight" run good.yaml --plugin none.so
refuses 'three.csv: not a plug-in' "$inflight" run good.yaml --plugin three.csv
refuses 'inflight: unknown command fly, expected one of' "$inflight" fly
refuses 'inflight: unknown command comparee, did you mean compare[?]' "$inflight" comparee
refuses 'usage: inflight run CONFIG.yaml' "$inflight" run ''

# help is no error
for command in run capacity 'trace stats' 'trace convert' 'trace generate' 'trace tokens' model calibrate fit validate \
    import export compare plot list; do
    # shellcheck disable=SC2086 # two words
    succeeds "$inflight" $command --help
    printed "usage: inflight $command "
    succeeds "$inflight" --help
    printed "    $command "
done
succeeds "$inflight" trace -h
printed '       inflight trace convert FILE'
succeeds "$inflight" run good.yaml --set slo.ttft_s=1 --help
printed 'usage: inflight run CONFIG.yaml'

# the output
refuses 'three.csv/out: cannot make the output directory: Not a directory' \
    "$inflight" run good.yaml --quiet -o three.csv/out
refuses 'the output directory has an empty name' "$inflight" run good.yaml --quiet -o ''
refuses 'three.csv: is a file, expected an output directory' \
    "$inflight" run good.yaml --quiet -o three.csv
refuses 'the output directory has a name of 600 bytes, expected at most 511' \
    "$inflight" run good.yaml --quiet -o "$(printf '%0600d' 0)"
mkdir sealed
chmod 555 sealed
if ! [ -w sealed ]; then # root may write everywhere
    refuses 'sealed: cannot write to the output directory: Permission denied' \
        "$inflight" run good.yaml --quiet -o sealed
    refuses 'sealed/out: cannot make the output directory: Permission denied' \
        "$inflight" run good.yaml --quiet -o sealed/out
fi

# words of vLLM's
refuses "unknown option --max-num-seqs, vLLM's --max-num-seqs is serving.batching.max_seqs here, a key" \
    "$inflight" run good.yaml --max-num-seqs 8
refuses "unknown key max_num_seqs, vLLM's --max-num-seqs is serving.batching.max_seqs here" \
    "$inflight" run good.yaml --set max_num_seqs=8
refuses 'sweep is swept, expected keys of a point' "$inflight" run good.yaml --set 'sweep.sweep=[1, 2]'
finish
