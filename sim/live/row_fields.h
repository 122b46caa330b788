/* Fields of a row of CSV, written where a row is put together. */
#ifndef SIM_LIVE_ROW_FIELDS_H
#define SIM_LIVE_ROW_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#define ROW_NUMBER_BYTES ((size_t)24) /* of a number and its comma */

/* At least that many digits, without a comma; at most 20. Returns the place behind them, as all do.
 */
char *row_put_digits(char *at, uint64_t value, int least);
/* Nine decimals, without a comma. */
char *row_put_time(char *at, int64_t ns);
/* A field and a comma: nine decimals, nothing for IFL_NEVER. Returns the place behind it. */
char *row_put_seconds(char *at, int64_t ns);
char *row_put_whole(char *at, int64_t value);
/* Nothing if the number is negative. */
char *row_put_count(char *at, int64_t value);
/* In quotes where it needs them; at most 2 x its length + 3. */
char *row_put_text(char *at, const char *text);
/* Turns the last comma into the end of the row. */
char *row_put_end(char *at);

#endif
