# points.txt, then steps.csv: of each point the decode step that is compared. step: from the start of a step of the whole batch to
# the start of the next, where the context is nearest; wall: from arrival to the end of the last answer, over its tokens.
FNR == NR {
    point[NR] = $0
    n = NR
    next
}
FNR == 1 {
    for (i = 1; i <= NF; i++) at[$i] = i
    next
}
{
    k = int($at["start_s"] / 10000)
    r = $at["replica"]
    split(point[k], p, ",")
    end = $at["start_s"] + $at["duration_s"]
    if (end > last[k]) last[k] = end
    if (was[r] == k && tokens[r] == 0) { # the step before had no prompt: this start ends it
        if (seqs[r] > held[k]) {
            held[k] = seqs[r]
            off[k] = ""
        }
        away = context[r] / seqs[r] - p[16]
        if (away < 0) away = -away
        if (seqs[r] == held[k] && (off[k] == "" || away < off[k])) {
            off[k] = away
            step[k] = $at["start_s"] - start[r]
        }
    }
    was[r] = k
    start[r] = $at["start_s"]
    tokens[r] = $at["prefill_tokens"]
    seqs[r] = $at["decode_seqs"]
    context[r] = $at["context_tokens"]
}
END {
    for (k = 1; k <= n; k++) {
        split(point[k], p, ",")
        ms = 1000 * (p[12] == "wall" ? (last[k] - 10000 * k) / p[15] : step[k])
        result = held[k] ? sprintf("%.2f,%.3f", ms, ms / p[17] - 1) : "-,-" # no room for it
        print p[1] "," p[2] "," p[4] "," p[5] "," p[6] "," p[7] "," p[8] "," p[9] "," p[10] "," p[11] "," p[12] "," p[13] "," \
            p[16] "," held[k] + 0 "," p[17] "," result
    }
}
