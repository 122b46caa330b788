#!/bin/sh
# The closed loop as on its page, with one scheduler and twenty requests: the command ends and writes the promised
# table. Its errors are not judged: other programs run beside a test and may disturb a calibration so much that no
# profile can be fitted to it. For the same reason the sheets are those of the page's results.
. "$(dirname "$0")/../cli/expect.sh"
page=$INFLIGHT_DATA/reports/reproductions/closed-loop

# a sheet against itself, and against a sheet with all times a quarter longer
cat >sheet.csv <<'CSV'
# threads: 1
op,layers,m,runs,median_s,min_s
ceiling_gemm,1,1,5,9.0,9.0
gemm,1,8,5,0.001,0.0005
gemm,1,16,5,0.002,0.001
step,1,16,5,0.02,0.001
CSV
awk 'BEGIN { FS = OFS = "," } /^gemm|^step/ { $5 *= 1.25; $4 = 7 } { print }' sheet.csv >slower.csv
same "$(sh "$page/speed_ratio" sheet.csv sheet.csv)" 1.0000 "a sheet's speed beside itself"
same "$(sh "$page/speed_ratio" sheet.csv slower.csv)" 1.2500 "a slower sheet's speed"

# A wrapper of inflight: its `calibrate` returns sheets 1, 2 and so on of the page. The first two do not determine
# a profile together, so that the command has to measure once more.
cat >calibrated <<SH
#!/bin/sh
[ "\$1" = calibrate ] || exec "$inflight" "\$@"
while [ "\$1" != -o ]; do shift; done
number=\$(basename "\$2" .csv)
gzip -dc "$page/results/\$number.csv.gz" >"\$2"
SH
chmod +x calibrated

try env PRESETS=vllm-v0 ATTEMPTS=2 RUNS=5 REQUESTS=20 sh "$page/run" ./calibrated loop
[ "$code" -eq 0 ] || complain "$ran" "    exit code $code: $(cat logs/err)"
same "$(columns loop/loop.csv preset)" vllm-v0 "the scheduler flown"
same "$(columns loop/loop.csv attempts)" "$(($(grep -c '' loop/attempts.csv) - 1))" "replays flown"
for key in simulated_e2e_s measured_e2e_s simulated_steps measured_steps; do
    columns loop/loop.csv $key | awk '{ exit !($1 > 0) }' || complain "loop.csv: $key is not above 0"
done
same "$(columns loop/loop.csv recorded_durations_p99_request_e2e_error)" 0.000000000 \
    "a request's error with the replay's durations"
[ -f loop/sheet-3.csv ] || complain "no third sheet, although the first two determine no profile"
finish
