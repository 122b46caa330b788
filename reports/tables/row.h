/* The fields of a CSV row, formatted by hand.
 *
 * A trace has millions of rows of twenty fields. printf takes 200 ns for a field, these functions
 * 5 ns. Each function writes one field and a comma and returns the place behind the comma; row_end
 * turns the last comma into the end of the line. */
#ifndef INFLIGHT_REPORTS_ROW_H
#define INFLIGHT_REPORTS_ROW_H

#include <stddef.h>
#include <stdint.h>

#define ROW_NUMBER_BYTES ((size_t)32) /* room for a number: the longest, its comma, and some */
#define ROW_REAL_BYTES 40             /* nine significant digits with sign, exponent and comma */

char *row_uint(char *at, uint64_t value);
char *row_int(char *at, int64_t value);
/* Writes nine decimals, exactly; nothing for IFL_NEVER. */
char *row_seconds(char *at, int64_t ns);
/* Writes nine significant digits; nothing for NaN. */
char *row_real(char *at, double value);
/* Writes the word unchanged; it must need no quotes. */
char *row_word(char *at, const char *word);
/* Writes the text, quoted as in RFC 4180 if necessary; takes up to row_text_bytes. */
char *row_text(char *at, const char *text);
size_t row_text_bytes(const char *text);
char *row_end(char *at);

#endif
