/* Traces: the arrival time, the prompt length and the output length of each request.
 *
 * A trace is a table of columns with one row per request. Every trace has these three columns; the
 * others are NULL if the format or the file lacks them. The owner calls ifl_trace_free; a zeroed
 * trace is a valid empty one.
 *
 * No pointer may be NULL unless its comment says so; `notes` may. Functions with an error return 0,
 * or a negative code with the error filled in. A `path` beside a trace is only for errors. */
#ifndef INFLIGHT_TRACE_H
#define INFLIGHT_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "inflight/attributes.h"
#include "inflight/error.h"
#include "inflight/time.h"

/* Measured latencies of a request, in a trace that is a recorded run. Times count from its arrival.
 * They are IFL_NEVER if the run does not record them or the request did not get so far. */
struct ifl_outcome {
    int64_t queue_ns; /* to the first step that computed a token of it */
    int64_t ttft_ns;
    int64_t e2e_ns;
    int32_t preemptions; /* -1: not recorded */
};

struct ifl_trace {
    size_t n;
    size_t n_skipped;       /* records that the reader skipped: requests that failed */
    bool has_stamps;        /* arrival_ns holds the trace's own stamps */
    bool lengths_estimated; /* token counts come from characters */
    /* The columns of inflight/attributes.h, [n] or NULL. arrival_ns counts from the trace's first
     * stamp, in no particular order; it and the lengths are never NULL. Without request_id the id
     * is the number of the record in the file. */
#define IFL_COLUMN(column, kind, member, ...) IFL_CELL_##kind *member;
    IFL_COLUMNS(IFL_COLUMN)
#undef IFL_COLUMN
    /* hash ids of prompt blocks (Mooncake, Bailian), or of tokens, as blocks of one token: row i
     * has ids [hash_at[i], hash_at[i + 1]) */
    size_t *hash_at; /* [n + 1] or NULL */
    uint64_t *hash_id;
    int32_t hash_block_tokens;
    struct ifl_outcome *outcome; /* [n] in recorded runs, else NULL */
    /* every gap between two tokens of a request, if recorded: row i has gaps
     * [gap_at[i], gap_at[i + 1]) */
    size_t *gap_at; /* [n + 1] or NULL */
    int64_t *gap_ns;
    char **client_names; /* [n_clients], or NULL if clients are numbers */
    uint32_t n_clients;  /* 1 + the largest client number; 1 without the column */
    char **model_names;  /* [n_models]: model number m is model_names[m - 1]; or NULL */
    uint32_t n_models;
    char **adapter_names; /* [n_adapters]: adapter number a is adapter_names[a - 1]; or NULL */
    uint32_t n_adapters;
};

/* Frees all columns and zeroes the trace, so that a second call does nothing. */
void ifl_trace_free(struct ifl_trace *trace);

/* The request_id of a row below n; without the column the row's number. */
static inline uint64_t ifl_trace_id(const struct ifl_trace *trace, size_t row)
{
    return trace->request_id ? trace->request_id[row] : row;
}

/* For a trace with the column retry_of: sets (*before)[i] to the row that row i repeats, or to n if
 * that row is not in the trace. The caller frees *before, which has n entries. */
int ifl_trace_repeated(const struct ifl_trace *trace, size_t **before, struct ifl_error *error);

/* The attributes of a row without any. */
extern const struct ifl_attributes ifl_attributes_absent;
/* True if a row may have attributes: the trace has a column of IFL_ATTRIBUTES. */
bool ifl_trace_has_attributes(const struct ifl_trace *trace);
/* Overwrites the attributes that the row, below n, has, and no others: the caller sets *attributes
 * before, for example to ifl_attributes_absent. */
void ifl_trace_attributes_of(const struct ifl_trace *trace, size_t row,
                             struct ifl_attributes *attributes);

/* ---- reading ---- */

/* Which rows to keep, applied in this order: lengths, shuffle, stamps, skip, limit. A zeroed struct
 * keeps all rows. */
struct ifl_trace_window {
    int32_t min_prompt, min_output; /* as vLLM's ShareGPT sampler: 4 and 4 */
    int32_t max_prompt, max_total;  /* 1024 and 2048; 0: no limit */
    bool shuffle;
    uint64_t shuffle_seed;
    int64_t from_ns, to_ns; /* half-open window of the trace's own stamps; to_ns 0: to the end */
    uint64_t skip, limit;   /* limit 0: all */
};

/* True if it keeps all rows as they are. */
static inline bool ifl_trace_keeps_all(const struct ifl_trace_window *w)
{
    return w->min_prompt <= 1 && w->min_output <= 1 && w->max_prompt == 0 && w->max_total == 0 &&
           !w->shuffle && w->from_ns == 0 && w->to_ns == 0 && w->skip == 0 && w->limit == 0;
}

/* Default limit of one line, or one JSON object, of a trace: enough for a recorded run of 60,000
 * answers of 200 tokens, each gap with 20 digits, in one object. */
enum { IFL_MAX_RECORD_MIB = 256 };

struct ifl_trace_file {
    const char *path;       /* gzip or plain */
    const char *format;     /* "auto", or a name of ifl_trace_formats; not NULL */
    int32_t max_record_mib; /* longer records are errors; 0 or less: IFL_MAX_RECORD_MIB */
    /* For formats with texts: a tokenizer as in inflight/tokenizer.h, which counts their tokens;
     * NULL: tokens are estimated. The counts are kept for later readings, in inflight/tokens of the
     * user's cache folder. */
    const char *tokenizer;
    const char *prompt_template; /* text around a prompt, which replaces {}; NULL: none */
};

/* Reads a trace into *trace, which is overwritten and not freed first; rows stay in file order. A
 * file that cannot be opened, read or understood, or of which all requests are skipped, an unknown
 * format, and a tokenizer for a format without texts are IFL_E_INPUT. Errors in the file's text
 * name the file, and line and column if they are known. After an error *trace is empty. The caller
 * frees it with ifl_trace_free. */
int ifl_trace_read(const struct ifl_trace_file *file, const struct ifl_notes *notes,
                   struct ifl_trace *trace, struct ifl_error *error);

/* Writes a table of the tokens of all turns of a trace with texts: record (from 1), turn (from 0),
 * number of tokens, and, with_ids, their ids with blanks between. The first turn is put into the
 * prompt_template. The file's tokenizer is not NULL; the format is not read. `out` is flushed and
 * stays open. Errors are those of ifl_trace_read; a failed write is IFL_E_IO. */
int ifl_trace_tokens(const struct ifl_trace_file *file, bool with_ids, FILE *out,
                     struct ifl_error *error);

/* Copies the rows of the window, with their stamps, to a new trace. request_id is filled in, so
 * that rows keep their identity. `whole` does not change and may be cut by several threads at once.
 * An empty result is IFL_E_INPUT, which says which condition removed the last row; so is a window
 * of stamps for a trace without stamps. *trace is overwritten, is not `whole`, and is empty after
 * an error; the caller frees it. */
int ifl_trace_cut(const struct ifl_trace *whole, const struct ifl_trace_window *window,
                  const char *path, const struct ifl_notes *notes, struct ifl_trace *trace,
                  struct ifl_error *error);

/* Puts all rows without a prefix group into one new group: their first n_tokens tokens, or whole
 * prompts if shorter, are the same; n_tokens is 0 or more. For recorded runs with a shared prefix
 * that is not in their files. Fails only with IFL_E_NOMEM. */
int ifl_trace_share_prefix(struct ifl_trace *trace, int32_t n_tokens, struct ifl_error *error);

/* Sorts rows by arrival, stably. If a row moves, the columns are new arrays and request_id is
 * filled in, so that rows keep their identity. Adds a note if stamps were out of order. Fails only
 * with IFL_E_NOMEM, and the trace is then unchanged. */
int ifl_trace_sort(struct ifl_trace *trace, const struct ifl_notes *notes, struct ifl_error *error);

struct ifl_trace_format {
    const char *name;    /* as in ifl_trace_file.format */
    const char *doc;     /* one line */
    const char *columns; /* text for the user; optional ones are in brackets */
};
/* The formats, without `auto`; the last has a NULL name. Constant: not to be freed. */
const struct ifl_trace_format *ifl_trace_formats(void);
/* IFL_E_INPUT unless the name is "auto" or a name of ifl_trace_formats. */
int ifl_trace_check_format(const char *name, struct ifl_error *error);

/* The names of IFL_ATTRIBUTES_OF_ANY_FORMAT, separated by commas. Constant: not to be freed. */
const char *ifl_trace_attributes(void);

/* ---- arrivals ---- */

enum ifl_process {
    IFL_ARRIVE_TRACE, /* the trace's own stamps, divided by speedup */
    IFL_ARRIVE_POISSON,
    IFL_ARRIVE_GAMMA, /* gamma gaps with coefficient of variation cv */
    IFL_ARRIVE_CONSTANT,
    IFL_ARRIVE_BURST, /* all at time 0 */
    IFL_ARRIVE_CLOSED /* `concurrency` requests at time 0, each completion releases the next */
};

#define IFL_MAX_RATE_PIECES 64

/* Rates of renewal processes may change with time (time rescaling: gaps are drawn at unit rate and
 * mapped through the inverse of the cumulative rate). */
struct ifl_arrivals {
    enum ifl_process process;
    double speedup;      /* trace: above 0; 1 leaves the stamps as they are */
    double rate_rps;     /* poisson, gamma, constant: mean rate, above 0; not read with pieces */
    double cv;           /* gamma: 0.01 to 50 */
    int32_t concurrency; /* closed: 1 or more */
    uint64_t seed;
    size_t n_pieces; /* 0: the rate is rate_rps */
    /* piecewise: from piece_from_s[i] on the rate is piece_rate_rps[i]. Times begin with 0 and
     * rise; rates are 0 or more, the last one above 0. */
    double piece_from_s[IFL_MAX_RATE_PIECES], piece_rate_rps[IFL_MAX_RATE_PIECES];
    /* rate x (1 + a sin(2 pi (t + phase) / T)), a from 0 to 1 and T above 0; not with pieces; a 0:
     * no sine */
    double sine_amplitude_frac, sine_period_s, sine_phase_s;
};

/* Overwrites arrival_ns, in order of the rows, and sorts. For CLOSED all times are 0; the run
 * releases the requests. Parameters out of range, TRACE without stamps and an arrival later than
 * 9.2e9 s are IFL_E_INPUT; arrival_ns may then be overwritten in part. */
int ifl_trace_arrive(struct ifl_trace *trace, const struct ifl_arrivals *arrivals, const char *path,
                     const struct ifl_notes *notes, struct ifl_error *error);

/* ---- statistics, writing, generating ---- */

struct ifl_length_stats {
    double mean, p50, p90, p99, max;
};
struct ifl_trace_stats {
    size_t n;
    double span_s, rate_rps, gap_cv; /* of rows that arrive at their stamps; NaN without stamps */
    struct ifl_length_stats prompt, output;
    size_t n_hash_ids, n_hash_hits; /* hits: ids seen before, as if the cache were infinite */
    /* of optional columns: 0 without the column */
    size_t n_sessions, n_turns, n_waiting_turns; /* waiting: after another turn and a think time */
    size_t n_prefix_groups, n_clients;
    size_t n_ttft_slos, n_tpot_slos, n_limits, n_in_groups; /* rows with a value */
    int32_t least_priority, most_priority, most_samples;
};
/* Fills in *stats; the trace does not change. An empty trace is IFL_E_INPUT. */
int ifl_trace_measure(const struct ifl_trace *trace, struct ifl_trace_stats *stats,
                      struct ifl_error *error);

/* Writes inflight's own CSV: the lengths, arrival_s if the trace has stamps, and every optional
 * column that it has. Hash ids, outcomes and gaps are not written. `out` is flushed and stays open.
 * A failed write is IFL_E_IO. */
int ifl_trace_write(const struct ifl_trace *trace, FILE *out, struct ifl_error *error);

enum ifl_length_law { IFL_LENGTH_FIXED, IFL_LENGTH_UNIFORM, IFL_LENGTH_LOGNORMAL, IFL_LENGTH_ZIPF };
struct ifl_length_spec {
    enum ifl_length_law law;
    double mean, cv;  /* fixed, lognormal; of the untruncated law */
    double exponent;  /* zipf over [min, max] */
    int32_t min, max; /* bounds: clipped for lognormal */
};
/* Makes n rows, 1 or more, without stamps; draws are keyed by (seed, row). *trace is overwritten,
 * and empty after an error; the caller frees it. IFL_E_INPUT unless 1 <= min <= max (not read by
 * fixed), the mean is 1 or more, cv 0 or more, the exponent from 0 to 20, and zipf has at most 2^24
 * lengths. */
int ifl_trace_generate(size_t n, uint64_t seed, const struct ifl_length_spec *prompt,
                       const struct ifl_length_spec *output, struct ifl_trace *trace,
                       struct ifl_error *error);

/* How adapters are assigned to requests: adapter floor(n u^(1/alpha)), u uniform, which is
 * numpy.random.power(alpha) x n (S-LoRA, benchmarks/trace.py). Alpha 1: all equally likely; below 1
 * the first ones are more likely, above 1 the last ones. */
struct ifl_adapter_spec {
    uint32_t n;   /* adapters, named "0" to "n - 1"; 1 to 2^20 */
    double alpha; /* above 0, at most 1000 */
};
/* Gives each row of a trace without the column an adapter; draws are keyed by (seed, row).
 * IFL_E_INPUT if a number is out of range; the trace then has no such column. */
int ifl_trace_adapt(struct ifl_trace *trace, uint64_t seed, const struct ifl_adapter_spec *spec,
                    struct ifl_error *error);

#endif
