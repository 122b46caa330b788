# The relative end-to-end error of each request: against its arrival, and against how many measured
# requests were in flight when it came.
call ARG1.'/style.gp' ARG2 ARG3 ARG4
data = out_dir.'/validation_requests.csv'
set_page = page(2, 1, 5.2, 0, 0)

stats data using (100 * column(14)) name 'error' nooutput
span = larger(0.1, 1.1 * larger(abs(error_max), abs(error_min)))
array across[2] = [2, 5]
array label[2] = ['arrival (s)', 'requests in flight on arrival']

do for [format in formats] {
    eval open_page(format)
    do for [p = 1:2] {
        eval panel(p - 1)
        set yrange [-span:span]
        set xlabel label[p] offset 0,0.4
        if (p == 1) { set ylabel 'end-to-end error (%)' }
        eval 'plot data using across[p]:(100 * column(14)) with points pointtype 7 pointsize 0.35 * mark linecolor rgb colour_of(p), 0 with lines linecolor rgb "#202020" linewidth 1'
    }
    eval close_page
}
