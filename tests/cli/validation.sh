#!/bin/sh
# The recorded runs of configs/validation: the errors are those of the page, and within the bounds that the page
# gives.
. "$(dirname "$0")/expect.sh"

page=$INFLIGHT_DATA/reports/reproductions/validation
succeeds sh "$page/run" "$inflight" "$work/out"
same_bytes "$work/out/errors.csv" "$page/errors.csv"

# NAME [RUN]: the table of its page, but for the first two lines, which name files
tables() {
    same_bytes "$work/out/${2:-$1}/validation.csv" "$page/$1/validation.csv"
    sed 1,2d "$work/out/${2:-$1}/table.txt" >flown.txt
    sed 1,2d "$page/$1/table.txt" >kept.txt
    cmp -s flown.txt kept.txt || complain "the table of $1 is not that of its page"
}
tables llmd-a100-tp2 llmd-a100-tp2-1rps
for name in blis-h100-llama-2-7b blis-h100-codellama-34b blis-h100-codellama-34b-budget-64 \
    llmservingsim-rtx-pro-6000 llmservingsim-rtx-pro-6000-qwen3-30b-a3b llmservingsim-rtx-4090; do
    tables $name
done

# within NAME TTFT TPOT E2E MEDIAN: relative errors of the judged part, at most; - for no bound
within() {
    awk -F, -v name="$1" -v ttft="$2" -v tpot="$3" -v e2e="$4" -v median="$5" '
        function off(x, bound) { return bound != "-" && (x > bound || x < -bound) }
        $1 == name && $2 == "judged" {
            found = 1
            bad = off($4, ttft) || off($5, tpot) || off($6, e2e) || off($7, median)
        }
        END { exit bad || !found }' "$work/out/errors.csv" || complain "$1 is further off than it was"
}
within llmd-a100-tp2-0.5rps 0.10 0.05 0.05 -
within llmd-a100-tp2-0.67rps 0.10 0.05 0.05 -
within llmd-a100-tp2-1rps 0.15 0.05 0.05 -
within blis-h100-llama-2-7b - 0.02 0.02 0.015
within blis-h100-codellama-34b 0.05 0.02 0.02 0.015
within blis-h100-codellama-34b-budget-64 - 0.02 0.02 0.015
within llmservingsim-rtx-pro-6000 0.05 0.02 0.02 -
within llmservingsim-rtx-pro-6000-qwen3-30b-a3b 0.05 0.03 0.03 0.03
within llmservingsim-rtx-4090 0.05 0.05 0.05 -

# service of the VTC artifact's clients: within 10%, and each scheduler against the others
expect 0 '*' sh "$page/vtc/run" "$inflight" "$work/vtc"
same_bytes "$work/vtc/service.csv" "$page/vtc/service.csv"
same_bytes "$work/vtc/contrasts.csv" "$page/vtc/contrasts.csv"
awk -F, '
    function off(x) { return x > 0.10 || x < -0.10 }
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $2 == "judged" { n++; bad += off($at["service_gap_error"]) || off($at["tokens_per_s_error"]) }
    END { exit bad || n != 6 }' "$work/vtc/service.csv" || complain 'service or throughput is more than 10% off'
awk -F, '$4 ~ /^service/ && $7 != "true" { bad = 1 } END { exit bad || NR < 30 }' "$work/vtc/contrasts.csv" ||
    complain 'a scheduler serves clients otherwise than measured, against another'
# and latency and throughput, where the recordings tell two schedulers apart by more than 2.5 standard errors
awk -F, 'NR > 1 && $8 != "" && ($6 - 1) ^ 2 > 6.25 * $8 ^ 2 { n++; bad += $7 != "true" } END { exit bad || n < 6 }' \
    "$work/vtc/contrasts.csv" || complain 'a scheduler is slower or faster than another, measured the other way'

# one replica: a tenth of the requests is further off than that, end to end
p90() { # NAME AT_MOST
    awk -F, -v name="$1" -v bound="$2" '$1 == name { found = 1; bad = $9 > bound } END { exit bad || !found }' \
        "$work/out/errors.csv" || complain "requests of $1 are further off than they were"
}
p90 llmd-a100-tp2-0.5rps 0.05
p90 llmd-a100-tp2-0.67rps 0.06
p90 llmd-a100-tp2-1rps 0.11
awk -F, '$1 ~ /2replicas/ { n++; sum += $6 < 0 ? -$6 : $6 } END { exit !(n == 24 && sum / n < 0.06) }' \
    "$work/out/errors.csv" || complain 'two replicas are further off than they were'

# two replicas behind each router; which turns of a conversation are found, on one replica as recorded
succeeds sh "$page/two-replicas/run" "$inflight" "$work/two-replicas"
for kept in routers hits; do
    same_bytes "$work/two-replicas/$kept.csv" "$page/two-replicas/$kept.csv"
done
awk -F, '/^one replica/ { n++; recorded += $4; simulated += $5; bad += ($4 - $5) ^ 2 > 4 }
    END { exit bad || n != 10 || recorded != 60 || simulated != 58 }' "$work/two-replicas/hits.csv" ||
    complain 'other turns are found than were recorded'

# single batches and steps: the numbers of the pages
succeeds sh "$page/batches/run" "$inflight" "$work/batches"
same_bytes "$work/batches/batches.csv" "$page/batches/batches.csv"
same_bytes "$work/batches/errors.csv" "$page/batches/errors.csv"
awk -F, 'NR > 1 && ($2 == "token" || /^sarathi/) { n++; bad += $4 > 0.15 || $4 < -0.15 } END { exit bad || n != 15 }' \
    "$work/batches/errors.csv" || complain 'token times, or prompts of Yi-34B, are more than 15% off'
succeeds sh "$page/b300-steps/run" "$inflight" "$work/b300-steps"
same_bytes "$work/b300-steps/errors.csv" "$page/b300-steps/errors.csv"
awk -F, '$2 == "judged" { n++; bad += $6 > 0.05 } END { exit bad || n != 3 }' "$work/b300-steps/errors.csv" ||
    complain 'steps of four B300 are more than 5% off in the median'

# TensorRT-LLM on H200: TPOT of the ranks that had no say, and throughput of both capacity schedulers
succeeds sh "$page/trtllm-h200/run" "$inflight" "$work/trtllm-h200"
for kept in points errors pressure; do
    same_bytes "$work/trtllm-h200/$kept.csv" "$page/trtllm-h200/$kept.csv"
done
awk -F, 'NR > 1 { n++; bad += $4 > 0.09 } END { exit bad || n != 4 }' "$work/trtllm-h200/errors.csv" ||
    complain 'TPOT of TensorRT-LLM is more than 9% off'
awk -F, '$2 ~ /throughput/ { n++; bad += $5 > 0.15 || $5 < -0.15 } END { exit bad || n != 2 }' \
    "$work/trtllm-h200/pressure.csv" || complain 'throughput under a full pool is more than 15% off'

# DistServe's curve: with the server's own step times, and over rates with one number tuned
succeeds sh "$page/distserve/run" "$inflight" "$work/distserve"
same_bytes "$work/distserve/attainment.csv" "$page/distserve/attainment.csv"
awk -F, '
    $1 == "fitted-lines" && $2 <= 1.5 || $1 == "roofline" && $3 == 1 { n++; bad += $6 > 6 || $6 < -6 }
    END { exit bad || n != 24 }' "$work/distserve/attainment.csv" || complain 'attainment is more than 6 points off'

# intervals of all but VTC's runs, which take minutes, or with TESTS=long; and how many hold the measured means
[ "${TESTS:-}" = long ] && flown='[bl]*' kept='^run|^[bl]' || flown='blis*' kept='^run|^blis'
succeeds sh "$page/intervals/run" "$inflight" "$work/intervals" 199 "$flown"
grep -E "$kept" "$page/intervals/intervals.csv" >"$work/expected.csv"
same_bytes "$work/intervals/intervals.csv" "$work/expected.csv"
awk -F, '/^(blis|llm)/ { n++; held += $7 == "true" } END { exit n != 22 || held < 0.8 * n }' \
    "$page/intervals/intervals.csv" || complain 'fewer than 80% of the intervals hold the measured mean'
count=$(awk -F, 'NR > 1 { n++; held += $7 == "true" } END { printf "| all | %d | %d |", held, n }' \
    "$page/intervals/intervals.csv")
grep -qF "$count" "$page/intervals/README.md" || complain "the page of the intervals does not say $count"
finish
