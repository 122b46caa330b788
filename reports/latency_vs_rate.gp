# Mean normalized latency against the arrival rate, a line a series. Hollow points are saturated:
# their latency tells how long the run was, not how the system serves.
out_dir = ARG2
load ARG1.'/style.gp'
data = out_dir.'/latency_vs_rate.csv'
figure = out_dir.'/latency_vs_rate.'

stats data using 1 name 'series' nooutput
n = int(series_max)
array name[n]
stats data using (name[int($1)] = strcol(2), $3) name 'rate' nooutput
stats data using (strcol(6) eq 'true') name 'saturated' nooutput

of(i, value) = column(1) == i ? value : NaN
when(i, saturated, value) = column(1) == i && strcol(6) eq saturated ? value : NaN

set xlabel 'arrival rate (requests/s)'
set ylabel 'mean normalized latency (s/token)'
set logscale y
set xrange [0:rate_max * 1.04]
set key outside below center horizontal samplen 2.2 spacing 1.1 height 0.5 maxcols 2

do for [format in formats] {
    eval terminal_of(format, 8.8, 5.6 + 0.36 * legend_rows(n + 1, 2))
    set output figure.format
    plot for [i = 1:n] data using 3:(of(i, $4)) with lines linecolor rgb colour_of(i) dashtype dash_of(i) linewidth 1.4 notitle, \
         for [i = 1:n] data using 3:(when(i, 'true', $4)) with points pointtype 7 pointsize 1.1 * mark linecolor rgb '#ffffff' notitle, \
         for [i = 1:n] data using 3:(when(i, 'true', $4)) with points pointtype hollow_of(i) pointsize mark linecolor rgb colour_of(i) notitle, \
         for [i = 1:n] data using 3:(when(i, 'false', $4)) with points pointtype filled_of(i) pointsize mark linecolor rgb colour_of(i) notitle, \
         for [i = 1:n] NaN with linespoints pointtype filled_of(i) pointsize mark linecolor rgb colour_of(i) dashtype dash_of(i) linewidth 1.4 title name[i], \
         NaN with points pointtype 6 pointsize mark linecolor rgb '#404040' title (saturated_max > 0 ? 'hollow: saturated' : '')
    unset output
}
