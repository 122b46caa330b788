#!/bin/sh
# Help, man pages and completions say every option of every command, and the examples work.
. "$(dirname "$0")/expect.sh"

succeeds "$inflight" help
sed -n 's/^    \([a-z][a-z]*\( [a-z][a-z]*\)\{0,1\}\)  .*/\1/p' logs/out >commands
same "$(grep -c '' commands)" 21 'commands in the list'
succeeds "$inflight" help --write written

# The message of an unknown option names all that the program takes.
options_of() {
    # shellcheck disable=SC2086 # a command of two words
    "$inflight" $1 --qqqqqqqq 2>&1 | sed 's/.*expected one of //' | tr -d , | tr ' ' '\n'
}

while read -r command; do
    # shellcheck disable=SC2086
    succeeds "$inflight" help $command
    cp logs/out help
    # shellcheck disable=SC2086
    succeeds "$inflight" $command --help
    same_bytes help logs/out
    # shellcheck disable=SC2086
    succeeds "$inflight" $command -q -h --set
    same_bytes help logs/out
    same "$(head -n 1 help | cut -d ' ' -f -$((2 + $(echo "$command" | wc -w))))" "usage: inflight $command" 'first line'
    grep -A 1 '^example:$' help | grep -q "^    inflight $command " || complain "help $command has no example"
    page=written/inflight-$(echo "$command" | tr ' ' -).1
    sed 's/\\-/-/g; s/\\f.//g' "$page" >page
    options_of "$command" >options
    [ "$(wc -l <options)" -ge 1 ] || complain "$command: no options in the message"
    while read -r option; do
        # the option, then what it does, there or on the next line
        grep -A 1 -E -e "^  (-[a-z],|   ) $option( |\$)" help | tr '\n' ' ' | grep -qE -e "$option( [^ ]+)? {2,}[^ ]" ||
            complain "help $command says nothing of $option"
        grep -A 1 -E -e "(^|, )$option( |\$)" page | tail -n 1 | grep -q '[a-z]' || complain "$page says nothing of $option"
        grep -qE -e "^    '$command'\) .*${option}[ ']" written/inflight.bash || complain "bash: $command $option"
        grep -qE -e "$option" written/_inflight || complain "zsh: $command $option"
        grep -qE -e "__inflight_is $command' -l ${option#--} " written/inflight.fish || complain "fish: $command $option"
    done <options
done <commands

# man pages: roff finds nothing to warn of. A date would make two builds differ.
for page in written/*.1; do
    if command -v groff >logs/found; then
        groff -man -Tutf8 -ww "$page" >logs/page 2>logs/err
        [ ! -s logs/err ] || complain "$page: $(cat logs/err)"
        [ -s logs/page ] || complain "$page is empty"
    fi
    ! command -v mandoc >logs/found || mandoc -Tlint -W error "$page" || complain "$page: mandoc"
done

# The examples: those of files that come with inflight, and those of files that an earlier one leaves, work.
# The others miss just their files.
example_of() {
    # shellcheck disable=SC2086
    "$inflight" help $1 | sed -n '/^example:$/{n;s/^ *inflight //;p;}'
}
runs() {
    eval "try \"\$inflight\" $(example_of "$1")"
    same "$code" 0 "the example of $1: $(cat logs/err)"
}
for command in run capacity 'trace stats' 'trace convert' 'trace generate' model plot report table list help; do
    runs "$command"
done
mkdir results/base results/mine
cp results/quickstart/*.csv results/quickstart/config.yaml results/base
cp results/quickstart/*.csv results/quickstart/config.yaml results/mine
runs compare
for command in calibrate fit identify validate import export; do
    example=$(example_of "$command")
    [ "$command" != calibrate ] || example=${example%cpu.csv}nowhere/cpu.csv
    eval "try \"\$inflight\" $example"
    case $(cat logs/err) in
    *'No such file'* | *'cannot open'* | *'expected 0 as above'*) ;;
    *) complain "the example of $command: $(cat logs/err)" ;;
    esac
done

# Completion in bash: commands, options, their values, keys, presets, files.
completes() {
    got=$(bash "$scripts/complete.bash" written/inflight.bash "$inflight $1" | tr '\n' ' ')
    same "$got" "$2 " "completion of: inflight $1"
}
mkdir folder
: >mine.yaml
if command -v bash >logs/found; then
    completes r 'run replay report'
    completes 'run --r' --resume
    completes 'run qui' quickstart
    completes 'run mi' mine.yaml
    completes 'run quickstart --set serving.pres' serving.preset=
    completes 'run quickstart --set serving.preset=sarathi-' \
        'sarathi-dynamic sarathi-orca sarathi-simple-chunking sarathi-vllm'
    completes 'run quickstart -o fo' folder
    completes 'trace ' 'stats convert generate tokens'
    completes 'trace generate --process g' gamma
    completes 'trace stats -f az' azure
    completes 'trace stats syn' synthetic.csv
    completes 'list pre' presets
    completes 'list preset vtc-w' vtc-weighted
    completes 'help trace con' convert
    completes 'model llama-3-' 'llama-3-70b llama-3-8b'
    completes 'plot results/quickstart -f slot' slot_grid
    completes 'calibrate --engine cu' cuda
fi
! command -v zsh >logs/found || zsh -fn written/_inflight || complain 'zsh cannot read _inflight'
if command -v fish >logs/found; then
    completes_in_fish() {
        got=$(fish --no-config -c "source written/inflight.fish; complete -C '$inflight $1'" | cut -f 1 | tr '\n' ' ')
        same "$got" "$2 " "completion in fish of: inflight $1"
    }
    completes_in_fish r 'report run'
    completes_in_fish 'run --re' --resume
    completes_in_fish 'run quickstart --set serving.preset=sarathi-o' serving.preset=sarathi-orca
    completes_in_fish 'trace generate --process g' gamma
fi

# What is no command
refuses 'unknown command comparee, did you mean compare[?]' "$inflight" help comparee
refuses 'usage: inflight help' "$inflight" help run --write written
refuses 'cannot make the output directory' "$inflight" help --write mine.yaml/folder
finish
