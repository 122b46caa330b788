#!/bin/sh
# The load client against the live server of the same program: a configuration is replayed, served, recorded and
# simulated, and the folders agree. Machines are shared: times are bounded loosely, everything else exactly.
. "$(dirname "$0")/../cli/expect.sh"

cat >mine.yaml <<'END'
model: opt-13b
hardware: a100-40gb-sxm
workload: {trace: t.csv, arrivals: {process: poisson, rate_rps: 40, seed: 2}}
serving: {preset: vllm-v1-sync, max_model_len: 2048, kv: {num_blocks: 4000}}
cost: {model: linear, step_s: 0.010, prefill_token_s: 0.00001}
END
{
    echo 'arrival_s,prompt_tokens,output_tokens,session,think_s,prefix_group,prefix_tokens'
    i=0
    while [ $i -lt 60 ]; do
        echo "0,$((10 + i * 7 % 200)),$((5 + i % 20)),,,,"
        i=$((i + 1))
    done
} >t.csv

server=
stop_server() {
    [ -z "$server" ] || kill -TERM "$server" 2>/dev/null
    [ -z "$server" ] || wait "$server" 2>/dev/null || true
    server=
}
trap 'stop_server; rm -rf "$work"' EXIT
: >log
"$inflight" serve mine.yaml --port 0 -o served >>log 2>&1 &
server=$!
waited=0
while ! grep -q 'serving at' log && [ $waited -lt 100 ]; do
    sleep 0.1
    waited=$((waited + 1))
done
url=$(sed -n 's|.*serving at \(http://[^/]*\)/.*|\1|p' log)
[ -n "$url" ] || { complain "the server did not start" "$(cat log)"; finish; }

try "$inflight" validate --live "$url" mine.yaml -o out --no-plots --wait 30
[ "$code" -eq 0 ] || complain "$ran" "$(cat logs/err)"
printed '60 requests: 60 finished'
printed 'paired     60 by request_id'
columns=request_id,status,arrival_s,prompt_tokens,output_tokens
same "$(columns out/live/requests.csv $columns)" "$(columns out/simulated/requests.csv $columns)" 'the same requests'
same "$(columns out/live/requests.csv prompt_tokens_server,tokens_counted | sort -u | wc -l)" \
    "$(columns out/live/requests.csv prompt_tokens | sort -u | wc -l)" 'the server counts the prompts that were sent'
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
    NR > 1 && ($at["prompt_tokens"] != $at["prompt_tokens_server"] || $at["tokens_counted"] != 1) { exit 1 }' \
    out/live/requests.csv || complain 'counts of the server'
# A step takes 10 ms and its prompts 10 us a token, so a token takes 10 ms or a little more in both runs.
awk -F, '$1 == "tpot_s" && $2 == "p50" { found = 1; if ($4 < 0.0099 || $4 > 0.013 || $5 < $4 * 0.8 || $5 > $4 * 1.5) exit 1 }
    END { exit !found }' out/simulated/validation.csv || complain 'TPOT' "$(grep tpot_s out/simulated/validation.csv)"

# What the server recorded flies again: its requests are those that were sent.
stop_server
[ -f served/requests.csv ] || complain 'the server recorded nothing' "$(ls served)"
lengths() { columns "$1" prompt_tokens,output_tokens | sort; }
same "$(lengths served/requests.csv)" "$(lengths out/live/requests.csv)" 'the server recorded what was sent'
finish
