/* The internal functions that all readers of traces share.
 *
 *     input (bytes, lines) --> csv or json (records) --> a reader --> rows --> struct ifl_trace
 *
 * Each format has a reader in a file of its own; readers of recorded runs are in recorded/. A
 * reader binds the names of its columns to values and hands the values to `trace_rows`.
 * `trace_rows` grows the trace and does what formats have in common. Functions return 0 or a
 * negative code unless they say otherwise. */
#ifndef TRACES_TRACES_H
#define TRACES_TRACES_H

#include <jansson.h>

#include "array.h"
#include "inflight/trace.h"
#include "inflight/unpack.h"

/* ---- notes.c: notes for the user ---- */

IFL_PRINTF(2, 3)
void trace_note(const struct ifl_notes *notes, const char *format, ...);

/* Copies text of unknown content for an error message: at most `size` - 1 bytes, with control
 * characters replaced by '?'. */
const char *trace_printable(char *out, size_t size, const char *text, size_t n);

/* ---- input.c: a file, gzip or plain, or bytes in memory; a byte order mark is dropped ---- */

struct trace_input {
    const char *path;          /* borrowed; name of the input in errors */
    struct ifl_unpacker *file; /* NULL: everything is in `bytes` */
    char *bytes;               /* [cap], unread ones in [begin, end) */
    size_t begin, end, cap;
    size_t most_bytes; /* limit of a line, or of a JSON object */
    bool at_end;       /* the file has nothing behind `end` */
    bool has_quotes;   /* a quote was read, so somewhere before `end` */
    bool has_nuls;
    int line;                     /* 1-based number of the last line handed out */
    struct text_counter *counter; /* of texts (text/count.h); NULL: their tokens are estimated */
};

int trace_input_open(struct trace_input *input, const char *path, struct ifl_error *error);
int trace_input_open_memory(struct trace_input *input, const char *path, const void *bytes,
                            size_t n_bytes, struct ifl_error *error);
void trace_input_close(struct trace_input *input);

/* Reads the next line that is not blank into *text, its newline included, borrowed until the next
 * call. Returns 1, or 0 if there is no such line. `peek` leaves the line to be read again. */
int trace_input_line(struct trace_input *input, const char **text, size_t *n,
                     struct ifl_error *error);
int trace_input_peek(struct trace_input *input, const char **text, size_t *n,
                     struct ifl_error *error);
/* Returns all unread bytes, at most most_bytes, without consuming them. */
int trace_input_peek_all(struct trace_input *input, const char **text, size_t *n,
                         struct ifl_error *error);

/* Reads the next byte. Returns 1, or 0 at the end. `first` skips blanks and leaves the byte unread.
 */
int trace_input_first(struct trace_input *input, char *byte, struct ifl_error *error);
int trace_input_byte(struct trace_input *input, char *byte, struct ifl_error *error);

int trace_input_fail_long(const struct trace_input *input, int line, struct ifl_error *error);

/* ---- numbers.c: text to integers, exactly ---- */

/* The latest stamp, 292 years: the limit of ifl_ns_from_s, so that all readers have the same bound.
 */
#define TRACE_MAX_S 9200000000LL

enum trace_number { TRACE_NUMBER, TRACE_NOT_A_NUMBER, TRACE_OUT_OF_RANGE };

/* Reads a whole number, which ends at text[n] with a NUL or a blank. */
enum trace_number trace_whole(const char *text, size_t n, int64_t *value);
/* Reads decimal seconds, rounded to the nearest nanosecond; numbers with exponents are read by
 * strtod. */
enum trace_number trace_seconds(const char *text, size_t n, int64_t *ns);
/* Reads the digits after a decimal point, rounded to nanoseconds. Returns how many were read. */
size_t trace_fraction(const char *digits, int64_t *ns);

/* ---- names.c: dense numbers for names, in order of appearance ---- */

struct trace_names {
    json_t *number_of; /* jansson's hash table */
    char **name;
    size_t n, cap;
};

int trace_names_number(struct trace_names *names, const char *name, uint32_t *number,
                       struct ifl_error *error);
void trace_names_free(struct trace_names *names);

/* ---- ids.c: request ids, and the numbers of their lines ---- */

struct trace_ids {
    struct trace_id *of; /* [cap], owned */
    size_t n, cap;
    bool unordered; /* some id is not above the previous one, so an id may occur twice */
};

int trace_ids_add(struct trace_ids *ids, uint64_t id, int line, struct ifl_error *error);
/* Fails with an error that names both lines if an id occurs twice. Destroys the order of the ids.
 */
int trace_ids_check(struct trace_ids *ids, const char *path, struct ifl_error *error);
void trace_ids_free(struct trace_ids *ids);

/* ---- retries.c: rows that repeat others, and the cells that say so ---- */

struct trace_retries {
    struct trace_retry *of; /* [cap], owned */
    size_t n, cap;
};

int trace_retries_add(struct trace_retries *retries, size_t row, int line, int column,
                      struct ifl_error *error);
/* Checks that every retry repeats an existing row other than itself that arrives no later and has a
 * prompt of the same length; otherwise it is an error at its cell. */
int trace_retries_check(const struct trace_retries *retries, const struct ifl_trace *trace,
                        const char *path, struct ifl_error *error);
void trace_retries_free(struct trace_retries *retries);

/* ---- table.c: operations on every column of a trace ---- */

enum trace_column { /* in the order in which they are written */
#define TRACE_COLUMN(column, ...) TRACE_##column,
                    IFL_COLUMNS(TRACE_COLUMN)
#undef TRACE_COLUMN
                        TRACE_N_CSV_COLUMNS,
                    TRACE_OUTCOME = TRACE_N_CSV_COLUMNS, /* not part of inflight's own CSV */
                    TRACE_N_COLUMNS
};

#define TRACE_PLUS_ONE(...) +1
enum {
    TRACE_FIRST_ATTRIBUTE = IFL_BASIC_COLUMNS(TRACE_PLUS_ONE),
    TRACE_N_OF_ANY_FORMAT = IFL_ATTRIBUTES_OF_ANY_FORMAT(TRACE_PLUS_ONE),
    TRACE_N_ATTRIBUTES = IFL_ATTRIBUTES(TRACE_PLUS_ONE)
};
#undef TRACE_PLUS_ONE

enum trace_kind {
    TRACE_IS_WHOLE,
    TRACE_IS_SECONDS,
    TRACE_IS_CLIENT,
    TRACE_IS_GROUP,
    TRACE_IS_MODEL,
    TRACE_IS_ADAPTER,
    TRACE_IS_ID,
    TRACE_IS_ROW
};

/* True for columns with cells that are names in a file and numbers in a trace. */
static inline bool trace_kind_is_named(enum trace_kind kind)
{
    return kind == TRACE_IS_CLIENT || kind == TRACE_IS_GROUP || kind == TRACE_IS_MODEL ||
           kind == TRACE_IS_ADAPTER;
}

/* The table of inflight/attributes.h. */
struct trace_column_spec {
    const char *name, *says, *empty;
    enum trace_kind kind;
    int64_t least, absent;
    size_t offset, size_bytes; /* offset of the member of struct ifl_trace; bytes of a cell */
};
extern const struct trace_column_spec trace_columns[TRACE_N_COLUMNS];

/* Returns a cell of a column that exists, except the outcomes. */
int64_t trace_cell(const struct ifl_trace *trace, enum trace_column column, size_t row);
void trace_set_cell(struct ifl_trace *trace, enum trace_column column, size_t row, int64_t value);

/* Makes room for `cap` rows in the column, which is created if it does not exist. */
int trace_column_resize(struct ifl_trace *trace, enum trace_column column, size_t cap,
                        struct ifl_error *error);
bool trace_column_there(const struct ifl_trace *trace, enum trace_column column);

/* True if every length is at least 1, as struct ifl_trace says. */
static inline bool trace_has_lengths(const struct ifl_trace *trace)
{
    for (size_t i = 0; i < trace->n; i++)
        if (trace->n_prompt[i] < 1 || trace->n_output[i] < 1)
            return false;
    return true;
}

/* Makes `part`: its row i is the row order[i] of `whole`, in every column. Takes ownership of
 * `order`: it becomes the column of request ids if `whole` has none, else it is freed. */
int trace_gather(const struct ifl_trace *whole, uint64_t *order, size_t n, struct ifl_trace *part,
                 struct ifl_error *error);

/* ---- rows.c: a trace that grows while it is read ---- */

struct trace_rows {
    struct ifl_trace *trace;
    const struct ifl_notes *notes;
    const char *path;
    size_t cap;
    size_t n_records;    /* seen, skipped ones included */
    size_t n_skipped;    /* records without prompt or without output */
    const char *skipped; /* name of such a record, for the note */
    size_t n_hash_ids, cap_hash_ids;
    size_t n_gaps, cap_gaps;
    bool several_runs; /* the file has another run; the note about it is given once */
    struct trace_names names[TRACE_N_COLUMNS]; /* of the columns that number names */
    struct trace_ids ids;                      /* ids, for files that name their requests */
    struct trace_retries retries;              /* retries, for files with retry_of */
    uint64_t attributes;                       /* of the file beside its format: bits 1 << column */
    bool first_record_seen;
};

int trace_rows_begin(struct trace_rows *rows, struct ifl_error *error);

/* Creates a column that the reader fills row by row. To be called before the first row. */
int trace_rows_want(struct trace_rows *rows, enum trace_column column, struct ifl_error *error);

/* Adds a row. Returns 1 if it was added as row trace->n - 1; the reader then fills the columns that
 * it created. Returns 0 if a length is zero: the record is skipped and counted. */
int trace_rows_add(struct trace_rows *rows, int64_t arrival_ns, int32_t n_prompt, int32_t n_output,
                   struct ifl_error *error);

/* Returns room for n hash ids of the last row, for the caller to fill; NULL, with `error` set, if
 * memory is short. */
uint64_t *trace_rows_hash_ids(struct trace_rows *rows, size_t n, struct ifl_error *error);

/* ---- outcomes.c: recorded runs ---- */

enum trace_gaps { TRACE_WITHOUT_GAPS, TRACE_WITH_GAPS };

/* Creates the outcomes; to be called before the first row. Without gaps only the numbers of struct
 * ifl_outcome are recorded. */
int trace_rows_want_outcomes(struct trace_rows *rows, enum trace_gaps gaps,
                             struct ifl_error *error);
/* The outcome of the last row, and one gap between its tokens. */
void trace_rows_outcome(struct trace_rows *rows, const struct ifl_outcome *outcome);
int trace_rows_gap(struct trace_rows *rows, int64_t gap_ns, struct ifl_error *error);
/* The time by_ns after ns, below IFL_NEVER. Only times that are no measurements reach this limit.
 */
static inline int64_t trace_later(int64_t ns, int64_t by_ns)
{
    return by_ns < IFL_NEVER - ns ? ns + by_ns : IFL_NEVER - 1;
}
/* Another run begins in the same file. A note says how to choose one of them. */
void trace_rows_next_run(struct trace_rows *rows);

/* Shifts the stamps so that the earliest is 0. */
void trace_rows_rebase(struct trace_rows *rows);

/* Removes the rows with a length of 0, as trace_rows_add does. Until this call, lengths may be 0.
 */
int trace_rows_leave_empty(struct trace_rows *rows, struct ifl_error *error);

/* Trims the columns and gives a note of what was skipped. A trace without rows is an error. */
int trace_rows_end(struct trace_rows *rows, struct ifl_error *error);

/* ---- csv.c: records of a CSV file by the names in its header, on top of libcsv ---- */

enum trace_presence { TRACE_NEEDED, TRACE_OPTIONAL };

struct trace_csv_column {
    const char *name;
    enum trace_presence presence; /* a file without a needed one is refused */
};

enum { TRACE_CSV_MAX_COLUMNS = 10 + TRACE_N_ATTRIBUTES }; /* 10 of the format itself */

struct trace_csv_format {
    const struct trace_csv_column *columns; /* in the order in which the reader asks for them */
    size_t n_columns;                       /* at most 10, without the attributes */
    bool own; /* inflight's own format: its reader takes all attributes itself, and unknown columns
                 are errors; in the other formats they are ignored */
};

struct trace_row; /* one record, its cells by the format's columns */

struct trace_csv_reader {
    int (*header)(void *self, const struct trace_row *row, struct ifl_error *error); /* optional */
    int (*record)(void *self, const struct trace_row *row, struct ifl_error *error);
    void *self;              /* for the callbacks; a negative code of theirs ends the reading */
    struct trace_rows *rows; /* takes the attributes */
};

int trace_csv_read(struct trace_input *input, const struct trace_csv_format *format,
                   const struct trace_csv_reader *reader, struct ifl_error *error);

bool trace_row_bound(const struct trace_row *row, size_t column);  /* the file has the column */
bool trace_row_filled(const struct trace_row *row, size_t column); /* ... and the cell has a text */
const char *trace_row_text(const struct trace_row *row, size_t column);
int trace_row_line(const struct trace_row *row);
int trace_row_column(const struct trace_row *row,
                     size_t column); /* where its cell begins, from 1 */

/* The cell as a number, or an error. trace_row_fail is for errors that the reader finds itself. */
int trace_row_tokens(const struct trace_row *row, size_t column, int32_t min, int32_t *tokens,
                     struct ifl_error *error);
int trace_row_whole(const struct trace_row *row, size_t column, int64_t min, int64_t max,
                    int64_t *value, struct ifl_error *error);
int trace_row_stamp(const struct trace_row *row, size_t column, int64_t *ns,
                    struct ifl_error *error);
/* none_ns where the cell is empty. */
int trace_row_seconds_or(const struct trace_row *row, size_t column, int64_t none_ns, int64_t *cell,
                         struct ifl_error *error);
int trace_row_fail(const struct trace_row *row, size_t column, const char *expected,
                   struct ifl_error *error);

/* ---- json.c: records of JSON, by jansson ---- */

struct trace_record {
    const char *path;
    int line;
    const json_t *value; /* an object */
};

struct trace_json_reader {
    int (*record)(void *self, const struct trace_record *record, struct ifl_error *error);
    void *self;
    struct trace_rows *rows; /* takes the attributes of a record that is one request; else NULL */
};

int trace_jsonl_read(struct trace_input *input, const struct trace_json_reader *reader,
                     struct ifl_error *error);
/* Reads one array of objects, of any length, with one object in memory at a time. */
int trace_json_list_read(struct trace_input *input, const struct trace_json_reader *reader,
                         struct ifl_error *error);
/* Reads a sequence of objects, with any line breaks. */
int trace_json_objects_read(struct trace_input *input, const struct trace_json_reader *reader,
                            struct ifl_error *error);
/* Returns the file's first object: that on the first line, or the object that begins there. It
 * stays unread. */
json_t *trace_json_first(struct trace_input *input, struct ifl_error *error);
/* Parses the object on a line of JSONL, to be released with json_decref. Returns NULL, with `error`
 * set, on failure. */
json_t *trace_json_parse(const char *path, int line, const char *text, size_t n,
                         struct ifl_error *error);

int trace_record_tokens(const struct trace_record *record, const char *key, int32_t *tokens,
                        struct ifl_error *error);
/* A text that may stand in a line of a CSV file, borrowed; NULL: error is filled. */
const char *trace_record_name(const struct trace_record *record, const char *key,
                              struct ifl_error *error);
int trace_record_whole(const struct trace_record *record, const char *key, int64_t min, int64_t max,
                       int64_t *value, struct ifl_error *error);
/* A number of units of `unit_ns` each; exact where it is an integer. */
int trace_record_stamp(const struct trace_record *record, const char *key, int64_t unit_ns,
                       int64_t *ns, struct ifl_error *error);
/* The object under the key. */
int trace_record_object(const struct trace_record *record, const char *key,
                        struct trace_record *inner, struct ifl_error *error);
/* Gives each object of the list under the key to `take`, until it returns a negative code, which is
 * returned. `expected` says in errors what the list is of. */
int trace_record_each(const struct trace_record *record, const char *key, const char *expected,
                      int (*take)(struct trace_rows *rows, const struct trace_record *item,
                                  struct ifl_error *error),
                      struct trace_rows *rows, struct ifl_error *error);
int trace_record_fail(const struct trace_record *record, const char *key, const char *expected,
                      struct ifl_error *error);
/* As trace_record_fail, for a nested value; `name` says where it is. */
int trace_value_fail(const struct trace_record *record, const char *name, const json_t *value,
                     const char *expected, struct ifl_error *error);

/* ---- attributes.c: columns or keys beside those of a format ---- */

/* Notes which attributes the file has: those of its header, which are the row's columns from
 * `first` on, or those of its first record. */
int trace_attributes_want_row(struct trace_rows *rows, const struct trace_row *row, size_t first,
                              size_t n, struct ifl_error *error);
int trace_attributes_want_record(struct trace_rows *rows, const struct trace_record *record,
                                 struct ifl_error *error);
/* Reads the attributes of the last row. */
int trace_attributes_take_row(struct trace_rows *rows, const struct trace_row *row, size_t first,
                              struct ifl_error *error);
int trace_attributes_take_record(struct trace_rows *rows, const struct trace_record *record,
                                 struct ifl_error *error);
/* Sets the client or group of the last row by its name; an empty name is no group. Ignored if the
 * file has the column as an attribute beside its format. */
int trace_rows_name(struct trace_rows *rows, enum trace_column column, const char *name,
                    struct ifl_error *error);

/* mooncake.c, also for bailian.c: adds lengths and hash ids. Returns what trace_rows_add returns.
 */
int trace_record_add(const struct trace_record *record, struct trace_rows *rows, int64_t stamp_ns,
                     struct ifl_error *error);

/* ---- read.c, and one file for each format ---- */

/* ifl_trace_read from an input that is open. */
int trace_read_input(struct trace_input *input, const char *format, const struct ifl_notes *notes,
                     struct ifl_trace *trace, struct ifl_error *error);

typedef int trace_reader_fn(struct trace_input *input, struct trace_rows *rows,
                            struct ifl_error *error);
trace_reader_fn trace_read_azure, trace_read_sharegpt, trace_read_vidur, trace_read_burstgpt,
    trace_read_mooncake, trace_read_bailian, trace_read_llmservingsim, trace_read_inflight;
/* recorded runs */
trace_reader_fn trace_read_requests, trace_read_bench, trace_read_aiperf, trace_read_guidellm,
    trace_read_llmservingsim_run, trace_read_blis, trace_read_llmd, trace_read_vtc;

#endif
