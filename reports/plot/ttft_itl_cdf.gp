# Distributions of the time to first token and of the gaps between tokens, a curve a series, at one
# rate.
call ARG1.'/style.gp' ARG2 ARG3 ARG4
eval read_series
eval read_at_rate
wide = page_cm > 9
set_page = page(wide ? 2 : 1, wide ? 1 : 2, wide ? 5.6 : 4.8, n, longest)

# A panel without a single value, as of gaps where every answer has one token, keeps its axes.
positive(column_number) = column(column_number) > 0 ? column(column_number) : NaN
n_ttft = 0
n_itl = 0
stats data using (n_ttft = n_ttft + ($5 > 0), n_itl = n_itl + ($6 > 0), $1) name 'values' nooutput
range_of(n_values) = n_values > 0 ? 'set xrange [*:*]' : 'set xrange [0.1:1]'

do for [format in formats] {
    eval open_page(format)
    do for [i = 0:1] {
        eval panel(i)
        set logscale x
        set ytics 0.25
        set yrange [0:1]
        set xlabel (i == 0 ? 'time to first token (s)' : 'inter-token latency (s)') offset 0,0.4
        set ylabel 'CDF'.at_rate
        eval range_of(i == 0 ? n_ttft : n_itl)
        eval 'plot '.lines_of(5 + i, 4).', '.marks_of(5 + i, 4, 25)
    }
    eval legend(line_keys)
    eval close_page
}
