#!/bin/sh
# -o FILE of any kind: links keep, and lead to their target; devices and FIFOs are written as they are; a
# directory is refused. All of it is private to this script.
. "$(dirname "$0")/expect.sh"

cat >config.yaml <<'E1'
workload: {trace: trace.csv}
serving: {preset: vllm-v0, max_model_len: 2048, kv: {num_blocks: 512}}
cost: {model: linear, prefill_token_s: 0.0001}
output: {dir: out, plots: false}
sweep: {serving.batching.max_seqs: [1, 2]}
E1
printf 'arrival_s,prompt_tokens,output_tokens\n0,10,5\n1,20,3\n1,30,4\n' >trace.csv
succeeds "$inflight" run config.yaml -q -o out

# NAME FILE: a command that writes FILE.
writes() {
    case $1 in
        report) try "$inflight" report out -o "$2" ;;
        table) try "$inflight" table out -o "$2" ;;
        generate) try "$inflight" trace generate -n 9 -o "$2" ;;
        convert) try "$inflight" trace convert trace.csv -o "$2" ;;
    esac
}
commands='report table generate convert'

for name in $commands; do
    writes "$name" "plain.$name"
    same "$code" 0 "$name into a file"

    # a link to a file, in another folder; and one to nothing yet
    mkdir -p far/deep
    echo old >"far/$name"
    ln -s "../$name" "far/deep/$name"
    ln -s "far/deep/$name" "link.$name"
    ln -s "missing.$name" "dangling.$name"
    for link in "link.$name far/$name" "dangling.$name missing.$name"; do
        writes "$name" "${link% *}"
        same "$code" 0 "$name through a link"
        [ -L "${link% *}" ] || complain "$name replaces a link"
        cmp -s "plain.$name" "${link#* }" || complain "$name does not write the target of ${link% *}"
    done
    [ -L "far/deep/$name" ] || complain "$name replaces a link behind a link"

    # FIFOs, and the program's own output under a name
    mkfifo "fifo.$name"
    cat "fifo.$name" >"read.$name" &
    reader=$!
    writes "$name" "fifo.$name"
    same "$code" 0 "$name into a FIFO"
    [ -p "fifo.$name" ] || complain "$name replaces a FIFO"
    [ "$code" -eq 0 ] && [ -p "fifo.$name" ] || kill "$reader"
    wait "$reader"
    cmp -s "plain.$name" "read.$name" || complain "$name does not write into a FIFO"
    writes "$name" /dev/stdout
    cmp -s "plain.$name" logs/out || complain "$name does not write to its output"

    # directories
    mkdir "folder.$name"
    writes "$name" "folder.$name"
    wanted=2
    pattern="folder.$name: is a directory, expected a file"
    judge
    rmdir "folder.$name" || complain "$name writes into a directory"
done
[ -e fifo.table.tmp ] && complain 'a FIFO has a temporary file'

# private devices like the null and the full one, where the user may make them and the folder may have them
if mknod null c 1 3 2>/dev/null && mknod full c 1 7 && (: >null) 2>/dev/null; then
    for name in $commands; do
        writes "$name" null
        same "$code" 0 "$name into a device"
        writes "$name" full
        wanted=1
        pattern='full: cannot write*: No space left on device'
        judge
        [ -c null ] && [ -c full ] || complain "$name replaces a device"
    done
fi

finish
