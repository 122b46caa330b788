# The slot grid of the textbooks: a row a slot, a column a step, a panel a series. Dark is prefill, light
# is decode, a dot a slot that is held while others run, an empty cell is idle. A number is a
# request where it begins.
call ARG1.'/style.gp' ARG2 ARG3 ARG4 ARG5
eval read_series
array is_saturated[n]
do for [i = 1:n] { is_saturated[i] = 0 }
stats data using (is_saturated[int($1)] = strcol(4) eq 'true', 1) nooutput
stats data using 5 name 'slot' nooutput
stats data using 6 name 'step' nooutput
digits = 1
stats data using (digits = larger(digits, strlen(strcol(8))), 1) nooutput
slots = int(slot_max)
left_cm = 0.95
top_cm = 0.55
bottom_cm = 0.85
inner_bottom_cm = 0.85
# Numbers are upright where they are wider than a cell, and smaller where even a line is; a row is as high as
# they are long. A digit is 0.1 cm wide and 0.2 cm high.
cell_cm = (page_cm - left_cm - right_cm) / (step_max + 1.2)
upright = 0.1 * digits > cell_cm
id_scale = smaller(1, upright ? cell_cm / 0.2 : 1)
slot_cm = larger(0.34, upright ? 0.1 * id_scale * digits + 0.14 : 0)
ids = sprintf("with labels font ',%g' %s textcolor rgb '#ffffff'", 6 * id_scale, upright ? 'rotate by 90' : '')
# LaTeX has no font of that size, but can scale a text.
id_text(dummy) = format eq 'tex' ? sprintf('\scalebox{%.2f}{%s}', 0.75 * id_scale, strcol(8)) : strcol(8)
# A request's colour, by its id; column 8 is empty where the cell is idle.
request(dummy) = strlen(strcol(8)) ? int(column(8)) : 0
hue(dark) = dark ? dark_of[request(0) % 6 + 1] : light_of[request(0) % 6 + 1]
array dark_of[6] = [0x0072B2, 0xB34700, 0x00785A, 0xA0507D, 0x9A6B00, 0x404040]
array light_of[6] = [0x9CCBE8, 0xF3B58C, 0x8FD3BD, 0xE9C3DA, 0xF2D38B, 0xC8C8C8]
in_state(i, state) = column(1) == i && strcol(7) eq state ? $5 : NaN
cell = "(int($6) - 0.46):(int($6) + 0.46):($5 - 0.44):($5 + 0.44)"
k = add_key("with boxes fillstyle solid 1 noborder fillcolor rgb '#404040'", 'prefill')
k = add_key("with boxes fillstyle solid 1 noborder fillcolor rgb '#c8c8c8'", 'decode')
k = add_key("with points pointtype 7 pointsize 0.5 * mark linecolor rgb '#808080'", 'held')
k = add_key("with boxes fillstyle empty linecolor rgb '#c0c0c0'", 'idle')
set_page = page(1, n, top_cm + bottom_cm + larger(1.2, slot_cm * slots), 0, 0)

do for [format in formats] {
    eval open_page(format)
    do for [i = 1:n] {
        eval panel(i - 1)
        unset grid
        set border 0
        set title title_of(i, is_saturated[i]) noenhanced offset 0,-0.7
        set ylabel label('slot')
        if (i == n) { set xlabel label('step') offset 0,0.4 }
        eval linear_axis('x', -0.6, step_max + 0.6)
        set yrange [slots + 0.6:0.4]
        set ytics scale 0 larger(1, int(slots / 8))
        set xtics scale 0
        eval "plot data using 6:(in_state(i, 'idle')):".cell." with boxxyerror fillstyle empty linecolor rgb '#c0c0c0' linewidth 0.5, " \
             ."data using 6:(in_state(i, 'held')):".cell." with boxxyerror fillstyle empty linecolor rgb '#808080' linewidth 0.7, " \
             ."data using 6:(in_state(i, 'held')) with points pointtype 7 pointsize 0.4 * mark linecolor rgb '#808080', " \
             ."data using 6:(in_state(i, 'decode')):".cell.":(hue(0)) with boxxyerror fillstyle solid 1 border rgb '#ffffff' linewidth 0.2 fillcolor rgb variable, " \
             ."data using 6:(in_state(i, 'prefill')):".cell.":(hue(1)) with boxxyerror fillstyle solid 1 border rgb '#ffffff' linewidth 0.2 fillcolor rgb variable, " \
             ."data using 6:(column(1) == i && strcol(9) eq 'true' ? $5 : NaN):(id_text(0)) ".ids
    }
    eval legend('')
    eval close_page
}
