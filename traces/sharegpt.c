/* ShareGPT: conversations as text. As in vLLM's benchmark, the first turn is the prompt and the
 * second the output. Lengths are counted by a tokenizer, or else estimated from characters. */
#include "text/count.h"
#include "traces.h"

enum { CHARACTERS_PER_TOKEN = 4 };

/* Code points of UTF-8: every byte but the continuations 10xxxxxx. */
static size_t count_characters(const char *text, size_t n_bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < n_bytes; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

static int32_t estimate_tokens(const json_t *text)
{
    const size_t n_characters = count_characters(json_string_value(text), json_string_length(text));
    const size_t n_tokens = n_characters / CHARACTERS_PER_TOKEN;
    if (n_tokens > INT32_MAX)
        return INT32_MAX;
    return n_tokens == 0 ? n_characters > 0 : (int32_t)n_tokens;
}

struct reader {
    struct trace_rows *rows;
    struct text_counter *counter; /* NULL: lengths are estimated */
};

/* Adds a row; its lengths are known only when all texts are counted. */
static int add_counted(struct reader *reader, const json_t *prompt, const json_t *output,
                       struct ifl_error *error)
{
    const size_t record = reader->rows->n_records + 1;
    int rc = text_counter_add(reader->counter, json_string_value(prompt),
                              json_string_length(prompt), true, record, error);
    if (rc == 0)
        rc = text_counter_add(reader->counter, json_string_value(output),
                              json_string_length(output), false, record, error);
    return rc < 0 ? rc : trace_rows_add(reader->rows, 0, 1, 1, error);
}

static int take_record(void *self, const struct trace_record *record, struct ifl_error *error)
{
    struct reader *reader = self;
    const json_t *turns = json_object_get(record->value, "conversations");
    if (!json_is_array(turns))
        return trace_record_fail(record, "conversations", "a list of turns", error);
    if (json_array_size(turns) < 2)
        return trace_rows_add(reader->rows, 0, 0, 0, error);
    const json_t *prompt = json_object_get(json_array_get(turns, 0), "value");
    const json_t *output = json_object_get(json_array_get(turns, 1), "value");
    if (!json_is_string(prompt) || !json_is_string(output))
        return trace_record_fail(record, "conversations", "turns with a text \"value\"", error);
    if (reader->counter)
        return add_counted(reader, prompt, output, error);
    return trace_rows_add(reader->rows, 0, estimate_tokens(prompt), estimate_tokens(output), error);
}

/* What the reader of attributes checks where an answer's length is known before them. */
static int check_limits(const struct trace_rows *rows, struct ifl_error *error)
{
    const struct ifl_trace *trace = rows->trace;
    for (size_t i = 0; trace->max_tokens && i < trace->n; i++)
        if (trace->max_tokens[i] > 0 && trace->max_tokens[i] < trace->n_output[i])
            return ifl_fail_at(error, rows->path, 0, 0,
                               "max_tokens of record %llu is %d, expected at least the tokens of "
                               "the answer, %d",
                               (unsigned long long)ifl_trace_id(trace, i), trace->max_tokens[i],
                               trace->n_output[i]);
    return 0;
}

/* Texts without tokens are left out, as empty ones are. */
static int take_counts(struct reader *reader, struct ifl_error *error)
{
    struct ifl_trace *trace = reader->rows->trace;
    const uint32_t *counts;
    size_t n;
    if (text_counter_end(reader->counter, &counts, &n, error) < 0)
        return error->code;
    for (size_t i = 0; i < trace->n; i++) {
        trace->n_prompt[i] = (int32_t)counts[2 * i];
        trace->n_output[i] = (int32_t)counts[2 * i + 1];
    }
    return check_limits(reader->rows, error) < 0 ? error->code
                                                 : trace_rows_leave_empty(reader->rows, error);
}

int trace_read_sharegpt(struct trace_input *input, struct trace_rows *rows, struct ifl_error *error)
{
    struct reader reader = {rows, input->counter};
    const struct trace_json_reader json = {take_record, &reader, rows};
    rows->skipped = "conversations have fewer than two turns or an empty one";
    rows->trace->lengths_estimated = !input->counter;
    const int rc = trace_json_list_read(input, &json, error);
    if (rc == 0 && input->counter)
        return take_counts(&reader, error);
    if (rc == 0)
        trace_note(rows->notes, "%s: token counts are estimated at %d characters a token",
                   rows->path, CHARACTERS_PER_TOKEN);
    return rc;
}
