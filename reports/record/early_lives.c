#include "record/early_lives.h"

#include <stdlib.h>

#include "tables/sort.h"

enum { FIRST_CAP = 64 };

static struct life *life_of(const struct early_lives *early, uint64_t serial)
{
    return &early->at[serial & (early->cap - 1)];
}

static bool is_there(const struct early_lives *early, uint64_t serial)
{
    return serial - early->first < early->cap && life_of(early, serial)->rare;
}

static int make(struct early_lives *early, size_t cap, struct ifl_error *error)
{
    early->cap = cap;
    early->at = calloc(cap, sizeof *early->at);
    early->rares = malloc(cap * sizeof *early->rares);
    return early->at && early->rares ? IFL_OK : ifl_fail_nomem(error);
}

int early_open(struct early_lives *early, struct ifl_error *error)
{
    *early = (struct early_lives){0};
    return make(early, FIRST_CAP, error);
}

void early_close(struct early_lives *early)
{
    free(early->at);
    free(early->rares);
    *early = (struct early_lives){0};
}

static void move_over(const struct early_lives *from, struct early_lives *to)
{
    for (uint64_t serial = from->first; serial < from->first + from->cap; serial++) {
        const struct life *life = life_of(from, serial);
        const size_t place = serial & (to->cap - 1);
        to->at[place] = *life;
        if (!life->rare || life->rare == &life_has_none)
            continue;
        to->rares[place] = *life->rare;
        to->at[place].rare = &to->rares[place];
    }
}

static int grow(struct early_lives *early, uint64_t serial, struct ifl_error *error)
{
    struct early_lives wider = *early;
    size_t cap = early->cap;
    while (serial - early->first >= cap)
        cap *= 2;
    if (make(&wider, cap, error)) {
        early_close(&wider);
        return error->code;
    }
    move_over(early, &wider);
    early_close(early);
    *early = wider;
    return IFL_OK;
}

size_t early_place(struct early_lives *early, uint64_t serial, struct ifl_error *error)
{
    ifl_require(serial >= early->first);
    ifl_assert(!is_there(early, serial)); /* it would be read from memory */
    if (IFL_RARE(serial - early->first >= early->cap && grow(early, serial, error)))
        return EARLY_NOMEM;
    return serial & (early->cap - 1);
}

/* Lives [first, same), which arrived at the same time, by request_id. */
static int order_ties(struct early_lives *early, struct ifl_error *error)
{
    const size_t n = (size_t)(early->same - early->first);
    int64_t *key = malloc(n * sizeof *key);
    uint32_t *from = malloc(n * sizeof *from);
    struct life *lives = malloc(n * sizeof *lives);
    int code = key && from && lives ? IFL_OK : ifl_fail_nomem(error);
    for (size_t i = 0; i < n && !code; i++) {
        lives[i] = *life_of(early, early->first + i);
        key[i] = life_id_key(&lives[i]);
        from[i] = (uint32_t)i;
    }
    if (!code)
        code = sort_by_key(key, from, n, error);
    for (size_t i = 0; i < n && !code; i++)
        *life_of(early, early->first + i) = lives[from[i]];
    free(key);
    free(from);
    free(lives);
    return code;
}

/* Lives that never come leave gaps in the numbers. */
static void pass_gap(struct early_lives *early)
{
    uint64_t serial = early->first;
    while (serial - early->first < early->cap && !is_there(early, serial))
        serial++;
    if (is_there(early, serial))
        early->first = early->known = early->same = serial;
}

/* True if the next life, and the one behind it, are there, and arrived at different times. */
static inline bool stands_alone(const struct early_lives *early)
{
    const struct life *life = life_of(early, early->first),
                      *next = life_of(early, early->first + 1);
    return life->rare && next->rare && life->arrival_ns != next->arrival_ns;
}

/* Finds which lives arrived together with the next one: those that come may have lower identities.
 */
static int look_further(struct early_lives *early, bool ended, struct ifl_error *error)
{
    if (ended && !is_there(early, early->first))
        pass_gap(early);
    const int64_t arrival_ns = life_of(early, early->first)->arrival_ns;
    while (is_there(early, early->same) && life_of(early, early->same)->arrival_ns == arrival_ns)
        early->same++;
    if (early->same == early->first || (!is_there(early, early->same) && !ended))
        return IFL_OK;
    if (early->same - early->first > 1 && order_ties(early, error))
        return error->code;
    early->known = early->same;
    return IFL_OK;
}

int early_next(struct early_lives *early, bool ended, const struct life **life,
               struct ifl_error *error)
{
    *life = NULL;
    if (early->gone)
        early->gone->rare = NULL;
    early->gone = NULL;
    if (early->first == early->known) {
        if (stands_alone(early))
            early->known = early->same = early->first + 1;
        else if (look_further(early, ended, error))
            return error->code;
    }
    if (early->first == early->known)
        return IFL_OK;
    *life = early->gone = life_of(early, early->first++);
    return IFL_OK;
}
