/* What a tokenizer.json puts around a text: its post_processor (`tokenizers` 0.23). */
#include "text/text.h"

#include <string.h>

static const char *type_of(const json_t *part)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    return type ? type : "no object with a type";
}

static int add_ids(const json_t *ids, bool behind, struct ifl_token_frame *frame)
{
    uint32_t *to = behind ? frame->behind : frame->before;
    size_t *n = behind ? &frame->n_behind : &frame->n_before, i;
    const json_t *id;
    json_array_foreach(ids, i, id)
    {
        if (!json_is_integer(id) || json_integer_value(id) < 0 ||
            json_integer_value(id) >= INT32_MAX || *n == IFL_FRAME_TOKENS)
            return -1;
        to[(*n)++] = (uint32_t)json_integer_value(id);
    }
    return json_is_array(ids) ? 0 : -1;
}

/* Special tokens before and behind the one Sequence, which is the text. */
static int read_template(const json_t *processor, struct ifl_token_frame *frame)
{
    const json_t *single = json_object_get(processor, "single"), *piece;
    const json_t *specials = json_object_get(processor, "special_tokens");
    size_t i, n_texts = 0;
    json_array_foreach(single, i, piece)
    {
        const json_t *special = json_object_get(piece, "SpecialToken");
        const char *name = json_string_value(json_object_get(special, "id"));
        n_texts += json_is_object(json_object_get(piece, "Sequence"));
        if (special && (!name || add_ids(json_object_get(json_object_get(specials, name), "ids"),
                                         n_texts > 0, frame) < 0))
            return -1;
    }
    return n_texts == 1 ? 0 : -1;
}

static bool read_one(const json_t *processor, struct ifl_token_frame *frame)
{
    const char *type = type_of(processor);
    if (strcmp(type, "ByteLevel") == 0) /* of offsets alone */
        return true;
    return strcmp(type, "TemplateProcessing") == 0 && read_template(processor, frame) == 0;
}

void text_read_frame(const json_t *post_processor, struct ifl_tokenizer *tokenizer)
{
    const json_t *parts = json_object_get(post_processor, "processors");
    const bool is_list = strcmp(type_of(post_processor), "Sequence") == 0 && json_is_array(parts);
    const size_t n = is_list ? json_array_size(parts) : 1;
    if (!post_processor || json_is_null(post_processor))
        return;
    for (size_t i = 0; i < n; i++) {
        const json_t *one = is_list ? json_array_get(parts, i) : post_processor;
        if (!read_one(one, &tokenizer->frame))
            snprintf(tokenizer->odd_frame, sizeof tokenizer->odd_frame, "%.60s", type_of(one));
    }
}

int ifl_tokenizer_frame(const struct ifl_tokenizer *tokenizer, struct ifl_token_frame *frame,
                        struct ifl_error *error)
{
    *frame = tokenizer->frame;
    return *tokenizer->odd_frame
               ? ifl_fail(error, IFL_E_INPUT,
                          "the tokenizer's post_processor is %s, or says what is not known here; "
                          "expected ByteLevel, TemplateProcessing or a Sequence of them",
                          tokenizer->odd_frame)
               : 0;
}
