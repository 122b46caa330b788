# The distributions of a validation: simulated and measured, over the requests of both.
call ARG1.'/style.gp' ARG2 ARG3 ARG4
set_page = page(3, 1, 5.2, 2, 9)

# Columns of simulated and measured ttft, tpot and e2e; a panel without values keeps its axes.
array scale[3] = [1, 1000, 1]
array label[3] = ['TTFT (s)', 'TPOT (ms)', 'end to end (s)']
array low[3]
array high[3]
seen(c) = valid(c) && column(c) > 0 ? column(c) : NaN
smaller(a, b) = a < b ? a : b
do for [p = 1:3] {
    low[p] = 1e30
    high[p] = 0
    stats data using (valid(2 * p) && column(2 * p) > 0 ? (low[p] = smaller(low[p], column(2 * p)), high[p] = larger(high[p], column(2 * p)), 1) : 1) nooutput
}
measured = "with lines linecolor rgb colour_of(1) linewidth 1.6"
simulated = "with lines linecolor rgb colour_of(2) dashtype 2 linewidth 1.6"

do for [format in formats] {
    eval open_page(format)
    do for [p = 1:3] {
        eval panel(p - 1)
        if (high[p] > 10 * low[p]) { set logscale x }
        set autoscale xfix
        if (high[p] == 0) { set xrange [0.1:1] }
        set yrange [0:1]
        set ytics 0.25
        set xlabel label[p] offset 0,0.4
        if (p == 1) { set ylabel 'CDF' }
        eval 'plot data using (scale[p] * seen(2 * p + 1)):1 '.measured.', data using (scale[p] * seen(2 * p)):1 '.simulated
    }
    eval legend('NaN '.measured." title 'measured', NaN ".simulated." title 'simulated'")
    eval close_page
}
