# The relative end-to-end error of each request: against its arrival, and against the number of measured
# requests in flight at its arrival.
call ARG1.'/style.gp' ARG2 ARG3 ARG4 ARG5
data = out_dir.'/validation_requests.csv'
dot = "with points pointtype 7 pointsize 0.35 * mark linecolor rgb colour_of(1)"
exact_line = "with lines linecolor rgb '#202020' linewidth 1"
k = add_key(dot, 'a request')
k = add_key(exact_line, 'as measured')
set_page = page(wide ? 2 : 1, wide ? 1 : 2, 5.2, 0, 0)

stats data using (100 * column(14)) name 'error' nooutput
low = larger(0.1, larger(-1.1 * error_min, 0.05 * error_max))
high = larger(0.1, larger(1.1 * error_max, -0.05 * error_min))
array across[2] = [2, 5]
array label[2] = ['arrival (s)', 'requests in flight on arrival']

do for [format in formats] {
    eval open_page(format)
    do for [p = 1:2] {
        eval panel(p - 1)
        stats data using across[p] name 'across' nooutput
        eval linear_axis('x', smaller(0, across_min), larger(across_max, across_min + 1))
        eval linear_axis('y', -low, high)
        set xlabel label[p] offset 0,0.4
        if (p == 1 || !wide) { set ylabel label('end-to-end error (%)') }
        eval 'plot data using across[p]:(100 * column(14)) '.dot.', 0 '.exact_line
    }
    eval legend('')
    eval close_page
}
