#!/bin/sh
# A broken trace: exit code 2 and one line with file, line and column; nothing is written.
. "$(dirname "$0")/expect.sh"

cat >config.yaml <<'END'
workload: {trace: trace, format: auto}
serving: {preset: vllm-v0, max_model_len: 256, kv: {num_blocks: 64}}
cost: {model: linear, step_s: 0.01}
output: {dir: out}
END

# broken FORMAT TEXT PATTERN [EDIT]: the text with its \n is refused by a run, and without an edit
# by the other commands that read a trace.
broken() {
    printf "$2" >trace
    refuses "trace:$3" "$inflight" run config.yaml --quiet --set "workload.format=$1" \
        --set "${4:-workload.limit=0}"
    [ $# -gt 3 ] && return
    refuses "trace:$3" "$inflight" trace stats trace --format "$1"
    refuses "trace:$3" "$inflight" trace convert trace --format "$1" -o converted.csv
}

# inflight's own CSV
head='arrival_s,prompt_tokens,output_tokens\n0,10,5\n'
broken auto "${head}1,20,abc\n" '3:6: output_tokens is "abc", expected a whole number from 1'
broken auto "${head}1,20,\n" '3:6: output_tokens is "", expected a whole number'
broken auto "${head}1,20\n" '3: 2 cells, expected 3 as in the header'
broken auto "${head}1,20,3,4\n" '3: 4 cells, expected 3 as in the header'
broken auto "${head}1,-20,3\n" '3:3: prompt_tokens is "-20", expected a whole number from 1'
broken auto "${head}1,0,3\n" '3:3: prompt_tokens is "0", expected a whole number from 1'
broken auto "${head}1,2.5,3\n" '3:3: prompt_tokens is "2.5", expected a whole number'
broken auto "${head}1,2147483648,3\n" '3:3: prompt_tokens is "2147483648", expected *2147483647'
broken auto "${head}1,99999999999999999999,3\n" '3:3: prompt_tokens is "99999999999999999999",'
broken auto "${head}-1,20,3\n" '3:1: arrival_s is "-1", expected seconds from 0'
broken auto "${head}nan,20,3\n" '3:1: arrival_s is "nan", expected seconds'
broken auto "${head}inf,20,3\n" '3:1: arrival_s is "inf", expected seconds'
broken auto "${head}1e300,20,3\n" '3:1: arrival_s is "1e300", expected seconds'
broken auto "${head}1,\"20,3\n" '3: a quote is not closed'
broken auto "${head}1,2\"0,3\n" '3:4: a stray quote'
broken auto "${head}1,2\0000,3\n" '3:3: prompt_tokens is "2'
turns='arrival_s,prompt_tokens,output_tokens,session,think_s\n'
broken auto "${turns}0,10,5,a,\n,20,5,a,\n" '3:1: arrival_s is "", expected seconds'
broken auto "${turns},10,5,a,1\n" '2:1: arrival_s is "", expected seconds'
broken inflight 'arrival_s,promt_tokens,output_tokens\n' '1:11: column "promt_tokens" is unknown*pr'
broken inflight 'arrival_s,prompt_tokens\n1,2\n' '1: column output_tokens is missing'
broken inflight 'prompt_tokens,prompt_tokens,output_tokens\n' '1:15: column "prompt_tokens" is there tw'

limits='arrival_s,prompt_tokens,output_tokens,max_tokens\n0,10,5,5\n0,10,5,\n'
broken auto "${limits}1,10,90,2\n" '4:9: max_tokens is "2", expected at least the tokens of the answer, 90'

named='arrival_s,prompt_tokens,output_tokens,request_id,client\n0,10,5,7,a\n'
broken auto "${named}1,10,5,7,b\n" '3: request_id is 7 as on line 2, expected each id once'
refuses 'trace:3: request_id is 7 as on line 2' "$inflight" validate trace trace -o validation
broken auto "${named}1,10,5,8,a\\000b\n" '3:10: client is "a?b", expected a text without NUL'

# others
broken azure 'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-13-16 18:17:03.9,374,44\n' \
    '2:1: TIMESTAMP is "2023-13-16 18:17:03.9", expected YYYY-MM-DD'
broken azure "$head" '1: column TIMESTAMP is missing'
broken vidur 'num_prefill_tokens,num_decode_tokens\n3,4\n5,x\n' '3:3: num_decode_tokens is "x"'
good='{"timestamp": 0, "input_length": 5, "output_length": 3, "hash_ids": [1]}\n'
broken mooncake "$good"'{"timestamp": 0, "input_length": 5,\n' '2:*not a JSON object'
broken mooncake '{"timestamp": 0, "input_length": 5, "output_length": 3, "hash_ids": [1], "max_tokens": 2}\n' \
    '1: max_tokens is 2, expected at least the tokens of the answer, 3'
broken mooncake "$good"'[1, 2]\n' '2:*is no object, expected {'
broken mooncake "$good"'{"timestamp": 0, "input_length": -5, "output_length": 3}\n' \
    '2: input_length is -5, expected a whole number from 0'
broken mooncake "$good"'{"timestamp": 0, "input_length": NaN, "output_length": 3}\n' \
    "2:36: not a JSON object: *'NaN'"
broken mooncake "$good"'{"timestamp": 0, "input_length": 5e9, "output_length": 3}\n' \
    '2: input_length is 5000000000.0, expected a whole number'
broken mooncake "$good"'{"timestamp": 0, "output_length": 3}\n' '2: input_length is missing'
broken sharegpt '[{"conversations": []},\n{"id": ]' '2:8: not a JSON'
broken sharegpt '{"id": 3}' '1:1: not JSON:'
broken llmservingsim '{"input_toks": 5, "output_toks": "3", "arrival_time_ns": 0}\n' \
    '1: output_toks is "3", expected a whole number'

broken llmservingsim '{"input_toks": 5, "output_toks": 3, "arrival_time_ns": 0, "sub_requests": []}\n' \
    '1: an agentic session with sub_requests, expected one request a line'
broken azure "$(printf 'c%.0s,' $(seq 300))c\n" '1: the header has 301 columns, expected at most 256'
bench() { # INPUT_LEN TTFT ITLS PATTERN
    broken bench "{\"input_lens\": [$1], \"output_lens\": [2], \"ttfts\": [$2], \"itls\": [$3]}\n" "1: $4"
}
bench '"x"' 0.1 '[0.1]' 'input_lens[[]0] is "x", expected a number of tokens'
bench 5 -1 '[0.1]' 'ttfts[[]0] is -1, expected seconds from 0 to 9.2e9'
bench 5 0.1 3 'itls[[]0] is 3, expected a list of seconds'
bench 5 0.1 '[null]' 'itls[[]0] is null, expected seconds from 0 to 9.2e9'

# no request, or none that fits
broken auto '' ' the file is empty, expected a trace'
broken auto '\n\n' ' the file is empty, expected a trace'
broken auto 'arrival_s,prompt_tokens,output_tokens\n' ' no request, expected at least one'
broken auto 'colour,taste\nred,sweet\n' '1: the columns are those of no trace format, expected one of'
broken auto 'prompt_tokens,output_tokens\n1,2\n' ' the trace has no stamps * expected a process' \
    workload.arrivals.process=trace
broken auto "$head" ' no request is left, the limits on lengths' workload.filter.min_prompt=11
broken auto "$head" ' no request is left, skip' workload.skip=1
broken auto "$head" ' no request is left, the window of stamps' workload.from_s=1
broken auto 'arrival_s,prompt_tokens,output_tokens,samples\n0,10,5,2000\n' '*2000 samples, expected at most 1024*' \
    workload.limit=1

# files
gzip -c "$INFLIGHT_DATA/configs/quickstart.yaml" | head -c 200 >trace
refuses 'trace: the gzip stream is cut short' "$inflight" trace stats trace --format azure
refuses 'trace: the gzip stream is cut short' "$inflight" run config.yaml
printf "$head" | gzip -c >trace
printf '5,10,5\n' >>trace
refuses 'trace: the gzip stream ends at byte * and what follows is none, expected' "$inflight" trace stats trace
refuses 'trace: the gzip stream ends at byte *' "$inflight" run config.yaml
printf '\037\213\010\000garbage, no deflate stream' >trace
refuses 'trace: cannot decompress' "$inflight" trace stats trace
refuses 'none.csv: cannot open: No such file' "$inflight" trace stats none.csv
refuses 'there is no file none.csv' "$inflight" run config.yaml --set workload.trace=none.csv
refuses 'logs: cannot read: Is a directory' "$inflight" trace stats logs
# a line or an object that would fill the memory; and a full memory, reported with the trace that filled it
{ printf "$head"; head -c 1100000 /dev/zero | tr '\0' 7; } >trace
refuses 'trace:3: a line or JSON object of more than 1 MiB, expected it within workload.max_record_mib' \
    "$inflight" run config.yaml --set workload.max_record_mib=1
for command in 'trace stats' 'trace convert' 'validate trace'; do
    # shellcheck disable=SC2086 # words on purpose
    refuses 'trace:3: a line or JSON object of more than 1 MiB' "$inflight" $command trace --max-record 1
    refuses '--max-record is 0, expected MiB from 1' "$inflight" $command trace --max-record 0
done
little='ulimit -v 60000; exec "$@"' # KiB; skipped if the program itself needs more
if sh -c "$little" - "$inflight" --version >logs/out 2>logs/err; then
    { printf "$head"; yes 1,10,5 | head -n 4000000; } >trace
    expect 1 'trace: out of memory' sh -c "$little" - "$inflight" trace stats trace
    expect 1 'trace: out of memory' sh -c "$little" - "$inflight" run config.yaml --quiet
fi
printf "$head" >trace
refuses 'unknown trace format "azur", expected auto, azure' "$inflight" trace stats trace -f azur
refuses 'usage: inflight trace convert' "$inflight" trace convert trace trace
refuses 'none/a.csv: cannot write: No such file' "$inflight" trace convert trace -o none/a.csv
generates="$inflight trace generate -n 5"
for law in fixed: fixed:0 uniform:5,4 lognormal:9 lognormal:0.5,1 lognormal:5,-1 lognormal:9,1,5,4 lognormal:nan,1 zipf:1 normal:3,4; do
    refuses "inflight trace generate: --prompt $law: expected fixed:TOKENS, " $generates --prompt $law
    refuses "inflight trace generate: --output-tokens $law: " $generates --output-tokens $law
done
refuses 'the mean is 9e+09 tokens, expected a number from 1 to 2147483647' $generates --prompt lognormal:9e9,1
refuses 'zipf has 90000000 lengths from 1 to 90000000 tokens, expected at most 16777216' \
    $generates --prompt zipf:1,1,90000000
refuses 'the exponent of zipf is 21, expected a number from 0 to 20' $generates --output-tokens zipf:21,1,5
refuses '2000000 adapters, expected 1 to 1048576' $generates --adapters 2000000
refuses "the adapters' alpha is 0, expected a number above 0, at most 1000" $generates --adapters 2 --adapter-alpha 0
refuses 'cv is 100, expected a number from 0.01 to 50' $generates --process gamma --rate 1 --cv 100
refuses 'rate_rps is -1, expected a number above 0' $generates --process gamma --rate -1
refuses '--process poison: expected poisson, gamma, constant or burst' \
    $generates --process poison --rate 1
refuses '--rate without --process, expected one of poisson, gamma and constant' $generates --rate 1
same "$(ls)" "$(printf 'config.yaml\nlogs\ntrace')" 'what lies around'
finish
