# Reads given/pairs.csv: steps x step_ms + tokens x seq_us is what a run takes longer without overlap. The two host times from each two of
# the pairs, and the third pair from them.
NR > 1 {
    n++
    id[n] = $1
    steps[n] = $7
    tokens[n] = $8
    longer_ms[n] = ($10 - $9) * ($11 == "s a run" ? 1e3 : 1)
}
END {
    print "from,step_ms,seq_us,third,longer_recorded_ms,longer_predicted_ms"
    for (third = n; third; third--) {
        i = third == 1 ? 2 : 1
        j = third == 3 ? 2 : 3
        d = steps[i] * tokens[j] - steps[j] * tokens[i]
        step_ms = (longer_ms[i] * tokens[j] - longer_ms[j] * tokens[i]) / d
        seq_ms = (longer_ms[j] * steps[i] - longer_ms[i] * steps[j]) / d
        printf "%s and %s,%.3f,%.1f,%s,%.6g,%.4g\n", id[i], id[j], step_ms, 1e3 * seq_ms, id[third], longer_ms[third],
            steps[third] * step_ms + tokens[third] * seq_ms
    }
}
