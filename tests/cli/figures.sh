#!/bin/sh
# Every figure in both widths, with one series, long names, many series, replications, and numbers of five digits: texts
# lie on the page and apart, and each figure explains its marks. 77 is skipped: no gnuplot.
command -v gnuplot >/dev/null || exit 77
. "$(dirname "$0")/expect.sh"

# FILE: its texts lie apart
apart() {
    touching=$(awk -f "$scripts/text_boxes.awk" "$1" | sort | uniq -c)
    [ -z "$touching" ] || complain "$1" "$touching"
}

# FILE TEXT...: a figure that says that
says() {
    said_by=$1
    shift
    for text in "$@"; do
        grep -qF ">$text<" "$said_by" || complain "$said_by does not say: $text"
    done
}

# RUN [FIGURE...]: drawn in both widths
drawn() {
    run=$1
    shift
    for columns in 1 2; do
        try "$inflight" plot "$run" -o "$run-$columns" --columns $columns
        [ "$code" -eq 0 ] || complain "$ran" "$(cat logs/err)"
        for svg in "$run-$columns"/*.svg; do
            apart "$svg"
        done
    done
}

quickstart=$INFLIGHT_DATA/configs/quickstart.yaml
flown() {
    name=$1
    shift
    succeeds "$inflight" run "$quickstart" --quiet -o "$name" --set output.plots=false "$@"
}
each_step='--set output.steps=true --set output.work=true'

flown replicated --set replications=3 --set workload.limit=200 $each_step -j 2
drawn replicated
for figure in latency_vs_rate percentiles_vs_rate attainment_vs_rate attainment_vs_slo_scale ttft_itl_cdf; do
    says replicated-1/$figure.svg 'band: 95% interval' 'means of 3 replications'
done
for figure in batch_over_time kv_over_time slot_grid; do
    grep -qF 'replication 0 of 3' replicated-1/$figure.svg || complain "$figure does not say which replication it shows"
done
says replicated-1/attainment_vs_rate.svg '90% of requests'
says replicated-1/attainment_vs_slo_scale.svg '90% of requests'
# the tail can be read
says replicated-1/ttft_itl_cdf.svg 90 99 99.9

# Static batches at 3 requests a second are saturated, and every figure says so.
for figure in latency_vs_rate percentiles_vs_rate throughput_latency attainment_vs_rate attainment_vs_slo_scale \
    ttft_itl_cdf kv_shares batch_over_time; do
    says replicated-1/$figure.svg 'hollow: saturated'
done
for figure in kv_over_time slot_grid; do
    says replicated-1/$figure.svg 'faster-transformer, saturated' vllm-v0
done

# one series, far from saturation: nothing to explain that is not there
flown alone --set workload.limit=100 --set 'sweep={workload.arrivals.rate_rps: [1, 2]}' $each_step
drawn alone
if grep '<text>.*\(saturated\|interval\|replication\| series\)' alone-?/*.svg; then
    complain 'a figure explains what it does not show'
fi

says alone-1/slot_grid.svg 'steps 0 to 95 alone'

# names of three keys, more series than a panel can tell apart
many='serving.preset: [faster-transformer, vllm-v0, sarathi], serving.batching.max_seqs: [8, 16, 32],
    serving.max_model_len: [2048, 1900]'
flown many --set workload.limit=60 --set "sweep={workload.arrivals.rate_rps: [1, 4], $many}" $each_step -j 2
drawn many
for figure in attainment_vs_slo_scale ttft_itl_cdf kv_over_time batch_over_time; do
    says many-1/$figure.svg 'the first 6 of 18 series'
    [ "$(columns many-1/$figure.csv number | sort -u | wc -l)" -eq 6 ] || complain "$figure does not have 6 series"
done
flown unswept --set workload.limit=60 --set "sweep={$many}" -j 2
drawn unswept
says unswept-1/latency_by_series.svg mean 'up to p99'

# any swept number as the axis, in the names of the files, and what the others are called
try "$inflight" plot many -o axis --x max_seqs --label 'vllm-v0=v0, "old" 50%_{x}' --label max_seqs='sequences_{most}' \
    --figure latency_vs_rate --figure kv_shares --y p99_ttft_s --y goodput_rps
[ "$code" -eq 0 ] || complain "$ran" "$(cat logs/err)"
for figure in latency_vs_max_seqs p99_ttft_s_vs_max_seqs goodput_rps_vs_max_seqs kv_shares; do
    apart axis/$figure.svg
    same "$(head -n 1 axis/$figure.csv | cut -d, -f3)" max_seqs "the axis of $figure"
done
says axis/p99_ttft_s_vs_max_seqs.svg 'sequences_{most}' 'TTFT, p99 (s)' 'rate_rps 1 / v0, "old" 50%_{x} / max_model_len 2048'
says axis/goodput_rps_vs_max_seqs.svg 'goodput (req/s)'
grep -qF 'at sequences_{most} 16' axis/kv_shares.svg || complain 'kv_shares does not say where on the axis it is'
# ranges and scales: the ends have their tics
try "$inflight" plot replicated -o ranged --y p99_ttft_s --x-range 0.5,8 --x-scale log --y-range 0,40
says ranged/p99_ttft_s_vs_rate.svg 0.5 5 40 0
grep -qF '>10<' ranged/p99_ttft_s_vs_rate.svg || complain 'no linear axis for a range from zero'
try "$inflight" plot replicated -o ranged --x-scale log
same "$(cd ranged && ls ./*.svg | tr '\n' ' ')" \
    './attainment_vs_rate.svg ./latency_vs_rate.svg ./p99_ttft_s_vs_rate.svg ./percentiles_vs_rate.svg ' 'figures with axes'
for svg in ranged/*.svg; do
    apart "$svg"
done
refuses 'many/summary.csv:1: max_seq is not swept, expected one of: rate_rps, preset, max_seqs, max_model_len' \
    "$inflight" plot many -o axis --x max_seq
refuses 'many/summary.csv:2:2: serving.preset is "faster-transformer", expected a number' "$inflight" plot many -o axis --x preset
refuses 'there is no column p99_tft_s with numbers, did you mean p99_ttft_s?' "$inflight" plot many -o axis --y p99_tft_s
refuses 'there is no nothing, expected a series, a run, a swept key' "$inflight" plot many -o axis --label nothing=x
refuses '--label x: expected NAME=TEXT' "$inflight" plot many -o axis --label x
refuses '--x-range 0,2: expected LOW,HIGH, two numbers above 0' "$inflight" plot many --x-range 0,2 --x-scale log
refuses '--y-range 2: expected LOW,HIGH' "$inflight" plot many --y-range 2
refuses '--y-scale lin, expected one of linear, log' "$inflight" plot many --y-scale lin
refuses 'cannot draw ttft_itl_cdf: it is not against the axis' "$inflight" plot many -o axis --figure ttft_itl_cdf --y-range 0,1
refuses 'no rate is swept, expected the key of the axis, --x KEY' "$inflight" plot unswept -o axis --y p99_ttft_s

# a factor on a trace's rate is that rate: requests over the time between the first and the last
succeeds "$inflight" trace generate -n 41 --process constant --rate 4 -o even.csv
cat >speed.yaml <<'END'
workload: {trace: even.csv, arrivals: {process: trace}}
serving: {preset: vllm-v0, max_model_len: 4096, kv: {num_blocks: 400}}
cost: {model: linear, step_s: 0.01}
output: {dir: speed, plots: false}
sweep: {workload.arrivals.speedup: [0.5, 1, 2]}
END
succeeds "$inflight" run speed.yaml --quiet
try "$inflight" plot speed -o speed --figure latency_vs_rate
same "$(columns speed/latency_vs_rate.csv rate_rps | awk '{ printf "%.4f ", $1 }')" '2.0500 4.1000 8.2000 ' \
    'the rates of a trace'

# capacities: a point of a search is no point of a run
mkdir slo deployments
{
    echo 'serving.preset,slo.ttft_s,status,capacity_rps,capacity_low_rps,capacity_high_rps,gpus,usd_per_million_output_tokens,output_throughput_tok_per_s,p90_ttft_s,p99_itl_s,binding,cheapest,pareto_ttft,pareto_tbt,error'
    k=0
    for preset in vllm-v0 sarathi 'a preset of a rather long name, as some are'; do
        k=$((k + 3))
        echo "\"$preset\",0.5,found,2.1,1.9,2.3,1,2.$k,300,$k.4,0.0$k,p90_ttft_s,false,true,true,"
        echo "\"$preset\",1,found,3.1,2.9,3.3,1,1.$k,450,1$k.8,0.1$k,p90_ttft_s,false,false,false,"
        echo "\"$preset\",2,unbounded,4.1,,,1,0.$k,700,6$k.6,0.6$k,,true,true,true,"
    done
    echo 'static,0.5,none,,,,1,,,,,finished_frac,false,false,false,'
} >slo/capacity.csv
sed 's/slo.ttft_s/deployment/; s/,0.5,/,one card,/; s/,1,found/,two cards,found/; s/,2,unb/,four cards,unb/' slo/capacity.csv >deployments/capacity.csv
drawn slo
drawn deployments
for columns in 1 2; do
    says slo-$columns/capacity_vs_slo.svg 'hollow: at least' 'bar: 95% interval' 'capacity (requests/s)' ttft_s \
        '1 of 10 without a capacity are left out'
    says slo-$columns/cost_front.svg 'on the front' 'USD per million output tokens' 'TTFT p90 (s)' 'TBT p99 (s)'
    says deployments-$columns/capacity_by_series.svg 'hollow: at least' '95% interval'
done
[ ! -e slo-1/capacity_by_series.svg ] || complain 'bars where an objective is swept'
refuses 'cannot draw latency_vs_rate: no summary.csv' "$inflight" plot slo -o slo-1 --figure latency_vs_rate
sed 's/,2.[369],300/,,300/; s/,1.[369],450/,,450/; s/,0.[369],700/,,700/' slo/capacity.csv >logs/unpriced
mv logs/unpriced slo/capacity.csv
try "$inflight" plot slo -o slo-1 --figure cost_front --x ttft_s
says slo-1/cost_front.svg 'GPU s per million output tokens'
same "$(columns slo-1/cost_front.csv gpu_s_per_million_output_tokens | head -n 1)" 3333.33333 'GPU time of a million tokens at 300 a second'

# LaTeX: the text is in the .tex, the picture in the .pdf that it includes
try "$inflight" plot replicated -o latex --latex --label sarathi='50%_off $x^2 {a}#~\b "q" <c>'
[ "$code" -eq 0 ] || complain "$ran" "$(cat logs/err)"
try "$inflight" plot deployments -o latex --latex
for tex in latex/*.tex; do
    figure=$(basename "$tex" .tex)
    grep -qF "]{$figure-tex}}%" "$tex" || complain "$tex does not include $figure-tex"
    [ -s "latex/$figure-tex.pdf" ] || complain "there is no latex/$figure-tex.pdf"
    grep -qF 'latex/' "$tex" && complain "$tex has a path of this machine"
done
grep -qF 'hollow: saturated' latex/latency_vs_rate.tex || complain 'no text in latex/latency_vs_rate.tex'
[ -z "$(ls latex/*.tmp.* 2>/dev/null)" ] || complain 'files of gnuplot are left'
same_bytes latex/capacity_by_series.png deployments-1/capacity_by_series.png
if command -v pdflatex >/dev/null; then
    {
        printf '%s\n' '\documentclass{article}' '\usepackage{graphicx,color}' '\graphicspath{{latex/}}' '\begin{document}'
        for tex in latex/*.tex; do
            printf '%s\n\n' "\\input{${tex%.tex}}"
        done
        printf '%s\n' '\end{document}'
    } >paper.tex
    try pdflatex -interaction=nonstopmode -halt-on-error paper.tex
    [ "$code" -eq 0 ] || complain 'pdflatex fails on the figures' "$(grep -A 3 '^!' paper.log)"
fi
# A cluster: the area below the requests of a replica is their time there, in the map and in the stack; of those that
# came in a bin, what was cached and in time.
flown fleet --set workload.limit=120 --set workload.arrivals.rate_rps=1 --set sweep=null --set 'sweep={cluster.router: [round-robin, prefix-tree]}' \
    --set cluster.replicas=3 --set serving.preset=vllm-v1
drawn fleet
says fleet-1/outstanding_over_time.svg 'replica 0' 'replica 2' requests
says fleet-1/load_by_replica.svg replica requests 'router round-robin' 'router prefix-tree'
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { key = $at["point"] + 1 " " $at["replica"]; sum[key] += $at["finish_s"] - $at["arrival_s"] }
    END { for (key in sum) printf "%s %.3f\n", key, sum[key] }' fleet/requests.csv | sort >by_request
awk -F, 'NR > 1 { sum[$1 " " $7] += $9 * ($6 - $5) } END { for (key in sum) printf "%s %.3f\n", key, sum[key] }
    ' fleet-1/load_by_replica.csv | sort >by_bin
same_bytes by_request by_bin
awk -F, 'NR > 1 && at[$1] != "" { for (k = 0; k < 3; k++) sum[$1 " " k] += (up[$1, k] - up[$1, k - 1]) * ($5 - at[$1]) }
    NR > 1 { at[$1] = $5; for (k = 0; k < 3; k++) up[$1, k] = $(7 + k) }
    END { for (key in sum) printf "%s %.3f\n", key, sum[key] }' fleet-1/outstanding_over_time.csv | sort >by_stack
same_bytes by_request by_stack
says fleet-1/service_over_time.svg 'prompt tokens cached (%)' 'requests within SLOs (%)'

# Pools: a stack a pool, with what its replicas have together; pools that differ between series have no names.
flown pools --set workload.limit=120 --set workload.arrivals.rate_rps=1 --set sweep=null --set serving.preset=vllm-v1 \
    --set 'cluster={router: round-robin, pools: {fast: {count: 1}, cheap: {count: 2}}}'
drawn pools
says pools-1/outstanding_over_time.svg fast cheap
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { key = $at["replica"] > 0; sum[key] += $at["finish_s"] - $at["arrival_s"] }
    END { printf "%.3f\n%.3f\n", sum[0], sum[1] }' pools/requests.csv >by_request
awk -F, 'NR > 2 { fast += up * ($5 - at); cheap += (both - up) * ($5 - at) } NR > 1 { at = $5; up = $7; both = $8 }
    END { printf "%.3f\n%.3f\n", fast, cheap }' pools-1/outstanding_over_time.csv >by_stack
same_bytes by_request by_stack

# Requests that have not finished are there until they leave, and meet no objective.
flown leave --set workload.limit=200 --set workload.arrivals.rate_rps=20 --set sweep=null --set serving.preset=vllm-v1 \
    --set 'workload.patience={process: exponential, mean_s: 5}' --set cluster.replicas=2
drawn leave
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { n[$at["status"]]++; sum += $at["finish_s"] + $at["left_s"] - $at["arrival_s"] }
    END { if (n["aborted"] < 20 || n["finished"] < 20) print "too few"; printf "%.3f\n", sum }' leave/requests.csv >by_request
awk -F, 'NR > 1 { sum += $9 * ($6 - $5) } END { printf "%.3f\n", sum }' leave-1/load_by_replica.csv >by_bin
same_bytes by_request by_bin
awk -F, 'FNR == 1 { delete at; for (i = 1; i <= NF; i++) at[$i] = i; n_files++; next }
    n_files == 1 { from[n_bins++] = $at["time_s"]; share[n_bins - 1] = $at["attained_frac"]; next }
    { for (i = 0; i + 2 < n_bins && $at["arrival_s"] >= from[i + 1];) i++
      n[i]++; met[i] += $at["status"] == "finished" && $at["ttft_s"] <= $at["ttft_slo_s"] && $at["tpot_s"] <= $at["tpot_slo_s"] }
    END { for (i = 0; i + 1 < n_bins; i++) if (n[i] > 0) { n_met += met[i]
              if (sprintf("%.6f", met[i] / n[i]) != sprintf("%.6f", share[i])) print from[i], met[i] / n[i], share[i] }
          if (n_met == 0) print "none in time" }' leave-1/service_over_time.csv leave/requests.csv >otherwise
same "$(cat otherwise)" '' 'shares within SLOs'

# A request with two replicas is at the first until its K/V has come to the second.
flown roles --set workload.limit=120 --set workload.arrivals.rate_rps=1 --set sweep=null --set serving.preset=vllm-v1 \
    --set 'cluster={preset: vllm-nixl, links: {preset: rdma-200g}, pools: {p: {role: prefill}, d: {role: decode}}}'
drawn roles
awk -F, 'FNR == 1 { delete at; for (i = 1; i <= NF; i++) at[$i] = i; n_files++; next }
    n_files == 1 { came[$at["request_id"]] = $at["end_s"]; next }
    { id = $at["request_id"]; p += came[id] - $at["arrival_s"]; d += $at["finish_s"] - came[id] }
    END { printf "%.3f\n%.3f\n", p, d }' roles/moves.csv roles/requests.csv >by_request
awk -F, 'NR > 1 { sum[$7] += $9 * ($6 - $5) } END { printf "%.3f\n%.3f\n", sum[0], sum[1] }' roles-1/load_by_replica.csv >by_bin
same_bytes by_request by_bin

# A request that migrates is at each replica in turn.
cat >moved.csv <<'Y'
arrival_s,prompt_tokens,output_tokens,session
0,16,10,s
0,20,10,s
Y
cat >moved.yaml <<'Y'
workload: {trace: moved.csv}
serving: {batching: {policy: unified, max_seqs: 8, max_batched_tokens: 64}, order: fcfs, admit: chunk-fits, preempt: tail, kv: {num_blocks: 10, block_tokens: 16}}
cost: {model: linear, step_s: 1}
cluster: {replicas: 2, router: session, migration: {interval_s: 4.5, threshold: 4}, links: {gb_per_s: 1, token_bytes: 1000}}
output: {dir: moved, plots: false}
Y
succeeds "$inflight" run moved.yaml --quiet
drawn moved
says moved-1/outstanding_over_time.svg 'replica 0' 'replica 1'
same "$(awk -F, 'NR > 1 { print $3 "," $4 "," $7 }' moved/moves.csv)" 1,0,5.000032000 'a move'
for at in 3 7; do
    same "$(awk -F, -v at=$at 'NR > 1 && $5 <= at && at < $6 { printf "%s ", $9 }' moved-1/load_by_replica.csv)" \
        "$([ $at = 3 ] && echo '0 2 ' || echo '1 1 ')" "requests at the replicas at $at s"
    same "$(awk -F, -v at=$at 'NR > 1 && $5 <= at { upto = $7 "," $8 } END { print upto }' moved-1/outstanding_over_time.csv)" \
        "$([ $at = 3 ] && echo 0,2 || echo 1,2)" "stacks at $at s"
done
# What the files do not tell is said: a request that moved while it waited.
mkdir waited
cp moved/*.csv moved/config.yaml waited
head -1 moved/moves.csv >waited/moves.csv
drawn waited
grep -q '1 requests, of whose moves no file tells: at their last replica' waited-1/load_by_replica.svg || complain 'no note on moves'
# A run without moves beside it changes nothing.
succeeds "$inflight" run moved.yaml --quiet -o unmoved --set cluster.migration=null --set cluster.links=null
try "$inflight" plot moved unmoved -o beside --figure load_by_replica
same "$code $(awk -F, 'NR > 1 && $5 <= 3 && 3 < $6 { printf "%s:%s ", $2, $9 }' beside/load_by_replica.csv)" '0 moved:0 moved:2 unmoved:0 unmoved:2 ' 'with a run without moves'

# Bins that an empty one follows are as wide as others.
printf 'arrival_s,prompt_tokens,output_tokens,session\n0,16,2,s\n30,16,2,s\n60,16,2,s\n' >sparse.csv
succeeds "$inflight" run moved.yaml --quiet -o sparse --set workload.trace=sparse.csv --set slo.ttft_s=2
drawn sparse
same "$(awk -F, 'NR > 1 && $7 != "" { if (n++ % 2) printf "%g-%g ", from, $5; from = $5 }' sparse-1/service_over_time.csv)" '0-2 30-32 60-62 ' 'bins'

# requests with numbers of five digits
mkdir five
printf 'requests,mean_normalized_latency_s,saturated\n4,1,false\n' >five/summary.csv
awk 'BEGIN {
    print "point,replica,step,request_id,prefill_tokens,decode_tokens,preemptions"
    for (step = 0; step < 40; step++)
        for (slot = 0; slot < 4; slot++) {
            begin = step - (step + slot) % 5
            if (begin >= 0)
                print "0,0," step "," 12000 + 977 * begin + slot "," (step == begin ? 8 : 0) "," (step != begin) ",0"
        }
}' >five/work.csv
drawn five

# simulated against measured, of TTFT within a factor of ten: more tics than the one power of ten between
succeeds "$inflight" run "$quickstart" --quiet -o simulated --set output.plots=false --set workload.limit=60 --set sweep=null
try "$inflight" validate simulated simulated -o validated
for svg in validated/*.svg; do
    apart "$svg"
done
says validated/validation_scatter.svg equal '20% more or less' 0.02 0.05
says validated/validation_cdf.svg measured simulated 90 99 99.9
says validated/validation_error.svg 'as measured'

# 36 series differ in marker or dash, and those of a round in both
cat >pairs.gp <<END
set print 'pairs.txt'
call '$INFLIGHT_DATA/reports/plot/style.gp' '.' 'none' '1' ''
do for [i = 1:36] { print type_of(i), dash_of(i) }
END
succeeds env LC_ALL=C.UTF-8 gnuplot --default-settings pairs.gp
same "$(sort -u pairs.txt | wc -l | tr -d ' ')" 36 'pairs of marker and dash'
for column in 1 2; do
    same "$(head -n 6 pairs.txt | cut -d' ' -f$column | sort -u | wc -l | tr -d ' ')" 6 'of the first six'
done

# the family that .ci/packages brings, in each kind of file
grep -qF "font-family=\"Nimbus Sans, Helvetica, Arial, sans-serif\"" alone-1/latency_vs_rate.svg ||
    complain 'the SVG asks for another family'
if fc-list 2>/dev/null | grep -q 'Nimbus Sans'; then
    grep -aq 'NimbusSans-Regular' alone-1/latency_vs_rate.pdf || complain 'the PDF has another family'
fi
finish
