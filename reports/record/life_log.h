/* Lives in the order of arrival, as the summary needs them: without their names. They are added,
 * and read as often as needed. Up to LIFE_LOG_BYTES are in memory, more in a file without a name.
 */
#ifndef INFLIGHT_REPORTS_LIFE_LOG_H
#define INFLIGHT_REPORTS_LIFE_LOG_H

#include "record/life.h"

#define LIFE_LOG_BYTES ((size_t)64 << 20) /* 1,400,000 lives */

struct life_log {
    char *at; /* [n_bytes of cap_bytes], owned: the last entries */
    size_t n_bytes, cap_bytes;
    size_t most_bytes; /* of cap_bytes */
    uint64_t in_file;  /* bytes of the entries before them */
    FILE *file;        /* NULL while all are in memory */
    char *beside;      /* owned: the file lies in the folder of this one; NULL: where others do */
};

/* beside: NULL, or the path of a file in a folder with room. */
int life_log_open(struct life_log *log, const char *beside, struct ifl_error *error);
void life_log_close(struct life_log *log);
/* IFL_E_IO: the disk is full. */
int life_log_add(struct life_log *log, const struct life *life, struct ifl_error *error);

/* Reads a log, to which nothing is added meanwhile, from its first life on. */
struct life_reader {
    struct life life;
    struct rare rare;
    const struct life_log *log;
    char *chunk;          /* owned: a part of the file */
    const char *at, *end; /* what is left of it, or of the memory */
    uint64_t next_byte;   /* of the file */
    bool in_memory;
};

int life_reader_open(struct life_reader *reader, const struct life_log *log,
                     struct ifl_error *error);
void life_reader_close(struct life_reader *reader);
/* 1: reader->life is the next life, without its request_id, its longest gap and its rare fields but
 * stalled_ns. 0: there is none. */
int life_reader_next(struct life_reader *reader, struct ifl_error *error);

#endif
