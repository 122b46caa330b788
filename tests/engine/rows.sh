# For scripts that listen to an engine (telling_engine.c).

fail() {
    echo "$*" >&2
    exit 1
}
listen() { # engine, telling engine
    mkdir engines
    cp "$2" engines/inflight_cpu.so
    export TELLING_ENGINE="$1" TELLING_LOG="$PWD/told"
}
told() { # config, settings...
    config=$1
    shift
    rm -f told
    INFLIGHT_ENGINE_DIR="$PWD/engines" "$inflight" run "$config" --quiet -o out "$@" || fail "$config $* does not run"
}
refuses() { # config, pattern, settings...
    config=$1 pattern=$2
    shift 2
    status=0
    "$inflight" run "$config" --quiet -o refused "$@" 2> message || status=$?
    [ $status = 2 ] && [ "$(wc -l < message)" = 1 ] && grep -q "$pattern" message ||
        fail "expected $pattern: exit $status, $(cat message)"
}
# Rows of logits of these engines, sorted by what they are of.
sorted_rows() {
    awk -v engines="$1" '$1 == "row" && index(engines, $2) { $1 = $2 = ""; print }' told | sort -k1,1n -k2,2n -k4,4g
}
# The same tokens, and logits within 1e-5 of the largest in the row, or $tolerance of it.
compare_rows() { # what, a file of rows, another
    [ "$(wc -l < "$2")" = "$(wc -l < "$3")" ] || fail "$1: $(wc -l < "$3") rows, expected $(wc -l < "$2")"
    paste -d' ' "$2" "$3" | awk -v bound="${tolerance:-1e-5}" '{
        half = NF / 2
        if ($1 != $(1 + half) || $2 != $(2 + half) || $3 != $(3 + half)) exit 1
        most = off = 0
        for (i = 4; i <= half; i++) {
            size = $i < 0 ? -$i : $i
            apart = $i - $(i + half)
            apart = apart < 0 ? -apart : apart
            if (size > most) most = size
            if (apart > off) off = apart
        }
        if (!(off <= bound * most)) exit 1
    }' || fail "$1: logits or tokens are others"
}
