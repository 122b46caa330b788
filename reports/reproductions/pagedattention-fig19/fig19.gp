# The cost of preempting one sequence of 512 tokens, and the latency under load, against the block size.
call ARG1.'/style.gp' ARG2 ARG3 ARG4
n = 2
array name[2] = ['recompute', 'swap']
eval read_keys
set_page = page(2, 1, 5.2, n, 12)
line_of(i) = sprintf("with linespoints pointtype filled_of(%d) pointsize mark linecolor rgb colour_of(%d) dashtype dash_of(%d) linewidth 1.4", i, i, i)

do for [format in formats] {
    eval open_page(format)
    do for [i = 0:1] {
        eval panel(i)
        set ylabel i == 0 ? 'overhead of 512 tokens (ms)' : 'mean normalized latency (s/token)'
        set xlabel 'block size (tokens)' offset 0,0.4
        set logscale x 2
        eval read_span(i == 0 ? value_in(2)."span_high = larger(column(3) + column(4), span_high), span_low = smaller_positive(span_low, column(3) + column(4)), " : value_in(5).value_in(6))
        eval log_axis('y')
        if (i == 0) { eval 'plot data using 1:2 '.line_of(1).', data using 1:($3 + $4) '.line_of(2) }
        if (i == 1) { eval 'plot data using 1:5 '.line_of(1).', data using 1:6 '.line_of(2) }
    }
    eval legend(line_keys)
    eval close_page
}
