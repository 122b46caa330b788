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
trap 'stop_server; leave' EXIT
start_server() { # FOLDER
    : >log
    "$inflight" serve mine.yaml --port 0 -o "$1" --set live.limits.recorded=100000 >>log 2>&1 &
    server=$!
    within_a_minute grep -q 'serving at' log || true
    url=$(sed -n 's|.*serving at \(http://[^/]*\)/.*|\1|p' log)
    [ -n "$url" ] || { complain "the server did not start" "$(cat log)"; finish; }
}
start_server served

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
# The client sends before the server stamps, and the server tells no step before its end: what the client measured is
# never shorter, and longer by no more than both were late. Each request has a prompt of another length.
latencies() { columns "$1" prompt_tokens,ttft_s,e2e_s | sort -t, -k1,1; }
latencies served/requests.csv >by_server
latencies out/live/requests.csv | join -t, by_server - >both
awk -F, '{ more = $4 - $2; if (more < -1e-6 || $5 - $3 < -1e-6) exit 1; sum += more }
    END { exit !(NR == 60 && sum / NR < 0.1) }' both || complain 'latencies of client and server' "$(cat both)"

# A server that is killed in the middle: rows are whole, what came before is there, the rest says why.
start_server killed
{
    echo 'arrival_s,prompt_tokens,output_tokens'
    i=0
    while [ $i -lt 20 ]; do
        echo "$((i < 10 ? 0 : 1)),10,$((i < 10 ? 3 : 1800))"
        i=$((i + 1))
    done
} >cut.csv
"$inflight" replay cut.csv -s "$url" -o cut -q 2>err &
client=$!
has_chunks() { [ -f cut/chunks.csv.part ] && [ "$(grep -c '' cut/chunks.csv.part)" -ge 200 ]; }
within_a_minute has_chunks || complain 'no chunks within a minute'
kill -9 "$server"
server=
wait "$client"
same $? 0 'the code of a run with a server that was killed'
same "$(columns cut/requests.csv status | sort | uniq -c | tr -s ' ')" " 10 failed
 10 finished" 'a server that was killed'
awk -F, 'FNR == 1 { n = NF } NF != n { exit 1 }' cut/requests.csv cut/chunks.csv || complain 'rows of a run that was cut'
same "$("$inflight" run killed/config.yaml -q -o again >/dev/null 2>err; echo $?)" 0 'the recording of a server that was killed'
finish
