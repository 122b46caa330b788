# The median of of[1..n], which are sorted: insertions, for a few hundred values at most.
function median_of(of, n,   i, j, x) {
    for (i = 2; i <= n; i++) {
        x = of[i]
        for (j = i - 1; j > 0 && of[j] > x; j--) of[j + 1] = of[j]
        of[j + 1] = x
    }
    return (of[int((n + 1) / 2)] + of[int(n / 2) + 1]) / 2
}
