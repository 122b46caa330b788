# Shares of the K/V pool, weighted by time, a bar a series: the shape of Fig. 2 of Kwon et al.
# (PagedAttention, SOSP 2023). Whether the run was saturated is in column 8, if there is one.
call ARG1.'/style.gp' ARG2 ARG3 ARG4 ARG5
eval read_series
eval read_at_rate
stats data using 1 name 'rows' nooutput
is_saturated(dummy) = rows_columns >= 8 ? strcol(8) eq 'true' : 0
stats data using (is_saturated(0)) name 'saturated' nooutput
any_hollow = saturated_max > 0
eval key_saturated
# Names that are wider than a bar are slanted, their parts below each other; upright where they would lie on
# each other or leave the page, in one line where the bars are too narrow for more.
most_letters = 40
cut(s) = strstrt(s, ' / ')
lines_of_name(s) = cut(s) ? elided(s[1:cut(s) - 1], most_letters)."\n".lines_of_name(s[cut(s) + 3:*]) : elided(s, most_letters)
letters_of(s) = cut(s) ? larger(cut(s) - 1, letters_of(s[cut(s) + 3:*])) : strlen(s)
parts_of(s) = cut(s) ? 1 + parts_of(s[cut(s) + 3:*]) : 1
letters = 0
parts = 0
longest_name = 0
do for [i = 1:n] {
    letters = smaller(most_letters, larger(letters, letters_of(name[i])))
    parts = larger(parts, parts_of(name[i]))
    longest_name = smaller(most_letters, larger(longest_name, strlen(name[i])))
}
from(i) = i == 1 ? 0 : i == 2 ? column(4) : i == 3 ? column(4) + column(5) : column(4) + column(5) + column(6)
upto(i) = from(i) + column(3 + i)
bar_cm = (page_cm - left_cm - right_cm) / n
room = bar_cm > 1.0
name_cm = 0.13 # a letter of a name
slanted = letters > bar_cm * 6
upright = slanted && (parts * line_cm > 0.5 * bar_cm || letters * name_cm * 0.87 > left_cm + 0.5 * bar_cm)
in_one_line = upright && parts * line_cm > bar_cm
bottom_cm = 0.55 + (in_one_line ? name_cm * longest_name : upright ? name_cm * letters : slanted ? 0.06 * letters : line_cm * parts)
set_page = page(1, 1, 4.7 + bottom_cm, 4, 16)
# A share of less than 4% has no room for its number.
label_of_share(i) = column(3 + i) < 0.04 || !room ? '' : sprintf('%.1f', 100 * column(3 + i))

do for [format in formats] {
    eval open_page(format)
    eval panel(0)
    set ylabel label('K/V pool (%)'.at_rate)
    set yrange [0:(any_hollow ? 109 : 100)]
    set ytics 0, 20, 100
    set xrange [0.4:n + 0.6]
    set xtics () noenhanced
    do for [i = 1:n] { set xtics add (tic_label(in_one_line ? elided(name[i], most_letters) : lines_of_name(name[i])) i) }
    if (slanted) { set xtics rotate by (upright ? 90 : 30) right }
    set grid noxtics
    plot for [i = 1:4] data using 1:(50 * (from(i) + upto(i))):($1 - 0.33):($1 + 0.33):(100 * from(i)):(100 * upto(i)) with boxxyerror fillstyle solid 1 border rgb '#404040' linewidth 0.5 fillcolor rgb share_colour[i], \
         for [i = 1:4] data using 1:(50 * (from(i) + upto(i))):(label_of_share(i)) with labels textcolor rgb share_ink[i], \
         data using 1:(is_saturated(0) ? 105 : NaN) with points pointtype 6 pointsize mark linewidth ring_width linecolor rgb '#404040'
    eval legend(share_keys)
    eval close_page
}
