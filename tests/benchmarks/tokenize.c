/* How many bytes of text a second one core turns to tokens: tokenize TOKENIZER TEXT [SECONDS]. The
 * file is cut into texts of about 2 KiB, as conversations have; each pass has a fresh encoder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "inflight/tokenizer.h"

enum { TEXT_BYTES = 2048 };

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static char *load(const char *path, size_t *n)
{
    FILE *in = fopen(path, "rb");
    char *bytes = malloc((size_t)1 << 26);
    *n = in && bytes ? fread(bytes, 1, (size_t)1 << 26, in) : 0;
    if (in)
        fclose(in);
    return bytes;
}

/* The end of the text that begins at `at`: behind a line feed, or at the file's end. */
static size_t end_of(const char *bytes, size_t at, size_t n)
{
    const char *feed =
        at + TEXT_BYTES < n ? memchr(bytes + at + TEXT_BYTES, '\n', n - at - TEXT_BYTES) : NULL;
    return feed ? (size_t)(feed - bytes) + 1 : n;
}

static size_t pass(const struct ifl_tokenizer *tokenizer, const char *bytes, size_t n)
{
    struct ifl_error error = {0};
    struct ifl_encoder *encoder;
    size_t n_tokens = 0, n_ids;
    const uint32_t *ids;
    int rc = ifl_encoder_open(tokenizer, &encoder, &error);
    for (size_t at = 0, end; rc == 0 && at < n; at = end) {
        end = end_of(bytes, at, n);
        rc = ifl_encode(encoder, bytes + at, end - at, &ids, &n_ids, &error);
        n_tokens += n_ids;
    }
    if (rc < 0)
        fprintf(stderr, "%s\n", error.text);
    ifl_encoder_close(encoder);
    return n_tokens;
}

int main(int argc, char **argv)
{
    struct ifl_error error;
    struct ifl_tokenizer *tokenizer;
    size_t n, n_tokens = 0, n_passes = 0;
    if (argc < 3)
        return 2;
    double begin_s = now_s(), taken_s = 0;
    if (ifl_tokenizer_open(argv[1], &tokenizer, &error) < 0) {
        fprintf(stderr, "%s: %s\n", error.file, error.text);
        return 2;
    }
    const double open_s = now_s() - begin_s, least_s = argc > 3 ? atof(argv[3]) : 1;
    char *bytes = load(argv[2], &n);
    for (begin_s = now_s(); taken_s < least_s && n > 0; n_passes++) {
        n_tokens += pass(tokenizer, bytes, n);
        taken_s = now_s() - begin_s;
    }
    if (n_passes > 0)
        printf("%s: %.1f MB/s, %.2f million tokens/s, %.2f bytes a token, opened in %.2f s\n",
               argv[1], (double)(n * n_passes) / taken_s * 1e-6, (double)n_tokens / taken_s * 1e-6,
               (double)(n * n_passes) / (double)n_tokens, open_s);
    free(bytes);
    ifl_tokenizer_close(tokenizer);
    return 0;
}
