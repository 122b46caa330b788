/* Least significant digit first (Knuth, TAOCP volume 3, algorithm 5.2.5 R), over the digits in
 * which the keys differ at all: nanoseconds of one run span about 40 bits, five passes. */
#include "sort.h"

#include <stdbool.h>
#include <string.h>

#define DIGIT_BITS 8
#define N_DIGITS ((size_t)1 << DIGIT_BITS)

struct column {
    uint64_t *key;
    uint32_t *tag;
};

static bool ascending(const int64_t *key, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (key[i] < key[i - 1])
            return false;
    return true;
}

/* Keys become distances from the smallest, which has no sign and the fewest digits. */
static uint64_t rebase(int64_t *key, size_t n, int64_t *smallest)
{
    int64_t min = key[0], max = key[0];
    for (size_t i = 1; i < n; i++) {
        min = key[i] < min ? key[i] : min;
        max = key[i] > max ? key[i] : max;
    }
    for (size_t i = 0; i < n; i++)
        key[i] = (int64_t)((uint64_t)key[i] - (uint64_t)min);
    *smallest = min;
    return (uint64_t)max - (uint64_t)min;
}

static void find_places(const uint64_t *key, size_t n, int shift, size_t *place)
{
    memset(place, 0, N_DIGITS * sizeof *place);
    for (size_t i = 0; i < n; i++)
        place[key[i] >> shift & (N_DIGITS - 1)]++;
    for (size_t digit = 0, before = 0; digit < N_DIGITS; digit++) {
        const size_t here = place[digit];
        place[digit] = before;
        before += here;
    }
}

static void deal(struct column from, struct column to, size_t n, int shift)
{
    size_t place[N_DIGITS];
    find_places(from.key, n, shift, place);
    for (size_t i = 0; i < n; i++) {
        const size_t at = place[from.key[i] >> shift & (N_DIGITS - 1)]++;
        to.key[at] = from.key[i];
        if (from.tag)
            to.tag[at] = from.tag[i];
    }
}

static void sort_columns(struct column of, struct column scratch, size_t n)
{
    int64_t smallest;
    const uint64_t span = rebase((int64_t *)of.key, n, &smallest);
    struct column from = of, to = scratch;
    for (int shift = 0; shift < 64 && span >> shift; shift += DIGIT_BITS) {
        deal(from, to, n, shift);
        const struct column dealt = to;
        to = from;
        from = dealt;
    }
    for (size_t i = 0; i < n; i++)
        of.key[i] = from.key[i] + (uint64_t)smallest;
    if (of.tag && from.tag != of.tag)
        memcpy(of.tag, from.tag, n * sizeof *of.tag);
}

int sort_by_key(int64_t *key, uint32_t *tag, size_t n, struct ifl_error *error)
{
    if (ascending(key, n))
        return IFL_OK;
    struct column scratch = {.key = malloc(n * sizeof *scratch.key),
                             .tag = tag ? malloc(n * sizeof *scratch.tag) : NULL};
    const bool room = scratch.key && (scratch.tag || !tag);
    if (room)
        sort_columns((struct column){.key = (uint64_t *)key, .tag = tag}, scratch, n);
    free(scratch.key);
    free(scratch.tag);
    return room ? IFL_OK : ifl_fail_nomem(error);
}
