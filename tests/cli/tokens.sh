#!/bin/sh
# Exact counts of tokens: ids as the Python packages gave them, runs that count texts, counts that are kept, refusals.
. "$(dirname "$0")/expect.sh"
fixtures=$INFLIGHT_DATA/tests/tokenizers/fixtures
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME

# ---- ids ----

as_recorded() { # TOKENIZER NAME
    gzip -dc "$fixtures/$2.csv.gz" >wanted.csv
    succeeds "$inflight" trace tokens "$fixtures/texts.json" --tokenizer "$1" --ids -o found.csv
    cmp wanted.csv found.csv || complain "ids of $2 differ from those of its own package"
}
for name in gpt2 llama3 qwen deepseek starcoder prefix tekken; do
    as_recorded "$fixtures/$name.json.gz" $name
done
as_recorded "$fixtures/spm-bpe.model.gz" spm-bpe
as_recorded "$fixtures/spm-unigram.model.gz" spm-unigram
for name in r50k_base cl100k_base o200k_base; do
    cp "$fixtures/ranks.gz" $name.tiktoken
    as_recorded $name.tiktoken $name
done

succeeds "$inflight" trace tokens "$fixtures/texts.json" -t "$fixtures/llama3.json.gz"
gzip -dc "$fixtures/llama3.csv.gz" | cut -d, -f1-3 | cmp - logs/out || complain 'counts without ids differ'

# ---- runs ----

cat >texts.json <<'END'
[{"conversations": [{"value": "one two three"}, {"value": "four"}]},
 {"conversations": [{"value": "only one turn"}]},
 {"conversations": [{"value": ""}, {"value": "an empty prompt"}]},
 {"conversations": [{"value": "The request waits for a block.\n\nThe block does not."}, {"value": "Yes, and then?"}]}]
END
mkdir model
cp "$fixtures/llama3.json.gz" model/tokenizer.json
cat >config.yaml <<'END'
workload: {trace: texts.json, tokenizer: model, arrivals: {process: burst}}
serving: {preset: vllm-v0, max_model_len: 512, kv: {num_blocks: 64}}
cost: {model: linear, step_s: 0.01}
output: {dir: out}
END
lengths() { columns out/requests.csv request_id,prompt_tokens,output_tokens; }
counted() { # WHAT [EDIT...]
    what=$1
    shift
    succeeds "$inflight" run config.yaml --quiet "$@"
    same "$(lengths)" "$lengths" "$what"
}
"$inflight" trace tokens texts.json --tokenizer model -o tokens.csv
lengths=$(awk -F, '{ n[$1, $2] = $3 } END { print "0," n[1, 0] "," n[1, 1]; print "3," n[4, 0] "," n[4, 1] }' tokens.csv)
counted 'lengths of a run are not those of trace tokens'
kept=$(echo cache/inflight/tokens/*)
[ -f "$kept" ] || complain 'no counts were kept'
counted 'lengths by kept counts differ'
printf '\377' | dd of="$kept" bs=1 seek=524 conv=notrunc 2>/dev/null
counted 'damaged counts were taken'
: >"$kept"
counted 'empty counts were taken'
XDG_CACHE_HOME=/dev/null counted 'lengths without a place for counts differ'
[ "$(echo cache/inflight/tokens/*)" = "$kept" ] || complain 'something is left beside the counts'

# A template of five tokens around the same prompts, of which none is empty then: added tokens end words.
template='<|begin_of_text|><|eot_id|>{}<|eot_id|><|begin_of_text|><|eot_id|>'
lengths=$(printf '%s\n' "$lengths" | awk -F, '{ print $1 "," $2 + 5 "," $3 }')
lengths="${lengths%%3,*}2,5,$(awk -F, '$1 == 3 && $2 == 1 { print $3 }' tokens.csv)
3,${lengths#*3,}"
counted 'a template of five tokens' --set "workload.prompt_template=$template"
sed '$d' texts.json >changed.json
printf '%s\n' ' {"conversations": [{"value": "another"}, {"value": "text"}]}]' >>changed.json
mv changed.json texts.json
succeeds "$inflight" run config.yaml --quiet -o again
same "$(columns again/requests.csv request_id | tr '\n' ' ')" '0 3 ' 'a trace that was changed'

# ---- refusals ----

refuses 'workload.tokenizer*there is no file none.json, expected a tokenizer' \
    "$inflight" run config.yaml --set workload.tokenizer=none.json
refuses 'the prompt template has no {}, expected one, where the prompt stands' \
    "$inflight" run config.yaml --set workload.prompt_template=x
refuses 'workload.prompt_template is set without a workload.tokenizer' \
    "$inflight" run config.yaml --set workload.prompt_template=x --set workload.tokenizer=null
refuses 'every-column.csv: a tokenizer is given, and a trace of the format inflight has no texts, expected sharegpt' \
    "$inflight" run config.yaml --set "workload.trace=$INFLIGHT_DATA/tests/fuzz/corpus/inflight/every-column.csv"
echo '{"model": {"type": "WordPiece"}}' >wordpiece.json
refuses 'wordpiece.json: model is WordPiece, expected BPE' \
    "$inflight" run config.yaml --set workload.tokenizer=wordpiece.json
refuses 'usage: inflight trace tokens' "$inflight" trace tokens texts.json
refuses 'nowhere.json: cannot open' "$inflight" trace tokens texts.json -t nowhere.json -o table.csv
printf 'oh' >texts
refuses "texts:1:1: not JSON: 'o', expected" "$inflight" trace tokens texts -t model -o table.csv
[ ! -e table.csv ] || complain 'half a table was left'
finish
