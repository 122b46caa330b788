#!/bin/sh
# A configuration against a server with known times: the stub takes 20 ms, then 10 ms a token.
. "$(dirname "$0")/../cli/expect.sh"
. "$scripts/stub.sh"

cat >mine.yaml <<'END'
model: opt-13b
hardware: a100-40gb-sxm
workload: {trace: t.csv}
serving: {preset: vllm-v1}
cost: {model: linear, step_s: 0.010}
END
{
    echo 'arrival_s,prompt_tokens,output_tokens'
    for i in 0 1 2 3 4 5 6 7 8 9; do echo "0.$i,20,$((10 + i))"; done
} >t.csv
serve --ttft 0.02 --itl 0.01
try "$inflight" validate --live "$url" mine.yaml -o out --no-plots --wait 30
[ "$code" -eq 0 ] || complain "$ran" "$(cat logs/err)"
printed '10 requests: 10 finished'
printed 'paired     10 by request_id'
printed 'out/report.html'
same "$(columns out/live/requests.csv request_id,arrival_s,prompt_tokens,output_tokens)" \
    "$(columns out/simulated/requests.csv request_id,arrival_s,prompt_tokens,output_tokens)" 'the same requests'
# Simulated steps take 10 ms, and so do the server's tokens: TPOT is off by the timers of a machine that is shared.
awk -F, '$1 == "tpot_s" && $2 == "p50" { found = 1; if ($4 < 0.0099 || $4 > 0.0101 || $5 < 0.0095 || $5 > 0.02) exit 1 }
    END { exit !found }' out/simulated/validation.csv || complain 'TPOT' "$(grep tpot_s out/simulated/validation.csv)"
refuses 'expected one: a server has no sweep' "$inflight" validate --live "$url" quickstart -o swept
expect 1 "Couldn't connect to server" "$inflight" validate --live http://127.0.0.1:9 mine.yaml -o none -q
for report in live/requests.csv live/chunks.csv simulated/quantiles.csv simulated/validation.csv report.html; do
    mkdir -p own/live own/simulated
    cp t.csv "own/$report"
    refuses "own/$report: the output would overwrite the input own/$report" "$inflight" validate \
        --live http://127.0.0.1:9 mine.yaml --set "workload.trace=own/$report" --set workload.format=inflight -o own -q
    same_bytes t.csv "own/$report"
    rm -r own
done
finish
