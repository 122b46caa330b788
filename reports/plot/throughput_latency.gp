# Normalized latency against output throughput, a line a series along its rates, bars where replications
# give an interval. Ringed points are the Pareto front: no other is as good in both.
call ARG1.'/style.gp' ARG2 ARG3 ARG4 ARG5
eval read_series
eval read_rates
eval read_span(value_in(7).interval_in(7, 8))
ring = "with points pointtype 6 pointsize 2.1 * mark linewidth 0.8 linecolor rgb '#404040'"
bars = "for [i = 1:n] data using 5:(of(i, $7)):($5 - $6):($5 + $6):(above_floor($7 - $8)):($7 + $8) with xyerrorbars pointsize 0 linewidth 0.7 linecolor rgb colour_of(i), "
k = add_key(ring, 'ringed: Pareto front')
if (any_interval) { k = add_key("with lines linewidth 0.7 linecolor rgb '#404040'", 'bar: 95% interval') }
stats data using (any_interval ? column(5) + column(6) : column(5)) name 'throughput' nooutput
set_page = page(1, 1, 5.6, n_keys, longest)

do for [format in formats] {
    eval open_page(format)
    eval panel(0)
    set xlabel label('output throughput (tokens/s)') offset 0,0.4
    set ylabel label('mean normalized latency (s/token)')
    eval log_axis('y')
    eval linear_axis('x', 0, throughput_max * 1.04)
    eval 'plot '.(any_interval ? bars : '').'data using 5:(strcol(9) eq "true" ? $7 : NaN) '.ring.', '.lines_of(5, 7).', '.points_of(5, 7)
    eval legend(line_keys)
    eval close_page
}
