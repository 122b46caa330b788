#include "record/moves.h"

#include "tables/row.h"

#define MOVE_ROW_BYTES (10 * ROW_NUMBER_BYTES)

static const char header[] =
    "point,request_id,from_replica,to_replica,asked_s,start_s,end_s,hidden_s,blocks,bytes\n";

int move_log_open(struct move_log *log, const char *path, int32_t point, struct ifl_error *error)
{
    log->point = point;
    if (path && (whole_open(&log->file, path, error) || whole_write(&log->file, header, error)))
        return error->code;
    return IFL_OK;
}

static char *put_place(char *at, int32_t place)
{
    return place < 0 ? row_word(at, ifl_tier_names[IFL_MOVE_TIER(place)]) : row_int(at, place);
}

static char *put_move(char *at, int32_t point, const struct ifl_move_record *move)
{
    at = row_int(at, point);
    at = row_uint(at, move->request_id);
    at = put_place(at, move->from);
    at = put_place(at, move->to);
    at = row_seconds(at, move->sent_ns);
    at = row_seconds(at, move->start_ns);
    at = row_seconds(at, move->end_ns);
    at = row_seconds(at, move->hidden_ns);
    at = row_int(at, move->n_blocks);
    at = row_int(at, move->n_bytes);
    return row_end(at);
}

void move_sums_add(struct move_sums *sums, const struct ifl_move_record *move)
{
    sums->n++;
    exact_add(&sums->bytes, move->n_bytes, 1);
    exact_add(&sums->time_ns, move->moving_ns, 1);
    exact_add(&sums->hidden_ns, move->hidden_ns, 1);
}

int move_log_add(struct move_log *log, const struct ifl_move_record *move, bool counts,
                 struct ifl_error *error)
{
    if (counts)
        move_sums_add(&log->sums, move);
    if (!whole_is_open(&log->file))
        return IFL_OK;
    char *at = whole_room(&log->file, MOVE_ROW_BYTES, error);
    if (!at)
        return error->code;
    whole_commit(&log->file, put_move(at, log->point, move));
    return IFL_OK;
}

void move_sums_describe(const struct move_sums *sums, struct ifl_summary *summary)
{
    const double time_ns = exact_value(sums->time_ns);
    if (sums->n == 0)
        return;
    summary->n_moves = sums->n;
    summary->moved_gb = exact_value(sums->bytes) * 1e-9;
    summary->moving_s = time_ns * 1e-9 / (double)sums->n;
    summary->moving_hidden_frac = time_ns > 0 ? exact_value(sums->hidden_ns) / time_ns : 0;
}
