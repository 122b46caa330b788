# Distributions of the time to first token and of the gaps between tokens, a curve a series, at one
# rate.
call ARG1.'/style.gp' ARG2 ARG3 ARG4
eval read_series
eval read_at_rate
wide = page_cm > 9
set_page = page(wide ? 2 : 1, wide ? 1 : 2, wide ? 5.6 : 4.8, n, longest)

do for [format in formats] {
    eval open_page(format)
    do for [i = 0:1] {
        eval panel(i)
        eval read_span(value_in(5 + i))
        eval log_axis('x')
        set ytics 0.25
        set yrange [0:1]
        set xlabel (i == 0 ? 'time to first token (s)' : 'inter-token latency (s)') offset 0,0.4
        set ylabel 'CDF'.at_rate
        eval 'plot '.lines_of(5 + i, 4).', '.marks_of(5 + i, 4, 25)
    }
    eval legend(line_keys)
    eval close_page
}
