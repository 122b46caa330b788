/* Bytes of a file: consecutive gzip streams, without loss of data behind them. */
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "reading.h"

static const char head[] = "arrival_s,prompt_tokens,output_tokens\n0,10,5\n";

struct packed {
    unsigned char of[1 << 16];
    size_t n;
};

static void add_bytes(struct packed *to, const void *bytes, size_t n)
{
    memcpy(to->of + to->n, bytes, n);
    to->n += n;
}

/* RFC 1952, by zlib's own writer. */
static void add_gzip(struct packed *to, const char *text)
{
    z_stream stream = {0};
    cr_assert_eq(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (Bytef *)text;
    stream.avail_in = (unsigned)strlen(text);
    stream.next_out = to->of + to->n;
    stream.avail_out = (unsigned)(sizeof to->of - to->n);
    cr_assert_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
    to->n = sizeof to->of - stream.avail_out;
    deflateEnd(&stream);
}

static int read_packed(const struct packed *packed, size_t *n_rows, struct ifl_error *error)
{
    char path[] = "/tmp/inflight-unpack-XXXXXX";
    struct ifl_trace trace;
    const int file = mkstemp(path);
    cr_assert_eq(write(file, packed->of, packed->n), (ssize_t)packed->n);
    close(file);
    const int rc = ifl_trace_read(&(struct ifl_trace_file){path, "auto", 0}, NULL, &trace, error);
    if (rc < 0)
        cr_expect_str_eq(error->file, path);
    *n_rows = trace.n;
    ifl_trace_free(&trace);
    unlink(path);
    return rc;
}

static void expect_rows(const struct packed *packed, size_t expected)
{
    struct ifl_error error = {0};
    size_t n_rows;
    cr_expect_eq(read_packed(packed, &n_rows, &error), 0, "%s", error.text);
    cr_expect_eq(n_rows, expected);
}

static void expect_refusal(const struct packed *packed, const char *says)
{
    struct ifl_error error = {0};
    size_t n_rows;
    cr_expect_eq(read_packed(packed, &n_rows, &error), IFL_E_INPUT);
    cr_expect(strstr(error.text, says), "\"%s\" lacks \"%s\"", error.text, says);
}

/* As `cat a.gz b.gz` makes it. */
Test(unpack, streams_in_a_row_are_one_text)
{
    struct packed packed = {.n = 0};
    add_gzip(&packed, head);
    add_gzip(&packed, "1,10,5\n2,10,5\n");
    add_gzip(&packed, "");
    add_gzip(&packed, "3,10,5\n");
    expect_rows(&packed, 4);
}

/* As `echo 5,10,5 >>a.gz` makes it. */
Test(unpack, what_is_appended_plain_is_not_lost)
{
    struct packed packed = {.n = 0};
    char says[64];
    add_gzip(&packed, head);
    snprintf(says, sizeof says, "the gzip stream ends at byte %zu and what follows is none",
             packed.n);
    add_bytes(&packed, "\n5,10,5\n", 8);
    expect_refusal(&packed, says);
}

/* The offset of text that lies many buffers behind the beginning. */
Test(unpack, the_place_is_told_however_far_it_is)
{
    static struct packed packed;
    char says[64];
    add_gzip(&packed, head);
    for (int i = 0; i < 1000; i++)
        add_gzip(&packed, "1,10,5\n");
    snprintf(says, sizeof says, "ends at byte %zu and", packed.n);
    add_bytes(&packed, "\037x", 2);
    expect_refusal(&packed, says);
}

Test(unpack, half_a_magic_number_is_no_stream)
{
    struct packed packed = {.n = 0};
    add_gzip(&packed, head);
    add_bytes(&packed, "\037", 1);
    expect_refusal(&packed, "and what follows is none");
}

Test(unpack, a_second_stream_may_be_cut_short_too)
{
    struct packed packed = {.n = 0};
    add_gzip(&packed, head);
    add_gzip(&packed, "1,10,5\n");
    packed.n--;
    expect_refusal(&packed, "the gzip stream is cut short");
}

/* Zeros behind a stream are padding, as in gzip(1); no other bytes are. */
Test(unpack, zeros_are_padding)
{
    static const char zeros[5000];
    struct packed packed = {.n = 0};
    add_gzip(&packed, head);
    add_bytes(&packed, zeros, sizeof zeros);
    expect_rows(&packed, 1);
    add_gzip(&packed, "1,10,5\n");
    expect_rows(&packed, 2);
    add_bytes(&packed, zeros, sizeof zeros);
    add_bytes(&packed, "5,10,5\n", 7);
    expect_refusal(&packed, "and what follows is none");
}

/* ---- long records ---- */

/* A file of `text`, n times the byte `filler`, and `end`, with at most a MiB a record. */
static int read_long(const char *text, char filler, size_t n, const char *end,
                     struct ifl_error *error)
{
    char path[] = "/tmp/inflight-long-XXXXXX";
    struct ifl_trace trace;
    FILE *file = fdopen(mkstemp(path), "w");
    fputs(text, file);
    for (size_t i = 0; i < n; i++)
        putc(filler, file);
    fputs(end, file);
    cr_assert_eq(fclose(file), 0);
    *error = (struct ifl_error){0};
    const int rc = ifl_trace_read(&(struct ifl_trace_file){path, "auto", 1}, NULL, &trace, error);
    ifl_trace_free(&trace);
    unlink(path);
    return rc;
}

Test(unpack, a_line_has_a_limit)
{
    static const char client[] = "prompt_tokens,output_tokens,client\n1,1,a\n1,1,";
    const size_t mib = 1 << 20, before = strlen("1,1,\n");
    struct ifl_error error;
    cr_expect_eq(read_long(client, 'x', mib - before, "\n1,1,b\n", &error), 0, "%s", error.text);
    cr_expect_eq(read_long(client, 'x', mib - before + 1, "\n1,1,b\n", &error), IFL_E_INPUT);
    cr_expect_eq(error.line, 3);
    cr_expect(strstr(error.text, "more than 1 MiB, expected it within workload.max_record_mib"),
              "%s", error.text);
    cr_expect_eq(read_long(client, 'x', 3 * mib, "", &error), IFL_E_INPUT, "no end of it");
    cr_expect_eq(error.line, 3);
}

/* The whole file is one line here, as data sets of chats are. */
Test(unpack, an_object_has_a_limit_and_a_list_has_none)
{
    static const char turns[] = "[{\"conversations\":[{\"value\":\"abcd\"},{\"value\":\"";
    const size_t mib = 1 << 20, before = strlen(turns) - 1 + strlen("\"}]}");
    struct ifl_error error;
    cr_expect_eq(read_long(turns, 'x', mib - before, "\"}]}]", &error), 0, "%s", error.text);
    cr_expect_eq(read_long(turns, 'x', mib - before + 1, "\"}]}]", &error), IFL_E_INPUT);
    cr_expect(strstr(error.text, "a line or JSON object of more than 1 MiB"), "%s", error.text);
    cr_expect_eq(error.line, 1);
    cr_expect_eq(read_long(turns, 'x', mib / 2, "\"}]},{\"conversations\":[]}]", &error), 0);
    cr_expect_eq(read_long("{\"input_lens\":[1],\n\"output_lens\":[1],\n\"x\":\"", 'x', 2 * mib,
                           "\"}", &error),
                 IFL_E_INPUT);
    cr_expect(strstr(error.text, "more than 1 MiB"), "%s", error.text);
}
