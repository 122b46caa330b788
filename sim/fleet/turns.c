#include "fleet/turns.h"

#include <stdlib.h>

#include "inflight/minmax.h"

/* ---- classes ---- */

/* Behind "FROM:QUANTUM"; NULL: the text is something else. */
static const char *read_class(struct classes *classes, const char *at)
{
    const int i = classes->n;
    char *end;
    const long long from = strtoll(at, &end, 10);
    if (i == CLASSES_MOST || end == at || *end != ':' || from > INT32_MAX ||
        (i == 0 ? from != 0 : from <= classes->from_tokens[i - 1]))
        return NULL;
    const char *behind = end + 1;
    const long long quantum = strtoll(behind, &end, 10);
    if (end == behind || quantum < 1 || quantum > INT32_MAX)
        return NULL;
    classes->from_tokens[i] = (int32_t)from;
    classes->quantum_tokens[i] = quantum;
    classes->n++;
    return end;
}

int classes_read(struct classes *classes, const char *list, struct ifl_error *error)
{
    const char *at = list;
    *classes = (struct classes){0};
    while (at && *at) {
        at = read_class(classes, at);
        if (at && *at == ',' && at[1] != '\0')
            at++;
        else if (at && *at)
            at = NULL;
    }
    return at ? 0
              : ifl_fail(error, IFL_E_INPUT,
                         "cluster.gateway.classes is %s, expected FROM:QUANTUM of up to %d classes "
                         "with commas between them, such as 0:4096,2048:1024: the first from 0 "
                         "tokens, each from more than the one before, quanta from 1 up",
                         list, CLASSES_MOST);
}

int classes_of(const struct classes *classes, int32_t n_tokens)
{
    int i = ifl_max(classes->n, 1) - 1;
    while (i > 0 && n_tokens < classes->from_tokens[i])
        i--;
    return i;
}

/* ---- turns ---- */

static bool is_enough(const struct turns *turns, const int64_t *heads, int i)
{
    return heads[i] > 0 && heads[i] <= turns->credit_tokens[i];
}

/* One round: each class with a head that may go gets its quantum, until one has enough. */
static int go_round(struct turns *turns, const struct classes *classes, const int64_t *heads)
{
    for (int k = 0; k < classes->n; k++) {
        const int i = (turns->first + k) % classes->n;
        if (heads[i] > 0 && !is_enough(turns, heads, i))
            turns->credit_tokens[i] += classes->quantum_tokens[i];
        if (is_enough(turns, heads, i))
            return i;
    }
    return NO_CLASS;
}

/* Whole rounds at once, as few as give some class enough. */
static int64_t rounds_needed(const struct turns *turns, const struct classes *classes,
                             const int64_t *heads)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < classes->n; i++)
        if (heads[i] > 0) {
            const int64_t missing = heads[i] - turns->credit_tokens[i];
            const int64_t quantum = classes->quantum_tokens[i];
            least = ifl_min(least, (missing + quantum - 1) / quantum);
        }
    return least;
}

static int after_rounds(struct turns *turns, const struct classes *classes, const int64_t *heads)
{
    const int64_t n = rounds_needed(turns, classes, heads);
    if (n == INT64_MAX)
        return NO_CLASS;
    for (int i = 0; i < classes->n; i++)
        if (heads[i] > 0)
            turns->credit_tokens[i] += n * classes->quantum_tokens[i];
    int found = turns->first;
    while (!is_enough(turns, heads, found))
        found = (found + 1) % classes->n;
    return found;
}

int turns_next(struct turns *turns, const struct classes *classes,
               const int64_t heads_tokens[CLASSES_MOST])
{
    const int served = turns->served - 1;
    turns->served = 0;
    if (served != NO_CLASS && is_enough(turns, heads_tokens, served))
        return served;
    const int found = go_round(turns, classes, heads_tokens);
    return found != NO_CLASS ? found : after_rounds(turns, classes, heads_tokens);
}

void turns_spend(struct turns *turns, const struct classes *classes, int class_of, int64_t n_tokens)
{
    turns->first = (class_of + 1) % classes->n;
    turns->credit_tokens[class_of] -= n_tokens;
    turns->served = turns->credit_tokens[class_of] > 0 ? class_of + 1 : 0;
}
