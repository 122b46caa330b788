/* The kind of an output stream: a terminal with its width and whether it takes colour, or a file.
 */
#ifndef SIM_CLI_TERMINAL_H
#define SIM_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

/* True for a terminal that understands escape codes: TERM says one that is not dumb. */
bool terminal_is(FILE *out);
/* The width of the terminal, 80 if it does not say; 0 if `out` is no terminal. */
int terminal_columns(FILE *out);

enum terminal_style { STYLE_NAME, STYLE_NOTE, STYLE_ERROR, STYLE_NONE };
/* The escape code that begins a style, or with STYLE_NONE ends it. Empty if `out` is no terminal or
 * if NO_COLOR is set to anything (no-color.org). */
const char *terminal_style(FILE *out, enum terminal_style style);

/* Prints the text from column `at` on, broken between words; further lines begin at column
 * `indent`. With 0 columns it is one line. Ends the line. */
void terminal_wrap(FILE *out, const char *text, int at, int indent, int columns);

#endif
