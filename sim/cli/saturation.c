#include "cli/saturation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a note needs of a point. */
struct verdict {
    const char **values; /* [n_keys], the points' */
    bool saturated;
    struct ifl_pressure pressure;
};

/* ---- the note ---- */

static void put_limits(FILE *out, const struct ifl_pressure *of)
{
    if (of->seats_frac < 0.5 && of->tokens_frac < 0.5 && of->blocks_frac < 0.5)
        fprintf(out, "none of its limits was full");
    else if (of->blocks_frac >= of->seats_frac && of->blocks_frac >= of->tokens_frac)
        fprintf(out, "its blocks were full");
    else if (of->seats_frac >= of->tokens_frac)
        fprintf(out, "its limit of %d sequences was full", of->most_running);
    else
        fprintf(out, "its limit of %d tokens a step was full", of->most_tokens);
    fprintf(out,
            " (while requests waited: %d sequences ran in %.0f%% of the time, steps had %d tokens "
            "or nearly in %.0f%%, 15/16 of the blocks were in use in %.0f%%)",
            of->most_running, 100 * of->seats_frac, of->most_tokens, 100 * of->tokens_frac,
            100 * of->blocks_frac);
}

static void note(const struct ifl_points *points, size_t key, const struct verdict *of,
                 const struct verdict *other, const struct ifl_notes *notes)
{
    char *text = NULL;
    size_t n_bytes;
    const char *before = "";
    FILE *out = open_memstream(&text, &n_bytes);
    if (!out)
        return;
    fprintf(out, "%s is saturated", of->values[key]);
    for (size_t k = 0; k < points->n_keys; k++)
        if (k != key) {
            const char *dot = strrchr(points->keys[k], '.');
            fprintf(out, "%s%s=%s", *before ? before : " at ", dot ? dot + 1 : points->keys[k],
                    of->values[k]);
            before = " ";
        }
    fprintf(out, " and %s is not: ", other->values[key]);
    put_limits(out, &of->pressure);
    if (fclose(out) == 0)
        notes->say(notes->context, text);
    free(text);
}

/* ---- which points ---- */

static bool differ_in(const struct ifl_points *points, size_t key, const struct verdict *a,
                      const struct verdict *b)
{
    for (size_t k = 0; k < points->n_keys; k++)
        if ((strcmp(a->values[k], b->values[k]) != 0) != (k == key))
            return false;
    return true;
}

static const struct verdict *find_calm(const struct ifl_points *points, size_t key,
                                       const struct verdict *all, const struct verdict *of)
{
    for (size_t p = 0; p < points->n_points; p++)
        if (!all[p].saturated && differ_in(points, key, &all[p], of))
            return &all[p];
    return NULL;
}

/* True if no note names an earlier point with that value of the key. */
static bool is_news(const struct verdict *const *told, size_t n, size_t key,
                    const struct verdict *of)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(told[i]->values[key], of->values[key]) == 0)
            return false;
    return true;
}

static void explain_key(const struct ifl_points *points, size_t key, const struct verdict *all,
                        const struct ifl_notes *notes)
{
    enum { MOST_NOTES = 16 };
    const struct verdict *told[MOST_NOTES];
    size_t n = 0;
    for (size_t p = 0; p < points->n_points && n < MOST_NOTES; p++) {
        const struct verdict *of = &all[p];
        const struct verdict *calm =
            of->saturated && is_news(told, n, key, of) ? find_calm(points, key, all, of) : NULL;
        if (!calm)
            continue;
        note(points, key, of, calm, notes);
        told[n++] = of;
    }
}

static bool is_load(const char *key)
{
    return strncmp(key, "workload.", 9) == 0 || strcmp(key, "replication") == 0;
}

static int read_all(const struct ifl_points *points, struct verdict *all, const char **values,
                    struct ifl_error *error)
{
    struct ifl_summary summary;
    for (size_t p = 0; p < points->n_points; p++) {
        all[p].values = values + p * points->n_keys;
        if (points->at(points->context, p, all[p].values, &summary, error) < 0)
            return error->code;
        all[p].saturated = !summary.error[0] && summary.saturated;
        all[p].pressure = summary.pressure;
    }
    return 0;
}

int saturation_explain(const struct ifl_points *points, const struct ifl_notes *notes,
                       struct ifl_error *error)
{
    struct verdict *all = calloc(points->n_points + 1, sizeof *all);
    const char **values = calloc(points->n_points * points->n_keys + 1, sizeof *values);
    int rc = all && values ? read_all(points, all, values, error) : ifl_fail_nomem(error);
    for (size_t key = 0; rc == 0 && key < points->n_keys; key++)
        if (!is_load(points->keys[key]))
            explain_key(points, key, all, notes);
    free(values);
    free(all);
    return rc;
}
