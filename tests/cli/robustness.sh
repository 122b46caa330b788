#!/bin/sh
# Full disks, signals, failures half way: exit code 1, one line, and no incomplete report.
. "$(dirname "$0")/expect.sh"

cat >config.yaml <<'END'
workload: {trace: three.csv}
serving: {preset: vllm-v0, max_model_len: 2048, kv: {num_blocks: 512}}
cost: {model: linear, step_s: 0.01}
output: {dir: out, steps: true}
END
printf 'arrival_s,prompt_tokens,output_tokens\n0,10,5\n1,20,3\n1,30,4\n' >three.csv
reports='config.yaml quantiles.csv requests.csv steps.csv summary.csv'

holds() {
    same "$(ls -A "$1" | tr '\n' ' ')" "${2:+$2 }" "the files in $1"
}

# standard output is full
to_full() {
    ran="$* > /dev/full"
    "$@" >/dev/full 2>logs/err
    code=$? wanted=1 pattern='No space left on device'
    judge
}
for topic in policies presets models hardware deployments traces keys; do
    to_full "$inflight" list $topic
done
to_full "$inflight" --version
to_full "$inflight" --help
to_full "$inflight" trace stats three.csv
to_full "$inflight" trace convert three.csv
to_full "$inflight" trace generate -n 1000
to_full "$inflight" run config.yaml
holds out "$reports"
expect 1 'Bad file descriptor' sh -c '"$1" list keys >&-' - "$inflight"

# a file is full
expect 1 '/dev/full: *No space left' "$inflight" trace convert three.csv -o /dev/full
expect 1 '/dev/full: *No space left' "$inflight" trace generate -n 9 -o /dev/full
expect 1 '/dev/full: *No space left' "$inflight" trace generate -n 99999 -o /dev/full

# 24 blocks of 512 bytes and no more; signal 25, SIGXFSZ, would end the program
capped() {
    (
        trap '' 25
        ulimit -f 24
        exec "$@"
    )
}
try "$inflight" trace generate -n 1000 --process poisson --rate 5 -o thousand.csv
expect 1 'big.csv: *File too large' capped "$inflight" trace generate -n 9999 -o big.csv
rm -rf out
expect 1 '*out/*.csv*: cannot write: File too large' \
    capped "$inflight" run config.yaml --quiet --set workload.trace=thousand.csv
holds . 'config.yaml logs thousand.csv three.csv'

# a report cannot take its name
mkdir -p out/config.yaml
refuses '*out/config.yaml: is a directory, expected a file' "$inflight" run config.yaml --quiet
holds out "$reports"
rmdir out/config.yaml

# again into the same folder: files of the earlier run are replaced or removed
succeeds "$inflight" run config.yaml --quiet
cp -r out first
succeeds "$inflight" run config.yaml --quiet --set workload.limit=1
same "$(columns out/requests.csv request_id | wc -l)" 1 'the second run'
succeeds "$inflight" run config.yaml --quiet
for report in $reports; do
    same_bytes "first/$report" "out/$report"
done
succeeds "$inflight" run config.yaml --quiet --set output.steps=false
holds out 'config.yaml quantiles.csv requests.csv summary.csv'

# a failure leaves the earlier run's reports alone
cp -r out before
printf 'arrival_s,prompt_tokens,output_tokens\n0,10,x\n' >broken.csv
refuses 'broken.csv:2:6:' "$inflight" run config.yaml --quiet --set workload.trace=broken.csv
for report in config.yaml quantiles.csv requests.csv summary.csv; do
    same_bytes "before/$report" "out/$report"
done

# signals, once the first report has begun to grow
"$inflight" trace generate -n 200000 --process poisson --rate 20 -o long.csv
interrupt() {
    rm -rf out
    ran="run, then kill -$1"
    "$inflight" run config.yaml --quiet -j 2 --set workload.trace=long.csv \
        --set 'sweep.cost.step_s=[0.01,0.02,0.03,0.04,0.05,0.06,0.07,0.08]' >logs/out 2>logs/err &
    run=$!
    n_waits=0
    while [ -z "$(find out -type f -size +0 2>/dev/null)" ] && [ $n_waits -lt 200 ]; do
        sleep 0.05
        n_waits=$((n_waits + 1))
    done
    kill -"$1" $run # twice: to the program and to its group, as `timeout` does
    kill -"$1" $run
    wait $run
    code=$? wanted=1 pattern='inflight: interrupted'
    judge
    # no report, or the complete points
    for file in $(find out -type f 2>/dev/null); do
        case $file in
        out/.parts/*-00000?) ;;
        *) complain "$file is left" ;;
        esac
    done
}
interrupt INT
interrupt TERM

# a search for the capacity that is interrupted between two searches prints how to resume
"$inflight" capacity config.yaml --quiet --set workload.trace=long.csv --set replications=9 \
    --set capacity.criterion=delay --set workload.arrivals.process=poisson \
    --set workload.arrivals.rate_rps=1 --set 'sweep.workload.limit=[10,200000]' -o searched \
    >logs/out 2>logs/err &
run=$!
n_waits=0
while [ ! -s searched/.parts/record-000000 ] && [ $n_waits -lt 200 ]; do
    sleep 0.05
    n_waits=$((n_waits + 1))
done
kill -INT $run
wait $run
ran='capacity, then kill -INT' code=$? wanted=1
pattern='interrupted; the same command with --resume does the rest'
judge
holds searched .parts

# figures get their names when they are complete, also if gnuplot is killed
if command -v gnuplot >logs/out; then
    mkdir bin drawn
    succeeds "$inflight" run config.yaml -q
    printf '#!/bin/sh\necho half >"$5/$6.tmp.pdf"; kill -9 $$\n' >bin/gnuplot
    chmod +x bin/gnuplot
    expect 1 'gnuplot was ended by signal 9 on */ttft_itl_cdf.gp' \
        env PATH="$work/bin:$PATH" "$inflight" plot out -o drawn --figure ttft_itl_cdf
    holds drawn ttft_itl_cdf.csv
fi
finish
