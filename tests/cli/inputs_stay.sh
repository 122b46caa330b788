#!/bin/sh
# No command overwrites what it reads: it says so in one line, ends with 2, and has written nothing.
. "$(dirname "$0")/expect.sh"

cat >config.yaml <<'E1'
model: llama-2-7b
hardware: a100-80gb-sxm
workload: {trace: trace.csv}
serving: {preset: vllm-v0, max_model_len: 2048, kv: {num_blocks: 512}}
output: {dir: out, steps: true, work: true, plots: false}
E1
printf 'arrival_s,prompt_tokens,output_tokens\n0,10,5\n1,20,3\n1,30,4\n' >trace.csv

# The files of a folder, with their contents.
state() {
    find "$1" -name logs -prune -o -type f -print | sort | xargs cksum
}

# FOLDER INPUT COMMAND...: the command is refused for the sake of the input, and the folder stays as it was.
spares() {
    folder=$1
    input=$2
    shift 2
    state "$folder" >logs/before
    refuses "the output would overwrite the input $input, expected another place for it" "$@"
    state "$folder" >logs/after
    cmp -s logs/before logs/after || complain "$*" "    changed files: $(diff logs/before logs/after)"
}

# ---- run: the trace, a recording, tables, the configuration ----
mkdir t
for name in requests steps summary replications timeline; do # written, removed as unwanted, or neither
    cp trace.csv "t/$name.csv"
    [ "$name" = timeline ] && break
    spares t "t/$name.csv" "$inflight" run config.yaml -q --set "workload.trace=t/$name.csv" --set output.steps=false -o t
    spares t "t/$name.csv" "$inflight" run config.yaml -q -j 2 --set "workload.trace=t/$name.csv" \
        --set sweep.serving.preset='[vllm-v0, vllm-v1]' -o t
    rm "t/$name.csv"
done
succeeds "$inflight" run config.yaml -q --set workload.trace=t/timeline.csv -o t # no report has this name
mkdir u
cp trace.csv u/requests.csv.tmp # under which the report is written
spares u u/requests.csv.tmp "$inflight" run config.yaml -q --set workload.trace=u/requests.csv.tmp -o u
mkdir b
echo 'base: vllm' >b/config.yaml # the base of a deployment that the configuration names
echo 'base: b/config.yaml' >over.yaml
spares b ./b/config.yaml "$inflight" run config.yaml -q --set deployment=./over.yaml -o b

succeeds "$inflight" run config.yaml -q -o rec
spares rec rec/steps.csv "$inflight" run config.yaml -q --set cost.model=recorded --set cost.dir=rec -o rec
spares rec rec/steps.csv "$inflight" run config.yaml -q --set cost.model=recorded --set cost.dir=rec -o ./rec/../rec/
spares rec rec/steps.csv "$inflight" run config.yaml -q --set cost.model=recorded --set cost.dir=rec --set output.steps=false \
    --set output.work=false -o rec
ln -s rec alias
spares rec rec/steps.csv "$inflight" run config.yaml -q --set cost.model=recorded --set cost.dir=rec -o alias
mkdir linked
ln rec/steps.csv linked/steps.csv
mkdir only_work
cp rec/steps.csv only_work/steps.csv
ln rec/work.csv only_work/work.csv
mkdir into
ln rec/work.csv into/work.csv
spares linked rec/steps.csv "$inflight" run config.yaml -q --set cost.model=recorded --set cost.dir=rec -o linked
spares into only_work/work.csv "$inflight" run config.yaml -q --set cost.model=recorded --set cost.dir=only_work -o into
mkdir points
mkdir points/.parts
cp trace.csv points/.parts/mine.csv # the folder is emptied before a run
spares points points/.parts/mine.csv "$inflight" run config.yaml -q --set workload.trace=points/.parts/mine.csv -o points

# What a run has written is flown again in its place; changed, or with another setting, it would be lost.
succeeds "$inflight" run rec/config.yaml -q -o rec
spares rec rec/config.yaml "$inflight" run rec/config.yaml -q --set output.timeline=true -o rec
cp -r rec edited
echo '# mine' >>edited/config.yaml
spares edited edited/config.yaml "$inflight" run edited/config.yaml -q -o edited

# A model and a profile of the user's own.
mkdir own
cp "$INFLIGHT_DATA/configs/models/llama-2-7b.yaml" own/summary.csv
spares own ./own/summary.csv "$inflight" run config.yaml -q --set model=./own/summary.csv -o own

# ---- capacity ----
for name in capacity plan candidates placements trials members; do
    mkdir "c-$name"
    cp trace.csv "c-$name/$name.csv"
    spares "c-$name" "c-$name/$name.csv" "$inflight" capacity config.yaml -q --set "workload.trace=c-$name/$name.csv" \
        --set 'workload.arrivals={process: poisson, rate_rps: 1}' --set capacity.p99_tbt_s=1 -o "c-$name"
done

# ---- validate, compare, plot, table, report, export ----
cp rec/requests.csv rec/validation.csv
spares rec rec/validation.csv "$inflight" validate rec rec/validation.csv --no-plots
mkdir v
cp rec/requests.csv v/validation_cdf.csv
spares v v/validation_cdf.csv "$inflight" validate rec v/validation_cdf.csv --no-plots -o v
cp -r rec twin
mkdir cmp
ln rec/summary.csv cmp/compare.csv
spares cmp rec/summary.csv "$inflight" compare rec twin -o cmp
for name in summary requests; do
    case $name in
    summary) command=table ;;
    requests) command=export ;;
    esac
    spares rec "rec/$name.csv" "$inflight" "$command" rec -o "rec/$name.csv"
done
spares rec rec/summary.csv "$inflight" report rec -o rec/summary.csv
spares rec rec/config.yaml "$inflight" report rec -o rec/config.yaml
spares . config.yaml "$inflight" export --server vllm config.yaml -o config.yaml
mkdir drawn
ln rec/work.csv drawn/slot_grid.csv
expect 2 'the output would overwrite the input rec/*, expected another place for it' \
    "$inflight" plot rec --figure slot_grid -o drawn

# ---- traces ----
spares . trace.csv "$inflight" trace convert trace.csv -o trace.csv
printf '[{"conversations": [{"from": "human", "value": "a b"}, {"from": "gpt", "value": "c"}]}]\n' >texts.json
cp trace.csv tokenizer.json # read no further than this
spares . texts.json "$inflight" trace tokens texts.json --tokenizer tokenizer.json -o texts.json
spares . tokenizer.json "$inflight" trace tokens texts.json --tokenizer tokenizer.json -o tokenizer.json

# ---- import, identify, fit, calibrate, model ----
cp "$scripts/import/vllm-0.6.4.log" server.log
spares . server.log "$inflight" import server.log -o server.log
printf '{"version": "0.6.4.post1"}' >answer.json
spares . answer.json "$inflight" import server.log --answer answer.json -o answer.json
succeeds "$inflight" trace generate -n 80 --seed 3 --process poisson --rate 4 -o trace.csv
succeeds "$inflight" run config.yaml -q -o truth
cp truth/requests.csv run.csv
cp "$INFLIGHT_DATA/configs/hardware/a100-80gb-sxm.yaml" profile.yaml
spares . config.yaml "$inflight" identify config.yaml run.csv -o config.yaml
spares . run.csv "$inflight" identify config.yaml run.csv -o run.csv
spares . ./profile.yaml "$inflight" identify config.yaml run.csv --set hardware=./profile.yaml -o profile.yaml
reduce=aic_h100_vllm0.24.0_custom_allreduce.csv.gz
mkdir fits
cp "$INFLIGHT_DATA/configs/hardware/data/$reduce" fits/measured_vs_fitted.csv
cp profile.yaml fits/like.yaml
for option in '-o fits/like.yaml' '--corrections fits/like.yaml -o new.yaml'; do
    # shellcheck disable=SC2086 # two or four words
    spares fits ./fits/like.yaml "$inflight" fit fits/measured_vs_fitted.csv --like ./fits/like.yaml $option
done
spares fits fits/measured_vs_fitted.csv "$inflight" fit fits/measured_vs_fitted.csv --like ./fits/like.yaml \
    -o fits/new.yaml --plots fits
mv fits/measured_vs_fitted.csv evaluation.csv
spares . evaluation.csv "$inflight" fit --evaluate ./profile.yaml evaluation.csv
mkdir sizes
cp "$INFLIGHT_DATA/configs/models/llama-2-7b.yaml" sizes/batches.csv
spares sizes ./sizes/batches.csv "$inflight" model ./sizes/batches.csv -o sizes
mkdir shapes
cp "$INFLIGHT_DATA/configs/models/llama-160m.yaml" shapes/own.yaml
spares shapes ./shapes/own.yaml "$inflight" calibrate --engine cpu --model ./shapes/own.yaml -o shapes/own.yaml

# ---- serve: the folder has no recording, and still has none ----
cp config.yaml t/config.yaml
rm -f t/trace.csv
case $("$inflight" serve missing.yaml 2>&1) in
    *'has no server'*) ;; # built without libevent
    *) spares t t/config.yaml "$inflight" serve t/config.yaml -q --port 0 -o t ;;
esac

# A name that is free is taken, and another file there is replaced as ever.
succeeds "$inflight" run config.yaml -q -o rec
succeeds "$inflight" trace convert trace.csv -o copy.csv
succeeds "$inflight" trace convert trace.csv -o copy.csv
finish
