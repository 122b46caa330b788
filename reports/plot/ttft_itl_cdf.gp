# Distributions of the time to first token and of the gaps between tokens, a curve a series, at one
# rate; bands where replications give an interval. What lies above a value is on a logarithm.
call ARG1.'/style.gp' ARG2 ARG3 ARG4 ARG5
eval read_series
eval read_at_rate
eval read_hollow
stats data using (valid(7) || valid(9)) name 'interval' nooutput
any_interval = interval_max > 0
eval key_interval
set_page = page(wide ? 2 : 1, wide ? 1 : 2, wide ? 5.6 : 4.8, n_keys, longest)

# An interval of a latency lies across: up along its low ends and down along its high ones, in $band_PANEL_SERIES.
band_rows(x) = sprintf("column(1) == i && valid(%d) ? (low = low.sprintf('%%.9g,%%.9g', above_floor($%d - $%d), rest($5)).nl, high = sprintf('%%.9g,%%.9g', $%d + $%d, rest($5)).nl.high, 1) : 1", x + 1, x, x + 1, x, x + 1)
nl = "\n"
if (any_interval) {
    do for [p = 0:1] {
        eval read_span(value_in(6 + 2 * p).interval_in(6 + 2 * p, 7 + 2 * p))
        dummy = log_axis('x')
        do for [i = 1:n] {
            low = ''
            high = ''
            eval 'stats data using ('.band_rows(6 + 2 * p).') nooutput'
            eval sprintf('set print $band_%d_%d', p, i)
            print "latency,rest\n".(strlen(low) ? low.high[1:strlen(high) - 1] : 'NaN,NaN')
            unset print
        }
    }
}
bands(p) = (bands_text = '', sum [i = 1:n] (bands_text = bands_text.sprintf("$band_%d_%d using 1:2 with filledcurves closed fillcolor rgb colour_of(%d) fillstyle transparent solid 0.2 noborder, ", p, i, i), 0), bands_text)

do for [format in formats] {
    eval open_page(format)
    do for [p = 0:1] {
        eval panel(p)
        eval read_span(value_in(6 + 2 * p).interval_in(6 + 2 * p, 7 + 2 * p))
        eval log_axis('x')
        eval tail_axis
        set xlabel (p == 0 ? 'time to first token (s)' : 'inter-token latency (s)').at_rate offset 0,0.4
        set ylabel label('percentile')
        eval 'plot '.(any_interval ? bands(p) : '') \
            .sprintf("for [i = 1:n] data using %d:(of(i, rest($5))) with lines linecolor rgb colour_of(i) dashtype dash_of(i) linewidth 1.4, ", 6 + 2 * p) \
            .points_where(6 + 2 * p, 'marked($5)', '', 0.8)
    }
    eval legend(line_keys)
    eval close_page
}
