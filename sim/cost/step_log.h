/* The steps of a recorded run, plain or gzipped:
 *   - steps.csv of a run of inflight, and work.csv beside it if there is one;
 *   - an engine's log of its steps, a row for each request of each step (docs/formats.md). */
#ifndef SIM_COST_STEP_LOG_H
#define SIM_COST_STEP_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"

enum { STEP_LOG_END = -1, STEP_LOG_MAX_REPLICAS = 65536 };

/* What a step computes of one sequence. No padding: parts are compared byte by byte. */
struct step_part {
    uint64_t request_id;
    int32_t n_context, n_new; /* n_context: tokens computed before the step; n_new: tokens that it
                                 computes */
};

struct logged_sums {
    int64_t context_tokens; /* that decoding sequences read, the new ones included */
    int32_t prefill_tokens, prefill_seqs, decode_seqs;
};

struct logged_step {
    int64_t start_ns, end_ns;
    struct logged_sums sums;    /* zero unless the log has_sums */
    size_t first_part, n_parts; /* in order of step_part_order */
    int64_t number;             /* number of the step in the file */
    int32_t next;               /* the next step of the same replica, or STEP_LOG_END */
};

struct step_log {
    char path[512];
    bool has_sums, has_parts;  /* at least one of the two is true */
    struct logged_step *steps; /* [n_steps] in the order of the file */
    struct step_part *parts;
    size_t n_steps, n_parts;
    int32_t *first; /* [n_replicas] the first step of each replica, or STEP_LOG_END */
    uint32_t n_replicas;
};

/* `name`: a file, or a folder with steps.csv or step_log.csv. Writes the file's path; negative and
 * an error if there is none. */
int step_log_find(const char *name, char path[512], struct ifl_error *error);
/* Finds the work.csv in the same folder, gzipped or not. Returns false if there is none. */
bool step_log_find_work(const char *name, char path[512]);
/* Reads what step_log_find finds. On failure the log is empty. */
int step_log_read(const char *name, struct step_log *log, struct ifl_error *error);
void step_log_free(struct step_log *log);

/* For qsort: by request, then by tokens before the step. */
int step_part_order(const void *a, const void *b);

#endif
