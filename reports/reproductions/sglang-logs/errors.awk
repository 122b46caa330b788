# Reads fit.csv, then steps.csv: errors of the steps that count, by half, as imported, with the kernels alone, and with each fitted time.
FNR == NR {
    if (FNR > 1 && FNR < 5) {
        fits[++n] = $1
        host[$1] = $2 " " $3 " " $4
    }
    next
}
FNR > 1 && $3 == "yes" {
    if (!(($2, $1) in of)) servers[$2]++
    of[$2, $1]++
    points[$2]++
    at[$2, points[$2]] = $0
}

function ms(row, how,   f, h) {
    split(row, f, ",")
    if (how == "imported") return f[9]
    if (how == "kernels") return f[8]
    split(host[how], h, " ")
    return f[8] + h[1] + h[2] * f[5] / 1e3 + h[3] * f[4] / 1e3
}

function judge(half, how,   i, f, e, mean, size, by_server) {
    for (i = 1; i <= points[half]; i++) {
        split(at[half, i], f, ",")
        e = ms(at[half, i], how) / f[7] - 1
        mean += e / points[half]
        size += (e < 0 ? -e : e) / points[half]
        by_server += (e < 0 ? -e : e) / of[half, f[1]] / servers[half]
    }
    printf "%s,%s,%d,%d,%.3f,%.3f,%.3f\n", half, how, points[half], servers[half], mean, size, by_server
}

END {
    print "half,host,steps,servers,mean,mean_magnitude,mean_magnitude_by_server"
    split("fitted,held out", halves, ",")
    for (i = 1; i <= 2; i++) {
        judge(halves[i], "imported")
        judge(halves[i], "kernels")
        for (k = 1; k <= n; k++) judge(halves[i], fits[k])
    }
}
