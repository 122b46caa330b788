/* ShareGPT: conversations as text. As in vLLM's benchmark, the first turn is the prompt and the
 * second the output. Lengths are estimated from characters, because there is no tokenizer. */
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

static int take_record(void *self, const struct trace_record *record, struct ifl_error *error)
{
    const json_t *turns = json_object_get(record->value, "conversations");
    if (!json_is_array(turns))
        return trace_record_fail(record, "conversations", "a list of turns", error);
    if (json_array_size(turns) < 2)
        return trace_rows_add(self, 0, 0, 0, error);
    const json_t *prompt = json_object_get(json_array_get(turns, 0), "value");
    const json_t *output = json_object_get(json_array_get(turns, 1), "value");
    if (!json_is_string(prompt) || !json_is_string(output))
        return trace_record_fail(record, "conversations", "turns with a text \"value\"", error);
    return trace_rows_add(self, 0, estimate_tokens(prompt), estimate_tokens(output), error);
}

int trace_read_sharegpt(struct trace_input *input, struct trace_rows *rows, struct ifl_error *error)
{
    const struct trace_json_reader reader = {take_record, rows, rows};
    rows->skipped = "conversations have fewer than two turns or an empty one";
    rows->trace->lengths_estimated = true;
    const int rc = trace_json_list_read(input, &reader, error);
    if (rc == 0)
        trace_note(rows->notes, "%s: token counts are estimated at %d characters a token",
                   rows->path, CHARACTERS_PER_TOKEN);
    return rc;
}
