/* Lives in the order of arrival, without their names, as the summary needs them. They are added
 * once and read as often as needed. Up to LIFE_LOG_BYTES are in memory, more in an unnamed file. */
#ifndef INFLIGHT_REPORTS_LIFE_LOG_H
#define INFLIGHT_REPORTS_LIFE_LOG_H

#include "record/life.h"

#define LIFE_LOG_BYTES ((size_t)64 << 20) /* 1,100,000 to 2,000,000 lives */

struct life_log {
    char *at; /* [n_bytes of cap_bytes], owned: the last entries */
    size_t n_bytes, cap_bytes;
    size_t most_bytes; /* limit of cap_bytes */
    uint64_t in_file;  /* bytes of the earlier entries, in the file */
    FILE *file;        /* NULL while all are in memory */
    char *beside;      /* owned: the unnamed file is in the folder of this file; NULL: in the usual
                          place */
};

/* beside: NULL, or the path of a file in a folder with enough room. */
int life_log_open(struct life_log *log, const char *beside, struct ifl_error *error);
void life_log_close(struct life_log *log);
/* Adds a life. Returns 0 or a negative code; IFL_E_IO: the disk is full. */
int life_log_add(struct life_log *log, const struct life *life, struct ifl_error *error);

/* Reads a log, to which nothing is added meanwhile, from its first life on. */
struct life_reader {
    struct life life;
    struct rare rare;
    const struct life_log *log;
    char *chunk;          /* owned: a part of the file */
    const char *at, *end; /* unread part of the chunk, or of the memory */
    uint64_t next_byte;   /* next byte of the file to read */
    bool in_memory;
};

int life_reader_open(struct life_reader *reader, const struct life_log *log,
                     struct ifl_error *error);
void life_reader_close(struct life_reader *reader);
/* Reads the next life into reader->life, without its request_id, its longest gap and its rare
 * fields except stalled_ns. Returns 1, or 0 if there is none. */
int life_reader_next(struct life_reader *reader, struct ifl_error *error);

#endif
