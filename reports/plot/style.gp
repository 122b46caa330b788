# The look of every figure: colours of Okabe and Ito that colour-blind readers tell apart, and a marker and
# a dash a series, so that a grey print reads too.
#
# A script is called with the folder of the scripts, the folder of the data and the figures, the
# figure's name, the columns of a page that it spans, and a note for below the legend, and calls this
# file with the last four. A path must not begin with a character that means a pipe to gnuplot.
out_dir = ARG1[1:1] eq '/' ? ARG1 : './'.ARG1
data = out_dir.'/'.ARG2.'.csv'
# A figure is drawn under a temporary name and renamed when it is complete.
figure = out_dir.'/'.ARG2.'.tmp.'
latex_figure = out_dir.'/'.ARG2.'-tex.tmp.tex'
page_cm = int(ARG3) == 2 ? 17.8 : 8.8
wide = page_cm > 9
note = ARG4
# What options may have set before: the name of the swept axis and how it stands behind "at", the name of the
# metric, and of both axes the scale and the range.
if (!exists('x_label')) x_label = 'arrival rate (requests/s)'
if (!exists('at_before')) at_before = ', at '
if (!exists('at_behind')) at_behind = ' requests/s'
if (!exists('at_digits')) at_digits = ''
if (!exists('y_label')) y_label = ''
if (!exists('y_usual')) y_usual = 'linear'
if (!exists('x_scale')) x_scale = ''
if (!exists('y_scale')) y_scale = ''
if (!exists('formats')) formats = 'pdf svg png'
has_x_range = exists('x_low')
has_y_range = exists('y_low')
if (!has_y_range) y_low = 1.0
larger(a, b) = a > b ? a : b
smaller(a, b) = a < b ? a : b

# ---- text: LaTeX sets that of format tex, where it must not be a command; else a label is enhanced text ----

format = ''
put(s, a, b) = strstrt(s, a) ? s[1:strstrt(s, a) - 1].b.put(s[strstrt(s, a) + strlen(a):*], a, b) : s
put_each(s, letters, before) = strlen(letters) == 0 ? s : put_each(put(s, letters[1:1], before.letters[1:1]), letters[2:*], before)
tex(s) = put(put(put(put(put(put(put(put_each(put(s, '\', '\textbackslash '), '{}_&#$', '\'), '%', '\char37{}'), \
    '^', '\textasciicircum{}'), '~', '\textasciitilde{}'), '…', '\dots{}'), '<', '$<$'), '>', '$>$'), "\n", '\\')
text(s) = format eq 'tex' ? tex(s) : s
label(s) = format eq 'tex' ? tex(s) : put_each(put(s, '\', '\\'), '{}_^@&~', '\')
# Of several lines.
stacked(s, side) = format eq 'tex' && strstrt(s, "\n") ? '\shortstack['.side.']{'.tex(s).'}' : text(s)

# ---- text: what a letter takes, with some room for a font that is wider than Nimbus Sans ----

letter_cm = 0.13
line_cm = 0.32
# The middle of a text that is too long is left out.
elided(s, letters) = strlen(s) <= letters ? s : s[1:(letters - 1) / 2].'…'.s[strlen(s) - (letters - 2) / 2:*]
# The place of the last ' / ', or else ' ', at p or before it; 0: none.
last_slash(s, p) = p < 2 ? 0 : s[p:p + 2] eq ' / ' ? p : last_slash(s, p - 1)
last_space(s, p) = p < 2 ? 0 : s[p:p] eq ' ' ? p : last_space(s, p - 1)
# How many letters of a text go into a line of so many.
line_end(s, letters) = strlen(s) <= letters ? strlen(s) : \
    last_slash(s, letters - 1) ? last_slash(s, letters - 1) + 1 : last_space(s, letters) ? last_space(s, letters) : letters
# The same text, wrapped into lines of at most so many letters.
wrapped(s, letters) = line_end(s, letters) == strlen(s) ? s : s[1:line_end(s, letters)]."\n".wrapped(s[line_end(s, letters) + 1:*], letters)
lines_in(s) = strstrt(s, "\n") ? 1 + lines_in(s[strstrt(s, "\n") + 1:*]) : 1
# A note is cut at "; " alone.
note_cut(s, p) = p < 2 ? 0 : s[p:p + 1] eq '; ' ? p : note_cut(s, p - 1)
note_lines(s, letters) = strlen(s) <= letters || !note_cut(s, letters) ? s : \
    s[1:note_cut(s, letters)]."\n".note_lines(s[note_cut(s, letters) + 2:*], letters)

# ---- series: data with a number and a name in the first two columns ----

array colour[8] = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#000000', '#8A7A00']
array filled[6] = [7, 5, 9, 13, 11, 15]
array hollow[6] = [6, 4, 8, 12, 10, 14]
colour_of(i) = colour[(i - 1) % 8 + 1]
# Six colours, each with a marker, and six dashes; the dash advances by one with every round of colours. So 36
# series differ in colour or dash, and the six series of a round differ in both.
type_of(i) = (i - 1) % 6 + 1
dash_of(i) = (i - 1 + int((i - 1) / 6)) % 6 + 1
filled_of(i) = filled[type_of(i)]
hollow_of(i) = hollow[type_of(i)]

# n, name[], and the longest name's letters. A series without rows has no name, and no key.
n = 0
longest = 0
read_series = "stats data using 1 name 'series' nooutput; n = int(series_max); array name[n]; do for [i = 1:n] { name[i] = '' }; ". \
              "stats data using (name[int($1)] = strcol(2), longest = larger(longest, strlen(strcol(2))), $1) name 'series' nooutput; ". \
              "eval read_keys"

# A tic's label is a format: a name that is one doubles its percent signs.
tic_label(s) = doubled(stacked(s, 'r'))
doubled(s) = strstrt(s, '%') ? s[1:strstrt(s, '%')].'%'.doubled(s[strstrt(s, '%') + 1:*]) : s

# ---- the legend: a key a series, then what else the figure has to explain ----

# A name that is longer than the page is wide goes on in rows without a line: key_text[], key_series[], negative
# where the row goes on.
read_keys = "n_keys = 0; key_letters = int((page_cm - 1.4) / letter_cm); array key_text[6 * larger(n, 1)]; array key_series[6 * larger(n, 1)]; ". \
            "do for [key_i = 1:n] { key_rest = elided(name[key_i], 5 * key_letters); key_sign = 1; ". \
            "while (strlen(key_rest)) { n_keys = n_keys + 1; key_end = line_end(key_rest, key_letters); ". \
            "key_text[n_keys] = (key_sign < 0 ? '    ' : '').key_rest[1:key_end]; key_series[n_keys] = key_sign * key_i; ". \
            "key_rest = key_rest[key_end + 1:*]; key_sign = -1 } }; longest = smaller(longest, key_letters)"
key_colour(k) = key_series[k] > 0 ? colour_of(key_series[k]) : '#ffffff'
key_type(k) = filled_of(abs(key_series[k]))
key_dash(k) = dash_of(abs(key_series[k]))
line_keys = "for [k = 1:n_keys] NaN with linespoints pointtype key_type(k) pointsize mark linecolor rgb key_colour(k) dashtype key_dash(k) linewidth 1.4 title text(key_text[k])"
dot_keys = "for [k = 1:n_keys] NaN with points pointtype key_type(k) pointsize mark linecolor rgb key_colour(k) title text(key_text[k])"
# Keys behind those: a style of a plot command, and its text.
more_keys = ''
n_more = 0
more_letters = 0
add_key(style, words) = (more_keys = more_keys.', NaN '.style." title text('".words."')", n_more = n_more + 1, more_letters = larger(more_letters, strlen(words)))
grey_line = "with lines linecolor rgb '#808080' dashtype 2 linewidth 1"
goal_line = "with lines linecolor rgb '#707070' dashtype 3 linewidth 1"

# Data of points: a rate in column 3, whether the run was saturated in column 4, and behind a metric in column 5
# half the width of its interval: rate_max, any_hollow, any_interval, and keys for both.
if (!exists('hollow_text')) hollow_text = 'hollow: saturated'
key_saturated = "if (any_hollow) { k = add_key(\"with points pointtype 6 pointsize mark linewidth ring_width linecolor rgb '#404040'\", hollow_text) }; "
key_interval = "if (any_interval) { k = add_key(\"with boxes fillstyle solid 0.25 noborder linecolor rgb '#404040'\", 'band: 95% interval') }; "
read_hollow = "stats data using (strcol(4) eq 'true') name 'saturated' nooutput; any_hollow = saturated_max > 0; ".key_saturated
read_rates = "stats data using 3 name 'rate' nooutput; ".read_hollow. \
             "stats data using (valid(6)) name 'interval' nooutput; any_interval = interval_max > 0; "
# Data of one rate, column 3, or of none: a text for an axis.
read_at_rate = "rate = ''; stats data using (rate = strcol(3), $1) name 'series' nooutput; " . \
               "at_rate = rate eq '' ? '' : at_before.(at_digits eq '' ? rate : sprintf(at_digits, real(rate))).at_behind"

# ---- parts of a plot command: every series' line, interval and points over the columns x and y ----

of(i, value) = column(1) == i ? value : NaN
if_filled(i, value) = column(1) == i && strcol(4) ne 'true' ? value : NaN
if_hollow(i, value) = column(1) == i && strcol(4) eq 'true' ? value : NaN
lines_of(x, y) = sprintf("for [i = 1:n] data using %d:(of(i, column(%d))) with lines linecolor rgb colour_of(i) dashtype dash_of(i) linewidth 1.4", x, y)
steps_of(x, y) = sprintf("for [i = 1:n] data using %d:(of(i, column(%d))) with steps linecolor rgb colour_of(i) dashtype dash_of(i) linewidth 1.2", x, y)
# Intervals, where a column has them: ends with the comma for what comes next. On a logarithmic axis one
# that reaches below zero ends at the axis: read_span and log_axis first.
any_interval = 0
axis_low = 0
above_floor(low) = low > 0 ? low : axis_low
bands_of(x, y, half) = !any_interval ? '' : sprintf("for [i = 1:n] data using %d:(of(i, above_floor(column(%d) - column(%d)))):(column(%d) + column(%d)) with filledcurves fillcolor rgb colour_of(i) fillstyle transparent solid 0.2 noborder, ", x, y, half, y, half)
# Points of a run that was saturated, which column 4 tells, are hollow. y is an expression, `which` says more
# of the rows.
points_where(x, y, which, size) = \
    sprintf("for [i = 1:n] data using %d:(if_hollow(i, %s)) %s with points pointtype filled_of(i) pointsize 1.1 * %g * mark linecolor rgb '#ffffff', ", x, y, which, size). \
    sprintf("for [i = 1:n] data using %d:(if_hollow(i, %s)) %s with points pointtype hollow_of(i) pointsize %g * mark linewidth ring_width linecolor rgb colour_of(i), ", x, y, which, size). \
    sprintf("for [i = 1:n] data using %d:(if_filled(i, %s)) %s with points pointtype filled_of(i) pointsize %g * mark linecolor rgb colour_of(i)", x, y, which, size)
points_of(x, y) = points_where(x, sprintf('column(%d)', y), '', 1)
# A point every so many rows, for lines of many; each series begins at another row.
marks_of(x, y, every_rows) = points_where(x, sprintf('column(%d)', y), sprintf("every %d::(int(%d * (i - 0.5) / n))", every_rows, every_rows), 0.8)
# Where both axes agree, and 20% off.
equal_line = "with lines linecolor rgb '#202020' linewidth 1"
identity_lines = "x ".equal_line.", 1.2 * x ".grey_line.", x / 1.2 ".grey_line
add_identity_keys(dummy) = (add_key(equal_line, 'equal'), add_key(grey_line, '20% more or less'))

# ---- linear axes: as many tics as the numbers leave room for ----

decade(v) = 10.0 ** floor(log10(v) + 1e-9)
round_up(v) = v > 5 * decade(v) * (1 + 1e-9) ? 10 * decade(v) : v > 2 * decade(v) * (1 + 1e-9) ? 5 * decade(v) : v > decade(v) * (1 + 1e-9) ? 2 * decade(v) : decade(v)
label_letters(a, b) = larger(strlen(sprintf('%g', a)), strlen(sprintf('%g', b)))
label_cm(axis, letters) = axis eq 'x' ? letter_cm * letters + 0.3 : 0.42
axis_cm(axis) = axis eq 'x' ? axis_width_cm : axis_height_cm
step_of(span, n_tics) = round_up(span / n_tics)
last_tic(step, v) = step * floor(v / step + 1e-9)
# By the letters of the round numbers on the axis: those of a first guess, then of the step that it gives, as
# steps of 0.25 are longer than the end at 1.
linear_step(axis, low, high) = \
    (tic_step = round_up((high - low) / max_tics), tic_step = next_step(axis, low, high), next_step(axis, low, high))
next_step(axis, low, high) = step_of(high - low, larger(1, smaller(max_tics, int(axis_cm(axis) / label_cm(axis, \
    larger(strlen(sprintf('%g', tic_step)), label_letters(last_tic(tic_step, low), last_tic(tic_step, high))))))))
max_tics = 10
linear_axis(axis, low, at_most) = \
    (linear_high = at_most > low ? at_most : low + 1, \
     sprintf('set %srange [%.9g:%.9g]; set %stics %.9g; ', axis, low, linear_high, axis, linear_step(axis, low, linear_high)))

# ---- logarithmic axes: from 1, 2 or 5 times a power of ten to another ----

# span_low and span_high of what is positive in some columns: value_in(y), and interval_in(y, half) around it.
smaller_positive(a, b) = b > 0 && b < a ? b : a
value_in(y) = sprintf("span_low = smaller_positive(span_low, column(%d)), span_high = larger(column(%d), span_high), ", y, y)
interval_in(y, half) = sprintf("span_low = smaller_positive(span_low, column(%d) - column(%d)), span_high = larger(column(%d) + column(%d), span_high), ", y, half, y, half)
read_span(columns) = "span_low = 1e300; span_high = 0; stats data using (".columns."1) name 'rows' nooutput"

below(v) = v >= 5 * decade(v) ? 5 * decade(v) : v >= 2 * decade(v) ? 2 * decade(v) : decade(v)
above(v) = v > 5 * decade(v) ? 10 * decade(v) : v > 2 * decade(v) ? 5 * decade(v) : 2 * decade(v)
# The digits that have a label within three powers of ten, as many as there is room for, or else every so many
# powers of ten. Where
# that leaves less than two labels, the ends of the axis have them.
log_digits(decade_cm, needed_cm) = axis_high > 1001 * axis_low ? ' 1 ' : decade_cm * 0.146 > needed_cm ? ' 1 2 3 5 7 ' : decade_cm * 0.301 > needed_cm ? ' 1 2 5 ' : decade_cm * 0.477 > needed_cm ? ' 1 3 ' : ' 1 '
has_label(digit, v) = strstrt(tic_digits, sprintf(' %d ', digit)) && abs(floor(log10(v) + 1e-9)) % tic_every == 0
is_inside(v) = v > axis_low * 0.9999 && v < axis_high * 1.0001
labels_in(v) = v > axis_high ? 0 : (sum [digit = 1:9] (has_label(digit, digit * v) && is_inside(digit * v))) + labels_in(10 * v)
label_of(digit, v) = tic_powers ? sprintf(format eq 'tex' ? '$10^{%d}$' : '10^{%d}', floor(log10(v) + 1e-9)) : sprintf('%g', v)
digit_tic(digit, v) = \
    (tic_ends ? abs(v / axis_low - 1) < 1e-4 || abs(v / axis_high - 1) < 1e-4 : has_label(digit, v)) ? \
        sprintf(", '%s' %.9g", label_of(digit, v), v) : axis_high < 1.001e5 * axis_low || digit == 1 ? sprintf(", '' %.9g 1", v) : ''
decade_tics(v) = (tics = '', sum [digit = 1:9] (tics = tics.digit_tic(digit, digit * v), 0), tics)
tics_between(v) = v > axis_high ? '' : decade_tics(v).tics_between(10 * v)
# Within a factor of 2.5 digits leave too few: multiples of a step.
multiples(v) = v > axis_high * 1.0001 ? '' : (is_inside(v) ? sprintf(', %.9g', v) : '').multiples(v + tic_step)
few_tics(axis) = \
    (tic_step = step_of(axis_high - axis_low, smaller(5, larger(1, int(0.7 * axis_cm(axis) / label_cm(axis, label_letters(axis_low, axis_high) + 1))))), \
     'set '.axis.'tics ('.multiples(tic_step * floor(axis_low / tic_step))[3:*].'); ')
tics_of(axis) = axis_high < 2.6 * axis_low ? few_tics(axis) : digit_tics(axis)
digit_tics(axis) = \
    (tic_decade_cm = axis_cm(axis) / log10(axis_high / axis_low), \
     tic_cm = label_cm(axis, label_letters(axis_low, axis_high)), \
     tic_digits = log_digits(tic_decade_cm, tic_cm), \
     tic_powers = tic_digits eq ' 1 ' && (axis_low < 0.999e-3 || axis_high > 1.001e4), \
     tic_cm = label_cm(axis, tic_powers ? 4 : label_letters(axis_low, axis_high)), \
     tic_every = tic_digits eq ' 1 ' ? larger(1, int(ceil(tic_cm / tic_decade_cm))) : 1, \
     tic_ends = 0, tic_ends = labels_in(decade(axis_low)) < 2, tic_powers = tic_powers && !tic_ends, \
     'set '.axis.'tics ('.tics_between(decade(axis_low))[3:*].'); ')
# An axis all the same where nothing is positive. What is drawn keeps clear of the ends.
log_axis(axis) = log_between(axis, span_high > 0 ? below(span_low / 1.04) : 0.1, span_high > 0 ? above(span_high * 1.04) : 1)
log_between(axis, low, high) = \
    (axis_low = low, axis_high = high, \
     sprintf('set logscale %s; set %srange [%g:%g]; ', axis, axis, axis_low, axis_high).tics_of(axis))

# ---- the swept axis, and that of a metric against it: as the options say, or else as usual ----

# The swept values are in column 3. Behind read_span for the other axis, since a logarithmic axis lets no more
# statistics be made, and before y_axis, which leaves the ends of the axis to intervals.
x_axis = "other_low = span_low; other_high = span_high; stats data using 3 name 'swept' nooutput; ". \
         "eval x_axis_of(swept_min, swept_max); span_low = other_low; span_high = other_high"
x_axis_of(low, high) = x_scale eq 'log' ? \
    (span_low = low, span_high = high, has_x_range ? log_between('x', x_low, x_high) : log_axis('x')) : \
    linear_axis('x', has_x_range ? x_low : smaller(0, low * 1.04), has_x_range ? x_high : larger(high * 1.04, high * 0.96))
# usual: 'log' or 'linear', and if it is linear the range. A range from 0 has no logarithm.
y_is_log(usual) = y_scale eq 'log' || (y_scale eq '' && usual eq 'log' && !(has_y_range && (y_low <= 0)))
y_axis(usual, low, high) = y_is_log(usual) ? \
    (has_y_range ? log_between('y', y_low, y_high) : log_axis('y')) : \
    (axis_low = low, linear_axis('y', has_y_range ? y_low : low, has_y_range ? y_high : high))

# ---- the axis of a distribution: what is left above a value, on a logarithm, so that the tail can be read ----

# The largest has no place on it and stands at the end.
rest(quantile) = quantile < 1 ? 1 - quantile : 0.0003
is_marked(quantile) = strstrt(' 0.3 0.5 0.7 0.8 0.9 0.95 0.98 0.99 0.995 0.999 ', sprintf(' %g ', quantile))
marked(quantile) = is_marked(quantile) ? rest(quantile) : NaN
tail_axis = "set logscale y; set yrange [1:0.00025]; set ytics ('0' 1, '50' 0.5, '90' 0.1, '99' 0.01, '99.9' 0.001, 'max' 0.0003); "

# ---- what the K/V pool holds: greys differ too ----

array share[4] = ['token states', 'reservation', 'internal waste', 'external, others']
array share_colour[4] = ['#00487A', '#7FC4EE', '#D55E00', '#EDEDED']
array share_ink[4] = ['#ffffff', '#000000', '#ffffff', '#000000']
share_keys = "for [i = 1:4] NaN with boxes fillstyle solid 1 border rgb '#404040' fillcolor rgb share_colour[i] title share[i]"

# ---- the page: panels in rows above a legend that they share, and a note; lengths in centimetres ----

left_cm = 1.35
right_cm = 0.3
top_cm = 0.3
bottom_cm = 0.95
inner_bottom_cm = 0.95 # of the rows above the last
legend_row_cm = 0.3
legend_gap_cm = 0.15

# Sets the page up and says whether it could: a legend of n_legend entries beside those of add_key; letters is
# the length of the longest.
page(columns, rows, height_cm, n_legend, letters) = \
    (page_columns = columns, page_rows = rows, panel_cm = height_cm, \
     axis_width_cm = page_cm / columns - left_cm - right_cm, \
     axis_height_cm = height_cm - top_cm - larger(bottom_cm, inner_bottom_cm), \
     legend_columns = int(larger(1, page_cm / (1.15 + letter_cm * larger(letters, more_letters)))), \
     legend_rows = int((n_legend + n_more + legend_columns - 1) / legend_columns), \
     note_text = note_lines(note, int((page_cm - 0.4) / letter_cm)), \
     note_cm = strlen(note) ? lines_in(note_text) * line_cm + legend_gap_cm : 0, \
     legend_cm = legend_rows > 0 ? legend_rows * legend_row_cm + legend_gap_cm : 0, \
     page_height_cm = rows * height_cm + legend_cm + note_cm)
margins(left, right, top, bottom) = \
    sprintf('set lmargin at screen %.6f; set rmargin at screen %.6f; set tmargin at screen %.6f; set bmargin at screen %.6f; ', left, right, top, bottom)
# Panels are counted from 0, along the rows.
panel(i) = \
    margins((i % page_columns) / (page_columns * 1.0) + left_cm / page_cm, \
            (i % page_columns + 1) / (page_columns * 1.0) - right_cm / page_cm, \
            1 - (int(i / page_columns) * panel_cm + top_cm) / page_height_cm, \
            1 - ((int(i / page_columns) + 1) * panel_cm - (int(i / page_columns) + 1 < page_rows ? inner_bottom_cm : bottom_cm)) / page_height_cm). \
    axes_on.'; set key off'
title_of(i, saturated) = text(elided(name[i], larger(8, int((axis_width_cm + right_cm) / letter_cm) - (saturated ? 11 : 0)))).(saturated ? ', saturated' : '')
# The plot commands of the legend and the note; entries are parts of a plot command with titles, and may be none.
legend(entries) = \
    margins(0.01, 0.99, (note_cm + legend_cm) / page_height_cm, (note_cm + legend_gap_cm) / page_height_cm). \
    axes_off.sprintf('; set key on center center horizontal maxcols %d samplen 2.2 spacing %g; ', legend_columns, key_spacing). \
    (strlen(note) ? sprintf("set label 1 stacked(note_text, 'c') at screen 0.5, screen %.6f center noenhanced; ", (note_cm - 0.5 * line_cm - 0.05) / page_height_cm) : ''). \
    'plot [0:1] [0:1] '.(strlen(entries) || strlen(more_keys) ? (entries.more_keys)[strlen(entries) ? 1 : 3:*] : 'NaN notitle')

# The same figure on three kinds of paper. `mark` is the size of a point and ring_width the line of a hollow one, which the
# svg terminal cannot scale by itself; key_spacing makes a row of the legend as high in each. Nimbus Sans (Debian: fonts-urw-base35) has the metrics of Helvetica, which a viewer of the
# svg may have instead, or Arial, of the same metrics again.
pdf = "set terminal pdfcairo size %gcm,%gcm font 'Nimbus Sans,8' fontscale 0.61 linewidth 0.9 pointscale 0.45; mark = 1; ring_width = 1; key_spacing = 1.1"
svg = "set terminal svg size %g,%g font 'Nimbus Sans, Helvetica, Arial, sans-serif,13' linewidth 1.4 background '#ffffff'; mark = 0.6; ring_width = 2; key_spacing = 0.88"
png = "set terminal pngcairo size %g,%g font 'Nimbus Sans,8' fontscale 2.5 linewidth 2.6 pointscale 1.6; mark = 1; ring_width = 1; key_spacing = 1.1"
tex_terminal = "set terminal cairolatex pdf input colortext size %gcm,%gcm font ',8' fontscale 0.61 linewidth 0.9 pointscale 0.45; mark = 1; ring_width = 1; key_spacing = 1.1"
terminal_of(format, width, height) = \
    format eq 'pdf' ? sprintf(pdf, width, height) : \
    format eq 'tex' ? sprintf(tex_terminal, width, height) : \
    format eq 'svg' ? sprintf(svg, width * 64, height * 64) : sprintf(png, width * 118, height * 118)
file_of(format) = format eq 'tex' ? latex_figure : figure.format
open_page(format) = terminal_of(format, page_cm, page_height_cm)."; set output file_of('".format."'); set multiplot"
close_page = 'unset multiplot; unset output'

set encoding utf8
set dashtype 2 (9, 4)
set dashtype 3 (9, 3, 2, 3)
set dashtype 4 (3, 3)
set dashtype 5 (18, 5)
set dashtype 6 (12, 3, 2, 3, 2, 3)
set datafile separator comma
set datafile columnheaders
axes_on = "set border 3 linewidth 0.8 linecolor '#404040'; ". \
          "set xtics autofreq nomirror out scale 0.6 textcolor '#202020' format '%g'; ". \
          "set ytics autofreq nomirror out scale 0.6 textcolor '#202020' format '%g'; ". \
          "set grid xtics ytics linetype 1 linewidth 0.4 linecolor '#d8d8d8'; ". \
          'unset logscale; set xrange [*:*]; set yrange [*:*]; unset xlabel; unset ylabel; unset title; unset label'
axes_off = 'unset border; unset tics; unset grid; unset logscale; unset xlabel; unset ylabel; unset title; unset label'
set key noenhanced Left reverse
