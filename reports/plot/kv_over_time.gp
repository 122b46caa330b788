# Shares of the K/V pool over time, a panel a series: means of bins of equal width.
call ARG1.'/style.gp' ARG2 ARG3 ARG4 ARG5
eval read_series
eval read_at_rate
array is_saturated[n]
do for [i = 1:n] { is_saturated[i] = 0 }
stats data using (is_saturated[int($1)] = strcol(4) eq 'true', 1) nooutput
columns = wide ? (n == 3 ? 3 : n > 1 ? 2 : 1) : 1
rows = (n + columns - 1) / columns
inner_bottom_cm = 0.6
top_cm = 0.55
set_page = page(columns, rows, 3.4, 4, 16)
stats data using 5 name 'time' nooutput
# The sum of the shares from token states up to share k, of series i.
upto(i, k) = column(1) == i ? 100 * (column(6) + (k > 1 ? column(7) : 0) + (k > 2 ? column(8) : 0) + (k > 3 ? column(9) : 0)) : NaN

do for [format in formats] {
    eval open_page(format)
    do for [i = 1:n] {
        eval panel(i - 1)
        if (i > n - columns) { set xlabel label('time (s)'.at_rate) offset 0,0.4 }
        set ylabel label('K/V pool (%)')
        set title title_of(i, is_saturated[i]) noenhanced offset 0,-0.7
        eval linear_axis('x', time_min < 0.1 * time_max ? 0 : time_min, time_max)
        set yrange [0:100]
        set ytics 25
        plot for [k = 4:1:-1] data using 5:(upto(i, k)) with fillsteps fillstyle solid 1 noborder fillcolor rgb share_colour[k]
    }
    eval legend(share_keys)
    eval close_page
}
