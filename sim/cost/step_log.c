#include "cost/step_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/table.h"
#include "inflight/time.h"

/* Columns that are read: of steps.csv, of work.csv, of an engine's log. */
enum { STEPS_COLUMNS = 9, WORK_COLUMNS = 7, ENGINE_COLUMNS = 6, MAX_COLUMNS = STEPS_COLUMNS };

static const char *const steps_names[STEPS_COLUMNS] = {
    "point",          "replica",      "step",        "start_s",       "duration_s",
    "prefill_tokens", "prefill_seqs", "decode_seqs", "context_tokens"};
static const char *const work_names[WORK_COLUMNS] = {
    "point", "replica", "step", "request_id", "prefill_tokens", "decode_tokens", "context_tokens"};
static const char *const engine_names[ENGINE_COLUMNS] = {
    "step", "start_s", "duration_s", "request_id", "scheduled_tokens", "computed_tokens"};

struct reader {
    struct step_log *log;
    struct table table;
    int column[MAX_COLUMNS];
    int replica_column;
    int32_t *last; /* [STEP_LOG_MAX_REPLICAS] the step of each that was read last */
    struct ifl_error *error;
};

int step_part_order(const void *a, const void *b)
{
    const struct step_part *x = a, *y = b;
    if (x->request_id != y->request_id)
        return x->request_id < y->request_id ? -1 : 1;
    if (x->n_context != y->n_context)
        return x->n_context < y->n_context ? -1 : 1;
    return (x->n_new > y->n_new) - (x->n_new < y->n_new);
}

/* ---- cells ---- */

static int bind(struct reader *reader, const char *const *names, int n, const char *expected)
{
    for (int c = 0; c < n; c++) {
        reader->column[c] = table_column(&reader->table, names[c]);
        if (reader->column[c] < 0)
            return ifl_fail_at(reader->error, reader->table.path, 1, 0, "no column %s, expected %s",
                               names[c], expected);
    }
    reader->replica_column = table_column(&reader->table, "replica");
    return 0;
}

static int number(struct reader *reader, size_t row, int c, double most, double *value)
{
    return table_number(&reader->table, row, (size_t)reader->column[c], 0, most, value,
                        reader->error);
}

static int whole(struct reader *reader, size_t row, int c, int64_t *value)
{
    double read;
    if (number(reader, row, c, 9e15, &read) < 0)
        return reader->error->code;
    *value = (int64_t)read;
    return (double)*value == read ? 0
                                  : table_fail(&reader->table, row, (size_t)reader->column[c],
                                               "a whole number", reader->error);
}

static int tokens(struct reader *reader, size_t row, int c, int32_t *value)
{
    int64_t read = 0;
    if (whole(reader, row, c, &read) < 0)
        return reader->error->code;
    *value = (int32_t)read;
    return *value == read ? 0
                          : table_fail(&reader->table, row, (size_t)reader->column[c],
                                       "at most 2147483647", reader->error);
}

static int replica_of(struct reader *reader, size_t row, uint32_t *replica)
{
    double value = 0;
    const int column = reader->replica_column;
    if (column >= 0 && table_number(&reader->table, row, (size_t)column, 0,
                                    STEP_LOG_MAX_REPLICAS - 1, &value, reader->error) < 0)
        return reader->error->code;
    *replica = (uint32_t)value;
    return 0;
}

static int same_point(struct reader *reader, size_t row)
{
    const size_t column = (size_t)reader->column[0];
    return strcmp(table_cell(&reader->table, row, column), table_cell(&reader->table, 0, column)) ==
                   0
               ? 0
               : table_fail(&reader->table, row, column, "one point of a run", reader->error);
}

/* start_s and duration_s stand in columns c and c + 1. */
static int times(struct reader *reader, size_t row, int c, struct logged_step *step)
{
    double start_s = 0, duration_s = 0;
    if (number(reader, row, c, 4e9, &start_s) < 0 ||
        number(reader, row, c + 1, 4e9, &duration_s) < 0)
        return reader->error->code;
    step->start_ns = ifl_ns_from_s(start_s);
    step->end_ns = step->start_ns + ifl_ns_from_s(duration_s);
    return 0;
}

/* ---- adding to the log ---- */

/* *array: of the table's rows, zeroed. */
static int reserve(struct reader *reader, void *array, size_t element_bytes)
{
    void *rows =
        reader->table.n_rows < INT32_MAX ? calloc(reader->table.n_rows, element_bytes) : NULL;
    memcpy(array, &rows, sizeof rows); /* a pointer to any type */
    return rows ? 0 : ifl_fail_nomem(reader->error);
}

/* Steps of a replica stand in the order in which they ran. */
static int add_step(struct reader *reader, size_t row, uint32_t replica, struct logged_step step)
{
    struct step_log *log = reader->log;
    const int32_t at = (int32_t)log->n_steps, before = reader->last[replica];
    if (before != STEP_LOG_END && log->steps[before].number >= step.number)
        return ifl_fail_at(reader->error, reader->table.path, reader->table.lines[row], 0,
                           "step %lld of replica %u stands behind step %lld, expected rising steps",
                           (long long)step.number, replica, (long long)log->steps[before].number);
    step.next = STEP_LOG_END;
    step.first_part = log->n_parts;
    log->steps[log->n_steps++] = step;
    *(before == STEP_LOG_END ? &log->first[replica] : &log->steps[before].next) = at;
    reader->last[replica] = at;
    if (replica >= log->n_replicas)
        log->n_replicas = replica + 1;
    return 0;
}

static int add_part(struct reader *reader, size_t row, struct logged_step *step,
                    struct step_part part)
{
    struct step_log *log = reader->log;
    if (step->n_parts == 0)
        step->first_part = log->n_parts;
    if (step->first_part + step->n_parts != log->n_parts)
        return ifl_fail_at(reader->error, reader->table.path, reader->table.lines[row], 0,
                           "step %lld goes on behind another step, expected its rows in a row",
                           (long long)step->number);
    log->parts[log->n_parts++] = part;
    step->n_parts++;
    return 0;
}

/* ---- a run of inflight ---- */

static int read_steps_row(struct reader *reader, size_t row)
{
    struct logged_step step = {0};
    uint32_t replica = 0;
    if (same_point(reader, row) < 0 || replica_of(reader, row, &replica) < 0 ||
        whole(reader, row, 2, &step.number) < 0 || times(reader, row, 3, &step) < 0 ||
        tokens(reader, row, 5, &step.sums.prefill_tokens) < 0 ||
        tokens(reader, row, 6, &step.sums.prefill_seqs) < 0 ||
        tokens(reader, row, 7, &step.sums.decode_seqs) < 0 ||
        whole(reader, row, 8, &step.sums.context_tokens) < 0)
        return reader->error->code;
    return add_step(reader, row, replica, step);
}

static int read_steps(struct reader *reader)
{
    int rc = bind(reader, steps_names, STEPS_COLUMNS, "the steps.csv of a run, or an engine's log");
    if (rc == 0)
        rc = reserve(reader, &reader->log->steps, sizeof *reader->log->steps);
    for (size_t row = 0; rc == 0 && row < reader->table.n_rows; row++)
        rc = read_steps_row(reader, row);
    reader->log->has_sums = true;
    return rc;
}

/* `cursor`: the step of each replica that the row before was of. */
static struct logged_step *step_numbered(struct step_log *log, int32_t *cursor, int64_t wanted)
{
    while (*cursor != STEP_LOG_END && log->steps[*cursor].number < wanted)
        *cursor = log->steps[*cursor].next;
    return *cursor != STEP_LOG_END && log->steps[*cursor].number == wanted ? &log->steps[*cursor]
                                                                           : NULL;
}

static int read_work_row(struct reader *reader, size_t row)
{
    struct step_log *log = reader->log;
    uint32_t replica = 0;
    int64_t number = 0, id = 0;
    int32_t n_prefill = 0, n_decode = 0;
    struct step_part part = {0};
    if (same_point(reader, row) < 0 || replica_of(reader, row, &replica) < 0 ||
        whole(reader, row, 2, &number) < 0 || whole(reader, row, 3, &id) < 0 ||
        tokens(reader, row, 4, &n_prefill) < 0 || tokens(reader, row, 5, &n_decode) < 0 ||
        tokens(reader, row, 6, &part.n_context) < 0)
        return reader->error->code;
    struct logged_step *step =
        replica < log->n_replicas ? step_numbered(log, &reader->last[replica], number) : NULL;
    if (!step)
        return table_fail(&reader->table, row, (size_t)reader->column[2],
                          "a step that steps.csv has, in its order", reader->error);
    part.request_id = (uint64_t)id;
    part.n_new = n_prefill + n_decode;
    return add_part(reader, row, step, part);
}

static int read_work(struct reader *reader, const char *path)
{
    struct step_log *log = reader->log;
    int rc = table_read(path, &reader->table, reader->error);
    if (rc == 0)
        rc = bind(reader, work_names, WORK_COLUMNS, "the work.csv of a run");
    if (rc == 0)
        rc = reserve(reader, &log->parts, sizeof *log->parts);
    memcpy(reader->last, log->first, STEP_LOG_MAX_REPLICAS * sizeof *log->first);
    for (size_t row = 0; rc == 0 && row < reader->table.n_rows; row++)
        rc = read_work_row(reader, row);
    table_free(&reader->table);
    log->has_parts = true;
    return rc;
}

/* ---- an engine's log ---- */

static int check_times(struct reader *reader, size_t row, const struct logged_step *step,
                       const struct logged_step *again)
{
    if (step->start_ns == again->start_ns && step->end_ns == again->end_ns)
        return 0;
    return table_fail(&reader->table, row, (size_t)reader->column[1],
                      "the start_s and duration_s of the step's first row", reader->error);
}

static int read_engine_row(struct reader *reader, size_t row)
{
    struct step_log *log = reader->log;
    struct logged_step step = {0};
    struct step_part part = {0};
    uint32_t replica = 0;
    int64_t id = 0;
    if (replica_of(reader, row, &replica) < 0 || whole(reader, row, 0, &step.number) < 0 ||
        times(reader, row, 1, &step) < 0 || whole(reader, row, 3, &id) < 0 ||
        tokens(reader, row, 4, &part.n_new) < 0 || tokens(reader, row, 5, &part.n_context) < 0)
        return reader->error->code;
    if (part.n_new == 0)
        return table_fail(&reader->table, row, (size_t)reader->column[4], "at least one token",
                          reader->error);
    part.request_id = (uint64_t)id;
    const int32_t last = reader->last[replica];
    if (last == STEP_LOG_END || log->steps[last].number != step.number) {
        if (add_step(reader, row, replica, step) < 0)
            return reader->error->code;
    } else if (check_times(reader, row, &log->steps[last], &step) < 0) {
        return reader->error->code;
    }
    return add_part(reader, row, &log->steps[reader->last[replica]], part);
}

static int read_engine(struct reader *reader)
{
    int rc = bind(reader, engine_names, ENGINE_COLUMNS, "an engine's log of its steps");
    if (rc == 0)
        rc = reserve(reader, &reader->log->steps, sizeof *reader->log->steps);
    if (rc == 0)
        rc = reserve(reader, &reader->log->parts, sizeof *reader->log->parts);
    for (size_t row = 0; rc == 0 && row < reader->table.n_rows; row++)
        rc = read_engine_row(reader, row);
    reader->log->has_parts = true;
    return rc;
}

/* ---- files ---- */

static bool is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISDIR(status.st_mode);
}

static bool find_in(const char *folder, const char *file, char path[512])
{
    static const char *const ends[] = {"", ".gz"};
    for (size_t i = 0; i < 2; i++) {
        const int n = snprintf(path, 512, "%s/%s%s", folder, file, ends[i]);
        if (n > 0 && n < 512 && is_file(path))
            return true;
    }
    return false;
}

int step_log_find(const char *name, char path[512], struct ifl_error *error)
{
    if (is_file(name)) {
        snprintf(path, 512, "%s", name);
        return 0;
    }
    if (find_in(name, "steps.csv", path) || find_in(name, "step_log.csv", path))
        return 0;
    return ifl_fail(error, IFL_E_INPUT,
                    "%s has no steps.csv and no step_log.csv, expected one of them, gzipped or not",
                    name);
}

bool step_log_find_work(const char *name, char path[512])
{
    return !is_file(name) && find_in(name, "work.csv", path);
}

static int read_all(struct reader *reader, const char *name)
{
    char work[512];
    if (table_read(reader->log->path, &reader->table, reader->error) < 0)
        return reader->error->code;
    const bool of_engine = table_column(&reader->table, "scheduled_tokens") >= 0;
    const int rc = of_engine ? read_engine(reader) : read_steps(reader);
    table_free(&reader->table);
    if (rc < 0 || of_engine || !step_log_find_work(name, work))
        return rc;
    return read_work(reader, work);
}

int step_log_read(const char *name, struct step_log *log, struct ifl_error *error)
{
    struct reader reader = {.log = log, .error = error};
    *log = (struct step_log){0};
    if (step_log_find(name, log->path, error) < 0)
        return error->code;
    log->first = malloc(STEP_LOG_MAX_REPLICAS * sizeof *log->first);
    reader.last = malloc(STEP_LOG_MAX_REPLICAS * sizeof *reader.last);
    int rc = log->first && reader.last ? 0 : ifl_fail_nomem(error);
    for (size_t i = 0; rc == 0 && i < STEP_LOG_MAX_REPLICAS; i++)
        log->first[i] = reader.last[i] = STEP_LOG_END;
    if (rc == 0)
        rc = read_all(&reader, name);
    free(reader.last);
    if (rc < 0)
        step_log_free(log);
    for (size_t i = 0; rc == 0 && log->parts && i < log->n_steps; i++)
        qsort(log->parts + log->steps[i].first_part, log->steps[i].n_parts, sizeof *log->parts,
              step_part_order);
    return rc;
}

void step_log_free(struct step_log *log)
{
    free(log->steps);
    free(log->parts);
    free(log->first);
    *log = (struct step_log){0};
}
