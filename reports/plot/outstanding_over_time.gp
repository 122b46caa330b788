# Requests that have arrived and not ended over time, stacked by pool or, where there are none, by replica, a panel a
# series: means of bins of equal width. Many replicas share a colour.
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
stats data using 5 name 'time' nooutput
stats data using 6 name 'replica' nooutput
stats data using (column(14)) name 'load' nooutput
# The replicas of colour k: from first(k) to first(k + 1) - 1.
# The pools of all series, or of none (-).
pools = ''
one_set_of_pools = 1
stats data using (pools eq '' ? (pools = strcol(15), 1) : 1, one_set_of_pools = one_set_of_pools && pools eq strcol(15), 1) nooutput
by_pool = pools ne '-' && one_set_of_pools
n_stacks = by_pool ? words(pools) : int(smaller(8, replica_max))
first(k) = int(ceil((k - 1) * replica_max / real(n_stacks)))
same_in_all = replica_min == replica_max
do for [k = 1:n_stacks] {
    k_text = by_pool ? word(pools, k) : first(k + 1) - first(k) > 1 ? sprintf('replicas %d to %d', first(k), first(k + 1) - 1) : sprintf('replica %d', first(k))
    k_key = add_key(sprintf("with boxes fillstyle solid 1 noborder fillcolor rgb '%s'", colour_of(k)), by_pool || same_in_all ? k_text : sprintf('group %d of replicas', k))
}
set_page = page(columns, rows, 3.4, 0, 16)
upto(i, k) = column(1) == i ? column(6 + k) : NaN

do for [format in formats] {
    eval open_page(format)
    do for [i = 1:n] {
        eval panel(i - 1)
        if (i > n - columns) { set xlabel 'time (s)'.at_rate offset 0,0.4 }
        set ylabel 'requests'
        set title title_of(i, is_saturated[i]) noenhanced offset 0,-0.7
        eval linear_axis('x', 0, time_max)
        eval linear_axis('y', 0, larger(1, load_max))
        plot for [k = n_stacks:1:-1] data using 5:(upto(i, k)) with fillsteps fillstyle solid 1 noborder fillcolor rgb colour_of(k)
    }
    eval legend('')
    eval close_page
}
