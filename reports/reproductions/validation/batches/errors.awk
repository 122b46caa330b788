# The judged rows of batches.csv, a row a deployment and quantity: how many, their mean error, and the median and the
# largest of their absolute errors.
BEGIN { FS = ","; print "deployment,quantity,batches,error_mean,error_abs_p50,error_abs_max" }
function put(    median) {
    median = median_of(of, n)
    printf "%s,%d,%.4f,%.4f,%.4f\n", series, n, sum / n, median, of[n]
}
NR == 1 || $2 != "judged" { next }
{
    error = $9
    if (!(($1 "," $6) in rows)) order[++n_series] = $1 "," $6
    rows[$1 "," $6] = rows[$1 "," $6] " " error
}
END {
    for (k = 1; k <= n_series; k++) {
        series = order[k]
        n = split(rows[series], of, " ")
        sum = 0
        for (i = 1; i <= n; i++) { sum += of[i]; of[i] = of[i] < 0 ? -of[i] : of[i] + 0 }
        put()
    }
}
