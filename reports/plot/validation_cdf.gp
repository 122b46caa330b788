# The distributions of a validation: simulated and measured, over the requests of both. What lies above a
# value is on a logarithm.
call ARG1.'/style.gp' ARG2 ARG3 ARG4 ARG5
# Columns of simulated and measured ttft, tpot and e2e; a panel without values keeps its axes.
array scale[3] = [1, 1000, 1]
array label[3] = ['TTFT (s)', 'TPOT (ms)', 'end to end (s)']
style_of(i) = sprintf("linecolor rgb colour_of(%d) dashtype dash_of(%d) linewidth 1.6", i, i)
points_style_of(i) = sprintf("with points pointtype filled_of(%d) pointsize 0.8 * mark linecolor rgb colour_of(%d)", i, i)
k = add_key("with linespoints pointtype filled_of(1) pointsize 0.8 * mark ".style_of(1), 'measured')
k = add_key("with linespoints pointtype filled_of(2) pointsize 0.8 * mark ".style_of(2), 'simulated')
set_page = page(wide ? 3 : 1, wide ? 1 : 3, 5.2, 0, 0)
curve_of(i, p) = sprintf("data using (scale[%d] * seen(%d)):(rest($1)) with lines %s, data using (scale[%d] * seen(%d)):(marked($1)) %s", p, 2 * p + 2 - i, style_of(i), p, 2 * p + 2 - i, points_style_of(i))
seen(c) = valid(c) && column(c) > 0 ? column(c) : NaN
positive_in(c, scale) = sprintf("(valid(%d) ? (%s1) : 1), ", c, value_in(c))

do for [format in formats] {
    eval open_page(format)
    do for [p = 1:3] {
        eval panel(p - 1)
        eval read_span(positive_in(2 * p, 1).positive_in(2 * p + 1, 1))
        span_low = scale[p] * span_low
        span_high = scale[p] * span_high
        eval log_axis('x')
        eval tail_axis
        set xlabel label[p] offset 0,0.4
        if (p == 1 || !wide) { set ylabel label('percentile') }
        eval 'plot '.curve_of(1, p).', '.curve_of(2, p)
    }
    eval legend('')
    eval close_page
}
