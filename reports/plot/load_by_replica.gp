# Requests at each replica over time, a panel a series: the darker, the more. Means of bins of equal width, and
# of the replicas that share a row.
call ARG1.'/style.gp' ARG2 ARG3 ARG4 ARG5
eval read_series
eval read_at_rate
array is_saturated[n]
do for [i = 1:n] { is_saturated[i] = 0 }
stats data using (is_saturated[int($1)] = strcol(4) eq 'true', 1) nooutput
columns = wide ? (n > 1 ? 2 : 1) : 1
rows = (n + columns - 1) / columns
inner_bottom_cm = 0.6
top_cm = 0.55
right_cm = 1.8
set_page = page(columns, rows, 3.6, 0, 16)
stats data using 6 name 'time' nooutput
stats data using 8 name 'replica' nooutput
stats data using ($9 / ($8 - $7)) name 'load' nooutput
set palette defined (0 '#f4f4f4', 0.25 '#9CCBE8', 0.6 '#0072B2', 1 '#00264d')
set cbrange [0:larger(1, load_max)]
# A replica's row has its number in the middle.
row(i) = column(1) == i ? ($7 + $8 - 1) / 2 : NaN

do for [format in formats] {
    eval open_page(format)
    do for [i = 1:n] {
        eval panel(i - 1)
        unset grid
        if (i > n - columns) { set xlabel 'time (s)'.at_rate offset 0,0.4 }
        set ylabel 'replica'
        set title title_of(i, is_saturated[i]) noenhanced offset 0,-0.7
        set colorbox
        set cbtics scale 0.3 offset -0.6,0
        set cblabel 'requests' offset -0.4,0
        eval linear_axis('x', 0, time_max)
        set yrange [replica_max - 0.5:-0.5]
        set ytics scale 0.5 larger(1, int(replica_max / 4))
        plot data using (($5 + $6) / 2):(row(i)):5:6:($7 - 0.5):($8 - 0.5):($9 / ($8 - $7)) with boxxyerror fillstyle solid 1 noborder fillcolor palette
    }
    eval legend('')
    eval close_page
}
