/* SentencePiece's tokenizers, for C: what the module inflight_sentencepiece exports. */
#ifndef TRACES_TEXT_SENTENCEPIECE_H
#define TRACES_TEXT_SENTENCEPIECE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct text_sentencepiece; /* a model */

#define TEXT_BLANK "\xe2\x96\x81" /* U+2581, which stands for a blank in pieces */

/* The functions are documented in text.h. */
struct text_sentencepiece_module {
    size_t n_bytes; /* of this struct */
    struct text_sentencepiece *(*open)(const char *bytes, size_t n_bytes, char *why, size_t size);
    void (*close)(struct text_sentencepiece *model);
    int (*encode)(const struct text_sentencepiece *model, const char *text, size_t n_bytes,
                  int (*take)(void *self, const int *ids, size_t n), void *self);
    int (*n)(const struct text_sentencepiece *model);
    bool (*by_words)(const struct text_sentencepiece *model);
    bool (*is_unigram)(const struct text_sentencepiece *model);
    bool (*keeps_ascii)(const struct text_sentencepiece *model);
    int (*normal)(const struct text_sentencepiece *model, const char *text, size_t n_bytes,
                  int (*take)(void *self, const char *normal, size_t n), void *self);
    const char *(*piece)(const struct text_sentencepiece *model, int id, size_t *n);
    double (*score)(const struct text_sentencepiece *model, int id);
    bool (*is_unused)(const struct text_sentencepiece *model, int id);
    int (*kind)(const struct text_sentencepiece *model, int id); /* enum text_piece */
    bool (*drops_blank)(const struct text_sentencepiece *model);
    int (*begin)(const struct text_sentencepiece *model);
};

/* Weak, as only tests link it; NULL elsewhere. */
__attribute__((
    weak,
    visibility("default"))) extern const struct text_sentencepiece_module inflight_sentencepiece;

#ifdef __cplusplus
}
#endif
#endif
