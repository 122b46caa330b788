# Share of the prompts that was cached, and of the requests that met every SLO, by time of arrival, a line a
# series: over bins of equal width.
call ARG1.'/style.gp' ARG2 ARG3 ARG4 ARG5
eval read_series
eval read_at_rate
eval read_hollow
inner_bottom_cm = 0.5
set_page = page(wide ? 2 : 1, wide ? 1 : 2, wide ? 4.8 : 3.9, n_keys, longest)
stats data using 5 name 'time' nooutput

do for [format in formats] {
    eval open_page(format)
    do for [i = 0:1] {
        eval panel(i)
        if (wide || i == 1) { set xlabel 'arrival (s)'.at_rate offset 0,0.4 }
        set ylabel (i == 0 ? 'prompt tokens cached (%)' : 'requests within SLOs (%)')
        eval linear_axis('x', 0, time_max)
        set yrange [0:100]
        set ytics 25
        percent = sprintf('100 * column(%d)', 6 + i)
        eval 'plot for [i = 1:n] data using 5:(of(i, '.percent.')) with steps linecolor rgb colour_of(i) dashtype dash_of(i) linewidth 1.2, ' \
             .points_where(5, percent, 'every 8::(int(8 * (i - 0.5) / n))', 0.8)
    }
    eval legend(line_keys)
    eval close_page
}
