# What is recorded of one run beside its summary.csv, with the error of what is simulated. Times are recorded in ms.
FNR == 1 { file++; for (i = 1; i <= NF; i++) at[$i] = i; next }
file == 1 && $1 == id { metric[++n] = $2; recorded[n] = $3; counts[n] = $4 }
file == 2 {
    for (i = 1; i <= n; i++) {
        name = metric[i]
        in_ms = sub(/_ms$/, "_s", name)
        value = $at[name] * (in_ms ? 1000 : 1)
        if ($at[name] == "" || value == 0)
            printf "%s,%s,%s,%s,,,%s\n", id, what, metric[i], recorded[i], counts[i]
        else
            printf "%s,%s,%s,%s,%.6g,%.4f,%s\n", id, what, metric[i], recorded[i], value, value / recorded[i] - 1, counts[i]
    }
}
