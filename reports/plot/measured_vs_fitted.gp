# What the cost model predicts of each operation against what was measured; the lines are 0 and 20%.
call ARG1.'/style.gp' ARG2 ARG3 ARG4
eval read_series
stats data using 3 name 'measured' nooutput
set_page = page(1, 1, 8.2, n, longest)
dots = "for [i = 1:n] data using 3:(of(i, $4)) with points pointtype filled_of(i) pointsize 0.4 * mark linecolor rgb colour_of(i)"
dot_keys = "for [i = 1:n] NaN with points pointtype filled_of(i) pointsize mark linecolor rgb colour_of(i) title name[i]"

do for [format in formats] {
    eval open_page(format)
    eval panel(0)
    set xlabel 'measured (s)' offset 0,0.4
    set ylabel 'fitted (s)'
    set logscale xy
    set xtics format '10^{%T}'
    set ytics format '10^{%T}'
    set xrange [measured_min / 1.5:measured_max * 1.5]
    eval 'plot '.dots.', '.identity_lines
    eval legend(dot_keys)
    eval close_page
}
