/* Radix sort from the least significant digit (Knuth, TAOCP volume 3, algorithm 5.2.5 R), over the
 * digits in which the keys differ: nanoseconds of one run span about 40 bits, four passes. */
#include "tables/sort.h"

#include <stdbool.h>
#include <string.h>

#include "inflight/minmax.h"

#define DIGIT_BITS 11
#define N_DIGITS ((size_t)1 << DIGIT_BITS)
#define MAX_PASSES ((64 + DIGIT_BITS - 1) / DIGIT_BITS)
#define FEW ((size_t)128) /* for fewer keys an insertion sort is faster than counting digits */

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

/* Keys become distances from the smallest key: unsigned, with the fewest digits. */
static uint64_t rebase(int64_t *key, size_t n, int64_t *smallest)
{
    int64_t min = key[0], max = key[0];
    for (size_t i = 1; i < n; i++) {
        min = ifl_min(min, key[i]);
        max = ifl_max(max, key[i]);
    }
    for (size_t i = 0; i < n; i++)
        key[i] = (int64_t)((uint64_t)key[i] - (uint64_t)min);
    *smallest = min;
    return (uint64_t)max - (uint64_t)min;
}

static size_t digit_of(uint64_t key, int pass)
{
    return key >> (pass * DIGIT_BITS) & (N_DIGITS - 1);
}

/* Counts each digit's occurrences, for all passes at once; the prefix sums are the first places. */
static void find_places(const uint64_t *key, size_t n, int n_passes,
                        uint32_t place[MAX_PASSES][N_DIGITS])
{
    memset(place, 0, (size_t)n_passes * sizeof *place);
    for (size_t i = 0; i < n; i++)
        for (int pass = 0; pass < n_passes; pass++)
            place[pass][digit_of(key[i], pass)]++;
    for (int pass = 0; pass < n_passes; pass++)
        for (size_t digit = 0, before = 0; digit < N_DIGITS; digit++) {
            const size_t here = place[pass][digit];
            place[pass][digit] = (uint32_t)before;
            before += here;
        }
}

static void deal(struct column from, struct column to, size_t n, int pass, uint32_t *place)
{
    for (size_t i = 0; i < n; i++) {
        const size_t at = place[digit_of(from.key[i], pass)]++;
        to.key[at] = from.key[i];
        if (from.tag)
            to.tag[at] = from.tag[i];
    }
}

static int count_passes(uint64_t span)
{
    int n_passes = 0;
    while (n_passes < MAX_PASSES && span >> (n_passes * DIGIT_BITS))
        n_passes++;
    return n_passes;
}

static void sort_columns(struct column of, struct column scratch, size_t n)
{
    uint32_t place[MAX_PASSES][N_DIGITS];
    int64_t smallest;
    const int n_passes = count_passes(rebase((int64_t *)of.key, n, &smallest));
    struct column from = of, to = scratch;
    find_places(of.key, n, n_passes, place);
    for (int pass = 0; pass < n_passes; pass++) {
        deal(from, to, n, pass, place[pass]);
        const struct column dealt = to;
        to = from;
        from = dealt;
    }
    for (size_t i = 0; i < n; i++)
        of.key[i] = from.key[i] + (uint64_t)smallest;
    if (of.tag && from.tag != of.tag)
        memcpy(of.tag, from.tag, n * sizeof *of.tag);
}

static void insert_all(int64_t *key, uint32_t *tag, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const int64_t k = key[i];
        const uint32_t t = tag ? tag[i] : 0;
        size_t at = i;
        for (; at > 0 && key[at - 1] > k; at--) {
            key[at] = key[at - 1];
            if (tag)
                tag[at] = tag[at - 1];
        }
        key[at] = k;
        if (tag)
            tag[at] = t;
    }
}

int sort_by_key(int64_t *key, uint32_t *tag, size_t n, struct ifl_error *error)
{
    ifl_require(n <= UINT32_MAX);
    if (ascending(key, n))
        return IFL_OK;
    if (n <= FEW) {
        insert_all(key, tag, n);
        return IFL_OK;
    }
    struct column scratch = {.key = malloc(n * sizeof *scratch.key),
                             .tag = tag ? malloc(n * sizeof *scratch.tag) : NULL};
    const bool room = scratch.key && (scratch.tag || !tag);
    if (room)
        sort_columns((struct column){.key = (uint64_t *)key, .tag = tag}, scratch, n);
    free(scratch.key);
    free(scratch.tag);
    return room ? IFL_OK : ifl_fail_nomem(error);
}
