# From the rows of noise.awk, then those of service.csv, for each pair of policies on the same machine and each
# quantity: second over first, simulated and measured, whether both lie on the same side of 1, and where noise.awk
# knows it the measured one's standard error.
BEGIN { FS = ","; print "machine,first,second,quantity,simulated,measured,same_sign,measured_standard_error" }
NR == FNR { noise[$1, $2, $3, $4] = $5; next }
FNR == 1 { for (i = 3; i <= NF; i += 3) { name[i] = $i; sub(/_simulated$/, "", name[i]) } n_columns = NF; next }
$2 == "judged" {
    cut = match($1, /-[a-z]+$/)
    machine = substr($1, 1, cut - 1)
    second = substr($1, cut + 1)
    for (p = 1; p <= n[machine]; p++)
        for (i = 3; i <= n_columns; i += 3) {
            first = policy[machine, p]
            x = $i / of[machine, p, i]; y = $(i + 1) / of[machine, p, i + 1]
            printf "%s,%s,%s,%s,%.4f,%.4f,%s,%s\n", machine, first, second, name[i], x, y,
                ((x - 1) * (y - 1) > 0 ? "true" : "false"), noise[machine, first, second, name[i]]
        }
    p = ++n[machine]
    policy[machine, p] = second
    for (i = 3; i <= n_columns; i++) of[machine, p, i] = $i
}
