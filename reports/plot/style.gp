# The look of every figure: colours of Okabe and Ito that colour-blind readers tell apart, and a point
# type and a dash a series, so that a grey print reads too.
#
# A script is called with the folder of the scripts, the folder of the data and the figures, the
# figure's name and the columns of a page that it spans, and calls this file with the last three. A
# path must not begin with a character that means a pipe to gnuplot.
out_dir = ARG1[1:1] eq '/' ? ARG1 : './'.ARG1
data = out_dir.'/'.ARG2.'.csv'
# What is drawn gets its name when it is whole.
figure = out_dir.'/'.ARG2.'.tmp.'
page_cm = int(ARG3) == 2 ? 17.8 : 8.8

# ---- series ----

array colour[8] = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#000000', '#8A7A00']
array filled[6] = [7, 5, 9, 13, 11, 15]
array hollow[6] = [6, 4, 8, 12, 10, 14]
colour_of(i) = colour[(i - 1) % 8 + 1]
# Two further with every round of the colours, so that none comes back with its old type.
type_of(i) = (i - 1 + 2 * int((i - 1) / 8)) % 6 + 1
filled_of(i) = filled[type_of(i)]
hollow_of(i) = hollow[type_of(i)]
# Solid, dashed, dash-dotted, dotted: by number, so that lines that hide each other show through; one further
# with every round of the colours.
dash_of(i) = (i - 1 + int((i - 1) / 8)) % 4 + 1

# Data with a number and a name in its first two columns: n, name[], and the longest name's letters.
n = 0
longest = 0
larger(a, b) = a > b ? a : b
read_series = "stats data using 1 name 'series' nooutput; n = int(series_max); array name[n]; ". \
              "stats data using (name[int($1)] = strcol(2), longest = larger(longest, strlen(strcol(2))), $1) name 'series' nooutput"

# A tic's label is a format: a name that is one doubles its percent signs.
tic_label(s) = strstrt(s, '%') ? s[1:strstrt(s, '%')].'%'.tic_label(s[strstrt(s, '%') + 1:*]) : s

# Data with a rate in column 3, whether the run was saturated in column 4, and behind each metric from
# column 5 on half the width of its interval: rate_max, any_hollow, any_interval.
read_rates = "stats data using 3 name 'rate' nooutput; " . \
             "stats data using (strcol(4) eq 'true') name 'saturated' nooutput; any_hollow = saturated_max > 0; " . \
             "stats data using (strlen(strcol(6)) > 0) name 'interval' nooutput; any_interval = interval_max > 0; " . \
             "hollow_letters = any_hollow ? 17 : 0; " . \
             "hollow_key = any_hollow ? \", NaN with points pointtype 6 pointsize mark linecolor rgb '#404040' title 'hollow: saturated'\" : ''"
# Data of one rate, column 3, or of none: a text for an axis.
read_at_rate = "rate = ''; stats data using (rate = strcol(3), $1) name 'series' nooutput; " . \
               "at_rate = rate eq '' ? '' : sprintf(', at %s requests/s', rate)"

# Parts of a plot command: every series' line, interval and points over the columns x and y. Points
# of a run that was saturated, which column 4 tells, are hollow.
of(i, value) = column(1) == i ? value : NaN
if_filled(i, value) = column(1) == i && strcol(4) ne 'true' ? value : NaN
if_hollow(i, value) = column(1) == i && strcol(4) eq 'true' ? value : NaN
lines_of(x, y) = sprintf("for [i = 1:n] data using %d:(of(i, column(%d))) with lines linecolor rgb colour_of(i) dashtype dash_of(i) linewidth 1.4", x, y)
steps_of(x, y) = sprintf("for [i = 1:n] data using %d:(of(i, column(%d))) with steps linecolor rgb colour_of(i) dashtype dash_of(i) linewidth 1.2", x, y)
# Intervals, where column 6 has one: ends with the comma for what comes next. On a logarithmic axis one
# that reaches below zero ends at the axis: read_span and log_axis first.
axis_low = 0
above_floor(low) = low > 0 ? low : axis_low
bands_of(x, y, half) = !any_interval ? '' : sprintf("for [i = 1:n] data using %d:(of(i, above_floor(column(%d) - column(%d)))):(column(%d) + column(%d)) with filledcurves fillcolor rgb colour_of(i) fillstyle transparent solid 0.2 noborder, ", x, y, half, y, half)
points_of(x, y) = \
    sprintf("for [i = 1:n] data using %d:(if_hollow(i, column(%d))) with points pointtype 7 pointsize 1.1 * mark linecolor rgb '#ffffff', ", x, y). \
    sprintf("for [i = 1:n] data using %d:(if_hollow(i, column(%d))) with points pointtype hollow_of(i) pointsize mark linecolor rgb colour_of(i), ", x, y). \
    sprintf("for [i = 1:n] data using %d:(if_filled(i, column(%d))) with points pointtype filled_of(i) pointsize mark linecolor rgb colour_of(i)", x, y)
line_keys = "for [i = 1:n] NaN with linespoints pointtype filled_of(i) pointsize mark linecolor rgb colour_of(i) dashtype dash_of(i) linewidth 1.4 title name[i]"
marks_of(x, y, every_rows) = sprintf("for [i = 1:n] data using %d:(of(i, column(%d))) every %d::(int(%d * (i - 0.5) / n)) with points pointtype filled_of(i) pointsize 0.8 * mark linecolor rgb colour_of(i)", x, y, every_rows, every_rows)
# Where both axes agree, and 20% off.
identity_lines = "x with lines linecolor rgb '#202020' linewidth 1, 1.2 * x with lines linecolor rgb '#808080' dashtype 2 linewidth 0.8, x / 1.2 with lines linecolor rgb '#808080' dashtype 2 linewidth 0.8"

# ---- logarithmic axes: from 1, 2 or 5 times a power of ten to another ----

# span_low and span_high of what is positive in some columns: value_in(y), and interval_in(y, half) around it.
smaller_positive(a, b) = b > 0 && b < a ? b : a
value_in(y) = sprintf("span_low = smaller_positive(span_low, column(%d)), span_high = larger(column(%d), span_high), ", y, y)
interval_in(y, half) = sprintf("span_low = smaller_positive(span_low, column(%d) - column(%d)), span_high = larger(column(%d) + column(%d), span_high), ", y, half, y, half)
read_span(columns) = "span_low = 1e300; span_high = 0; stats data using (".columns."$1) name 'rows' nooutput"

decade(v) = 10.0 ** floor(log10(v) + 1e-9)
below(v) = v >= 5 * decade(v) ? 5 * decade(v) : v >= 2 * decade(v) ? 2 * decade(v) : decade(v)
above(v) = v > 5 * decade(v) ? 10 * decade(v) : v > 2 * decade(v) ? 5 * decade(v) : 2 * decade(v)
# Up to two decades 1, 2 and 5 have a label, and the digits between them a tic.
digit_tic(digit, v) = digit == 1 || digit == 2 || digit == 5 ? sprintf(', %g', v) : sprintf(", '' %g 1", v)
decade_tics(v) = (tics = '', sum [digit = 1:9] (tics = tics.digit_tic(digit, digit * v), 0), tics)
tics_between(v, high) = v > high ? '' : decade_tics(v).tics_between(10 * v, high)
tics_of(axis) = axis_high > 101 * axis_low ? '' : 'set '.axis.'tics ('.tics_between(decade(axis_low), axis_high)[3:*].'); '
# An axis all the same where nothing is positive. What is drawn keeps clear of the ends.
log_axis(axis) = \
    (axis_low = span_high > 0 ? below(span_low / 1.04) : 0.1, axis_high = span_high > 0 ? above(span_high * 1.04) : 1, \
     sprintf('set logscale %s; set %srange [%g:%g]; ', axis, axis, axis_low, axis_high).tics_of(axis))

# ---- what the K/V pool holds: greys differ too ----

array share[4] = ['token states', 'reservation', 'internal waste', 'external, others']
array share_colour[4] = ['#0072B2', '#7FC4EE', '#D55E00', '#EDEDED']
array share_ink[4] = ['#ffffff', '#000000', '#ffffff', '#000000']
share_keys = "for [i = 1:4] NaN with boxes fillstyle solid 1 border rgb '#404040' fillcolor rgb share_colour[i] title share[i]"

# ---- the page: panels in rows above a legend that they share; lengths in centimetres ----

left_cm = 1.35
right_cm = 0.3
top_cm = 0.3
bottom_cm = 0.95
inner_bottom_cm = 0.95 # of the rows above the last
legend_row_cm = 0.38
legend_gap_cm = 0.1

# Sets the page up and says whether it could. letters is the length of the longest legend entry.
page(columns, rows, height_cm, n_legend, letters) = \
    (page_columns = columns, page_rows = rows, panel_cm = height_cm, \
     legend_columns = int(larger(1, page_cm / (1.15 + 0.145 * letters))), \
     legend_rows = int((n_legend + legend_columns - 1) / legend_columns), \
     legend_cm = n_legend > 0 ? legend_rows * legend_row_cm + legend_gap_cm : 0, \
     page_height_cm = rows * height_cm + legend_cm)
margins(left, right, top, bottom) = \
    sprintf('set lmargin at screen %.6f; set rmargin at screen %.6f; set tmargin at screen %.6f; set bmargin at screen %.6f; ', left, right, top, bottom)
# Panels are counted from 0, along the rows.
panel(i) = \
    margins((i % page_columns) / (page_columns * 1.0) + left_cm / page_cm, \
            (i % page_columns + 1) / (page_columns * 1.0) - right_cm / page_cm, \
            1 - (int(i / page_columns) * panel_cm + top_cm) / page_height_cm, \
            1 - ((int(i / page_columns) + 1) * panel_cm - (int(i / page_columns) + 1 < page_rows ? inner_bottom_cm : bottom_cm)) / page_height_cm). \
    axes_on.'; set key off'
# The plot command of the legend; entries are parts of a plot command with titles.
legend(entries) = \
    margins(0.01, 0.99, legend_cm / page_height_cm, legend_gap_cm / page_height_cm). \
    axes_off.sprintf('; set key on center center horizontal maxcols %d samplen 2.2 spacing 1.1; ', legend_columns). \
    'plot [0:1] [0:1] '.entries

# The same figure on three kinds of paper. `mark` is the size of a point, which the svg terminal cannot
# scale by itself.
formats = 'pdf svg png'
pdf = "set terminal pdfcairo size %gcm,%gcm font 'Helvetica,8' fontscale 0.61 linewidth 0.9 pointscale 0.45; mark = 1"
svg = "set terminal svg size %g,%g font 'Helvetica,13' linewidth 1.4 background '#ffffff'; mark = 0.6"
png = "set terminal pngcairo size %g,%g font 'Helvetica,8' fontscale 2.5 linewidth 2.6 pointscale 1.6; mark = 1"
terminal_of(format, width, height) = \
    format eq 'pdf' ? sprintf(pdf, width, height) : \
    format eq 'svg' ? sprintf(svg, width * 64, height * 64) : sprintf(png, width * 118, height * 118)
open_page(format) = terminal_of(format, page_cm, page_height_cm)."; set output figure.'".format."'; set multiplot"
close_page = 'unset multiplot; unset output'

set encoding utf8
set dashtype 2 (9, 4)
set dashtype 3 (9, 3, 2, 3)
set dashtype 4 (3, 3)
set datafile separator comma
set datafile columnheaders
axes_on = "set border 3 linewidth 0.8 linecolor '#404040'; ". \
          "set xtics nomirror out scale 0.6 textcolor '#202020' format '%g'; ". \
          "set ytics nomirror out scale 0.6 textcolor '#202020' format '%g'; ". \
          "set grid xtics ytics linetype 1 linewidth 0.4 linecolor '#d8d8d8'; ". \
          'unset logscale; set xrange [*:*]; set yrange [*:*]; unset xlabel; unset ylabel; unset title'
axes_off = 'unset border; unset tics; unset grid; unset logscale; unset xlabel; unset ylabel; unset title; unset label'
set key noenhanced Left reverse
