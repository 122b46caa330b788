/* speculation.csv: how many guessed tokens held, in all (place 0) and by their place in a step. A
 * step yields `length` tokens, of which the end of an answer cuts some off: tokens_a_step. */
#include <math.h>

#include "inflight/report.h"

#include "tables/row.h"
#include "tables/whole_file.h"

static double share(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : (double)NAN;
}

static int write_row(struct whole_file *file, int32_t point, int32_t place, int64_t n_guessed,
                     int64_t n_held, const struct ifl_speculation_record *of,
                     struct ifl_error *error)
{
    char *at = whole_room(file, 8 * (size_t)ROW_REAL_BYTES, error);
    if (!at)
        return error->code;
    at = row_int(at, point);
    at = row_int(at, place);
    at = row_int(at, of->n_steps);
    at = row_int(at, n_guessed);
    at = row_int(at, n_held);
    at = row_real(at, share(n_held, n_guessed));
    at = row_int(at, of->n_emitted);
    at = row_real(at, share(of->n_emitted, of->n_steps));
    at = row_real(at, share(of->n_steps + of->n_held, of->n_steps));
    whole_commit(file, row_end(at));
    return IFL_OK;
}

int ifl_write_speculation(int32_t point, const struct ifl_speculation_record *record,
                          const char *path, struct ifl_error *error)
{
    struct whole_file file;
    int rc = whole_open(&file, path, error);
    if (rc == IFL_OK)
        rc = whole_write(
            &file, "point,place,request_steps,guessed,held,held_frac,tokens,tokens_a_step,length\n",
            error);
    if (rc == IFL_OK)
        rc = write_row(&file, point, 0, record->n_drafted, record->n_held, record, error);
    for (int32_t i = 0; rc == IFL_OK && i < IFL_SPECULATION_PLACES; i++)
        if (record->of[i].n_guessed > 0)
            rc = write_row(&file, point, i + 1, record->of[i].n_guessed, record->of[i].n_held,
                           record, error);
    return whole_finish(&file, rc, error);
}
