#!/bin/sh
# A sweep on two hosts that share a file system and nothing else: network namespaces with a cable between
# them, names of their own, Open MPI's daemon started on the second as ssh would. The same bytes as on
# one, also after the second host has been cut off. 77 is skipped: it takes root, ip and unshare.
# Usage: hosts.sh INFLIGHT SOURCE MPIRUN
mpirun=$3
set -- "$1" "$2"
. "$(dirname "$0")/expect.sh"

[ "$(id -u)" -eq 0 ] || exit 77
one=inflight-$$-1
two=inflight-$$-2
cleanup() {
    for host in $one $two; do
        pids=$(ip netns pids $host 2>/dev/null)
        # shellcheck disable=SC2086 # a list on purpose
        [ -z "$pids" ] || kill -9 $pids 2>/dev/null
        ip netns del $host 2>/dev/null
    done
    leave
}
trap cleanup EXIT
ip netns add $one 2>/dev/null && ip netns add $two && ip link add v1 netns $one type veth peer name v2 netns $two &&
    unshare -u true || exit 77
for host in 1 2; do
    ip -n inflight-$$-$host addr add 10.77.0.$host/24 dev v$host
    ip -n inflight-$$-$host link set v$host up
    ip -n inflight-$$-$host link set lo up
done

# agent HOST COMMAND...: what ssh would be
cat >agent <<END
#!/bin/sh
host=inflight-$$-\${1##*.}
shift
exec ip netns exec \$host unshare -u sh -c "hostname \$host; \$*"
END
chmod +x agent

OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ASAN_OPTIONS=detect_leaks=0 # MPI does not free its memory
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM ASAN_OPTIONS

# Open MPI warns where the daemon has begun before its parent could put it into a group of its own.
ranks() {
    ip netns exec $one unshare -u sh -c 'hostname "$0"; exec "$@"' $one \
        "$mpirun" --quiet -H 10.77.0.1,10.77.0.2 --mca plm_rsh_agent "$work/agent" \
        --mca oob_tcp_if_include 10.77.0.0/24 --mca btl_tcp_if_include 10.77.0.0/24 \
        -x INFLIGHT_DATA -x ASAN_OPTIONS --wdir "$work" -n 2 "$@" 2>"$work/said"
    ended=$?
    grep -v 'plm:rsh: Warning: setpgid' "$work/said" >&2
    return $ended
}

"$inflight" trace generate -n 2000 --process poisson --rate 5 -o trace.csv
cat >config.yaml <<'END'
workload: {trace: trace.csv}
serving: {preset: vllm-v0, max_model_len: 2048, kv: {num_blocks: 512}}
cost: {model: linear, step_s: 0.01}
output: {dir: out, timeline: true}
sweep:
  serving.preset: [vllm-v0, sarathi]
  cost.step_s: [0.01, 0.012, 0.014, 0.016, 0.018, 0.02, 0.03, 0.04]
END
succeeds "$inflight" run config.yaml --quiet -o alone
same "$(ranks hostname | sort | tr '\n' ' ')" "$one $two " 'the names of the hosts'
alike() {
    for report in config.yaml quantiles.csv requests.csv summary.csv timeline.json; do
        same_bytes "alone/$report" "$1/$report"
    done
}
succeeds ranks "$inflight" run config.yaml --quiet -o both
alike both

# the cable is pulled out: the first host gives up or is stopped, and one host resumes the sweep
ranks "$inflight" run config.yaml --quiet -o cut >logs/out 2>logs/err &
n_waits=0
while [ ! -e cut/.parts/record-000002 ] && [ $n_waits -lt 400 ]; do
    sleep 0.02
    n_waits=$((n_waits + 1))
done
ip -n $two link set v2 down
sleep 0.2
# shellcheck disable=SC2046
kill -9 $(ip netns pids $one) $(ip netns pids $two) 2>/dev/null
wait
[ -e cut/.parts ] || complain 'the sweep was over before the cable was pulled out'
succeeds "$inflight" run config.yaml --quiet -o cut --resume
alike cut
finish
