# Distributions of the time to first token and of the gaps between tokens, a curve a series. In a
# sweep of rates all curves are of one rate, the middle one of those that all series share.
out_dir = ARG2
load ARG1.'/style.gp'
data = out_dir.'/ttft_itl_cdf.csv'
figure = out_dir.'/ttft_itl_cdf.'

stats data using 1 name 'series' nooutput
n = int(series_max)
array name[n]
rate = ''
stats data using (name[int($1)] = strcol(2), rate = strcol(3), $4) name 'quantile' nooutput
at_rate = rate eq '' ? '' : sprintf(' at %s requests/s', rate)

of(i, value) = column(1) == i && value > 0 ? value : NaN
# A panel without a single value, as of gaps where every answer has one token, keeps its axes.
axis_of(n_values) = n_values > 0 ? 'set xrange [*:*]' : 'set xrange [0.1:1]'
ttft_values = 0
itl_values = 0
stats data using (ttft_values = ttft_values + ($5 > 0), itl_values = itl_values + ($6 > 0), $4) name 'quantile' nooutput
panel(c) = sprintf("plot for [i = 1:n] data using (of(i, column(%d))):4 with lines linecolor rgb colour_of(i) dashtype dash_of(i) linewidth 1.4, for [i = 1:n] data using (of(i, column(%d))):4 every 25::(6 * i) with points pointtype filled_of(i) pointsize 0.8 * mark linecolor rgb colour_of(i)", c, c)

do for [format in formats] {
    rows = legend_rows(n, 4)
    height = 5.5 + 0.36 * rows
    eval terminal_of(format, 14, height)
    set output figure.format
    set multiplot
    set bmargin at screen (1.2 + 0.36 * rows) / height
    set tmargin at screen 1 - 0.25 / height
    eval axes_on
    set logscale x
    set ytics 0.25
    set yrange [0:1]
    set key off

    set lmargin at screen 0.085
    set rmargin at screen 0.51
    set xlabel 'time to first token (s)'
    set ylabel 'CDF'.at_rate
    eval axis_of(ttft_values)
    eval panel(5)

    set lmargin at screen 0.575
    set rmargin at screen 0.985
    set xlabel 'inter-token latency (s)'
    unset ylabel
    eval axis_of(itl_values)
    eval panel(6)

    # The legend spans both panels.
    eval axes_off
    set lmargin at screen 0.02
    set rmargin at screen 0.98
    set tmargin at screen 0.36 * rows / height
    set bmargin at screen 0
    set key on center center horizontal samplen 2.2 spacing 1.1 maxcols 4
    plot [0:1] for [i = 1:n] NaN with linespoints pointtype filled_of(i) linecolor rgb colour_of(i) dashtype dash_of(i) linewidth 1.4 pointsize mark title name[i]
    unset multiplot
    unset output
}
