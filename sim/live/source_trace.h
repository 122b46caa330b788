/* The recording of a server's requests as a trace: a row is written when its request arrives,
 * complete except for abort_s. That cell is blank and is filled in if the client leaves. */
#ifndef SIM_LIVE_SOURCE_TRACE_H
#define SIM_LIVE_SOURCE_TRACE_H

#include "inflight/trace.h"

struct source_trace {
    int fd; /* -1: none is written */
    char *path;
    char *buffer; /* [n_bytes of cap_bytes] rows that are not yet in the file */
    size_t n_bytes, cap_bytes;
    uint64_t flushed_bytes;
};

/* Creates the file with only its header. Returns IFL_E_INPUT if it exists. */
int source_trace_make(const char *path, struct ifl_error *error);
/* Opens such a file. */
int source_trace_open(struct source_trace *file, const char *path, struct ifl_error *error);
/* Closes the file. Accepts one that was not opened. */
void source_trace_close(struct source_trace *file);

struct source_row {
    uint64_t request_id;
    int64_t sent_ns;
    const struct ifl_trace *trace; /* `row` of it has the rest */
    size_t row;
    const char *client, *session; /* texts without line feeds */
    const int32_t *tokens;        /* [n_tokens] tokens of the prompt and of its answer */
    int32_t n_tokens;
};

/* Adds the row; *abort_at is the place of its abort_s. */
int source_trace_add(struct source_trace *file, const struct source_row *row, uint64_t *abort_at,
                     struct ifl_error *error);
int source_trace_abort(struct source_trace *file, uint64_t abort_at, int64_t abort_ns,
                       struct ifl_error *error);
/* Writes the rows so far. Returns IFL_E_IO if the disk is full; the file then ends with a complete
 * row. */
int source_trace_flush(struct source_trace *file, struct ifl_error *error);

#endif
