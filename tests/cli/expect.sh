# Sourced by the scripts beside it, which get the program and the source folder as arguments.
#
# Every script works in a folder of its own, which is gone afterwards, and ends with `finish`.
# PATTERN is a shell pattern for a part of a line.

[ $# -eq 2 ] || { echo "usage: $0 INFLIGHT SOURCE"; exit 1; }
inflight=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
INFLIGHT_DATA=$(cd "$2" && pwd)
LC_ALL=C
export INFLIGHT_DATA LC_ALL

scripts=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) || exit 1
trap 'leave' EXIT
trap 'exit 1' HUP INT TERM
cd "$work" || exit 1
mkdir logs
n_failures=0
finished=

# A script that ends without `finish` has not been judged.
leave() {
    code=$?
    rm -rf "$work"
    [ "$finished" ] || [ $code -ne 0 ] || { echo "FAILED: $0 ends without finish" && exit 1; }
}

complain() {
    n_failures=$((n_failures + 1))
    printf 'FAILED: %s\n' "$@"
}

# Runs the command; its code, its output and its messages are in $code, logs/out and logs/err.
try() {
    ran=$*
    "$@" >logs/out 2>logs/err
    code=$?
}

# The command ends with CODE and prints one line that matches PATTERN, or nothing if PATTERN is empty.
expect() {
    wanted=$1
    pattern=$2
    shift 2
    try "$@"
    judge
}

# The checks of `expect` for a command that has already run.
judge() {
    said=$(cat logs/err)
    [ "$code" -eq "$wanted" ] || complain "$ran" "    exit code $code, not $wanted: $said"
    if [ -z "$pattern" ]; then
        [ -z "$said" ] || complain "$ran" "    said: $said"
        return
    fi
    [ "$(grep -c '' logs/err)" -eq 1 ] || complain "$ran" "    said not one line: $said"
    # shellcheck disable=SC2254 # a pattern on purpose
    case $said in
    *$pattern*) ;;
    *) complain "$ran" "    said:     $said" "    expected: $pattern" ;;
    esac
}

succeeds() {
    expect 0 '' "$@"
}

refuses() {
    expect 2 "$@"
}

# The last command's output has the words.
printed() {
    grep -qF -- "$1" logs/out || complain "$ran" "    did not print: $1"
}

# The last command did not print the words.
unsaid() {
    if grep -qF -- "$1" logs/out logs/err; then complain "$ran" "    printed: $1"; fi
}

# same TEXT WANTED WHAT
same() {
    [ "$1" = "$2" ] || complain "$3" "    found:    $1" "    expected: $2"
}

# CONFIG FILE...: flown into `out` with steps of its own choice; what `out/config.yaml` says again, each step planned,
# and each promise checked write the same files.
flies_alike() {
    flown=$1
    shift
    succeeds "$inflight" run "$flown" --quiet
    succeeds "$inflight" run out/config.yaml --quiet -o again
    succeeds "$inflight" run "$flown" --quiet -o planned --set serving.steady_runs=false
    succeeds "$inflight" run "$flown" --quiet -o checked --set serving.check_steady=true
    for file; do
        same_bytes "out/$file" "again/$file"
        same_bytes "out/$file" "planned/$file"
        same_bytes "out/$file" "checked/$file"
    done
}

same_bytes() {
    cmp -s "$1" "$2" || complain "$1 and $2 differ"
}

# The named columns of a report, a line a row, without the header.
columns() {
    awk -F, -v wanted="$2" '
        NR == 1 {
            n = split(wanted, names, ",")
            for (i = 1; i <= NF; i++)
                at[$i] = i
            next
        }
        {
            for (k = 1; k <= n; k++)
                printf "%s%s", names[k] in at ? $at[names[k]] : "no column", k < n ? "," : "\n"
        }' "$1"
}

# Waits until the command succeeds, however busy the machine is.
within_a_minute() {
    waited=0
    until "$@" 2>/dev/null; do
        [ $waited -lt 1200 ] || return 1
        sleep 0.05
        waited=$((waited + 1))
    done
}

finish() {
    finished=yes
    [ "$n_failures" -eq 0 ]
    exit
}
