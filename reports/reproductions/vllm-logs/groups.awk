# predicted.csv: mean and median error, mean magnitude, and points, of groups
function add(what, x) {
    n[what]++
    sum[what] += x
    size[what] += x < 0 ? -x : x
    list[what, n[what]] = x
    if (n[what] == 1) order[++groups] = what
}
NR > 1 && $17 != "-" {
    add("all", $17)
    add("split " $2, $17)
    add("engine " $4 ($5 == "yes" ? " async" : ""), $17)
    add("hardware " $6, $17)
    add("format " $9, $17)
    add("graphs " $10, $17)
    add("batch " ($12 == 1 ? "1" : $12 <= 16 ? "2-16" : $12 <= 64 ? "17-64" : "65-"), $17)
    add("gpus " ($7 == 1 ? "1" : "several"), $17)
    split($1, name, "-")
    add("source " name[1], $17)
}
END {
    print "group,mean,median,magnitude,points"
    for (g = 1; g <= groups; g++) {
        w = order[g]
        for (i = 1; i <= n[w]; i++) errors[i] = list[w, i]
        printf "%s,%.3f,%.3f,%.3f,%d\n", w, sum[w] / n[w], median_of(errors, n[w]), size[w] / n[w], n[w]
    }
}
