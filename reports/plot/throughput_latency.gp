# Normalized latency against output throughput, a line a series along its rates. Ringed points are the
# Pareto front: no other is as good in both.
call ARG1.'/style.gp' ARG2 ARG3 ARG4
eval read_series
eval read_rates
eval read_span(value_in(7))
set_page = page(1, 1, 5.6, n + any_hollow + 1, larger(longest, larger(hollow_letters, 20)))
ring = "with points pointtype 6 pointsize 2.1 * mark linewidth 0.8 linecolor rgb '#404040'"

do for [format in formats] {
    eval open_page(format)
    eval panel(0)
    set xlabel 'output throughput (tokens/s)' offset 0,0.4
    set ylabel 'mean normalized latency (s/token)'
    eval log_axis('y')
    set xrange [0:*]
    eval 'plot data using 5:(strcol(9) eq "true" ? $7 : NaN) '.ring.', '.lines_of(5, 7).', '.points_of(5, 7)
    eval legend(line_keys.hollow_key.', NaN '.ring.' title "ringed: Pareto front"')
    eval close_page
}
