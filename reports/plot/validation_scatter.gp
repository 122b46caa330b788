# Each request of a validation, simulated against measured; the dashed lines are 20% off.
call ARG1.'/style.gp' ARG2 ARG3 ARG4
data = out_dir.'/validation_requests.csv'
set_page = page(3, 1, 5.8, 0, 0)

# Columns of simulated and measured ttft, tpot and e2e. Only what is above 0 on both sides has a place
# on a logarithm; a panel without any keeps its axes.
array first[3] = [6, 8, 10]
array scale[3] = [1, 1000, 1]
array label[3] = ['TTFT (s)', 'TPOT (ms)', 'end to end (s)']
array low[3]
array high[3]
shown(c) = valid(c) && valid(c + 1) && column(c) > 0 && column(c + 1) > 0
seen(c, of) = shown(c) ? column(of) : NaN
smaller(a, b) = a < b ? a : b
do for [p = 1:3] {
    low[p] = 1e30
    high[p] = 0
    c = first[p]
    stats data using (shown(c) ? (low[p] = smaller(low[p], smaller(column(c), column(c + 1))), high[p] = larger(high[p], larger(column(c), column(c + 1))), 1) : 1) nooutput
    if (high[p] == 0) { low[p] = 0.1; high[p] = 1 }
    low[p] = scale[p] * low[p] / 1.3
    high[p] = scale[p] * high[p] * 1.3
}

do for [format in formats] {
    eval open_page(format)
    do for [p = 1:3] {
        eval panel(p - 1)
        if (high[p] > 17 * low[p]) { set logscale xy }
        set xrange [low[p]:high[p]]
        set yrange [low[p]:high[p]]
        set xlabel 'measured '.label[p] offset 0,0.4
        if (p == 1) { set ylabel 'simulated' }
        eval "plot data using (scale[p] * seen(first[p], first[p] + 1)):(scale[p] * column(first[p])) with points pointtype 7 pointsize 0.35 * mark linecolor rgb colour_of(1), ".identity_lines
    }
    eval close_page
}
