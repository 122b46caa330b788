#!/bin/sh
# Two runs point by point: against queueing theory, against a second calculation from requests.csv, and
# refusals.
. "$(dirname "$0")/expect.sh"

# One request at a time, M/D/1: the mean wait is rho S / (2 (1 - rho)). Two machines, one a tenth
# slower, at half of the faster one's capacity.
"$inflight" trace generate -n 20000 --prompt fixed:1000 --output-tokens fixed:1 -o constant.csv
cat >md1.yaml <<'END'
workload: {trace: constant.csv, arrivals: {process: poisson, rate_rps: 5, seed: 3}}
serving:
  preset: vllm-v0
  max_model_len: 1000000
  batching: {max_seqs: 1, max_batched_tokens: 1000000}
  kv: {num_blocks: 62500}
cost: {model: linear, prefill_token_s: 0.0001}
output: {dir: fast}
replications: 10
sweep: {workload.arrivals.rate_rps: [5, 6]}
END
succeeds "$inflight" run md1.yaml --quiet -j 2
succeeds "$inflight" run md1.yaml --quiet -j 2 -o slow --set cost.prefill_token_s=0.00011
succeeds "$inflight" compare fast slow
printed 'rate_rps'
succeeds "$inflight" compare fast slow --plot
printed 'normalized latency, mean (ms/tok) against the arrival rate (req/s)'
printed 'a fast  b slow'
grep ',request,queue_s,' slow/compare.csv >waits
cat waits
awk -F, 'function wait(rate, s) { return rate * s * s / (2 * (1 - rate * s)) }
{
    exact = wait($1, 0.11) - wait($1, 0.1)
    bad += $4 != 200000 || $5 != 10 || $8 - $9 > exact || $8 + $9 < exact || $10 > 1e-6 || $11 != 0
    bad += $9 > 0.1 * exact || $9 == ""
} END { exit bad || NR != 2 }' waits || complain 'the difference of two M/D/1 queues is not the closed form'

# common random numbers: far narrower than the interval of two independent means
columns fast/replications.csv mean_queue_s_ci95 >fast.ci95
columns slow/replications.csv mean_queue_s_ci95 >slow.ci95
paste -d, waits fast.ci95 slow.ci95 | awk -F, '
    { bad += $9 > 0.5 * sqrt($13 * $13 + $14 * $14) } END { exit bad }' ||
    complain 'pairing does not narrow the interval'

# the same differences, added up once more
awk -F, 'FNR == 1 { file++; for (i = 1; i <= NF; i++) at[$i] = i; next }
    file == 1 { e2e[$at["point"], $at["request_id"]] = $at["e2e_s"]; next }
    { p = $at["point"]; sum[p] += $at["e2e_s"] - e2e[p, $at["request_id"]]; n[p]++ }
    END { for (p = 0; p < 20; p += 10) {
        mean = 0
        for (r = p; r < p + 10; r++) mean += sum[r] / n[r] / 10
        printf "%.6f\n", mean } }' fast/requests.csv slow/requests.csv >again
same "$(awk -F, '$2 == "request" && $3 == "e2e_s" { printf "%.6f\n", $8 }' slow/compare.csv)" \
    "$(cat again)" 'mean differences of e2e_s'

# a run beside itself, and two values of a key within one run
succeeds "$inflight" compare fast fast -o same
same "$(awk -F, 'NR > 1 && ($8 != 0 || $9 != 0)' same/compare.csv)" '' 'a run beside itself'
succeeds "$inflight" compare slow --between rate_rps=5,6 -o rates
awk -F, '$1 == "request" && $2 == "queue_s" { exit !($7 > 0) }' rates/compare.csv ||
    complain 'no longer wait at a higher rate'

# all pairs of three runs: each as if it were alone, and p-values corrected as Holm defines it, where the
# corrected p of rank i is the largest of (n - j + 1) p_j over the ranks j up to i
succeeds "$inflight" run md1.yaml --quiet -j 2 -o middle --set cost.prefill_token_s=0.000102
succeeds "$inflight" compare fast slow middle -o all
printed 'correction for 6'
for pair in 'fast slow' 'fast middle' 'slow middle'; do
    # shellcheck disable=SC2086 # two words
    succeeds "$inflight" compare $pair -o alone
    awk -F, -v pair="$(echo $pair | tr ' ' ,)" '$2 "," $3 == pair' all/compare.csv |
        cut -d, -f1,4-14 >of-all.csv
    tail -n +2 alone/compare.csv | cmp -s - of-all.csv || complain "$pair among all pairs differs from that pair alone"
done
tail -n +2 all/compare.csv | awk -F, '$12 != "" && $4 == "request" { print $5 "," $12 "," $15 "," $16 }' \
    | sort -t, -k1,1 -k2,2g >tests.csv
awk -F, '$1 != metric { metric = $1; rank = 0; most = 0 }
    { p = (6 - rank++) * $2; if (p > 1) p = 1; if (p > most) most = p
      bad += $4 != 6 || ($3 - most) ^ 2 > 1e-14 * most * most; n++ }
    END { exit bad || n != 24 }' tests.csv || complain 'p-values are not those of Holm'
succeeds "$inflight" compare slow --between rate_rps -o values
same "$(awk -F, 'NR > 1 { print $1 "," $2 }' values/compare.csv | sort -u)" 5,6 'the values of a key'

# what is wrong
"$inflight" run md1.yaml --quiet -o one --set sweep=null --set replications=1
refuses 'fast/summary.csv:1: workload.arrivals.rate_rps is swept here and not in one/summary.csv' \
    "$inflight" compare fast one
refuses 'rate_rps is swept here' "$inflight" compare one fast
refuses 'nowhere/summary.csv: cannot open' "$inflight" compare nowhere fast
refuses 'nowhere/summary.csv: cannot open' "$inflight" compare fast nowhere
[ -e nowhere ] && complain 'compare makes the folder that it should read'
refuses 'md1.yaml: is a file, expected an output directory' "$inflight" compare fast slow -o md1.yaml
refuses 'slow/summary.csv: no point has rate_rps 7' "$inflight" compare slow --between rate_rps=5,7
refuses 'rate is not swept, expected one of: rate_rps, replication' \
    "$inflight" compare slow --between rate=5,6
refuses '--between rate_rps=5: expected KEY or KEY=VALUE,VALUE...' "$inflight" compare slow --between rate_rps=5
refuses 'fast/summary.csv:1: no key but a rate is swept, expected one whose values are compared, or several runs' \
    "$inflight" compare fast
refuses 'fast/summary.csv:1: rate is not swept, expected one of: rate_rps, replication' \
    "$inflight" compare fast --between rate
refuses '--between rate_rps and 2 folders, expected one' "$inflight" compare fast slow --between rate_rps
refuses 'usage: inflight compare DIR DIR...' "$inflight" compare
"$inflight" run md1.yaml --quiet -o short --set workload.limit=100
"$inflight" trace generate -n 100 --prompt fixed:1000 --output-tokens fixed:2 -o longer.csv
"$inflight" run md1.yaml --quiet -o longer --set workload.trace=longer.csv
refuses 'longer: request 0 of point 0 has 1000 prompt and 2 output tokens, in short 1000 and 1: expected runs of the same requests' \
    "$inflight" compare short longer
# files that are cut, or of two runs
cp -r short odd
head -1 short/summary.csv >odd/summary.csv
rm -f odd/replications.csv
for command in 'compare short odd' 'compare odd short' 'table odd' 'report odd -o odd.html'; do
    # shellcheck disable=SC2086 # words on purpose
    refuses 'odd/summary.csv: there is no row of a point, expected at least one' "$inflight" $command
done
cp short/summary.csv odd/summary.csv
sed '3s/^0,/99,/' short/requests.csv >odd/requests.csv
refuses 'odd/requests.csv:3: a request of point 99, expected one of the * of summary.csv' "$inflight" compare short odd
printf 'requests,finished,saturated\n1,1,false\n' >logs/summary
mkdir single && cp logs/summary single/summary.csv
refuses 'preset is not swept, expected one of: none, there is no sweep' \
    "$inflight" compare single --between preset=a,b
finish
