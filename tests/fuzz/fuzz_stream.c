/* What a server answers, from memory: any bytes are events or an error, and the same ones however
 * they are torn; any bytes are samples or none. The first byte says into pieces of which size. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/prometheus.h"
#include "inflight/error.h"
#include "live/replay_answer.h"
#include "live/replay_sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

enum { MOST_BYTES = 4096, MOST_TOKENS = 64 };

struct heard {
    struct replay_answer answer;
    int32_t ids[MOST_TOKENS];
    int64_t n_tokens;
    uint64_t n_events;
};

static bool hear(void *context, const char *data, size_t n)
{
    struct heard *heard = context;
    const int32_t n_tokens = replay_answer_take(&heard->answer, data, n);
    heard->n_events++;
    heard->n_tokens += n_tokens > 0 ? n_tokens : 0;
    return n_tokens >= 0;
}

static enum replay_sse_end listen(const char *text, size_t n, size_t piece, struct heard *heard)
{
    struct replay_sse sse = {.most_bytes = MOST_BYTES, .event = hear, .context = heard};
    enum replay_sse_end end = REPLAY_SSE_GOES_ON;
    memset(heard, 0, sizeof *heard);
    replay_answer_begin(&heard->answer, 1, MOST_TOKENS);
    heard->answer.ids = heard->ids;
    for (size_t at = 0; at < n && end == REPLAY_SSE_GOES_ON; at += piece)
        end = replay_sse_take(&sse, text + at, n - at < piece ? n - at : piece);
    replay_sse_reset(&sse);
    return end;
}

static void check_stream(const char *text, size_t n, size_t piece)
{
    static struct heard whole, torn;
    const enum replay_sse_end end = listen(text, n, n + 1, &whole);
    ifl_require(listen(text, n, piece, &torn) == end && torn.n_events == whole.n_events);
    ifl_require(torn.n_tokens == whole.n_tokens && torn.answer.n_ids == whole.answer.n_ids);
    ifl_require(strcmp(torn.answer.error, whole.answer.error) == 0);
    ifl_require(whole.answer.n_tokens <= MOST_TOKENS || *whole.answer.error);
    for (const char *c = whole.answer.error; *c; c++)
        ifl_require((unsigned char)*c >= ' ');
}

static void check_samples(const char *text, size_t n)
{
    const char *at = text;
    struct sample sample;
    struct sample_label label;
    while (sample_next(&at, text + n, &sample)) {
        const char *next = NULL;
        ifl_require(sample.n_name > 0 && sample.n_value > 0 && at <= text + n);
        ifl_require(sample.value + sample.n_value <= text + n);
        while (sample_label_next(&sample, &next, &label))
            ifl_require(next > sample.labels && next <= sample.labels + sample.n_labels);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    char message[64];
    if (n_bytes < 2)
        return 0;
    char *text = malloc(n_bytes - 1); /* of its exact size, so that a byte too far is found */
    ifl_require(text != NULL);
    memcpy(text, bytes + 1, n_bytes - 1);
    check_stream(text, n_bytes - 1, 1 + bytes[0] % 64U);
    check_samples(text, n_bytes - 1);
    replay_answer_error(text, n_bytes - 1, message, sizeof message);
    free(text);
    return 0;
}
