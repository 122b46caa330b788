#!/bin/sh
# Sweeps: failed points beside successful ones, and --resume of partial results.
. "$(dirname "$0")/expect.sh"

cat >config.yaml <<'END'
workload: {trace: three.csv}
serving: {preset: vllm-v0, max_model_len: 2048, kv: {num_blocks: 512}}
cost: {model: linear, step_s: 0.01}
output: {dir: out, steps: true, timeline: true}
sweep:
  cost.step_s: [0.01, 0.02, 0.03]
END
printf 'arrival_s,prompt_tokens,output_tokens\n0,10,5\n1,20,3\n1,30,4\n' >three.csv
printf 'arrival_s,prompt_tokens,output_tokens\n0,10,x\n' >broken.csv
reports='config.yaml quantiles.csv requests.csv steps.csv summary.csv timeline.json'

alike() {
    for report in $reports; do
        same_bytes "$1/$report" "$2/$report"
    done
    same "$(ls -A "$1" | tr '\n' ' ')" "$reports " "the files in $1"
}

succeeds "$inflight" run config.yaml --quiet -o whole
succeeds "$inflight" run config.yaml --quiet --plot -o plotted
printed 'normalized latency, mean (ms/tok)'
same "$(grep -c '^step_s 0.0' logs/out)" 3 'bars of a sweep without a rate'
alike whole plotted
refuses 'inflight capacity: unknown option --plot' "$inflight" capacity config.yaml --plot

# a point that fails is recorded, and the rest go on
traces='sweep.workload.trace=[broken.csv,three.csv,broken.csv]'
expect 1 'inflight: 2 of 3 points failed, the first is point 0 (trace=broken.csv): broken.csv:2:6: ' \
    "$inflight" run config.yaml --quiet -o some --set sweep=null --set "$traces"
same "$(columns some/summary.csv workload.trace,requests,finished)" "$(printf 'broken.csv,,\nthree.csv,3,3\nbroken.csv,,')" \
    'the summary of failed points'
same "$(columns some/requests.csv point | sort -u)" 1 'the requests of failed points'
grep -q '^broken.csv,.*,.*broken.csv:2:6: ' some/summary.csv || complain 'no error in summary.csv'
same "$(ls -A some | tr '\n' ' ')" "$reports " 'the files in some'

# an axis keeps its position when --set gives it other values: the first axis varies slowest
succeeds "$inflight" run config.yaml --quiet -o axes --set 'sweep.serving.preset=[vllm-v0,sarathi]' \
    --set 'sweep.cost.step_s=[0.02,0.01]'
same "$(columns axes/summary.csv cost.step_s,serving.preset | tr '\n' ' ')" \
    '0.02,vllm-v0 0.02,sarathi 0.01,vllm-v0 0.01,sarathi ' 'the points of a changed axis'
rm -rf axes

# all points fail: the run is refused
refuses 'broken.csv:2:6: ' "$inflight" run config.yaml --quiet -o none --set sweep=null \
    --set 'sweep.workload.trace=[broken.csv,broken.csv]'
same "$(ls -A none)" '' 'the files in none'

# parts of a study, as a killed run leaves them: the program is killed while it waits for the trace of its last
# point
partly() {
    rm -rf "$1"
    mkfifo gate.csv 2>/dev/null
    "$inflight" run config.yaml --quiet -o "$1" --set sweep=null \
        --set 'sweep.workload.trace=[three.csv,three.csv,gate.csv]' &
    run=$!
    n_waits=0
    while [ ! -e "$1/.parts/record-000001" ] && [ $n_waits -lt 200 ]; do
        sleep 0.05
        n_waits=$((n_waits + 1))
    done
    kill -9 $run
    wait $run 2>/dev/null
}
partly cut
[ -e cut/.parts/record-000001 ] || complain 'no record of the second point'
cp -r cut cut-again
rm gate.csv
cp three.csv gate.csv
gates='sweep.workload.trace=[three.csv,three.csv,gate.csv]'
succeeds "$inflight" run config.yaml --quiet -o gates --set sweep=null --set "$gates"
succeeds "$inflight" run config.yaml --quiet -o cut --resume --set sweep=null --set "$gates"
alike cut gates

# a truncated or missing part is computed again
: >cut-again/.parts/requests.csv-000001
rm cut-again/.parts/steps.csv-000000
succeeds "$inflight" run config.yaml --quiet -o cut-again --resume --set sweep=null --set "$gates"
alike cut-again gates

# parts of another study are not used, and a run without --resume uses none
rm gate.csv
partly other
succeeds "$inflight" run config.yaml --quiet -o other --resume
alike other whole
rm -f gate.csv
partly fresh
succeeds "$inflight" run config.yaml --quiet -o fresh
alike fresh whole

# complete reports are not written again
touch -d '2001-01-01' whole/summary.csv
succeeds "$inflight" run config.yaml --quiet -o whole --resume
[ "$(find whole -name summary.csv -newermt 2002-01-01)" ] && complain 'a whole study was written again'
expect 0 'note: whole is complete' "$inflight" run config.yaml -o whole --resume

# replications: the first equals the run without replications; the others have new draws, the same for all
# policies
again() {
    dir=$1
    shift
    succeeds "$inflight" run config.yaml --quiet -o "$dir" --set output.timeline=false \
        --set sweep.cost.step_s=null --set 'sweep.serving.preset=[vllm-v0,sarathi]' \
        --set workload.arrivals.process=poisson --set workload.arrivals.rate_rps=2 "$@"
}
again single
again many --set replications=3
again many-threads --set replications=3 -j 3
arrivals() {
    awk -F, -v point="$2" '$1 == point { print $2, $5 }' "$1/requests.csv"
}
same "$(arrivals many 0)" "$(arrivals single 0)" 'the first replication'
same "$(arrivals many 3)" "$(arrivals single 1)" 'the first replication of the other policy'
same "$(arrivals many 1)" "$(arrivals many 4)" 'common random numbers'
[ "$(arrivals many 1)" != "$(arrivals many 0)" ] || complain 'the second replication is the first'
[ "$(arrivals many 1)" != "$(arrivals many 2)" ] || complain 'the third replication is the second'
same "$(columns many/summary.csv serving.preset,replication | tr '\n' ' ')" \
    'vllm-v0,0 vllm-v0,1 vllm-v0,2 sarathi,0 sarathi,1 sarathi,2 ' 'the points of replications'
same "$(columns many/replications.csv serving.preset,runs,requests | tr '\n' ' ')" \
    'vllm-v0,3,3 sarathi,3,3 ' 'replications.csv'
for report in replications.csv summary.csv requests.csv quantiles.csv config.yaml; do
    same_bytes many/$report many-threads/$report
done
again many
[ ! -e many/replications.csv ] || complain 'replications.csv of an earlier run is left'
refuses 'replications are all the same where nothing is drawn' \
    "$inflight" run config.yaml --quiet --set replications=3
# a router of one replica, and a patience that is the same for all, draw nothing
for nothing in cluster.router=random cluster.replicas=3 'workload.patience={process: constant, mean_s: 2}'; do
    refuses 'replications are all the same where nothing is drawn' \
        "$inflight" run config.yaml --quiet --set replications=2 --set "$nothing"
done
# drawn DIR COLUMNS EDIT...: two replications have different columns
drawn() {
    dir=$1
    of=$2
    shift 2
    succeeds "$inflight" run config.yaml --quiet -o "$dir" --set sweep=null --set replications=2 --set output.timeline=false "$@"
    columns "$dir/requests.csv" "point,$of" | sed -n 's/^0,//p' >first
    columns "$dir/requests.csv" "point,$of" | sed -n 's/^1,//p' >second
    same "$(wc -l <first)" "$(wc -l <second)" "rows of the replications of $*"
    cmp -s first second && complain "both replications of $* have the same $of"
    rm -r "$dir"
}
drawn routed replica --set cluster.replicas=3 --set cluster.router=random
drawn pooled replica --set 'cluster.pools={a: {count: 1}, b: {count: 2}}' --set cluster.router=power-of-two
drawn impatient status,left_s --set 'workload.patience={process: exponential, mean_s: 0.02}'
drawn again_sent arrival_s --set 'workload.patience={process: constant, mean_s: 0.02}' --set workload.retry.most=1
refuses 'replications is swept, expected one number' \
    "$inflight" run config.yaml --quiet --set 'sweep.replications=[1,2]'

# a warm-up: the first 30 requests arrive at once, each later one at an empty system
awk 'BEGIN {
    print "arrival_s,prompt_tokens,output_tokens"
    for (i = 0; i < 200; i++)
        print (i < 30 ? 0 : 10 * i) ",10,5"
}' >burst.csv
steady() {
    succeeds "$inflight" run config.yaml --quiet -o "$1" --set sweep=null \
        --set workload.trace=burst.csv --set serving.batching.max_seqs=1 --set "steady_state=$2"
}
steady transient false
steady settled true
same "$(columns settled/summary.csv warmup_requests,warmup_s,requests,mean_queue_s,mean_e2e_s)" \
    '30,300,170,0,0.05' 'the steady state'
same "$(columns transient/summary.csv warmup_requests,requests,p50_queue_s)" '0,200,0' 'all of it'
same_bytes transient/requests.csv settled/requests.csv
same_bytes transient/steps.csv settled/steps.csv
finish
