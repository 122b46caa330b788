/* The module of SentencePiece's library, and its functions by the names of text.h. */
#include "text/sentencepiece.h"

#include <stdatomic.h>

#include "text/text.h"

static ifl_module_load_fn *loads; /* NULL: the program has no modules */
static const struct text_sentencepiece_module *_Atomic module;

void ifl_tokenizer_modules(ifl_module_load_fn *load)
{
    loads = load;
}

static const struct text_sentencepiece_module *find(struct ifl_error *error)
{
    static const struct ifl_module wanted = {
        .name = "sentencepiece",
        .built = "traces",
        .what = "a tokenizer.model",
        .needs = "SentencePiece (-Dtokenizers=enabled, libsentencepiece-dev)",
        .n_bytes = sizeof(struct text_sentencepiece_module),
    };
    if (&inflight_sentencepiece)
        return &inflight_sentencepiece;
    if (!loads)
        ifl_fail(error, IFL_E_DEVICE, "no modules are loaded, expected that of %s", wanted.needs);
    return loads ? loads(&wanted, error) : NULL;
}

/* Threads that come at the same time find the same module. */
int text_sentencepiece_load(struct ifl_error *error)
{
    if (!module)
        module = find(error);
    return module ? 0 : error->code;
}

struct text_sentencepiece *text_sentencepiece_open(const char *bytes, size_t n_bytes, char *why,
                                                   size_t size)
{
    return module->open(bytes, n_bytes, why, size);
}

void text_sentencepiece_close(struct text_sentencepiece *model)
{
    module->close(model);
}

int text_sentencepiece_encode(const struct text_sentencepiece *model, const char *text,
                              size_t n_bytes, int (*take)(void *self, const int *ids, size_t n),
                              void *self)
{
    return module->encode(model, text, n_bytes, take, self);
}

int text_sentencepiece_n(const struct text_sentencepiece *model)
{
    return module->n(model);
}

bool text_sentencepiece_by_words(const struct text_sentencepiece *model)
{
    return module->by_words(model);
}

bool text_sentencepiece_is_unigram(const struct text_sentencepiece *model)
{
    return module->is_unigram(model);
}

bool text_sentencepiece_keeps_ascii(const struct text_sentencepiece *model)
{
    return module->keeps_ascii(model);
}

int text_sentencepiece_normal(const struct text_sentencepiece *model, const char *text,
                              size_t n_bytes, int (*take)(void *self, const char *normal, size_t n),
                              void *self)
{
    return module->normal(model, text, n_bytes, take, self);
}

const char *text_sentencepiece_piece(const struct text_sentencepiece *model, int id, size_t *n)
{
    return module->piece(model, id, n);
}

double text_sentencepiece_score(const struct text_sentencepiece *model, int id)
{
    return module->score(model, id);
}

bool text_sentencepiece_is_unused(const struct text_sentencepiece *model, int id)
{
    return module->is_unused(model, id);
}

enum text_piece text_sentencepiece_kind(const struct text_sentencepiece *model, int id)
{
    return (enum text_piece)module->kind(model, id);
}

bool text_sentencepiece_drops_blank(const struct text_sentencepiece *model)
{
    return module->drops_blank(model);
}

int text_sentencepiece_begin(const struct text_sentencepiece *model)
{
    return module->begin(model);
}
