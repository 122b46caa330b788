# The capacity against a swept objective, or another key, a line a series; a bar from one end of the 95% interval
# to the other. A hollow point is a rate that was not yet too high.
hollow_text = 'hollow: at least'
call ARG1.'/style.gp' ARG2 ARG3 ARG4 ARG5
eval read_series
eval read_hollow
bar = "with yerrorbars pointtype 7 pointsize 0 linewidth 1.2"
stats data using (valid(6)) name 'interval' nooutput
any_bar = interval_max > 0
if (any_bar) { k = add_key("with lines linewidth 1.2 linecolor rgb '#909090'", 'bar: 95% interval') }
set_page = page(1, 1, 5.6, n_keys, longest)
bars = any_bar ? 'for [i = 1:n] data using 3:(of(i, $5)):6:7 '.bar.' linecolor rgb colour_of(i), ' : ''

do for [format in formats] {
    eval open_page(format)
    eval panel(0)
    set xlabel label(x_label) offset 0,0.4
    set ylabel label('capacity (requests/s)')
    eval read_span(value_in(5).value_in(6).value_in(7))
    eval x_axis
    eval y_axis('linear', 0, span_high * 1.04)
    eval 'plot '.bars.lines_of(3, 5).', '.points_of(3, 5)
    eval legend(line_keys)
    eval close_page
}
