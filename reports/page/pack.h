/* Whole numbers as short text: Base64 VLQ, as source maps have it (ECMA-426): five bits per letter,
 * the sign in the lowest bit of the first letter, the sixth bit set if another letter follows. A
 * full stop stands for a number that is not defined. A hundred thousand requests take 3 MB, in
 * place of 8 MB of decimal digits. */
#ifndef INFLIGHT_REPORTS_PAGE_PACK_H
#define INFLIGHT_REPORTS_PAGE_PACK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: empty. */
struct pack {
    char *text; /* [cap], owned */
    size_t n, cap;
    int64_t last; /* last value of pack_delta */
    bool failed;  /* out of memory; what follows is dropped */
};

void pack_add(struct pack *pack, int64_t value);
/* Appends value x scale, rounded to the nearest whole number; NaN counts as not defined. */
void pack_real(struct pack *pack, double value, double scale);
/* As pack_real, as the difference from the previous value; the first value is relative to 0. */
void pack_delta(struct pack *pack, double value, double scale);
/* Returns the text as a JSON string, NULL if memory ran out, and empties the pack. */
json_t *pack_take(struct pack *pack);

#endif
