#!/bin/sh
# On a terminal, help and lists fit its width, and names, notes and errors have colours; with NO_COLOR, on a
# dumb terminal and in a file there is no escape code.
. "$(dirname "$0")/expect.sh"
command -v python3 >logs/found || exit 77
escape=$(printf '\033')
TERM=xterm
export TERM
unset NO_COLOR

shown() {
    columns=$1
    shift
    python3 "$scripts/on_terminal.py" "$columns" "$@" >logs/out 2>logs/err
    code=$?
}
plain() {
    ! grep -q "$escape" logs/out || complain "$1: escape codes"
}
# No line is wider, without escape codes, but for a command to copy or a single word; every byte of these lists
# is a letter.
fits() {
    sed "s/$escape\[[0-9;]*m//g" logs/out | grep -v '^    inflight ' | awk -v most="$1" '
        length($0) > most && NF > 1' >beyond
    [ ! -s beyond ] || complain "$2: wider than $1 columns: $(cat beyond)"
}

for command in help 'help run' 'help table' 'list presets' 'list policies' 'list keys' 'list models' 'list hardware' \
    'list figures'; do
    # shellcheck disable=SC2086 # words on purpose
    shown 80 "$inflight" $command
    same "$code" 0 "$command on a terminal"
    grep -q "$escape\[1m" logs/out || complain "$command: nothing is bold"
    fits 80 "$command"
    # All words are there, in both widths.
    sed "s/$escape\[[0-9;]*m//g" logs/out | tr -s ' \n' '\n\n' >narrow
    # shellcheck disable=SC2086
    NO_COLOR=1 shown 300 "$inflight" $command
    plain "$command with NO_COLOR"
    tr -s ' \n' '\n\n' <logs/out >wide
    cmp -s narrow wide || complain "$command: other words on 80 columns than on 300"
    # shellcheck disable=SC2086
    TERM=dumb shown 80 "$inflight" $command
    plain "$command on a dumb terminal"
    fits 80 "$command on a dumb terminal"
    # shellcheck disable=SC2086
    NO_COLOR='' shown 80 "$inflight" $command
    grep -q "$escape\[1m" logs/out || complain "$command: an empty NO_COLOR takes the colours"
    # shellcheck disable=SC2086
    succeeds "$inflight" $command
    plain "$command in a file"
done

# an error is red, a note yellow
shown 80 "$inflight" run none.yaml
same "$code" 2 'no such file'
grep -q "$escape\[31mnone.yaml: .*$escape\[0m" logs/out || complain "an error: $(cat logs/out)"
NO_COLOR=1 shown 80 "$inflight" run none.yaml
plain 'an error with NO_COLOR'
fly="run quickstart --set sweep=null --set workload.limit=20 --set output.plots=false --set cost.step_s=1"
# shellcheck disable=SC2086
shown 80 "$inflight" $fly
grep -q "${escape}\[33mnote:$escape\[0m " logs/out || complain 'a note has no colour'
# shellcheck disable=SC2086
"$inflight" $fly >file 2>&1
! grep -q "$escape" file || complain 'a run in a file has escape codes'
finish
