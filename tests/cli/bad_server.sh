#!/bin/sh
# Options of replay, validate --live, import and serve that cannot be: exit code 2 and one line before a server is asked
# for anything; without a server 1. No reports and no recording are left.
. "$(dirname "$0")/expect.sh"

printf 'arrival_s,prompt_tokens,output_tokens\n0,10,5\n1,20,3\n' >trace.csv
cat >config.yaml <<'END2'
workload: {trace: trace.csv}
cost: {model: linear, step_s: 0.01}
serving: {preset: vllm-v0, max_model_len: 512, kv: {num_blocks: 64}}
END2
nowhere=http://127.0.0.1:1

replay() { # CODE PATTERN OPTION...
    code_wanted=$1
    pattern=$2
    shift 2
    expect "$code_wanted" "$pattern" "$inflight" replay trace.csv --server $nowhere -q -o out "$@"
    [ ! -e out ] || complain "replay $*: left out with $(ls out)"
}

# what prompts are made of
replay 2 'inflight replay: --prompts ids: expected words, since --tokenizer is of texts' --prompts ids --tokenizer no.json
replay 2 'inflight replay: --prompts ids: expected words, since --endpoint is chat' --prompts ids --endpoint chat
replay 2 'inflight replay: --prompts text: expected ids or words' --prompts text
replay 2 'inflight replay: --endpoint chats: expected completions or chat' --endpoint chats
replay 2 'inflight replay: --vocab 0: expected a number from 1 to 1.07374e+09' --vocab 0

# what a request says
replay 2 '--body prompt=3: expected another key: this one is made for each request' --body prompt=3
replay 2 '--body stream=true: expected another key: this one is made for each request' --body stream=true
for body in =3 key; do
    replay 2 "--body $body: expected KEY=VALUE, the value in JSON or a word" --body $body
done
replay 2 '--header key: expected "Name: value"' --header key

# the server
expect 2 'inflight replay: --server URL: expected at most 1023 characters' \
    "$inflight" replay trace.csv --server "http://$(printf 'a%.0s' $(seq 1100))" -q -o out
unset NO_SUCH_KEY
replay 2 'inflight replay: --api-key-env NO_SUCH_KEY: expected an environment variable with a key in one line' \
    --api-key-env NO_SUCH_KEY
NO_SUCH_KEY="$(printf 'a\nb')"
export NO_SUCH_KEY
replay 2 'inflight replay: --api-key-env NO_SUCH_KEY: expected an environment variable with a key in one line' \
    --api-key-env NO_SUCH_KEY
replay 1 "$nowhere/v1/models: Failed to connect to 127.0.0.1 port 1"
expect 1 "$nowhere/metrics: Failed to connect to 127.0.0.1 port 1" "$inflight" import --server $nowhere
refuses 'an engine flies, expected executor: sim: the server is what is measured' \
    "$inflight" validate --live $nowhere config.yaml -q -o out --set executor=cpu --set model=llama-2-7b
expect 1 "$nowhere/v1/models: Failed to connect to 127.0.0.1 port 1" \
    "$inflight" validate --live $nowhere config.yaml -q -o out
[ ! -e out ] || complain "validate --live: left out with $(ls out)"
refuses "$PWD/run.csv is no folder, expected -o DIR to say where to write" \
    sh -c 'cp trace.csv run.csv; exec "$1" validate "$PWD/run.csv" run.csv --no-plots' sh "$inflight"

# the program alone, without what it loads
mkdir alone
cp "$inflight" alone/inflight
refuses 'there is no module inflight_http.so in * needs inflight built with libcurl' \
    alone/inflight replay trace.csv --server $nowhere -q -o out

# where a server listens: what was never served is not recorded, so that the folder can be used again
serve() { # CODE PATTERN OPTION...
    code_wanted=$1
    pattern=$2
    shift 2
    expect "$code_wanted" "$pattern" "$inflight" serve config.yaml -q -o served "$@"
    [ ! -e served ] || complain "serve $*: left served with $(ls served)"
}
for _ in first second; do
    serve 1 'cannot listen at 192.0.2.1:8000 (live.host, live.port): ' --host 192.0.2.1 --port 8000
    serve 2 'live.host is no.invalid, expected an address: ' --host no.invalid
done
serve 2 '--set live.port=70000: live.port is 70000, expected a whole number from 0 to 65535' --port 70000
mkdir -p served
cp trace.csv served/trace.csv
refuses 'served/trace.csv: is there already, expected a folder without a recording (-o DIR)' \
    "$inflight" serve config.yaml -q -o served
same "$(ls served)" trace.csv 'a recording that is there stays as it is'
finish
