#!/bin/sh
# Tables of runs, each number worked out with a pencil from a small summary; and refusals.
. "$(dirname "$0")/expect.sh"

mkdir plain other means
cat >plain/summary.csv <<'END'
serving.preset,workload.arrivals.rate_rps,requests,finished,mean_ttft_s,p99_itl_s,goodput_rps,attainment_frac,preemptions,saturated,error,assumed
vllm_v0,2,10,10,0.012345678,0.0996,1.5,0.25,3,false,,
vllm_v0,4.0,10,10,123.456789,0.05,1.25,1,0,true,,
sarathi,2,10,10,0.0123,0.0999999,1.5,0.5,30000,false,,
sarathi,4.0,10,,,,,,,,no memory,
END

# expected WORDS...: the table on standard input is what `inflight table WORDS` prints
expected() {
    cat >wanted
    try "$inflight" table "$@"
    [ "$code" -eq 0 ] || complain "$ran" "    exit code $code: $(cat logs/err)"
    cmp -s wanted logs/out || complain "$ran" "$(diff wanted logs/out)"
}

# three digits; ms of an ITL, per cent of a share; the best at each rate, of what has a better end
expected plain --columns mean_ttft_s,p99_itl_s,goodput_rps,attainment_frac,requests <<'END'
| preset | rate\_rps | TTFT, mean (s) | ITL, p99 (ms) | goodput (req/s) | SLO attainment (%) | requests |
| --- | --- | ---: | ---: | ---: | ---: | ---: |
| vllm\_v0 | 2 | 0.0123 | **99.6** | 1.50 | 25 | 10 |
| vllm\_v0 | 4.0 | 123 | 50 | 1.25 | 100 | 10 |
| sarathi | 2 | **0.0123** | 100 | 1.50 | **50** | 10 |
| sarathi | 4.0 | - | - | - | - | 10 |
END
# a key among the columns, a value of another; 4 is 4.0
expected plain --rows preset --columns rate_rps,preemptions --format latex <<'END'
% \usepackage{booktabs}
\begin{tabular}{lrr}
\toprule
 & \multicolumn{1}{c}{rate\_rps 2} & \multicolumn{1}{c}{rate\_rps 4.0} \\
\cmidrule(lr){2-2} \cmidrule(lr){3-3}
preset & preemptions & preemptions \\
\midrule
vllm\_v0 & \textbf{3} & 0 \\
sarathi & 30000 & -- \\
\bottomrule
\end{tabular}
END
expected plain --where rate_rps=4 --columns mean_ttft_s --digits 5 <<'END'
| preset | TTFT, mean (s) |
| --- | ---: |
| vllm\_v0 | 123.46 |
| sarathi | - |
END
# as in summary.csv, with all digits
expected plain --where workload.arrivals.rate_rps=2 --columns preset,mean_ttft_s,attainment_frac -f csv <<'END'
mean_ttft_s[serving.preset=vllm_v0],attainment_frac[serving.preset=vllm_v0],mean_ttft_s[serving.preset=sarathi],attainment_frac[serving.preset=sarathi]
0.012345678,0.25,0.0123,0.5
END

# several runs
sed 's/^vllm_v0,2,10,10,0.012345678/vllm_v0,2,10,10,0.5/' plain/summary.csv >other/summary.csv
expected plain other --where rate_rps=2 --where preset=vllm_v0 --columns mean_ttft_s <<'END'
| run | TTFT, mean (s) |
| --- | ---: |
| plain | **0.0123** |
| other | 0.500 |
END

# replications: two digits of the interval, and as many decimals of the mean; 0.0996 rounds to 0.10
cat >means/replications.csv <<'END'
serving.preset,runs,saturated_runs,requests,requests_ci95,mean_ttft_s,mean_ttft_s_ci95,mean_tpot_s,mean_tpot_s_ci95,preemptions,preemptions_ci95
a&b,8,0,10,0,1.23456,0.0996,0.02,0.00123,1234.5,130
c,8,0,10,0,1.2,,0.02,0.0005,1500,0
END
cp plain/summary.csv means/
expected means --columns mean_ttft_s,mean_tpot_s,preemptions <<'END'
| preset | TTFT, mean (s) | TPOT, mean (ms) | preemptions |
| --- | ---: | ---: | ---: |
| a&b | 1.23 ± 0.10 | 20.0 ± 1.2 | **1230** ± 130 |
| c | **1.20** | 20.00 ± 0.50 | 1500 |
END
expected means --columns mean_ttft_s --format latex <<'END'
% \usepackage{booktabs}
% +-: half the width of the 95% interval of a mean over replications
\begin{tabular}{lr}
\toprule
preset & TTFT, mean (s) \\
\midrule
a\&b & 1.23 $\pm$ 0.10 \\
c & \textbf{1.20} \\
\bottomrule
\end{tabular}
END
expected means --columns mean_ttft_s --format csv <<'END'
serving.preset,mean_ttft_s,mean_ttft_s_ci95
a&b,1.23456,0.0996
c,1.2,
END
succeeds "$inflight" table means --columns mean_ttft_s --format csv -o table.csv
same "$(cat table.csv)" "$(cat wanted)" 'a table in a file'

# what is wrong
try "$inflight" table
same "$code $(head -n 1 logs/err | cut -c 1-25)" '2 usage: inflight table DIR' 'a table of nothing'
refuses 'nowhere/summary.csv: cannot open' "$inflight" table nowhere
mkdir planned
echo replicas >planned/plan.csv
for command in table plot report 'compare plain'; do
    # shellcheck disable=SC2086
    refuses 'planned has plan.csv of inflight capacity, expected a folder with points of a run' "$inflight" $command planned
done
refuses 'mean_tft_s is no metric or swept key of these runs, did you mean mean_ttft_s?' "$inflight" table plain --columns mean_tft_s
refuses 'assumed is no swept key and no column of summary.csv, expected one of: preset, rate_rps' "$inflight" table plain --columns assumed
refuses 'preset_ is no swept key of these runs, did you mean preset?' "$inflight" table plain --rows preset_
refuses 'points differ in rate_rps: expected it in --rows or --columns, or a value, --where rate_rps=VALUE' \
    "$inflight" table plain --rows preset --columns mean_ttft_s
refuses 'no point has rate_rps 7, expected one of: 2, 4.0' "$inflight" table plain --where rate_rps=7 --columns mean_ttft_s
refuses 'no point has preset sarati, did you mean sarathi?' "$inflight" table plain --where preset=sarati --columns mean_ttft_s
refuses '--where rate_rps: expected KEY=VALUE' "$inflight" table plain --where rate_rps --columns mean_ttft_s
refuses 'columns of two keys, preset and rate_rps, expected one' "$inflight" table plain --columns preset,rate_rps
refuses 'preset is given for rows and for columns' "$inflight" table plain --rows preset --columns preset
refuses 'there is no format latx, did you mean latex?' "$inflight" table plain --format latx
refuses '--digits is 0, expected 1 to 9' "$inflight" table plain --digits 0
refuses '--columns a,,b: expected names with a comma between two' "$inflight" table plain --columns a,,b
finish
