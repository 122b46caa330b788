/* Writes the fields of a CSV row into memory. */
#ifndef SIM_LIVE_ROW_FIELDS_H
#define SIM_LIVE_ROW_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#define ROW_NUMBER_BYTES ((size_t)24) /* of a number and its comma */

/* Writes at least that many digits, at most 20, without a comma. Returns the place after them, as
 * all functions here do. */
char *row_put_digits(char *at, uint64_t value, int least);
/* Nine decimals, without a comma. */
char *row_put_time(char *at, int64_t ns);
/* A field and a comma: nine decimals, nothing for IFL_NEVER. Returns the place behind it. */
char *row_put_seconds(char *at, int64_t ns);
char *row_put_whole(char *at, int64_t value);
/* Writes a count and a comma; only the comma if it is negative. */
char *row_put_count(char *at, int64_t value);
/* In quotes where it needs them; at most 2 x its length + 3. */
char *row_put_text(char *at, const char *text);
/* Turns the last comma into the end of the row. */
char *row_put_end(char *at);

#endif
