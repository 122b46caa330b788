#include "page/pack.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_LETTERS = 13 }; /* of 64 bits */

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static bool has_room(struct pack *pack)
{
    if (pack->failed || pack->cap - pack->n >= MOST_LETTERS)
        return !pack->failed;
    const size_t cap = 2 * pack->cap + 64;
    char *text = realloc(pack->text, cap);
    pack->failed = text == NULL;
    if (text) {
        pack->text = text;
        pack->cap = cap;
    }
    return !pack->failed;
}

void pack_add(struct pack *pack, int64_t value)
{
    uint64_t rest = value < 0 ? (0 - (uint64_t)value) << 1 | 1 : (uint64_t)value << 1;
    if (!has_room(pack))
        return;
    do {
        const unsigned low = rest & 31;
        rest >>= 5;
        pack->text[pack->n++] = letters[rest ? low | 32 : low];
    } while (rest);
}

static void add_missing(struct pack *pack)
{
    if (has_room(pack))
        pack->text[pack->n++] = '.';
}

void pack_real(struct pack *pack, double value, double scale)
{
    if (isnan(value))
        add_missing(pack);
    else
        pack_add(pack, llround(value * scale));
}

void pack_delta(struct pack *pack, double value, double scale)
{
    if (isnan(value)) {
        add_missing(pack);
        return;
    }
    const int64_t now = llround(value * scale);
    pack_add(pack, now - pack->last);
    pack->last = now;
}

json_t *pack_take(struct pack *pack)
{
    json_t *text =
        pack->failed ? NULL : json_stringn_nocheck(pack->text ? pack->text : "", pack->n);
    free(pack->text);
    *pack = (struct pack){0};
    return text;
}
