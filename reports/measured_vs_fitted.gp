# What the cost model predicts of each operation against what was measured; the lines are 0 and 20%.
out_dir = ARG2
load ARG1.'/style.gp'
data = out_dir.'/measured_vs_fitted.csv'
figure = out_dir.'/measured_vs_fitted.'

stats data using 1 name 'op' nooutput
n = int(op_max)
array name[n]
stats data using (name[int($1)] = strcol(2), $3) name 'measured' nooutput
of(i, value) = column(1) == i ? value : NaN

set xlabel 'measured (s)'
set ylabel 'fitted (s)'
set logscale xy
set format xy '10^{%T}'
set xtics format '10^{%T}'
set ytics format '10^{%T}'
set xrange [measured_min / 1.5:measured_max * 1.5]
set key outside below center horizontal samplen 1 spacing 1.1 height 0.5 maxcols 3

do for [format in formats] {
    eval terminal_of(format, 8.8, 8.2 + 0.36 * legend_rows(n, 3))
    set output figure.format
    plot for [i = 1:n] data using 3:(of(i, $4)) with points pointtype filled_of(i) pointsize 0.4 * mark linecolor rgb colour_of(i) notitle, \
         x with lines linecolor rgb '#202020' linewidth 1 notitle, \
         1.2 * x with lines linecolor rgb '#808080' dashtype 2 linewidth 0.8 notitle, \
         x / 1.2 with lines linecolor rgb '#808080' dashtype 2 linewidth 0.8 notitle, \
         for [i = 1:n] NaN with points pointtype filled_of(i) pointsize mark linecolor rgb colour_of(i) title name[i]
    unset output
}
