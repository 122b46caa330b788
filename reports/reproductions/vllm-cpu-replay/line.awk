# Least squares of a step's duration over 1, whether it has prompts, tokens, sequences: of the steps of a log that
# begin from FROM until UPTO (seconds). Prints how many they are, the mean duration, the four coefficients, and the
# mean that the coefficients GIVEN (four, with blanks between them) have for the same steps.
BEGIN { FS = ","; split(given, c, " ") }
FNR > 1 { begins[$1] = $2; lasts[$1] = $3; tokens[$1] += $5; prompts[$1] = prompts[$1] || $5 > 1; seqs[$1]++; n_steps = $1 + 1 }
END {
    for (s = 0; s < n_steps; s++) {
        if (begins[s] < from || begins[s] >= upto)
            continue
        x[1] = 1; x[2] = prompts[s] + 0; x[3] = tokens[s]; x[4] = seqs[s]; x[5] = lasts[s]
        n++
        sum += x[5]
        for (i = 1; i <= 4; i++) {
            line += c[i] * x[i]
            for (j = 1; j <= 5; j++)
                m[i, j] += x[i] * x[j]
        }
    }
    for (i = 1; i <= 4; i++)
        for (k = 1; k <= 4; k++) {
            by = m[k, i] / m[i, i]
            for (j = 1; k != i && j <= 5; j++)
                m[k, j] -= by * m[i, j]
        }
    printf "%d %.9f", n, sum / n
    for (i = 1; i <= 4; i++)
        printf " %.9f", m[i, 5] / m[i, i]
    printf " %.9f\n", line / n
}
