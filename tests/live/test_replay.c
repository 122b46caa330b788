/* The parts of the load client that need no network: events, answers, prompts, bodies, rows. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/prometheus.h"
#include "inflight/report.h"
#include "inflight/tokenizer.h"
#include "live/replay_answer.h"
#include "live/replay_body.h"
#include "live/replay_record.h"
#include "live/replay_rows.h"
#include "live/replay_sse.h"

/* ---- events ---- */

struct heard {
    char text[4096];
    size_t n, stop_after;
};

static bool hear(void *context, const char *data, size_t n)
{
    struct heard *heard = context;
    const size_t at = strlen(heard->text);
    snprintf(heard->text + at, sizeof heard->text - at, "[%.*s]", (int)n, data);
    return ++heard->n != heard->stop_after;
}

/* What is heard of a stream that comes in pieces of `piece` bytes. */
static enum replay_sse_end listen(const char *stream, size_t piece, size_t most,
                                  struct heard *heard)
{
    struct replay_sse sse = {.most_bytes = most, .event = hear, .context = heard};
    const size_t n = strlen(stream);
    enum replay_sse_end end = REPLAY_SSE_GOES_ON;
    for (size_t at = 0; at < n && end == REPLAY_SSE_GOES_ON; at += piece)
        end = replay_sse_take(&sse, stream + at, at + piece < n ? piece : n - at);
    replay_sse_reset(&sse);
    return end;
}

/* The examples of the standard, section 9.2.6, and its three ends of lines. */
Test(sse, reads_what_the_standard_shows_however_it_is_torn)
{
    static const struct {
        const char *stream, *heard;
    } rows[] = {
        {"data: YHOO\ndata: +2\ndata: 10\n\n", "[YHOO\n+2\n10]"},
        {": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third "
         "event\n\n",
         "[first event][second event][ third event]"},
        {"data\n\ndata\ndata\n\ndata:", "[][\n]"},
        {"data:test\n\ndata: test\n\n", "[test][test]"},
        {"data: a\r\n\r\ndata: b\r\rdata: c\n\n", "[a][b][c]"},
        {"database: x\nevent: data\n\ndata: y\n\n", "[y]"},
        {"data: no blank line behind it\n", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t piece = 1; piece < 20; piece++) {
            struct heard heard = {.text = ""};
            cr_expect_eq(listen(rows[i].stream, piece, 64, &heard), REPLAY_SSE_GOES_ON);
            cr_expect_str_eq(heard.text, rows[i].heard, "row %zu in pieces of %zu", i, piece);
        }
}

Test(sse, bounds_lines_and_events_and_stops)
{
    struct heard heard = {.text = ""};
    cr_expect_eq(listen("data: 0123456789abcdef", 3, 16, &heard), REPLAY_SSE_LONG_LINE);
    cr_expect_eq(listen("0123456789abcdefg\n", 64, 16, &heard), REPLAY_SSE_LONG_LINE);
    cr_expect_eq(listen("data: 12345678\ndata: 12345678\n\n", 5, 16, &heard),
                 REPLAY_SSE_LONG_EVENT);
    cr_expect_str_eq(heard.text, "");
    heard.stop_after = 2;
    cr_expect_eq(listen("data: a\n\ndata: b\n\ndata: c\n\n", 1, 16, &heard), REPLAY_SSE_STOPPED);
    cr_expect_str_eq(heard.text, "[a][b]");
}

/* ---- answers, as servers sent them ---- */

struct taken {
    struct replay_answer answer;
    int32_t n_of[32]; /* tokens of each event */
    size_t n;
};

static bool take_event(void *context, const char *data, size_t n)
{
    struct taken *taken = context;
    cr_assert_lt(taken->n, 32);
    taken->n_of[taken->n++] = replay_answer_take(&taken->answer, data, n);
    return true;
}

static struct taken take_file(const char *name, int32_t n_samples)
{
    static char bytes[1 << 16];
    char path[256];
    struct taken taken = {.n = 0};
    replay_answer_begin(&taken.answer, n_samples, 3);
    snprintf(path, sizeof path, "tests/live/wire/%s", name);
    FILE *in = fopen(path, "r");
    cr_assert_not_null(in);
    const size_t n = fread(bytes, 1, sizeof bytes, in);
    fclose(in);
    struct replay_sse sse = {.most_bytes = 1 << 16, .event = take_event, .context = &taken};
    cr_assert_eq(replay_sse_take(&sse, bytes, n), REPLAY_SSE_GOES_ON);
    replay_sse_reset(&sse);
    cr_expect(taken.answer.is_done && taken.answer.is_finished);
    cr_expect_str_eq(taken.answer.error, "");
    return taken;
}

Test(answer, counts_chunks_of_vllm_and_takes_the_usage_at_the_end)
{
    const struct taken t = take_file("vllm-0.32-completion.sse", 1);
    cr_expect_eq(t.answer.n_tokens, 3);
    cr_expect_eq(t.n_of[0] + t.n_of[1] + t.n_of[2], 3);
    cr_expect_eq(t.n_of[3], 0, "usage brings no token");
    cr_expect(!t.answer.counted && t.answer.has_usage);
    cr_expect_eq(t.answer.prompt_tokens, 4);
    cr_expect_eq(t.answer.cached_tokens, 0);
    cr_expect_eq(t.answer.queue_ns, 1286493);
}

Test(answer, counts_by_running_usage)
{
    const struct taken t = take_file("vllm-0.32-continuous.sse", 1);
    cr_expect(t.answer.counted);
    cr_expect_eq(t.answer.n_tokens, 2);
    cr_expect_eq(t.n_of[0], 1);
    cr_expect_eq(t.n_of[1], 1);
    cr_expect_eq(t.answer.prompt_tokens, 6);
}

Test(answer, leaves_out_the_role_of_a_chat)
{
    const struct taken t = take_file("vllm-0.32-chat.sse", 1);
    cr_expect_eq(t.n_of[0], 0, "the first chunk names the role");
    cr_expect_eq(t.answer.n_tokens, 3);
    cr_expect_eq(t.answer.prompt_tokens, 11);
}

Test(answer, counts_one_of_several_samples)
{
    const struct taken t = take_file("vllm-0.32-samples.sse", 2);
    cr_expect_eq(t.answer.n_tokens, 2);
}

static int32_t take_text(struct replay_answer *answer, const char *text)
{
    return replay_answer_take(answer, text, strlen(text));
}

/* A running usage is that of the chunk's own sample: previous_num_tokens[i] of vLLM 0.32
 * (entrypoints/openai/completion/serving.py); the one at the end adds them. */
Test(answer, counts_one_of_several_samples_by_its_own_running_usage)
{
    static const struct {
        const char *event;
        int32_t n;
    } rows[] = {
        {"{\"choices\": [{\"index\": 0, \"text\": \"a b\", \"token_ids\": [7, 8]}], "
         "\"usage\": {\"completion_tokens\": 2}}",
         2},
        {"{\"choices\": [{\"index\": 1, \"text\": \"c d e\", \"token_ids\": [4, 5, 6]}], "
         "\"usage\": {\"completion_tokens\": 3}}",
         0},
        {"{\"choices\": [{\"index\": 1, \"text\": \"f\", \"finish_reason\": \"length\"}], "
         "\"usage\": {\"completion_tokens\": 4}}",
         0},
        {"{\"choices\": [{\"index\": 0, \"text\": \"g h\", \"finish_reason\": \"length\"}], "
         "\"usage\": {\"completion_tokens\": 4}}",
         2},
        {"{\"choices\": [], \"usage\": {\"completion_tokens\": 8}}", 0},
    };
    int32_t ids[4];
    struct replay_answer answer;
    replay_answer_begin(&answer, 2, 4);
    answer.ids = ids;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(take_text(&answer, rows[i].event), rows[i].n, "%zu: %s", i, answer.error);
    cr_expect(answer.counted && answer.n_tokens == 4);
    cr_expect(answer.n_ids == 2 && ids[0] == 7 && ids[1] == 8, "those of the first sample");
}

Test(answer, takes_no_token_from_the_last_chunk_of_llamacpp)
{
    const struct taken t = take_file("llamacpp.sse", 1);
    cr_expect_eq(t.n_of[0] + t.n_of[1], 2);
    cr_expect_eq(t.n_of[2], 0);
    cr_expect_eq(t.answer.n_tokens, 3, "one token had no text of its own");
    cr_expect_eq(t.answer.prompt_tokens, 4);
}

/* A step may give several tokens in one chunk (speculative decoding, stream_interval). */
Test(answer, counts_several_tokens_of_a_chunk)
{
    struct replay_answer answer;
    replay_answer_begin(&answer, 1, 9);
    cr_expect_eq(take_text(&answer,
                           "{\"choices\": [{\"text\": \"a b c\", \"finish_reason\": null}], "
                           "\"usage\": {\"completion_tokens\": 3}}"),
                 3);
    cr_expect_eq(take_text(&answer, "{\"choices\": [{\"text\": \"\", \"finish_reason\": null}], "
                                    "\"usage\": {\"completion_tokens\": 4}}"),
                 1, "a token without text of its own");
    int32_t ids[9];
    replay_answer_begin(&answer, 1, 9);
    answer.ids = ids;
    cr_expect_eq(take_text(&answer, "{\"choices\": [{\"text\": \"a b\", \"token_ids\": [7, 8]}]}"),
                 2);
    cr_expect_eq(answer.n_ids, 2);
    cr_expect_eq(ids[1], 8);
    cr_expect(answer.counted);
}

/* A model of random weights says such bytes sooner or later. */
Test(answer, takes_any_character)
{
    struct replay_answer answer;
    replay_answer_begin(&answer, 1, 3);
    cr_expect_eq(take_text(&answer, "{\"choices\": [{\"text\": \"\\u0000\"}]}"), 1);
    cr_expect_eq(take_text(&answer, "{\"choices\": [{\"text\": \"\\ufffd\\ud83d\\ude00\"}]}"), 1);
    cr_expect_eq(answer.n_tokens, 2);
}

Test(answer, refuses_what_is_no_answer)
{
    static const struct {
        const char *event, *why;
    } rows[] = {
        {"{", "no JSON"},
        {"[]", "choices"},
        {"{\"choices\": {}}", "choices"},
        {"{\"error\": {\"message\": \"dead\\u0007\"}}", "dead "},
        {"{\"choices\": [{\"text\": \"x\"}], \"usage\": {\"completion_tokens\": 4}}", "asked for"},
        {"{\"choices\": [], \"usage\": {\"completion_tokens\": 2147483647}}", "asked for"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct replay_answer answer;
        replay_answer_begin(&answer, 1, 3);
        cr_expect_eq(take_text(&answer, rows[i].event), -1, "%s", rows[i].event);
        cr_expect_not_null(strstr(answer.error, rows[i].why), "%s", answer.error);
    }
}

Test(answer, finds_the_message_of_an_error)
{
    char text[200];
    static const char body[] = "{\"error\":{\"message\":\"too\\nlong\",\"code\":400}}";
    replay_answer_error(body, sizeof body - 1, text, sizeof text);
    cr_expect_str_eq(text, "too long");
    replay_answer_error("Bad\x1b[2JGateway", 14, text, sizeof text);
    cr_expect_str_eq(text, "Bad [2JGateway");
}

/* ---- prompts ---- */

static const struct replay_vocabulary vocabulary = {.seed = 3, .first_id = 100, .n_ids = 8000};

static struct arrival plain(size_t row, int32_t n_prompt)
{
    return (struct arrival){.row = row, .n_prompt = n_prompt, .said = ifl_attributes_absent};
}

Test(prompt, shares_what_the_trace_says_is_shared_and_nothing_else)
{
    int32_t a[64], b[64];
    struct arrival one = plain(0, 64), two = plain(1, 64);
    one.said.prefix_group = two.said.prefix_group = 7;
    one.stream_tokens = two.stream_tokens = 40;
    replay_prompt_ids(&vocabulary, &one, NULL, a);
    replay_prompt_ids(&vocabulary, &two, NULL, b);
    cr_expect_arr_eq(a, b, 40 * sizeof *a);
    size_t n_same = 0;
    for (size_t i = 40; i < 64; i++)
        n_same += a[i] == b[i];
    cr_expect_leq(n_same, 1, "24 draws of 8,000 ids");
    for (size_t i = 0; i < 64; i++)
        cr_expect(a[i] >= 100 && a[i] < 8100);
}

Test(prompt, takes_blocks_of_hash_ids)
{
    static const uint64_t first[] = {5, 6}, second[] = {9, 6};
    int32_t a[32], b[32];
    struct arrival one = plain(0, 32), two = plain(1, 32);
    one.hash_ids = first;
    two.hash_ids = second;
    one.n_hash_ids = two.n_hash_ids = 2;
    one.hash_id_tokens = two.hash_id_tokens = 16;
    one.named_tokens = two.named_tokens = 32;
    replay_prompt_ids(&vocabulary, &one, NULL, a);
    replay_prompt_ids(&vocabulary, &two, NULL, b);
    cr_expect_arr_neq(a, b, 16 * sizeof *a);
    cr_expect_arr_eq(a + 16, b + 16, 16 * sizeof *a);
}

Test(prompt, begins_with_what_is_known)
{
    int32_t ids[4], known[3] = {1, 2, 3};
    const struct arrival turn = plain(2, 4);
    replay_prompt_ids(&vocabulary, &turn, &(struct replay_known){known, 3}, ids);
    cr_expect_arr_eq(ids, known, sizeof known);
}

Test(body, is_json_with_the_prompt_and_the_extras)
{
    static const char *const extra[] = {"temperature=0", "user=somebody-else", "stop=[\"x\"]"};
    const struct replay_body body = {.model = "a \"model\"", .extra = extra, .n_extra = 3};
    static const int32_t ids[] = {0, 12, 2147483647};
    struct arrival arrival = plain(0, 3);
    struct replay_text text = {0};
    struct ifl_error error;
    cr_assert_eq(replay_body_check(&body, &error), 0);
    cr_assert_eq(replay_body_write(&body, &arrival, 5, true, ids, &text, &error), 0);
    json_t *root = json_loads(text.of, 0, NULL);
    cr_assert_not_null(root, "%s", text.of);
    cr_expect_eq(text.n, strlen(text.of));
    const char *model, *user;
    int max, min, eos, usage, running, wants, zero, twelve, last, temperature;
    cr_expect_eq(json_unpack(root, "{s:s, s:i, s:i, s:b, s:b, s:{s:b, s:b}, s:[i,i,i], s:i, s:s}",
                             "model", &model, "max_tokens", &max, "min_tokens", &min, "ignore_eos",
                             &eos, "return_token_ids", &wants, "stream_options", "include_usage",
                             &usage, "continuous_usage_stats", &running, "prompt", &zero, &twelve,
                             &last, "temperature", &temperature, "user", &user),
                 0);
    cr_expect_str_eq(model, "a \"model\"");
    cr_expect(max == 5 && min == 5 && eos && usage && running && wants && temperature == 0);
    cr_expect(zero == 0 && twelve == 12 && last == 2147483647);
    json_decref(root);
    free(text.of);
    const struct replay_body made = {.extra = (const char *const[]){"prompt=x"}, .n_extra = 1};
    cr_expect_eq(replay_body_check(&made, &error), IFL_E_INPUT);
    const struct replay_body wrong = {.extra = (const char *const[]){"=1"}, .n_extra = 1};
    cr_expect_eq(replay_body_check(&wrong, &error), IFL_E_INPUT);
}

/* Against the tokenizers themselves, which tests/tokenizers holds against those of other programs.
 */
Test(words, are_as_many_tokens_as_were_asked_for)
{
    static const char *const names[] = {"gpt2.json.gz",     "llama3.json.gz",
                                        "qwen.json.gz",     "tekken.json.gz",
                                        "spm-bpe.model.gz", "spm-unigram.model.gz"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[128];
        struct replay_words words;
        struct ifl_tokenizer *tokenizer;
        struct ifl_encoder *encoder;
        struct ifl_error error = {.text = ""};
        struct replay_text text = {0};
        const uint32_t *tokens;
        size_t n_tokens;
        int32_t ids[1000];
        snprintf(path, sizeof path, "tests/tokenizers/fixtures/%s", names[i]);
        const int rc = replay_words_choose(path, &words, &error);
        if (strstr(error.text, "built without"))
            cr_skip("without tokenizers");
        cr_assert_eq(rc, 0, "%s: %s", names[i], error.text);
        const struct arrival arrival = plain(i, 1000);
        replay_prompt_ids(&vocabulary, &arrival, NULL, ids);
        cr_assert_eq(replay_prompt_words(&words, ids, 1000, &text), 0);
        cr_assert_eq(ifl_tokenizer_open(path, &tokenizer, &error), 0);
        cr_assert_eq(ifl_encoder_open(tokenizer, &encoder, &error), 0);
        cr_assert_eq(ifl_encode(encoder, text.of, text.n, &tokens, &n_tokens, &error), 0);
        cr_expect_eq(n_tokens, 1000, "%s: %zu tokens of %zu words", names[i], n_tokens, words.n);
        ifl_encoder_close(encoder);
        ifl_tokenizer_close(tokenizer);
        free(text.of);
    }
}

Test(words, are_refused_where_no_vocabulary_has_them)
{
    struct replay_words words;
    struct ifl_error error;
    cr_expect_eq(replay_words_choose("tests/live/wire/llamacpp.sse", &words, &error), IFL_E_INPUT);
}

/* ---- rows ---- */

Test(rows, are_whole_when_the_file_may_not_grow)
{
    char path[] = "/tmp/inflight-rows-XXXXXX", text[4096];
    struct ifl_error error;
    struct replay_rows *rows = malloc(sizeof *rows);
    const int fd = mkstemp(path);
    cr_assert(fd >= 0 && rows);
    cr_assert_eq(replay_rows_open(rows, path, "name,number\n", &error), 0);
    for (int i = 0; i < 100; i++) {
        char *at = replay_rows_room(rows, 64, &error);
        at = row_put_text(at, "a \"row\", quoted");
        at = row_put_whole(at, i);
        replay_rows_end(rows, row_put_end(at));
    }
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, limit.rlim_max}); /* as a disk that is full */
    signal(SIGXFSZ, SIG_IGN);
    cr_expect_eq(replay_rows_close(rows, 0, &error), IFL_E_IO);
    const size_t n = (size_t)read(fd, text, sizeof text);
    cr_expect(n > 900 && n <= 1000 && text[n - 1] == '\n', "%zu bytes", n);
    close(fd);
    unlink(path);
    free(rows);
}

Test(rows, write_nanoseconds_exactly)
{
    char text[128];
    char *at = row_put_seconds(text, 1);
    at = row_put_seconds(at, -1500000000);
    at = row_put_seconds(at, IFL_NEVER);
    at = row_put_count(at, -1);
    at = row_put_whole(at, INT64_MIN);
    *row_put_end(at) = '\0';
    cr_expect_str_eq(text, "0.000000001,-1.500000000,,,-9223372036854775808\n");
}

/* ---- lateness ---- */

Test(record, says_when_the_client_was_the_bottleneck)
{
    struct replay_records records = {0};
    struct replay_client client = {.late_bound_s = 0.005};
    struct ifl_error error;
    for (int i = 0; i < 101; i++) {
        struct replay_record *r = replay_records_add(&records);
        r->sent_ns = i * 100000; /* 0 to 10 ms late */
    }
    cr_assert_eq(replay_judge(&records, &client, &error), 0);
    cr_expect_float_eq(client.late_s.p50, 0.005, 1e-12);
    cr_expect_float_eq(client.late_s.p99, 0.0099, 1e-12);
    cr_expect(client.is_bound);
    client.late_bound_s = 0.0099;
    cr_assert_eq(replay_judge(&records, &client, &error), 0);
    cr_expect(!client.is_bound, "above, not at the bound");
    replay_records_free(&records);
}

/* ---- metrics ---- */

/* The example of the format's description, and what it says of escapes. */
Test(prometheus, reads_samples_and_labels)
{
    static const char text[] =
        "# HELP http_requests_total The total number of HTTP requests.\n"
        "http_requests_total{method=\"post\",code=\"200\"} 1027 1395066363000\n\n"
        "msdos_file_access_time_seconds{path=\"C:\\\\DIR\\\\FILE.TXT\",error=\"Cannot find "
        "file:\\n\\\"FILE.TXT\\\"\"} 1.458255915e9\n"
        "metric_without_timestamp_and_labels 12.47\n"
        "broken{label=\"} 3\n"
        "something_weird{problem=\"division by zero\"} +Inf -3982045\n";
    const char *at = text, *end = text + sizeof text - 1, *next = NULL;
    struct sample sample;
    struct sample_label label;
    cr_assert(sample_next(&at, end, &sample));
    cr_expect(sample_is(&sample, "http_requests_total"));
    cr_expect_eq(strncmp(sample.value, "1027", sample.n_value), 0);
    cr_assert(sample_next(&at, end, &sample));
    cr_assert(sample_label_next(&sample, &next, &label));
    cr_expect_str_eq(label.value, "C:\\DIR\\FILE.TXT");
    cr_assert(sample_label_next(&sample, &next, &label));
    cr_expect_str_eq(label.name, "error");
    cr_expect_str_eq(label.value, "Cannot find file:\n\"FILE.TXT\"");
    cr_expect(!sample_label_next(&sample, &next, &label));
    cr_assert(sample_next(&at, end, &sample));
    cr_expect(!sample.labels);
    cr_expect_eq(strncmp(sample.value, "12.47", sample.n_value), 0);
    cr_assert(sample_next(&at, end, &sample));
    cr_expect(sample_is(&sample, "something_weird"), "a line that is no sample is skipped");
    cr_expect(!sample_next(&at, end, &sample));
}
