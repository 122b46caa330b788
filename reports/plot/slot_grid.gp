# The slot grid of the textbooks: a row a slot, a column a step, a panel a series. Dark is prefill, light
# is decode, a dot a slot that is held while others run, an empty cell nobody's. A number is a
# request where it begins.
call ARG1.'/style.gp' ARG2 ARG3 ARG4
eval read_series
stats data using 4 name 'slot' nooutput
stats data using 5 name 'step' nooutput
slots = int(slot_max)
left_cm = 0.95
top_cm = 0.55
bottom_cm = 0.85
inner_bottom_cm = 0.85
set_page = page(1, n, top_cm + bottom_cm + larger(1.2, 0.34 * slots), 4, 12)
# A request's colour, by its id; column 7 is empty where the cell is nobody's.
request(dummy) = strlen(strcol(7)) ? int(column(7)) : 0
hue(dark) = dark ? dark_of[request(0) % 6 + 1] : light_of[request(0) % 6 + 1]
array dark_of[6] = [0x0072B2, 0xB34700, 0x00785A, 0xA0507D, 0x9A6B00, 0x404040]
array light_of[6] = [0x9CCBE8, 0xF3B58C, 0x8FD3BD, 0xE9C3DA, 0xF2D38B, 0xC8C8C8]
in_state(i, state) = column(1) == i && strcol(6) eq state ? $4 : NaN
cell = "(int($5) - 0.46):(int($5) + 0.46):($4 - 0.44):($4 + 0.44)"

do for [format in formats] {
    eval open_page(format)
    do for [i = 1:n] {
        eval panel(i - 1)
        unset grid
        set border 0
        set title name[i] noenhanced offset 0,-0.7
        set ylabel 'slot'
        if (i == n) { set xlabel 'step' offset 0,0.4 }
        set xrange [-0.6:step_max + 0.6]
        set yrange [slots + 0.6:0.4]
        set ytics scale 0 larger(1, int(slots / 8))
        set xtics scale 0
        eval "plot data using 5:(in_state(i, 'idle')):".cell." with boxxyerror fillstyle empty linecolor rgb '#c0c0c0' linewidth 0.5, " \
             ."data using 5:(in_state(i, 'held')):".cell." with boxxyerror fillstyle empty linecolor rgb '#808080' linewidth 0.7, " \
             ."data using 5:(in_state(i, 'held')) with points pointtype 7 pointsize 0.4 * mark linecolor rgb '#808080', " \
             ."data using 5:(in_state(i, 'decode')):".cell.":(hue(0)) with boxxyerror fillstyle solid 1 border rgb '#ffffff' linewidth 0.2 fillcolor rgb variable, " \
             ."data using 5:(in_state(i, 'prefill')):".cell.":(hue(1)) with boxxyerror fillstyle solid 1 border rgb '#ffffff' linewidth 0.2 fillcolor rgb variable, " \
             ."data using 5:(column(1) == i && strcol(8) eq 'true' ? $4 : NaN):(strcol(7)) with labels font ',6' textcolor rgb '#ffffff'"
    }
    eval legend("NaN with boxes fillstyle solid 1 noborder fillcolor rgb '#404040' title 'prefill', " \
        ."NaN with boxes fillstyle solid 1 noborder fillcolor rgb '#c8c8c8' title 'decode', " \
        ."NaN with points pointtype 7 pointsize 0.5 * mark linecolor rgb '#808080' title 'held', " \
        ."NaN with boxes fillstyle empty linecolor rgb '#c0c0c0' title 'idle'")
    eval close_page
}
