#!/bin/bash
# complete.bash SCRIPT LINE: what bash offers at the end of the line, a word a line.
. "$1"
COMP_LINE=$2 COMP_POINT=${#2}
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
_inflight
printf '%s\n' "${COMPREPLY[@]}"
