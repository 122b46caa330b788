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
