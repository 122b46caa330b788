/* The tokens of a trace's texts as a table: a row a turn. */
#include "text/count.h"
#include "traces.h"

#include <string.h>

struct listing {
    struct text_batch batch;
    struct text_template around;
    FILE *out;
    size_t n_records;
};

static int write_item(const struct text_item *item, bool with_ids, FILE *out)
{
    int rc = fprintf(out, "%zu,%zu,%zu", item->record, item->turn, item->n_ids);
    for (size_t i = 0; rc >= 0 && with_ids && i < item->n_ids; i++)
        rc = fprintf(out, "%c%u", i == 0 ? ',' : ' ', item->ids[i]);
    if (rc >= 0 && with_ids && item->n_ids == 0)
        rc = fputc(',', out);
    return rc < 0 || fputc('\n', out) == EOF ? -1 : 0;
}

static int flush(struct listing *listing, struct ifl_error *error)
{
    struct text_batch *batch = &listing->batch;
    if (text_batch_encode(batch, error) < 0)
        return error->code;
    for (size_t i = 0; i < batch->n; i++)
        if (write_item(&batch->items[i], batch->keeps_ids, listing->out) < 0)
            return ifl_fail(error, IFL_E_IO, "cannot write");
    text_batch_clear(batch);
    return 0;
}

static int take_turn(struct listing *listing, const json_t *text, size_t turn,
                     struct ifl_error *error)
{
    const struct text_template *around = &listing->around;
    const char *const parts[3] = {around->before, json_string_value(text), around->behind};
    const size_t n[3] = {turn == 0 ? around->n_before : 0, json_string_length(text),
                         turn == 0 ? around->n_behind : 0};
    const int rc = text_batch_add(&listing->batch, parts, n, listing->n_records, turn, error);
    return rc > 0 ? flush(listing, error) : rc;
}

static int take_record(void *self, const struct trace_record *record, struct ifl_error *error)
{
    struct listing *listing = self;
    const json_t *turns = json_object_get(record->value, "conversations");
    int rc = 0;
    if (!json_is_array(turns))
        return trace_record_fail(record, "conversations", "a list of turns", error);
    listing->n_records++;
    for (size_t turn = 0; rc == 0 && turn < json_array_size(turns); turn++) {
        const json_t *text = json_object_get(json_array_get(turns, turn), "value");
        rc = json_is_string(text)
                 ? take_turn(listing, text, turn, error)
                 : trace_record_fail(record, "conversations", "turns with a text \"value\"", error);
    }
    return rc;
}

static int list(const struct ifl_trace_file *file, struct listing *listing, struct ifl_error *error)
{
    struct trace_input input;
    const struct trace_json_reader reader = {take_record, listing, NULL};
    if (fprintf(listing->out, "record,turn,tokens%s\n", listing->batch.keeps_ids ? ",ids" : "") < 0)
        return ifl_fail(error, IFL_E_IO, "cannot write");
    if (trace_input_open(&input, file->path, error) < 0)
        return error->code;
    if (file->max_record_mib > 0)
        input.most_bytes = (size_t)file->max_record_mib << 20;
    int rc = trace_json_list_read(&input, &reader, error);
    if (rc == 0)
        rc = flush(listing, error);
    trace_input_close(&input);
    return rc;
}

int ifl_trace_tokens(const struct ifl_trace_file *file, bool with_ids, FILE *out,
                     struct ifl_error *error)
{
    struct ifl_tokenizer *tokenizer = NULL;
    struct listing listing = {.out = out};
    int rc = text_template_read(file->prompt_template, &listing.around, error);
    if (rc == 0)
        rc = ifl_tokenizer_open(file->tokenizer, &tokenizer, error);
    listing.batch =
        (struct text_batch){.tokenizer = tokenizer, .path = file->path, .keeps_ids = with_ids};
    if (rc == 0)
        rc = list(file, &listing, error);
    text_batch_free(&listing.batch);
    ifl_tokenizer_close(tokenizer);
    if (rc == 0 && fflush(out) != 0)
        rc = ifl_fail(error, IFL_E_IO, "cannot write");
    return rc;
}
