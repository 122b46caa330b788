#!/bin/sh
# A trace sent to a server: when requests come, what they hold, what is written of them.
. "$(dirname "$0")/../cli/expect.sh"
. "$scripts/stub.sh"
# Machines are busy: what comes when is read from what the client writes, not from clocks of the server.
bare() { "$inflight" replay "$@" --server "$url" -q; }

# ---- open loop: stamps, lengths, files ----

cat >four.csv <<'END'
arrival_s,prompt_tokens,output_tokens
0,10,5
0.3,20,8
0.1,5,1
0.2,100,20
END
serve
succeeds bare four.csv -o open
same "$(columns open/requests.csv status,arrival_s,prompt_tokens,output_tokens,prompt_tokens_server,tokens_counted,http_status)" \
    "finished,0.000000000,10,5,10,1,200
finished,0.100000000,5,1,5,1,200
finished,0.200000000,100,20,100,1,200
finished,0.300000000,20,8,20,1,200" open/requests.csv
heard 'sorted(len(p) for p in prompts)' '[5, 10, 20, 100]'
heard 'sorted(r["body"]["max_tokens"] for r in requests)' '[1, 5, 8, 20]'
heard 'all(b["ignore_eos"] and b["min_tokens"] == b["max_tokens"] and b["stream_options"]["include_usage"] for b in (r["body"] for r in requests))' True
never_early() { columns "$1" late_s | awk '$1 < 0 { exit 1 }' || complain "$1: a request was sent before it was due"; }
never_early open/requests.csv
heard 'len({tuple(p) for p in prompts})' 4
same "$(grep -c '' open/chunks.csv)" 35 "chunks and the header"
same "$(cd open && ls)" "bench.json
chunks.csv
quantiles.csv
requests.csv
run.json
server_metrics.csv
summary.csv" "files of a run"
grep -q '"server_version": "0.32.0"' open/run.json || complain 'run.json has no version'
grep -q 'vllm:num_requests_running,"engine=""0"",model_name=""m""",' open/server_metrics.csv ||
    complain 'server_metrics.csv lacks the running requests'
! grep -qE '_bucket|_created|python_' open/server_metrics.csv || complain 'server_metrics.csv has buckets'

# What is written is read back as a recorded run, by both of its names.
succeeds "$inflight" validate open open/bench.json -o both --no-plots
printed 'measured   open/bench.json: 4 requests'
printed 'TTFT mean                s'
# The client's chunks are those of the server, which waits 10 ms before the first.
python3 - open/bench.json open/requests.csv <<'END' || complain 'bench.json'
import csv, json, sys
bench = json.load(open(sys.argv[1]))
rows = list(csv.DictReader(open(sys.argv[2])))
assert bench['completed'] == 4 and bench['backend'] == 'openai' and not bench['itls_are_means']
assert [len(gaps) for gaps in bench['itls']] == [4, 0, 19, 7]
for row, ttft, gaps in zip(rows, bench['ttfts'], bench['itls']):
    assert abs(float(row['ttft_s']) - ttft) < 1e-9 and ttft >= 0.0099
    assert abs(float(row['e2e_s']) - ttft - sum(gaps)) < 1e-6
    assert abs(float(row['first_token_s']) - float(row['sent_s']) - ttft) < 1e-9
    assert float(row['late_s']) == round(float(row['sent_s']) - float(row['due_s']), 9)
times = [float(row['time_s']) for row in csv.DictReader(open('open/chunks.csv')) if row['request_id'] == rows[2]['request_id']]
assert len(times) == 20 and abs(sum(bench['itls'][2]) - (times[-1] - times[0])) < 1e-6
END

# A client that is later than the bound says so, and is not a failure.
try "$inflight" replay four.csv -s "$url" -o late --late-bound 0
same "$code" 0 'the code of a client-bound run'
printed 'client-bound: p99 of lateness is'
grep -q '"verdict": "client-bound"' late/run.json || complain 'the verdict in run.json'
succeeds bare four.csv -o late --late-bound 10000
grep -q '"verdict": "in time"' late/run.json || complain 'the verdict in run.json'

# The same seed, the same prompts; another one, others.
serve
succeeds bare four.csv -o again
cp heard.jsonl first.jsonl
serve
succeeds bare four.csv -o again
heard '[l["body"]["prompt"] for l in map(json.loads, open("first.jsonl")) if "body" in l] == prompts' True
serve
succeeds bare four.csv -o other --seed 1 --vocab 50 --first-id 7
heard '[l["body"]["prompt"] for l in map(json.loads, open("first.jsonl")) if "body" in l] == prompts' False
heard 'min(min(p) for p in prompts) >= 7 and max(max(p) for p in prompts) < 57' True

# ---- arrivals ----

serve
succeeds bare four.csv -o fast --speed 3
same "$(columns fast/requests.csv arrival_s)" "0.000000000
0.033333333
0.066666667
0.100000000" 'stamps are divided'
never_early fast/requests.csv
# Poisson arrivals are those of a simulated run, to the nanosecond.
succeeds bare four.csv -o drawn --rate 20 --set workload.arrivals.seed=5
cat >drawn.yaml <<'END'
model: opt-13b
hardware: a100-40gb-sxm
workload: {trace: four.csv, arrivals: {process: poisson, rate_rps: 20, seed: 5}}
serving: {preset: vllm-v1}
END
succeeds "$inflight" run drawn.yaml -o simulated -q
same "$(columns drawn/requests.csv request_id,arrival_s)" "$(columns simulated/requests.csv request_id,arrival_s)" \
    'arrivals of a simulated run'
# In a closed loop a request comes as the one before it ends.
serve
succeeds bare four.csv -o closed --concurrency 1
heard '[r["number"] for r in requests] == sorted(e["number"] for e in ends)' True
heard 'all(e["ended"] <= r["time"] for e, r in zip(ends, requests[1:]))' True
# The load grows: of constant arrivals in the first 0.4 s half as many come.
printf 'arrival_s,prompt_tokens,output_tokens\n0,1,1\n0.1,1,1\n0.2,1,1\n0.4,1,1\n' >even.csv
succeeds bare even.csv -o ramp --ramp 0.4
same "$(columns ramp/requests.csv arrival_s)" "0.000000000
0.282842712
0.400000000
0.600000000" 't = sqrt(2 x 0.4 x a), then a + 0.2'
succeeds bare even.csv -o warm --warmup 3
heard 'len(requests)' 15
same "$(grep -c '' warm/requests.csv)" 5 'requests that warm up are in no report'

# ---- sessions ----

cat >turns.csv <<'END'
arrival_s,prompt_tokens,output_tokens,session,think_s,prefix_group,prefix_tokens
0,6,4,a,,a,6
0,14,3,a,0.1,a,14
0,5,2,b,,b,5
END
serve
succeeds bare turns.csv -o turns
heard 'sorted(len(p) for p in prompts[:2]), len(prompts[2])' '([5, 6], 14)'
# The second turn begins with the first one's prompt and with the ids that the server answered, 901 to 904.
heard 'prompts[2][:10] == [p for p in prompts if len(p) == 6][0] + [901, 902, 903, 904]' True
# It thinks for 0.1 s behind the end of the first, to the nanosecond.
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
    $at["prompt_tokens"] == 6 { end_s = $at["end_s"] }
    $at["prompt_tokens"] == 14 { late = $at["arrival_s"] - end_s - 0.1 }
    END { exit !(late < 2e-9 && late > -2e-9) }' turns/requests.csv || complain 'the think time' "$(cat turns/requests.csv)"
never_early turns/requests.csv

# ---- clients that leave, and try again ----

serve --itl 0.1
cat >leave.csv <<'END'
arrival_s,prompt_tokens,output_tokens,abort_s,abort_tokens,deadline_s
0,5,50,0.3,,
0,6,50,,3,
0,7,50,,,0.25
0,8,2,,,
END
succeeds bare leave.csv -o leave
same "$(columns leave/requests.csv status)" "aborted
aborted
timed_out
finished" leave/requests.csv
same "$(columns leave/requests.csv output_tokens | sed -n 2p)" 3 'abort_tokens'
within_a_minute hears 'len(gone), len(ends)' '(3, 1)' || complain 'streams that were left' "$(cat heard.jsonl)"
serve --shed 2
succeeds "$inflight" replay four.csv -s "$url" -o retry --set workload.retry.most=2 --set workload.retry.backoff_s=0.05 -q
same "$(columns retry/requests.csv status | sort | uniq -c | tr -s ' ')" " 4 finished
 2 shed" 'two were shed and sent again'
heard 'len(prompts), len({tuple(p) for p in prompts})' '(6, 4)'

# ---- other servers, other APIs ----

serve --style plain
succeeds bare four.csv -o plain
same "$(columns plain/requests.csv output_tokens,tokens_counted)" "5,1
1,1
20,1
8,1" 'a usage at the end counts'
serve --bos 1
expect 0 'note: the server counts another number of prompt tokens than was sent in 4 of 4' \
    "$inflight" replay --endpoint chat even.csv -s "$url/v1/" -o chat
serve
succeeds bare --endpoint chat four.csv -o chat
heard '[r["chat"] for r in requests]' '[True, True, True, True]'
heard 'sorted(len(r["body"]["messages"][0]["content"].split()) for r in requests)' '[5, 10, 20, 100]'
same "$(columns chat/requests.csv chunks)" "5
1
20
8" 'the chunk with the role brings no token'
succeeds bare --prompts words four.csv -o words --model m
heard 'sorted(len(p.split()) for p in prompts if p)' '[5, 10, 20, 100]'
KEY=secret-of-mine
export KEY
succeeds bare four.csv -o key --api-key-env KEY --header 'X-Test: 7'
heard 'headers[-1]["authorization"], headers[-1]["x-test"]' "('Bearer secret-of-mine', '7')"
! grep -rq secret-of-mine key || complain 'the key is in a report'

# Rows that are for a model name it; --model names one for all.
printf 'arrival_s,prompt_tokens,output_tokens,model\n0,5,1,small\n0.05,6,1,large\n0.1,7,1,\n' >models.csv
serve
succeeds bare models.csv -o models
heard 'sorted((len(p), r["body"]["model"]) for p, r in zip(prompts, requests))' "[(5, 'small'), (6, 'large'), (7, 'm')]"
serve
succeeds bare models.csv -o models --model x
heard '{r["body"]["model"] for r in requests}' "{'x'}"

# A certificate of one's own is trusted if it is named, or if any is.
if command -v openssl >/dev/null; then
    openssl req -x509 -newkey rsa:2048 -nodes -keyout tls.key -out tls.crt -days 2 -subj /CN=localhost \
        -addext subjectAltName=IP:127.0.0.1 2>/dev/null
    cat tls.crt tls.key >tls.pem
    serve --tls tls.pem
    url=https://${url#http://}
    expect 1 'self-signed certificate' bare four.csv -o tls
    succeeds bare four.csv -o tls --ca tls.crt
    succeeds bare four.csv -o tls --insecure
    heard 'len(requests)' 8
fi

# ---- wrong words ----

refuses 'there is no file none.csv, expected a trace' bare none.csv
refuses '--set serving.preset=x: expected a key of workload or slo' bare four.csv --set serving.preset=x
refuses 'did you mean workload.limit?' bare four.csv --set workload.limti=3
refuses '--rate and --concurrency, expected one of them' bare four.csv --rate 3 --concurrency 4
refuses '--prompts text: expected ids or words' bare four.csv --prompts text
refuses 'no.json' bare four.csv --tokenizer no.json
refuses '--prompts ids: expected words' bare four.csv --tokenizer no.json --prompts ids
refuses '--endpoint chats: expected completions or chat' bare four.csv --endpoint chats
refuses '--api-key-env NONE_OF_THESE: expected an environment variable' bare four.csv --api-key-env NONE_OF_THESE
refuses '--header X: expected "Name: value"' bare four.csv --header X
refuses '--body messages=[]: expected another key' bare four.csv --body 'messages=[]'
refuses '--body x: expected KEY=VALUE' bare four.csv --body x
for wrong in ftp://host http://user@host http://host/?q=1 'no url'; do
    refuses "expected a URL such as http://localhost:8000" "$inflight" replay four.csv -s "$wrong"
done
expect 1 "Couldn't connect to server" "$inflight" replay four.csv -s http://127.0.0.1:9 -o none -q
for report in requests.csv requests.csv.part chunks.csv server_metrics.csv.part run.json; do
    mkdir own
    cp four.csv "own/$report"
    refuses "own/$report: the output would overwrite the input own/$report" \
        "$inflight" replay "own/$report" -s http://127.0.0.1:9 -o own -q
    same_bytes four.csv "own/$report"
    same "$(ls own)" "$report" 'what is left beside a trace'
    rm -r own
done
stop_server

# ---- the end of a run that is not whole ----

printf 'arrival_s,prompt_tokens,output_tokens\n' >long.csv
i=0
while [ $i -lt 100 ]; do
    echo "0.0$((i % 10)),5,2000" >>long.csv
    i=$((i + 1))
done
whole_rows() { # FILE: every row has as many fields as the header, and the last one ends
    awk -F, 'NR == 1 { n = NF } NF != n { exit 1 }' "$1" && [ -z "$(tail -c 1 "$1" | tr -d '\n')" ]
}
serve --itl 0.05
has_rows() { [ "$(grep -c '' "$1")" -gt "$2" ]; }
"$inflight" replay long.csv -s "$url" -o killed -q &
client=$!
within_a_minute has_rows killed/chunks.csv.part 500 || complain 'no rows while the run goes on'
kill -9 $client
wait $client 2>/dev/null
[ -f killed/chunks.csv.part ] && [ ! -f killed/chunks.csv ] && [ ! -f killed/requests.csv ] ||
    complain 'a kill left other files' "$(ls killed)"
has_rows killed/chunks.csv.part 500 && whole_rows killed/chunks.csv.part || complain 'chunks after a kill'
all_came() { [ "$(cut -d, -f1 stopped/chunks.csv.part | sort -u | grep -c '')" -eq 101 ]; }
"$inflight" replay long.csv -s "$url" -o stopped >out 2>err &
client=$!
within_a_minute all_came || complain 'requests of a run that is interrupted'
kill -INT $client
wait $client
same $? 1 'the code of an interrupted run'
grep -q 'interrupted; stopped has the 100 requests before' err || complain 'interrupted' "$(cat err)"
grep -q '"complete": false' stopped/run.json || complain 'run.json of an interrupted run'
same "$(columns stopped/requests.csv status | sort -u)" aborted 'streams of an interrupted run'
# a file that may not grow, as on a full disk (blocks of 512 bytes)
(
    trap '' XFSZ
    ulimit -f 8
    "$inflight" replay long.csv -s "$url" -o full -q
) >out 2>err
same $? 1 'the code of a run without room'
grep -q 'full/chunks.csv.part: cannot write: File too large; the rows before are there' err || complain 'no room' "$(cat err)"
whole_rows full/chunks.csv.part && [ "$(grep -c '' full/chunks.csv.part)" -gt 50 ] || complain 'rows on a full disk'

# ---- import ----

succeeds "$inflight" import --server "$url" --hardware h100-sxm --model llama-3-8b -o imported.yaml
printed '/metrics:'
printed 'num_gpu_blocks=8192 -> serving.kv.num_blocks=8192'
printed 'block_size=32 -> serving.kv.block_tokens=32'
grep -q 'preset: vllm-v1-2026-11' imported.yaml || complain 'the version at /version'
echo '{"version":"0.32.0"}' >version.json
succeeds "$inflight" import --answer "$scripts/wire/vllm-0.32-metrics.txt" --answer version.json --hardware h100-sxm \
    --model llama-3-8b -o files.yaml
same "$(grep -v '^#' files.yaml)" "$(grep -v '^#' imported.yaml)" 'files and a server say the same'
refuses 'no sample is of a server that is known' "$inflight" import --answer version.json
refuses 'no sample, expected what a server says' "$inflight" import --answer /dev/null
refuses 'neither a version nor a list of models' "$inflight" import --answer "$scripts/wire/vllm-0.32-too-long.json"
finish
