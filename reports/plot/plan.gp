# What each option for a target costs, or the rate that each serves: a dot an option, the interval as a line, replicas x GPUs
# of one beside it, or its GPUs. Options that give no answer say so. Columns: number, series, status, bill or rate, its ends,
# replicas, GPUs of one, cheapest, unit.
call ARG1.'/style.gp' ARG2 ARG3 ARG4 ARG5
eval read_series
unit = ''
any_interval = 0
any_cheapest = 0
stats data using (unit = strcol(10), any_interval = any_interval || strlen(strcol(6)) > 0, any_cheapest = any_cheapest || strcol(9) eq 'true', $1) name 'rows' nooutput
eval read_span(value_in(4).value_in(5).value_in(6))
bill_of(row) = strcol(3) eq 'found' ? $4 : NaN
high_of(row) = strlen(strcol(6)) ? $6 : $4
interval_line = "with lines linewidth 1.2 linecolor rgb '#909090'"
if (any_cheapest) { k = add_key("with points pointtype 13 pointsize 1.4 * mark linecolor rgb colour_of(1)", 'cheapest') }
k = add_key("with points pointtype 7 pointsize mark linecolor rgb '#404040'", 'others')
if (any_interval) { k = add_key(interval_line, '95% interval') }
# A name takes at most half the page, and as many lines as that needs.
most_letters = int((0.5 * page_cm - 0.4) / letter_cm)
lines = 1
do for [i = 1:n] { lines = larger(lines, lines_in(wrapped(name[i], most_letters))) }
left_cm = larger(1.35, 0.4 + letter_cm * smaller(longest, most_letters))
row_cm = larger(0.6, line_cm * lines + 0.15)
set_page = page(1, 1, bottom_cm + top_cm + row_cm * (n + 0.2), 0, 0)
# Room for "64 x 2 GPUs" behind the last dot.
span_high = span_high * 10 ** (log10(larger(span_high / span_low, 4)) * 1.7 / larger(axis_width_cm - 1.7, 1))
gpus_of(replicas, n) = (strlen(replicas) ? replicas.' × ' : '').sprintf('%d GPU%s', n, n == 1 ? '' : 's')
what(status) = status eq 'failed' ? 'cannot run' : status eq 'none' ? 'never meets the objectives' : status eq 'unbounded' ? 'at any rate that was tried' : ''

do for [format in formats] {
    eval open_page(format)
    eval panel(0)
    set xlabel unit offset 0,0.4
    eval log_axis('x')
    set ytics () noenhanced
    do for [i = 1:n] { set ytics add (tic_label(wrapped(name[i], most_letters)) i) }
    set yrange [n + 0.6:0.4]
    set grid noytics
    plot data using 4:1:5:6 with xerrorbars pointtype 7 pointsize 0 linewidth 1.2 linecolor rgb '#909090', \
         data using (strcol(9) eq 'true' ? NaN : bill_of(0)):1 with points pointtype 7 pointsize 1.2 * mark linecolor rgb '#404040', \
         data using (strcol(9) eq 'true' ? bill_of(0) : NaN):1 with points pointtype 13 pointsize 1.8 * mark linecolor rgb colour_of(1), \
         data using (strcol(3) eq 'found' ? high_of(0) : NaN):1:(gpus_of(strcol(7), $8)) with labels left offset character 0.8, 0 textcolor rgb '#202020', \
         data using (axis_low):1:(what(strcol(3))) with labels left offset character 0.5, 0 textcolor rgb '#707070'
    eval legend('')
    eval close_page
}
