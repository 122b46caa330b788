# What the cost model predicts of each operation against what was measured.
call ARG1.'/style.gp' ARG2 ARG3 ARG4 ARG5
eval read_series
eval read_span(value_in(3).value_in(4))
k = add_identity_keys(0)
set_page = page(1, 1, 8.2, n_keys, longest)
dots = "for [i = 1:n] data using 3:(of(i, $4)) with points pointtype filled_of(i) pointsize 0.4 * mark linecolor rgb colour_of(i)"

do for [format in formats] {
    eval open_page(format)
    eval panel(0)
    set xlabel label('measured (s)') offset 0,0.4
    set ylabel label('fitted (s)')
    eval log_axis('x')
    eval log_axis('y')
    eval 'plot '.dots.', '.identity_lines
    eval legend(dot_keys)
    eval close_page
}
