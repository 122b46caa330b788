# Reads steps.csv. Least squares of what the kernels lack on the fitted half: errors relative to the measured step, every deployment with
# the same weight. Each host time alone, and each pair; a negative one is not a time.
NR > 1 && $2 == "fitted" && $3 == "yes" {
    n++
    name[n] = $1
    of[$1]++
    measured[n] = $7
    lacks[n] = $7 - $8
    a[n, "step_ms"] = 1
    a[n, "seq_us"] = $5 / 1e3
    a[n, "layer_us"] = $4 / 1e3
}

function sum(x, y,   i, s, by) {
    for (i = 1; i <= n; i++) {
        by = y == "" ? lacks[i] : a[i, y]
        s += a[i, x] * by / measured[i] ^ 2 / of[name[i]]
    }
    return s
}

function pair(x, y,   d, value) {
    d = sum(x, x) * sum(y, y) - sum(x, y) ^ 2
    value[x] = (sum(x, "") * sum(y, y) - sum(y, "") * sum(x, y)) / d
    value[y] = (sum(y, "") * sum(x, x) - sum(x, "") * sum(x, y)) / d
    printf "%s and %s", x, y
    for (i = 1; i <= 3; i++) printf ",%s", kind[i] in value ? sprintf("%.3f", value[kind[i]]) : 0
    print ""
}

END {
    split("step_ms seq_us layer_us", kind, " ")
    print "fitted,step_ms,seq_us,layer_us"
    for (k = 1; k <= 3; k++) {
        value = sprintf("%.3f", sum(kind[k], "") / sum(kind[k], kind[k]))
        print kind[k] "," (k == 1 ? value : 0) "," (k == 2 ? value : 0) "," (k == 3 ? value : 0)
    }
    pair("step_ms", "seq_us")
    pair("step_ms", "layer_us")
    pair("seq_us", "layer_us")
}
