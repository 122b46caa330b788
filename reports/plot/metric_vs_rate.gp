# A column of the summary against the swept axis, a line a series, bands where replications give an interval.
call ARG1.'/style.gp' ARG2 ARG3 ARG4 ARG5
eval read_series
eval read_rates
eval key_interval
set_page = page(1, 1, 5.6, n_keys, longest)

do for [format in formats] {
    eval open_page(format)
    eval panel(0)
    set xlabel label(x_label) offset 0,0.4
    set ylabel label(y_label)
    eval read_span(value_in(5).interval_in(5, 6))
    eval x_axis
    eval y_axis(y_usual, 0, span_high * 1.04)
    eval 'plot '.bands_of(3, 5, 6).lines_of(3, 5).', '.points_of(3, 5)
    eval legend(line_keys)
    eval close_page
}
