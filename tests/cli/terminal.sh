#!/bin/sh
# The progress line on a terminal: it never wraps, messages do not follow it, and a terminal that
# cannot erase a line has none.
. "$(dirname "$0")/expect.sh"
command -v script >logs/out || exit 77 # of bsdutils

cat >config.yaml <<'END'
workload: {trace: trace.csv}
serving: {preset: vllm-v0, max_model_len: 2048, kv: {num_blocks: 512}}
cost: {model: linear, step_s: 0.01}
output: {dir: out}
END
succeeds "$inflight" trace generate -n 400000 --prompt fixed:9 --output-tokens fixed:9 \
    --process constant --rate 100 -o trace.csv
echo 9,9999,1 >>trace.csv

# terminal KIND COLUMNS: the output, each line from the cursor's position at its beginning
terminal() {
    TERM=$1 script -qec "stty cols $2; '$inflight' run config.yaml" logs/typescript >logs/out
    sed 1d logs/typescript | tr '\r' '\n' | sed 's/\x1b\[[0-9;]*[mK]//g' >lines
    same "$(grep -c '^note: .* out of order' lines)" 1 "a note at the beginning of a line on $1"
    same "$(grep -c '^note: rejected requests: 1 longer' lines)" 1 "another on $1"
}

terminal xterm 30
grep -q '^\[\.' lines || complain 'no progress line on a terminal'
awk '/^\[/ && length > 29 { exit 1 }' lines || complain 'a progress line that wraps'
terminal xterm 200
grep -q '^\[.* of 1 points, .* requests' lines || complain 'a progress line is cut for no reason'
terminal dumb 80
grep -q '^\[' lines && complain 'a progress line on a terminal that cannot erase one'
grep -q "$(printf '\033')" logs/typescript && complain 'escapes on a terminal that knows none'
finish
