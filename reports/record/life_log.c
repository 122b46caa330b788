#include "record/life_log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "inflight/minmax.h"

#define FIRST_BYTES ((size_t)1 << 14)
#define GROWTH ((size_t)1 << 6) /* large, as a copy touches pages and untouched pages are free */
#define CHUNK_BYTES ((size_t)1 << 18)
_Static_assert(FIRST_BYTES *GROWTH *GROWTH == LIFE_LOG_BYTES, "it grows to the limit, not beyond");

/* Most lives have numbers small enough for half of the bytes. */
struct brief_entry {
    bool is_brief; /* true */
    uint8_t status;
    uint16_t replica, prompt_tokens, output_tokens;
    uint32_t queue_ns, prefill_ns;
    int64_t arrival_ns, end_ns;
};

/* Any life. */
struct entry {
    bool is_brief; /* false */
    uint8_t status;
    int32_t replica, prompt_tokens, output_tokens;
    int64_t arrival_ns, first_scheduled_ns, first_token_ns, end_ns, stalled_ns;
};

#define MOST_ENTRY_BYTES (sizeof(struct entry))

int life_log_open(struct life_log *log, const char *beside, struct ifl_error *error)
{
    *log = (struct life_log){.most_bytes = LIFE_LOG_BYTES};
    log->beside = beside ? strdup(beside) : NULL;
    return beside && !log->beside ? ifl_fail_nomem(error) : IFL_OK;
}

void life_log_close(struct life_log *log)
{
    if (log->file)
        fclose(log->file);
    free(log->at);
    free(log->beside);
    *log = (struct life_log){0};
}

/* ---- writing ---- */

/* The file has no name as soon as it is open: nothing is left of it however the program ends. */
static FILE *open_nameless(const char *beside)
{
    char path[IFL_PATH_BYTES + 8];
    if (!beside)
        return tmpfile();
    snprintf(path, sizeof path, "%s.lives", beside);
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return NULL;
    unlink(path);
    FILE *file = fdopen(fd, "r+");
    if (!file)
        close(fd);
    return file;
}

static int fail(const struct life_log *log, const char *doing, struct ifl_error *error)
{
    return whole_fail_on(log->beside ? log->beside : "a temporary file", doing, error);
}

static int spill(struct life_log *log, struct ifl_error *error)
{
    if (!log->file && !(log->file = open_nameless(log->beside)))
        return fail(log, "keep requests beside it", error);
    for (size_t done = 0; done < log->n_bytes;) {
        const ssize_t n = write(fileno(log->file), log->at + done, log->n_bytes - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail(log, "keep requests beside it", error);
        done += (size_t)n;
    }
    log->in_file += log->n_bytes;
    log->n_bytes = 0;
    return IFL_OK;
}

static int make_room(struct life_log *log, struct ifl_error *error)
{
    if (log->cap_bytes >= log->most_bytes)
        return spill(log, error);
    const size_t cap_bytes = log->cap_bytes ? GROWTH * log->cap_bytes : FIRST_BYTES;
    char *at = realloc(log->at, cap_bytes);
    if (!at)
        return ifl_fail_nomem(error);
    log->at = at;
    log->cap_bytes = cap_bytes;
    return IFL_OK;
}

static uint64_t span_ns(int64_t from_ns, int64_t to_ns)
{
    return (uint64_t)to_ns - (uint64_t)from_ns;
}

/* No span with IFL_NEVER at one end fits into 32 bits. */
static inline bool fits_brief(const struct life *life)
{
    const uint64_t longest_ns = span_ns(life->arrival_ns, life->first_scheduled_ns) |
                                span_ns(life->first_scheduled_ns, life->first_token_ns);
    const uint32_t most = (uint32_t)(life->prompt_tokens | life->output_tokens | life->replica);
    return longest_ns <= UINT32_MAX && most <= UINT16_MAX && life->rare->stalled_ns == 0;
}

IFL_APART static void add_entry(struct life_log *log, const struct life *life)
{
    *(struct entry *)(log->at + log->n_bytes) = (struct entry){
        .status = life->status,
        .replica = life->replica,
        .prompt_tokens = life->prompt_tokens,
        .output_tokens = life->output_tokens,
        .arrival_ns = life->arrival_ns,
        .first_scheduled_ns = life->first_scheduled_ns,
        .first_token_ns = life->first_token_ns,
        .end_ns = life->end_ns,
        .stalled_ns = life->rare->stalled_ns,
    };
    log->n_bytes += sizeof(struct entry);
}

/* The entry is written where it stays. A copy of one that has just been written field by field
 * would wait until all of its fields are in the cache. */
int life_log_add(struct life_log *log, const struct life *life, struct ifl_error *error)
{
    if (IFL_RARE(log->cap_bytes - log->n_bytes < MOST_ENTRY_BYTES && make_room(log, error)))
        return error->code;
    if (!fits_brief(life)) {
        add_entry(log, life);
        return IFL_OK;
    }
    *(struct brief_entry *)(log->at + log->n_bytes) = (struct brief_entry){
        .is_brief = true,
        .status = life->status,
        .replica = (uint16_t)life->replica,
        .prompt_tokens = (uint16_t)life->prompt_tokens,
        .output_tokens = (uint16_t)life->output_tokens,
        .queue_ns = (uint32_t)span_ns(life->arrival_ns, life->first_scheduled_ns),
        .prefill_ns = (uint32_t)span_ns(life->first_scheduled_ns, life->first_token_ns),
        .arrival_ns = life->arrival_ns,
        .end_ns = life->end_ns,
    };
    log->n_bytes += sizeof(struct brief_entry);
    return IFL_OK;
}

/* ---- reading ---- */

static void read_memory(struct life_reader *reader)
{
    reader->in_memory = true;
    reader->at = reader->log->at;
    reader->end = reader->at + reader->log->n_bytes;
}

int life_reader_open(struct life_reader *reader, const struct life_log *log,
                     struct ifl_error *error)
{
    *reader = (struct life_reader){.log = log, .rare = life_has_none};
    if (log->in_file == 0) {
        read_memory(reader);
        return IFL_OK;
    }
    reader->chunk = malloc(CHUNK_BYTES);
    reader->at = reader->end = reader->chunk;
    return reader->chunk ? IFL_OK : ifl_fail_nomem(error);
}

void life_reader_close(struct life_reader *reader)
{
    free(reader->chunk);
    reader->chunk = NULL;
}

/* Moves the rest of the chunk to its front and fills it up. */
static int read_chunk(struct life_reader *reader, struct ifl_error *error)
{
    size_t n = (size_t)(reader->end - reader->at);
    memmove(reader->chunk, reader->at, n);
    while (n < CHUNK_BYTES && reader->next_byte < reader->log->in_file) {
        const ssize_t got = pread(fileno(reader->log->file), reader->chunk + n, CHUNK_BYTES - n,
                                  (off_t)reader->next_byte);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            errno = EIO; /* the file has become shorter */
        if (got <= 0)
            return fail(reader->log, "read requests kept beside it", error);
        n += (size_t)got;
        reader->next_byte += (uint64_t)got;
    }
    reader->at = reader->chunk;
    reader->end = reader->chunk + n;
    return IFL_OK;
}

static int look_for_more(struct life_reader *reader, struct ifl_error *error)
{
    if (reader->next_byte < reader->log->in_file && read_chunk(reader, error))
        return error->code;
    if (reader->at == reader->end && !reader->in_memory)
        read_memory(reader);
    return IFL_OK;
}

static void read_brief(struct life_reader *reader)
{
    struct brief_entry entry;
    memcpy(&entry, reader->at, sizeof entry);
    reader->at += sizeof entry;
    const int64_t first_scheduled_ns = entry.arrival_ns + entry.queue_ns;
    reader->life = (struct life){.arrival_ns = entry.arrival_ns,
                                 .first_scheduled_ns = first_scheduled_ns,
                                 .first_token_ns = first_scheduled_ns + entry.prefill_ns,
                                 .end_ns = entry.end_ns,
                                 .rare = &life_has_none,
                                 .prompt_tokens = entry.prompt_tokens,
                                 .output_tokens = entry.output_tokens,
                                 .replica = entry.replica,
                                 .status = entry.status};
}

IFL_APART static void read_entry(struct life_reader *reader)
{
    struct entry entry;
    memcpy(&entry, reader->at, sizeof entry);
    reader->at += sizeof entry;
    reader->rare.stalled_ns = entry.stalled_ns;
    reader->life = (struct life){.arrival_ns = entry.arrival_ns,
                                 .first_scheduled_ns = entry.first_scheduled_ns,
                                 .first_token_ns = entry.first_token_ns,
                                 .end_ns = entry.end_ns,
                                 .rare = entry.stalled_ns ? &reader->rare : &life_has_none,
                                 .prompt_tokens = entry.prompt_tokens,
                                 .output_tokens = entry.output_tokens,
                                 .replica = entry.replica,
                                 .status = entry.status};
}

IFL_HOT int life_reader_next(struct life_reader *reader, struct ifl_error *error)
{
    if (IFL_RARE(!reader->in_memory && (size_t)(reader->end - reader->at) < MOST_ENTRY_BYTES &&
                 look_for_more(reader, error)))
        return error->code;
    if (reader->at == reader->end)
        return 0;
    if (*reader->at)
        read_brief(reader);
    else
        read_entry(reader);
    return 1;
}
