/* Reads the server's own metrics at regular intervals of the client's clock. */
#include "live/replay_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/prometheus.h"
#include "inflight/minmax.h"

/* Of one answer, and of one sample: what is longer is left out. */
enum { METRICS_BYTES = 8 << 20, SAMPLE_BYTES = 4096 };
#define LAST_LOOK_NS (2 * IFL_NS_PER_S)

struct replay_scrape {
    struct replay *replay;
    struct replay_rows rows;
    struct replay_call *call; /* NULL: none is under way */
    int64_t next_ns, asked_ns;
    struct replay_text text;
    uint64_t n_looks, n_failed;
};

int replay_scrape_open(struct replay *replay, const char *path, struct ifl_error *error)
{
    replay->scrape = calloc(1, sizeof *replay->scrape);
    if (!replay->scrape)
        return ifl_fail_nomem(error);
    replay->scrape->replay = replay;
    replay->scrape->rows.fd = -1;
    return replay_rows_open(&replay->scrape->rows, path, "asked_s,time_s,name,labels,value\n",
                            error);
}

void replay_scrape_destroy(struct replay_scrape *scrape)
{
    if (!scrape)
        return;
    replay_text_free(&scrape->text);
    free(scrape);
}

/* Buckets, creation times and what the language's runtime says of itself would be most of the file.
 */
static bool is_wanted(const struct sample *sample)
{
    static const char *const ends[] = {"_bucket", "_created"};
    static const char *const begins[] = {"python_", "process_", "http_"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t n = strlen(ends[i]);
        if (sample->n_name >= n && memcmp(sample->name + sample->n_name - n, ends[i], n) == 0)
            return false;
    }
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        const size_t n = strlen(begins[i]);
        if (sample->n_name >= n && memcmp(sample->name, begins[i], n) == 0)
            return false;
    }
    return sample->n_name + sample->n_labels + sample->n_value < SAMPLE_BYTES;
}

static char *put_part(char *at, const char *part, size_t n)
{
    char text[SAMPLE_BYTES];
    memcpy(text, part, n);
    text[n] = '\0';
    replay_printable(text);
    return row_put_text(at, text);
}

static int put_samples(struct replay_scrape *scrape, int64_t now_ns, struct ifl_error *error)
{
    const char *at = scrape->text.of;
    struct sample sample;
    while (sample_next(&at, scrape->text.of + scrape->text.n, &sample)) {
        if (!is_wanted(&sample))
            continue;
        char *row = replay_rows_room(&scrape->rows, 2 * SAMPLE_BYTES + 128, error);
        if (!row)
            return error->code;
        row = row_put_seconds(row, scrape->asked_ns);
        row = row_put_seconds(row, now_ns);
        row = put_part(row, sample.name, sample.n_name);
        row = put_part(row, sample.labels ? sample.labels : "", sample.n_labels);
        row = put_part(row, sample.value, sample.n_value);
        replay_rows_end(&scrape->rows, row_put_end(row));
    }
    return replay_rows_flush(&scrape->rows, error);
}

static bool take(void *context, struct replay_call *call, int64_t now_ns, const char *bytes,
                 size_t n)
{
    struct replay_scrape *scrape = context;
    (void)call;
    (void)now_ns;
    return scrape->text.n + n <= METRICS_BYTES && replay_text_add(&scrape->text, bytes, n) == 0;
}

static void done(void *context, const struct replay_end *end)
{
    struct replay_scrape *scrape = context;
    struct replay *replay = scrape->replay;
    struct ifl_error error;
    scrape->call = NULL;
    if (end->error || end->status != 200) {
        scrape->n_failed++;
        return;
    }
    if (put_samples(scrape, end->now_ns - replay->start_ns, &error) < 0)
        replay_give_up(replay, &error);
}

static int ask(struct replay_scrape *scrape, int64_t now_ns, struct ifl_error *error)
{
    const struct replay_handler handler = {take, done, scrape};
    scrape->text.n = 0;
    scrape->asked_ns = now_ns;
    scrape->n_looks++;
    scrape->call = replay_http_start(scrape->replay->http, "/metrics", NULL, 0, &handler);
    return scrape->call ? 0 : ifl_fail_nomem(error);
}

int replay_scrape_look(struct replay *replay, int64_t now_ns, int64_t *next_ns,
                       struct ifl_error *error)
{
    struct replay_scrape *scrape = replay->scrape;
    *next_ns = IFL_NEVER;
    if (!scrape)
        return 0;
    const int64_t every_ns = ifl_max(ifl_ns_from_s(replay->options->metrics_s), (int64_t)1000000);
    int rc = 0;
    if (now_ns >= scrape->next_ns) {
        /* An answer that takes longer than the interval costs the looks that it passes. */
        scrape->next_ns = (now_ns / every_ns + 1) * every_ns;
        if (!scrape->call)
            rc = ask(scrape, now_ns, error);
    }
    *next_ns = scrape->next_ns;
    return rc;
}

int replay_scrape_finish(struct replay *replay, int code, struct ifl_error *error)
{
    struct replay_scrape *scrape = replay->scrape;
    if (!scrape)
        return code;
    int rc = code;
    if (rc == 0 && !scrape->call)
        rc = ask(scrape, replay_now(replay), error);
    const int64_t until_ns = clock_steady_ns() + LAST_LOOK_NS;
    while (rc == 0 && scrape->call && clock_steady_ns() < until_ns)
        rc = replay_http_wait(replay->http, until_ns, error);
    if (scrape->call)
        replay_http_cancel(replay->http, scrape->call);
    scrape->call = NULL;
    if (rc == 0 && replay->failed)
        rc = replay_give_up(replay, error);
    if (rc == 0 && scrape->n_failed > 0 && replay->options->notes.say) {
        char text[200];
        snprintf(text, sizeof text, "%llu of %llu looks at the server's /metrics had no answer",
                 (unsigned long long)scrape->n_failed, (unsigned long long)scrape->n_looks);
        replay->options->notes.say(replay->options->notes.context, text);
    }
    return replay_rows_close(&scrape->rows, rc, error);
}
