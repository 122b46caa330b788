# Sequences in a step and requests in the queue, the swapped ones included, over time, a line a series:
# means of bins of equal width.
call ARG1.'/style.gp' ARG2 ARG3 ARG4 ARG5
eval read_series
eval read_at_rate
eval read_hollow
inner_bottom_cm = 0.5
set_page = page(wide ? 2 : 1, wide ? 1 : 2, wide ? 4.8 : 3.9, n_keys, longest)
stats data using 5 name 'time' nooutput

do for [format in formats] {
    eval open_page(format)
    do for [i = 0:1] {
        eval panel(i)
        if (wide || i == 1) { set xlabel label('time (s)'.at_rate) offset 0,0.4 }
        set ylabel label(i == 0 ? 'batch (sequences)' : 'queue (requests)')
        eval linear_axis('x', time_min < 0.1 * time_max ? 0 : time_min, time_max)
        set yrange [0:*]
        eval 'plot '.steps_of(5, 6 + i).', '.marks_of(5, 6 + i, 60)
    }
    eval legend(line_keys)
    eval close_page
}
