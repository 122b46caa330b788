# Least squares over the rows of all models but one: the time that steps lack is step_s + steps pass_s, and branch_s
# more a pass where there are branches. Prints model,step_s,pass_s,branch_s.
NR > 1 && $1 != without {
    lacks_s = ($8 / $9 - $8 / $10) * $12
    x[1] = 1; x[2] = $5; x[3] = $6 > 1 ? $5 : 0
    for (i = 1; i <= 3; i++) {
        y[i] += x[i] * lacks_s
        for (k = 1; k <= 3; k++) a[i, k] += x[i] * x[k]
    }
}
END {
    for (i = 1; i <= 3; i++)
        for (k = 1; k <= 3; k++)
            if (k != i) {
                f = a[k, i] / a[i, i]
                for (j = 1; j <= 3; j++) a[k, j] -= f * a[i, j]
                y[k] -= f * y[i]
            }
    printf "%s,%.9f,%.9f,%.9f\n", without, y[1] / a[1, 1], y[2] / a[2, 2], y[3] / a[3, 3]
}
